//! The start of a program that wants a large part of memory at once, when files fill it.

use crate::systems::two_handed::Tunables;

/// The memory before the start, in pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Full {
    /// All frames.
    pub pages: u64,
    /// Frames that hold pages of files.
    pub files: u64,
    /// Frames on the free list.
    pub free: u64,
}

/// Wake-ups of the scanner a second.
const WAKEUPS: f64 = 4.0;

/// Seconds to get `wanted` pages when a page of a file is free only once the scanner has passed it:
/// the two hands scan at the rate that free memory sets, and of what they pass only the files' share is
/// freed. `zeroed` pages are zeroed a second. Infinite if memory has not that many pages.
pub fn by_scanner(full: &Full, wanted: u64, tunables: &Tunables, zeroed: f64) -> f64 {
    let (mut free, mut files, mut got) = (full.free as f64, full.files as f64, 0.0);
    let wanted = wanted as f64;
    let mut seconds = 0.0;
    // Files' pages lie evenly, and the hands meet each once in a lap: before the lap is over the share
    // of them ahead stays what it was.
    let share = files / full.pages as f64;
    // The front hand goes ahead before the back hand can free anything.
    let mut ahead = f64::from(tunables.handspread);
    while got < wanted {
        // The program takes what is above throttlefree as fast as it can zero it.
        let taken = (free - f64::from(tunables.minfree)).clamp(0.0, zeroed / WAKEUPS).min(wanted - got);
        got += taken;
        free -= taken;
        let scanned =
            if free < f64::from(tunables.lotsfree) { f64::from(tunables.desscan(free as u32)) } else { 0.0 };
        let behind = (scanned - ahead).max(0.0);
        ahead = (ahead - scanned).max(0.0);
        let freed = (behind * share).min(files);
        files -= freed;
        free += freed;
        seconds += 1.0 / WAKEUPS;
        // Either nothing is scanned, or nothing is left that scanning could free.
        if taken == 0.0 && freed == 0.0 && (scanned == 0.0 || files <= 0.0) {
            return f64::INFINITY;
        }
    }
    seconds
}

/// Seconds when pages of files are on the cache list and can be had at once. Infinite if memory has not
/// that many pages.
pub fn from_cache_list(full: &Full, wanted: u64, zeroed: f64) -> f64 {
    if full.free + full.files < wanted { f64::INFINITY } else { wanted as f64 / zeroed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scanner_bounds_the_start() {
        let full = Full { pages: 1 << 20, files: 900_000, free: 20_000 };
        let tunables = Tunables::solaris(1 << 20, 8192);
        let scanner = by_scanner(&full, 800_000, &tunables, 131_072.0);
        // No faster than fastscan allows.
        assert!(scanner > 780_000.0 / f64::from(tunables.fastscan), "{scanner}");
        assert!((from_cache_list(&full, 800_000, 131_072.0) - 6.1).abs() < 0.1);
        assert!(from_cache_list(&full, 1 << 20, 1e5).is_infinite());
        assert!(by_scanner(&full, 1 << 20, &tunables, 131_072.0).is_infinite());
    }
}
