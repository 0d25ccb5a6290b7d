//! A zram device: whether it is pagelab's, and removing it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::files::number;
use crate::swap_area::{is_blank, is_labelled};

/// Where a device's number is written to remove it.
pub const REMOVE: &str = "/sys/class/zram-control/hot_remove";

/// The folder of a device in sysfs.
pub fn folder(device: u32) -> PathBuf {
    PathBuf::from(format!("/sys/block/zram{device}"))
}

/// Bytes of a device, 0 before it is given a size; `None` when there is none of that number.
fn size(device: u32) -> Option<u64> {
    number(folder(device).join("disksize"))
}

/// Whether `path` is the name of a zram device: `/dev/zramN`.
pub fn is_named(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let number = name.strip_prefix("zram").filter(|number| !number.is_empty());
    path.parent() == Some(Path::new("/dev")) && number.is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether there is no device at `path`, or one that pagelab has made swap of.
pub fn is_free_or_ours(path: &Path) -> bool {
    matches!(fs::symlink_metadata(path), Err(e) if e.kind() == io::ErrorKind::NotFound) || is_labelled(path)
}

/// Removes the device of this number, if it is the one that was made with `bytes` bytes;
/// `Ok(false)` when it is none or somebody else's by now. A busy one is tried again for `timeout`.
///
/// # Errors
/// What the kernel says.
pub fn remove(device: u32, bytes: u64, timeout: Duration) -> io::Result<bool> {
    let Some(size) = size(device) else { return Ok(false) };
    // Ours has our size and our header, or is not that far yet.
    let path = PathBuf::from(format!("/dev/zram{device}"));
    if size != 0 && (size != bytes || !is_labelled(&path) && !is_blank(&path)) {
        return Ok(false);
    }
    let deadline = Instant::now() + timeout;
    loop {
        match fs::write(REMOVE, device.to_string()) {
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other.map(|()| true),
        }
    }
}
