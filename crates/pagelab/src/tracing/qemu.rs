//! Which program is recorded, and which QEMU runs it: its file, and a user mode of QEMU's for its machine that loads plugins.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, anyhow, bail};

/// The program's file with its arguments: looked for in PATH, and a script's interpreter before it.
pub fn resolved(program: &[OsString]) -> Result<Vec<OsString>> {
    let mut words = program.to_vec();
    for _ in 0..4 {
        let file = in_path(Path::new(&words[0]))
            .ok_or_else(|| anyhow!("there is no program '{}'", words[0].to_string_lossy()))?;
        words[0] = file.clone().into();
        let mut head = [0; 256];
        let length = File::open(&file)
            .and_then(|mut opened| opened.read(&mut head))
            .with_context(|| format!("{} cannot be read", file.display()))?;
        let Some(line) = head[..length].strip_prefix(b"#!") else { return Ok(words) };
        let line = line.split(|&b| b == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line).trim().to_owned();
        let (interpreter, argument) =
            line.split_once(' ').map_or((&line[..], None), |(a, b)| (a, Some(b.trim())));
        let before = std::iter::once(interpreter).chain(argument).map(OsString::from);
        words.splice(0..0, before);
        // env executes what it is given, and would be a program of its own in the trace.
        if interpreter.ends_with("/env") {
            words.remove(0);
        }
    }
    bail!("{}: too many levels of scripts as interpreters", program[0].to_string_lossy())
}

fn in_path(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    all_in_path(program).next()
}

fn all_in_path(program: &Path) -> impl Iterator<Item = PathBuf> {
    let folders: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    folders.into_iter().map(move |folder| folder.join(program)).filter(|file| file.is_file())
}

/// QEMU's version.
pub struct Version {
    /// As it says it itself.
    pub words: String,
    /// 0 where it says none.
    pub major: u32,
}

/// The QEMU that runs the program: the first in PATH that loads plugins, else that of `scripts/qemu-user`.
///
/// # Errors
/// When there is none, and why.
pub fn runs(program: &Path) -> Result<(PathBuf, Version)> {
    let mut head = [0; 20];
    let mut file = File::open(program).with_context(|| format!("{}", program.display()))?;
    let read = file.read(&mut head).with_context(|| format!("{}", program.display()))?;
    let machine = match (read, &head) {
        (20, [0x7f, b'E', b'L', b'F', 2, 1, ..]) => u16::from_le_bytes([head[18], head[19]]),
        _ => bail!("{} is not a 64-bit program (ELF, little-endian)", program.display()),
    };
    let name = match machine {
        62 => "qemu-x86_64",
        183 => "qemu-aarch64",
        243 => "qemu-riscv64",
        other => {
            bail!("{}: programs of its machine (ELF number {other}) cannot be traced", program.display())
        }
    };
    let mut first = None;
    for qemu in all_in_path(Path::new(name)).chain(built(name)) {
        if said(&qemu, "--help").is_ok_and(|help| help.contains("-plugin")) {
            let words = said(&qemu, "--version")?.lines().next().unwrap_or_default().trim().to_owned();
            let number = words.split_whitespace().find_map(|word| word.split('.').next()?.parse().ok());
            return Ok((qemu, Version { major: number.unwrap_or(0), words }));
        }
        first = first.or(Some(qemu));
    }
    Err(match first {
        None => anyhow!("{name} is not installed\nhint: apt-get install qemu-user"),
        Some(qemu) => anyhow!(
            "{} has no plugins, which recording needs\nhint: scripts/qemu-user builds a QEMU with plugins",
            qemu.display()
        ),
    })
}

/// Where `scripts/qemu-user` has it, beside the folder that pagelab was built into.
fn built(name: &str) -> Option<PathBuf> {
    let file = std::env::current_exe().ok()?.parent()?.join("../qemu-user").join(name);
    file.is_file().then_some(file)
}

/// What it says when it is asked.
fn said(qemu: &Path, what: &str) -> Result<String> {
    let output = Command::new(qemu).arg(what).output().with_context(|| format!("{}", qemu.display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
