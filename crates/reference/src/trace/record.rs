//! One reference of a trace.

/// One reference of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The page: a number or an object of the trace, or a byte address divided by the page size.
    pub page: u64,
    /// Whether it is a write; `false` where the format does not say.
    pub write: bool,
    /// The process, where the format says it.
    pub pid: Option<u32>,
    /// Bytes that are asked for, where the format says it.
    pub bytes: Option<u64>,
    /// Pages that they lie in, from `page` on; of an object, pages of its own. 1 where the format
    /// does not say.
    pub span: u64,
}

impl Record {
    /// One page, or the byte at an address, that is read; nothing else is known.
    pub(super) fn of(page: u64) -> Self {
        Self { page, write: false, pid: None, bytes: None, span: 1 }
    }

    /// What is at a byte address until now as pages of `1 << shift` bytes.
    pub(super) fn in_pages(self, shift: u32) -> Self {
        let last = self.page.saturating_add(self.bytes.unwrap_or(1).max(1) - 1);
        let page = self.page >> shift;
        Self { page, span: (last >> shift) - page + 1, ..self }
    }

    /// An object, of which is known what it has in pages of `1 << shift` bytes.
    pub(super) fn object(object: u64, bytes: u64, shift: u32) -> Self {
        let span = ((bytes.max(1) - 1) >> shift) + 1;
        Self { bytes: Some(bytes), span, ..Self::of(object) }
    }
}

/// A hexadecimal number with or without `0x`.
pub(super) fn hexadecimal(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X")).unwrap_or(text);
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0, |n: u64, &b| Some(n << 4 | u64::from(char::from(b).to_digit(16)?)))
}
