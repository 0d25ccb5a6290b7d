//! Pairs of a name and a number, as most of the kernel's text files have them: `/proc/meminfo`,
//! `/proc/vmstat`, `/proc/PID/status`, `smaps` and `memory.stat`. Pure: it reads no file.

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

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text: String, name: String) {
            let _ = value(&text, &name);
        }
    }
}
