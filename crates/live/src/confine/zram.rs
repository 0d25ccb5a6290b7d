//! Swap of the run's own on a compressed RAM device: added, used, and removed again.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::journal::Journal;
use super::swap::{Problem, is_blank, is_labelled, on, write_header};
use super::undo::Undo;

const ADD: &str = "/sys/class/zram-control/hot_add";
/// Where a device's number is written to remove it.
pub const REMOVE: &str = "/sys/class/zram-control/hot_remove";

/// Whether this kernel adds zram devices.
pub fn available() -> bool {
    Path::new(ADD).exists()
}

/// The compressor that the device `number` uses.
pub fn compressor(number: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/sys/block/zram{number}/comp_algorithm")).ok()?;
    Some(crate::environment::chosen(text.trim()))
}

/// Adds a device of `bytes` bytes and switches swap on it.
pub fn add(bytes: u64, journal: &mut Journal) -> Result<(), Problem> {
    if !available() {
        return Err(Problem::Unavailable(
            "this kernel has no zram control; load it with: modprobe zram num_devices=0".into(),
        ));
    }
    let failed = |doing: &str| {
        let doing = doing.to_owned();
        move |e: io::Error| Problem::Failed(doing, e)
    };
    let noted = "the journal of the set-up cannot be written";
    // The kernel hands out the lowest free number: it is noted before it is asked for.
    let expected = (0..).find(|n| !folder(*n).exists()).expect("a free number");
    journal.enter(Undo::RemoveZram { device: expected, bytes }).map_err(failed(noted))?;
    let added = fs::read_to_string(ADD).map_err(failed("adding a zram device"))?;
    let device: u32 = added.trim().parse().map_err(|_| {
        Problem::Failed(
            "adding a zram device".into(),
            io::Error::other(format!("the kernel answers '{added}'")),
        )
    })?;
    if device != expected {
        journal.enter(Undo::RemoveZram { device, bytes }).map_err(failed(noted))?;
    }
    fs::write(folder(device).join("disksize"), bytes.to_string()).map_err(failed("sizing a zram device"))?;
    let path = PathBuf::from(format!("/dev/zram{device}"));
    let doing = format!("writing to {}", path.display());
    let file = wait_for(&path).map_err(failed(&doing))?;
    write_header(&file, bytes).and_then(|()| file.sync_all()).map_err(failed(&doing))?;
    drop(file);
    journal.enter(Undo::SwapOff { path: path.clone() }).map_err(failed(noted))?;
    on(&path).map_err(failed("switching swap on a zram device"))
}

/// The folder of a device in sysfs.
pub fn folder(device: u32) -> PathBuf {
    PathBuf::from(format!("/sys/block/zram{device}"))
}

/// Bytes of a device, 0 before it is given a size; `None` when there is none of that number.
fn size(device: u32) -> Option<u64> {
    fs::read_to_string(folder(device).join("disksize")).ok()?.trim().parse().ok()
}

/// Whether `path` is a zram device that pagelab has made swap of, or there is none of that name. Any other
/// device is somebody else's.
pub fn is_free_or_ours(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let number = name.strip_prefix("zram").filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
    if number.is_none() || path.parent() != Some(Path::new("/dev")) {
        return false;
    }
    matches!(fs::symlink_metadata(path), Err(e) if e.kind() == io::ErrorKind::NotFound) || is_labelled(path)
}

/// Removes the device of this number, if it is the one that was made with `bytes` bytes; `Ok(false)` when it is
/// none or somebody else's by now. A busy one is tried again for `timeout`.
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

/// Opens the device's node, which udev or devtmpfs may take a moment to make.
fn wait_for(path: &Path) -> io::Result<fs::File> {
    let deadline = Instant::now() + Duration::from_secs(2);
    loop {
        match OpenOptions::new().read(true).write(true).open(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
}
