//! What the guest's kernel said.

/// Lines that a message quotes.
const LAST: usize = 12;

/// The last lines that tell something, without colours and returns.
pub fn last_lines(console: &[u8]) -> String {
    let text = clean(console);
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(LAST)..].join("\n  ")
}

/// The whole text without escape sequences and returns.
pub fn clean(console: &[u8]) -> String {
    let text = String::from_utf8_lossy(console);
    let mut out = String::with_capacity(text.len());
    let mut escape = false;
    for c in text.chars() {
        match c {
            '\u{1b}' => escape = true,
            _ if escape => escape = !c.is_ascii_alphabetic(),
            '\r' => {}
            c if c == '\n' || c == '\t' || !c.is_control() => out.push(c),
            _ => {}
        }
    }
    out
}

/// Whether the kernel said that it cannot go on.
pub fn panicked(console: &[u8]) -> bool {
    let text = String::from_utf8_lossy(console);
    text.contains("Kernel panic - not syncing") || text.contains("end Kernel panic")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_without_colours() {
        assert_eq!(last_lines(b"a\r\n\x1b[31mred\x1b[0m\r\n\r\n"), "a\n  red");
        assert!(panicked(b"[ 1.0] Kernel panic - not syncing: VFS") && !panicked(b"calm"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let _ = last_lines(&bytes);
        }
    }
}
