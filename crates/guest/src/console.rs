//! What the guest's kernel said.

/// Lines that a message quotes.
const LAST: usize = 12;

/// Of the lines that a message quotes, those from the first one that reports an error.
const FIRST: usize = 6;

/// Marks the first line of an error report (`arch/x86/kernel/dumpstack.c`, `lib/bug.c`,
/// `kernel/panic.c`).
const ERRORS: [&str; 7] = [
    "BUG: ",
    "Oops: ",
    "int3: ",
    "invalid opcode:",
    "general protection fault",
    "kernel BUG at ",
    "Kernel panic - ",
];

/// The last lines that tell something, without colours and returns. A report of an error that
/// begins before them is quoted from its first line on.
pub fn last_lines(console: &[u8]) -> String {
    let text = clean(console);
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let last = lines.len().saturating_sub(LAST);
    match lines[..last].iter().position(|line| ERRORS.iter().any(|error| line.contains(error))) {
        Some(first) => {
            let first = &lines[first..lines.len().min(first + FIRST)];
            let last = &lines[lines.len() - (LAST - FIRST)..];
            [first, &["…"], last].concat().join("\n  ")
        }
        None => lines[last..].join("\n  "),
    }
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

    #[test]
    fn a_report_is_quoted_from_its_first_line() {
        // As Linux 6.12 and 6.1 print it.
        for report in ["Oops: int3: 0000 [#1] PREEMPT SMP NOPTI", "int3: 0000 [#1] PREEMPT SMP NOPTI"] {
            let text = (1..=40).map(|n| match n {
                5 => format!("[ 2.0] {report}\n"),
                n => format!("line {n}\n"),
            });
            let quoted = last_lines(text.collect::<String>().as_bytes());
            let quoted: Vec<&str> = quoted.lines().map(str::trim).collect();
            assert!(quoted[0].contains(report) && quoted[5] == "line 10", "{quoted:?}");
            assert_eq!(quoted[6..], ["…", "line 35", "line 36", "line 37", "line 38", "line 39", "line 40"]);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let _ = last_lines(&bytes);
        }
    }
}
