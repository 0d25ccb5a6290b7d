//! `slabinfo:0:CACHE:*`: the kernel's object caches, from /proc/slabinfo (root only).

use crate::root::Root;
use crate::sink::Sink;
use crate::value::Unit;

pub fn read(root: &Root, sink: &mut Sink<'_>) {
    let Some(text) = root.read("proc/slabinfo") else { return };
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.starts_with("slabinfo")) {
        // name active num size per_slab pages_per_slab : tunables … : slabdata active_slabs slabs shared
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let Some(mut cache) = words.first().and_then(|name| sink.group(0, name)) else { continue };
        let number = |i: usize| words.get(i).and_then(|w| w.parse::<u64>().ok());
        let slabs = words.iter().position(|w| *w == "slabdata").and_then(|i| number(i + 2));
        cache.gauge("active_objects", number(1), Unit::Count);
        cache.gauge("objects", number(2), Unit::Count);
        cache.gauge("object_size", number(3), Unit::Bytes);
        cache.gauge("slabs", slabs, Unit::Count);
        let size =
            slabs.zip(number(5)).map(|(n, pages)| n.saturating_mul(pages).saturating_mul(root.page_size()));
        cache.gauge("size", size, Unit::Bytes);
    }
}
