//! Plain page numbers: text, a decimal number a line, or binary numbers of 64 or 32 bits.
//!
//! In text, a byte order mark at the beginning, empty lines, lines that begin with `#`, and the lone `*` that ends some published traces
//! are passed over.

/// The byte order mark that some editors put before UTF-8.
pub(super) const BOM: &[u8] = b"\xef\xbb\xbf";

/// The page number of a line of text.
pub(super) fn number(line: &[u8]) -> Option<u64> {
    let digits = line.trim_ascii();
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |n, &b| {
        let digit = b.is_ascii_digit().then(|| u64::from(b - b'0'))?;
        n.checked_mul(10)?.checked_add(digit)
    })
}

/// Whether a line of text says nothing.
pub(super) fn is_blank(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.is_empty() || line == b"*" || line.starts_with(b"#")
}
