//! `swaps:N:DEVICE:*`: the swap areas, from /proc/swaps.

use crate::root::Root;
use crate::sink::Sink;
use crate::value::Unit;

pub fn read(root: &Root, sink: &mut Sink<'_>) {
    let Some(text) = root.read("proc/swaps") else { return };
    for (instance, line) in text.lines().skip(1).enumerate() {
        // The device's name comes first and has its blanks written as \040.
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [device, kind, size, used, priority, ..] = words[..] else { continue };
        let Some(mut group) = sink.group(instance as u64, device) else { continue };
        let bytes = |word: &str| word.parse::<u64>().ok().map(|kb| kb.saturating_mul(1024));
        group.text("type", Some(kind));
        group.gauge("size", bytes(size), Unit::Bytes);
        group.gauge("used", bytes(used), Unit::Bytes);
        group.gauge("priority", priority.parse::<i64>().ok(), Unit::None);
    }
}
