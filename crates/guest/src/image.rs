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
    /// The size of its base pages, bytes.
    pub page_size: u64,
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
        "{0} is not a kernel image that can be booted here\nhint: name a bzImage (/boot/vmlinuz-…) or an arm64 \
        Image"
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
        // A FIFO or a device may never give a byte.
        if path.metadata().is_ok_and(|there| !there.is_file()) {
            return Err(ImageError::Foreign(path.to_owned()));
        }
        File::open(path)
            .and_then(|file| file.take(HEAD).read_to_end(&mut head))
            .map_err(|e| ImageError::Io(path.to_owned(), e))?;
        let Header { machine, page_size, release } =
            inspect(&head).ok_or_else(|| ImageError::Foreign(path.to_owned()))?;
        // An arm64 Image does not say; its package names it after its release.
        let named = || Some(path.file_name()?.to_str()?.strip_prefix("vmlinuz-")?.to_owned());
        let release = release.or_else(named);
        Ok(Self { path: path.to_owned(), machine, page_size, release })
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

/// What the first bytes of an image say.
#[derive(Debug, PartialEq, Eq)]
struct Header {
    machine: Machine,
    page_size: u64,
    release: Option<String>,
}

/// The header in the first bytes of an image.
///
/// x86: Documentation/arch/x86/boot.rst, the header's magic at 0x202 and the place of the version's
/// text at 0x20e. arm64: Documentation/arch/arm64/booting.rst, the magic at 56, the page size in
/// bits 1 and 2 of the flags at 24 (0, before 4.6: unspecified, and taken for the usual one).
fn inspect(head: &[u8]) -> Option<Header> {
    if head.get(0x202..0x206) == Some(b"HdrS") {
        let place = usize::from(u16::from_le_bytes([*head.get(0x20e)?, *head.get(0x20f)?])) + 0x200;
        let text = head.get(place..).unwrap_or_default();
        let end = text.iter().position(|&b| b == 0 || b == b' ').unwrap_or(0).min(128);
        let release = String::from_utf8_lossy(&text[..end]).into_owned();
        let release = (!release.is_empty() && place > 0x200).then_some(release);
        return Some(Header { machine: Machine::X86_64, page_size: 4 << 10, release });
    }
    let page_size = match head.get(24)? >> 1 & 3 {
        2 => 16 << 10,
        3 => 64 << 10,
        _ => 4 << 10,
    };
    let magic = head.get(56..60) == Some(b"ARM\x64");
    magic.then_some(Header { machine: Machine::Aarch64, page_size, release: None })
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
        let release = Some("6.1.0-x".into());
        assert_eq!(inspect(&head), Some(Header { machine: Machine::X86_64, page_size: 4096, release }));
        let mut arm = vec![0; 64];
        arm[56..60].copy_from_slice(b"ARM\x64");
        for (flags, page_size) in [(0, 4096), (0b010, 4096), (0b1100, 16384), (0b1110, 65536)] {
            arm[24] = flags;
            let wanted = Header { machine: Machine::Aarch64, page_size, release: None };
            assert_eq!(inspect(&arm), Some(wanted), "{flags:b}");
        }
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
