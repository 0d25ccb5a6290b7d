//! `mglru:NODE:CGROUP:*`: the generations of the multi-generational LRU, from
//! /sys/kernel/debug/lru_gen, and `mglru:0:settings:*` from /sys/kernel/mm/lru_gen (since 6.1, where
//! built in).

use super::fields::from_ms;
use crate::root::Root;
use crate::sink::Sink;
use crate::value::Unit;

pub fn read(root: &Root, sink: &mut Sink<'_>) {
    if let Some(mut settings) = sink.group(0, "settings") {
        settings.text("enabled", root.line("sys/kernel/mm/lru_gen/enabled").as_deref());
        settings.gauge(
            "min_ttl",
            root.number("sys/kernel/mm/lru_gen/min_ttl_ms").map(from_ms),
            Unit::Nanoseconds,
        );
    }
    let Some(text) = root.read("sys/kernel/debug/lru_gen") else { return };
    let (mut cgroup, mut node) = ("", 0);
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            ["memcg", _, path] => cgroup = path,
            ["memcg", _] => cgroup = "/",
            ["node", number] => node = number.parse().unwrap_or(0),
            // generation, age of its birth in ms, anonymous and file pages
            [generation, age, anon, file] => {
                let Some(mut group) = sink.group(node, cgroup).filter(|_| generation.parse::<u64>().is_ok())
                else {
                    continue;
                };
                let number = |word: &str| word.parse::<u64>().ok();
                group.gauge(
                    format!("generation{generation}_age"),
                    number(age).map(from_ms),
                    Unit::Nanoseconds,
                );
                group.gauge(format!("generation{generation}_anon"), number(anon), Unit::Pages);
                group.gauge(format!("generation{generation}_file"), number(file), Unit::Pages);
            }
            _ => {}
        }
    }
}
