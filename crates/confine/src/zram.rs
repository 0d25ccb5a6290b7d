//! Swap of the run's own on a compressed RAM device: added, used, and removed again.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pagelab_kernel::settings;
use pagelab_kernel::swap_area::{on, write_header};
use pagelab_kernel::zram::folder;

use super::journal::Journal;
use super::problem::{Problem, not_noted};
use super::swap::unavailable;
use super::undo::Undo;

const ADD: &str = "/sys/class/zram-control/hot_add";

/// Whether this kernel adds zram devices.
pub fn available() -> bool {
    Path::new(ADD).exists()
}

/// The compressor that the device `number` uses.
pub fn compressor(number: u32) -> Option<String> {
    settings::read(&folder(number).join("comp_algorithm")).ok()
}

/// Adds a device of `bytes` bytes and switches swap on it.
pub fn add(bytes: u64, journal: &mut Journal) -> Result<(), Problem> {
    if !available() {
        let why = "this kernel has no zram control; load it with: modprobe zram num_devices=0";
        return Err(unavailable(why));
    }
    let failed = |doing: &str| {
        let doing = doing.to_owned();
        move |e: io::Error| Problem::Failed(doing, e)
    };
    // The kernel hands out the lowest free number: it is noted before it is asked for.
    let expected = (0..).find(|n| !folder(*n).exists()).expect("a free number");
    journal.enter(Undo::RemoveZram { device: expected, bytes }).map_err(not_noted)?;
    let added = fs::read_to_string(ADD).map_err(failed("adding a zram device"))?;
    let device: u32 = added.trim().parse().map_err(|_| {
        Problem::Failed(
            "adding a zram device".into(),
            io::Error::other(format!("the kernel answers '{added}'")),
        )
    })?;
    if device != expected {
        journal.enter(Undo::RemoveZram { device, bytes }).map_err(not_noted)?;
    }
    fs::write(folder(device).join("disksize"), bytes.to_string()).map_err(failed("sizing a zram device"))?;
    let path = PathBuf::from(format!("/dev/zram{device}"));
    let doing = format!("writing to {}", path.display());
    let file = wait_for(&path).map_err(failed(&doing))?;
    write_header(&file, bytes).and_then(|()| file.sync_all()).map_err(failed(&doing))?;
    drop(file);
    journal.enter(Undo::SwapOff { path: path.clone() }).map_err(not_noted)?;
    on(&path).map_err(failed("switching swap on a zram device"))
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
