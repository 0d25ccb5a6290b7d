//! What is looked at of a program: the processor that it is for, the loader and the libraries that it asks for, and how
//! much of its file is ever loaded.

use std::path::PathBuf;

use object::LittleEndian;
use object::elf::{
    DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_STRTAB, Dyn64, FileHeader64, PT_LOAD, ProgramHeader64,
};
use object::endian::{U16, U64};
use object::pod::from_bytes_mut;
use object::read::elf::{Dyn, FileHeader, ProgramHeader};

use crate::image::Machine;

type Header = FileHeader64<LittleEndian>;

/// The parts of a 64-bit program; `None` when it is none.
fn parts(elf: &[u8]) -> Option<&[ProgramHeader64<LittleEndian>]> {
    Header::parse(elf).ok()?.program_headers(LittleEndian, elf).ok()
}

/// Whether it is a program for `machine`.
pub fn is_for(elf: &[u8], machine: Machine) -> bool {
    Header::parse(elf).is_ok_and(|header| header.e_machine(LittleEndian).0 == machine.name().1)
}

/// The loader that a program asks for.
pub fn interpreter(elf: &[u8]) -> Option<PathBuf> {
    let path = parts(elf)?.iter().find_map(|part| part.interpreter(LittleEndian, elf).ok()?)?;
    Some(PathBuf::from(std::str::from_utf8(path).ok()?))
}

/// What a program or a library asks its loader for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Libraries by name.
    pub libraries: Vec<String>,
    /// Folders in which to look first; `$ORIGIN` is the file's own.
    pub folders: Vec<String>,
}

/// What is in the dynamic section; nothing of a static program.
pub fn wanted(elf: &[u8]) -> Wanted {
    let mut wanted = Wanted::default();
    let Some(parts) = parts(elf) else { return wanted };
    let entries = parts.iter().find_map(|part| part.dynamic(LittleEndian, elf).ok()?).unwrap_or_default();
    let tagged = |wanted| entries.iter().filter(move |one| one.d_tag(LittleEndian) == wanted);
    let Some(texts) = tagged(DT_STRTAB).next().map(|one| one.d_val(LittleEndian)) else { return wanted };
    // An address, which one of the loaded parts has.
    let place = parts.iter().filter(|part| part.p_type(LittleEndian) == PT_LOAD).find_map(|part| {
        let (from, length) = part.file_range(LittleEndian);
        let within = texts.checked_sub(part.p_vaddr(LittleEndian)).filter(|&within| within < length)?;
        usize::try_from(from.checked_add(within)?).ok()
    });
    let Some(texts) = place.and_then(|at| elf.get(at..)) else { return wanted };
    let text = |one: &Dyn64<LittleEndian>| {
        let rest = texts.get(usize::try_from(one.d_val(LittleEndian)).ok()?..)?;
        let end = rest.iter().position(|&byte| byte == 0)?;
        Some(std::str::from_utf8(&rest[..end]).ok()?.to_owned())
    };
    wanted.libraries.extend(tagged(DT_NEEDED).filter_map(text));
    for folders in tagged(DT_RPATH).chain(tagged(DT_RUNPATH)).filter_map(text) {
        wanted.folders.extend(folders.split(':').filter(|one| !one.is_empty()).map(str::to_owned));
    }
    wanted
}

/// The program without what is never loaded, symbols and lines for debuggers: two thirds of one that was
/// built for development. They stand behind the rest, and the header forgets them.
pub fn loaded(mut elf: Vec<u8>) -> Vec<u8> {
    let loads = parts(&elf).into_iter().flatten().filter(|part| part.p_type(LittleEndian) == PT_LOAD);
    let end = loads.map(|part| {
        let (from, length) = part.file_range(LittleEndian);
        from.saturating_add(length)
    });
    let end = end.max().and_then(|end| usize::try_from(end).ok());
    let whole = size_of::<Header>()..elf.len();
    if let Some(end) = end.filter(|end| whole.contains(end)) {
        elf.truncate(end);
        if let Ok((header, _)) = from_bytes_mut::<Header>(&mut elf) {
            header.e_shoff = U64::new(LittleEndian, 0);
            header.e_shentsize = U16::new(LittleEndian, 0);
            header.e_shnum = U16::new(LittleEndian, 0);
            header.e_shstrndx = Default::default();
        }
    }
    elf
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;
    use std::io::Write;

    #[test]
    fn a_program_runs_without_what_is_not_loaded() {
        use std::os::unix::fs::OpenOptionsExt;
        let whole = fs::read("/proc/self/exe").unwrap();
        let short = loaded(whole.clone());
        assert!(short.len() < whole.len());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("short");
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o700).open(&path).unwrap();
        file.write_all(&short).unwrap();
        drop(file);
        // A process that another test starts at this moment may still have the file open for writing.
        let run = || std::process::Command::new(&path).arg("--list").output();
        let output = (0..100).find_map(|_| {
            run().inspect_err(|_| std::thread::sleep(std::time::Duration::from_millis(50))).ok()
        });
        let output = output.expect("it can be started");
        assert!(String::from_utf8_lossy(&output.stdout).contains("this_program_is_whole"));
    }

    #[test]
    fn a_program_names_its_libraries() {
        let own = fs::read("/proc/self/exe").unwrap();
        let asked = wanted(&own);
        assert_eq!(
            asked.libraries.iter().any(|name| name.starts_with("libc.so")),
            interpreter(&own).is_some()
        );
        assert_eq!(wanted(b"#!/bin/sh"), Wanted::default());
    }

    #[test]
    fn what_is_left_out_stands_behind_what_is_loaded() {
        let whole = fs::read("/proc/self/exe").unwrap();
        let short = loaded(whole.clone());
        assert_eq!(short[64..], whole[64..short.len()], "only the header changes");
        assert_eq!(loaded(short.clone()), short);
        assert_eq!(interpreter(&short), interpreter(&whole));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(mut bytes: Vec<u8>, elf: bool) {
            if elf && bytes.len() > 64 {
                bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
            }
            let _ = (interpreter(&bytes), wanted(&bytes), is_for(&bytes, Machine::X86_64), loaded(bytes));
        }
    }
}
