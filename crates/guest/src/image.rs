//! A kernel image: what it is, which release, and where its modules are.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The processor that an image is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// A bzImage.
    X86_64,
    /// An arm64 Image.
    Aarch64,
}

/// A kernel image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The file.
    pub path: PathBuf,
    /// For which processor.
    pub machine: Machine,
    /// `uname -r`, where the image or its name says so.
    pub release: Option<String>,
}

/// Why a file is no image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// It cannot be read.
    #[error("the kernel image {0} cannot be read: {1}")]
    Io(PathBuf, std::io::Error),
    /// It is something else.
    #[error(
        "{0} is no kernel image that can be booted here: name a bzImage (/boot/vmlinuz-…) or an arm64 Image"
    )]
    Foreign(PathBuf),
}

/// As much of an image as is looked at: the x86 header and the version's text are in its first sectors.
const HEAD: u64 = 64 << 10;

impl Machine {
    /// The kernel's own name of it, and the number that programs for it carry (ELF's `e_machine`).
    pub fn name(self) -> (&'static str, u16) {
        match self {
            Self::X86_64 => ("x86_64", 62),
            Self::Aarch64 => ("aarch64", 183),
        }
    }
}

impl Image {
    /// Looks at the file.
    ///
    /// # Errors
    /// See [`ImageError`].
    pub fn open(path: &Path) -> Result<Self, ImageError> {
        let mut head = Vec::new();
        File::open(path)
            .and_then(|file| file.take(HEAD).read_to_end(&mut head))
            .map_err(|e| ImageError::Io(path.to_owned(), e))?;
        let (machine, release) = inspect(&head).ok_or_else(|| ImageError::Foreign(path.to_owned()))?;
        // An arm64 Image does not say; its package names it after its release.
        let named = || Some(path.file_name()?.to_str()?.strip_prefix("vmlinuz-")?.to_owned());
        let release = release.or_else(named);
        Ok(Self { path: path.to_owned(), machine, release })
    }

    /// The folder of the image's modules: beside an unpacked package (`…/boot/vmlinuz` and
    /// `…/lib/modules/RELEASE`), else the system's. `None` when there is none.
    pub fn modules(&self) -> Option<PathBuf> {
        let release = self.release.as_ref()?;
        // Behind a link is where the package was unpacked.
        let real = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let beside = real.parent().and_then(Path::parent).map(|root| root.join("lib/modules").join(release));
        let system = Path::new("/lib/modules").join(release);
        beside
            .into_iter()
            .chain([system])
            .find(|folder| folder.join("modules.dep").exists() || folder.join("kernel").exists())
    }
}

/// Machine and release from the first bytes of an image.
///
/// x86: Documentation/arch/x86/boot.rst, the header's magic at 0x202 and the place of the version's
/// text at 0x20e. arm64: Documentation/arch/arm64/booting.rst, the magic at 56.
fn inspect(head: &[u8]) -> Option<(Machine, Option<String>)> {
    if head.get(0x202..0x206) == Some(b"HdrS") {
        let place = usize::from(u16::from_le_bytes([*head.get(0x20e)?, *head.get(0x20f)?])) + 0x200;
        let text = head.get(place..).unwrap_or_default();
        let end = text.iter().position(|&b| b == 0 || b == b' ').unwrap_or(0).min(128);
        let release = String::from_utf8_lossy(&text[..end]).into_owned();
        return Some((Machine::X86_64, (!release.is_empty() && place > 0x200).then_some(release)));
    }
    (head.get(56..60) == Some(b"ARM\x64")).then_some((Machine::Aarch64, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_header_by_hand() {
        let mut head = vec![0; 0x400];
        head[0x202..0x206].copy_from_slice(b"HdrS");
        head[0x20e..0x210].copy_from_slice(&0x100u16.to_le_bytes());
        head[0x300..0x30a].copy_from_slice(b"6.1.0-x (b");
        assert_eq!(inspect(&head), Some((Machine::X86_64, Some("6.1.0-x".into()))));
        let mut arm = vec![0; 64];
        arm[56..60].copy_from_slice(b"ARM\x64");
        assert_eq!(inspect(&arm), Some((Machine::Aarch64, None)));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..2000), header: bool) {
            if header && bytes.len() > 0x206 {
                bytes[0x202..0x206].copy_from_slice(b"HdrS");
            }
            let _ = inspect(&bytes);
        }
    }
}
