//! What several of the kernel's text files have in common. Pairs of a name and a number are in most of them:
//! `/proc/meminfo`, `/proc/vmstat`, `/proc/PID/status`, `smaps` and `memory.stat`. Pure: it reads no file.

use std::ops::Range;

/// The pairs of `NAME VALUE` or `NAME: VALUE kB`, one per line, the latter in bytes. Other lines
/// are left out.
pub fn pairs(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().filter_map(pair)
}

/// The pair of one line.
pub fn pair(line: &str) -> Option<(&str, u64)> {
    let mut words = line.split_ascii_whitespace();
    let name = words.next()?.trim_end_matches(':');
    let value: u64 = words.next()?.parse().ok()?;
    match words.next() {
        Some("kB") => Some((name, value.saturating_mul(1024))),
        _ => Some((name, value)),
    }
}

/// The first value of `name`.
pub fn value(text: &str, name: &str) -> Option<u64> {
    pairs(text).find(|(found, _)| *found == name).map(|(_, value)| value)
}

/// The capabilities in force, a bit each, of a `/proc/PID/status`.
pub fn capabilities(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// The addresses at the beginning of a mapping's line in `maps` and `smaps`: `START-END …`.
pub fn addresses(line: &str) -> Option<Range<u64>> {
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
}

/// The numbers of a list of processors or nodes: `0-2,5`.
pub fn list(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

/// The word in brackets, as sysfs marks the choice in force; all of it when there is none.
pub fn chosen(text: &str) -> &str {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_have_their_whole_name_and_their_unit() {
        let text = "MemFree:  10 kB\n\nnr_free 7\nbad\nworse x\nHugePages_Total:       3\nVmRSS:\t 520 kB\nRss: x kB\n";
        let found: Vec<_> = pairs(text).collect();
        assert_eq!(found, [("MemFree", 10_240), ("nr_free", 7), ("HugePages_Total", 3), ("VmRSS", 532_480)]);
        assert_eq!(
            (value(text, "nr_free"), value(text, "nr_fre"), value(text, "Rss")),
            (Some(7), None, None)
        );
    }

    #[test]
    fn lists_choices_addresses_and_masks_are_read() {
        assert_eq!(list("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(list("3"), [3]);
        assert!(list("\n").is_empty());
        assert_eq!((chosen("always [madvise] never"), chosen("tsc")), ("madvise", "tsc"));
        assert_eq!(addresses("7f00-7f10 rw-p 0 00:00 0 [heap]"), Some(0x7f00..0x7f10));
        assert_eq!(addresses("no range"), None);
        assert_eq!((capabilities("Name:\tx\nCapEff:\t0000000000200001\n"), capabilities("")), (0x20_0001, 0));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text: String, name: String) {
            let _ = (value(&text, &name), capabilities(&text), addresses(&text), chosen(&text));
        }
    }
}
