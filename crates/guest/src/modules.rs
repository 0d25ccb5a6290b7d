//! The modules that a guest needs, in the order in which they must be loaded, uncompressed.

use std::fs;
use std::io;
use std::path::Path;

/// What is wanted: the way to the disks, the line for messages where it is no serial port, and zram with
/// what it compresses with before Linux 6.12. A kernel that has one built in has no such module, and needs
/// none.
pub const WANTED: &[&str] = &["virtio_pci", "virtio_blk", "virtio_console", "lzo_rle", "zram"];

/// What is wanted besides for a disk of files.
pub const FILES: &[&str] = &["crc32c_generic", "ext4"];

/// A module: its file's name without folders and endings, and its content.
pub struct Module {
    /// Such as `virtio_blk`.
    pub name: String,
    /// The ELF file.
    pub content: Vec<u8>,
}

/// The wanted modules below `folder` (`/lib/modules/RELEASE`) and those they depend on, dependencies
/// first.
///
/// # Errors
/// When a file cannot be read or unpacked.
pub fn load(folder: &Path, wanted: &[&str]) -> io::Result<Vec<Module>> {
    let table = match fs::read_to_string(folder.join("modules.dep")) {
        Ok(text) => text,
        // An unpacked package has none until depmod has run: every file stands for itself.
        Err(e) if e.kind() == io::ErrorKind::NotFound => dependencies(folder, wanted)?,
        Err(e) => return Err(e),
    };
    order(&table, wanted)
        .into_iter()
        .map(|path| {
            let content = unpack(&path, fs::read(folder.join(&path))?)
                .map_err(|e| io::Error::new(e.kind(), format!("the module {path}: {e}")))?;
            Ok(Module { name: name(&path).to_owned(), content })
        })
        .collect()
}

/// The name of a module's file, with `_` for `-`.
fn name(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split_once(".ko").map_or(file, |(name, _)| name)
}

/// The paths of the wanted modules after those that each depends on, from the lines `PATH: PATH…` of a
/// modules.dep.
fn order(table: &str, wanted: &[&str]) -> Vec<String> {
    let same = |path: &str, wanted: &str| name(path).replace('-', "_") == wanted;
    let mut list: Vec<String> = Vec::new();
    for module in wanted {
        let line = table.lines().filter_map(|line| line.split_once(':')).find(|(path, _)| same(path, module));
        let Some((path, needs)) = line else { continue };
        // A line names all that is needed, the deepest last.
        for path in needs.split_whitespace().rev().chain([path]) {
            if !list.iter().any(|known| known == path) {
                list.push(path.to_owned());
            }
        }
    }
    list
}

/// A modules.dep made from what the modules below `folder` say of themselves (`depends=` in their
/// information section).
fn dependencies(folder: &Path, wanted: &[&str]) -> io::Result<String> {
    let mut files = Vec::new();
    collect(folder, &folder.join("kernel"), &mut files)?;
    let find =
        |wanted: &str| files.iter().find(|path| name(path).replace('-', "_") == wanted.replace('-', "_"));
    let mut table = String::new();
    for wanted in wanted {
        let Some(path) = find(wanted) else { continue };
        let mut needs: Vec<String> = Vec::new();
        let mut open = vec![path.clone()];
        while let Some(path) = open.pop() {
            let content = unpack(&path, fs::read(folder.join(&path))?)?;
            for need in depends(&content) {
                if let Some(found) = find(&need) {
                    // Seen again, it is needed earlier.
                    needs.retain(|known| known != found);
                    needs.push(found.clone());
                    open.push(found.clone());
                }
            }
        }
        table += &format!("{path}: {}\n", needs.join(" "));
    }
    Ok(table)
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            collect(root, &entry.path(), files)?;
        } else if let (true, Ok(below)) =
            (entry.file_name().to_string_lossy().contains(".ko"), entry.path().strip_prefix(root))
        {
            files.push(below.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

/// The names behind `depends=` in a module.
fn depends(content: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let place = content.windows(KEY.len()).position(|window| window == KEY);
    let Some(rest) = place.and_then(|at| content.get(at + KEY.len()..)) else { return Vec::new() };
    let end = rest.iter().position(|&b| b == 0).unwrap_or(0);
    String::from_utf8_lossy(&rest[..end]).split(',').filter(|n| !n.is_empty()).map(str::to_owned).collect()
}

fn unpack(path: &str, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    use std::io::Read;
    let mut content = Vec::new();
    if path.ends_with(".xz") {
        lzma_rust2::XzReader::new(bytes.as_slice(), true).read_to_end(&mut content)?;
    } else if path.ends_with(".gz") {
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut content)?;
    } else if path.ends_with(".zst") {
        content = zstd::decode_all(bytes.as_slice())?;
    } else {
        content = bytes;
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dependencies_come_first_and_once() {
        let table = "kernel/b/virtio_blk.ko: kernel/v/virtio_ring.ko.xz kernel/v/virtio.ko.xz\n\
                     kernel/v/virtio-pci.ko.xz: kernel/v/virtio_ring.ko.xz kernel/v/virtio.ko.xz\n";
        let found = order(table, WANTED);
        let names: Vec<&str> = found.iter().map(|path| name(path)).collect();
        assert_eq!(names, ["virtio", "virtio_ring", "virtio-pci", "virtio_blk"]);
    }

    #[test]
    fn module_dependencies_are_found() {
        assert_eq!(depends(b"x\0depends=a,b-c\0y"), ["a", "b-c"]);
        assert!(depends(b"x\0depends=\0").is_empty() && depends(b"").is_empty());
    }

    /// `printf 'a module' | xz --check=crc32`
    const XZ: &[u8] = b"\xfd7zXZ\0\0\x01i\"\xde6\x02\0!\x01\x16\0\0\0t/\xe5\xa3\x01\0\x07a module\0[\xc18\x0b\0\x01\x1c\x08D`*\xc8\x90B\x99\r\x01\0\0\0\0\x01YZ";

    #[test]
    fn packed_modules_are_unpacked() {
        let plain = b"a module".to_vec();
        assert_eq!(unpack("x.ko.zst", zstd::encode_all(plain.as_slice(), 3).unwrap()).unwrap(), plain);
        assert_eq!(unpack("x.ko.xz", XZ.to_vec()).unwrap(), plain);
        assert_eq!(unpack("x.ko", plain.clone()).unwrap(), plain);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text: String, bytes: Vec<u8>) {
            let _ = (order(&text, WANTED), depends(&bytes));
            for ending in ["x.ko.xz", "x.ko.gz", "x.ko.zst"] {
                let _ = unpack(ending, bytes.clone());
            }
        }
    }
}
