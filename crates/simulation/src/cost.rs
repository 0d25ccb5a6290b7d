//! What a computation on a stream takes of this machine's memory, refused before it is taken where that is too much.

use anyhow::{Result, bail};
use pagelab_reference::room::{available, can_be_had};

/// The most memory that something takes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Bytes a page.
    pub page: u64,
    /// Bytes a reference.
    pub reference: u64,
}

/// What a stream in memory takes.
pub const STREAM: Cost = Cost { page: 0, reference: 4 };
/// What numbering the pages of a trace takes beside it: the table while it grows, and the list while it does.
pub const NUMBERING: Cost = Cost { page: 72, reference: 4 };

impl Cost {
    /// Both at once.
    pub fn and(&self, other: &Self) -> Self {
        Self { page: self.page + other.page, reference: self.reference + other.reference }
    }

    /// Refuses to take so much, and `more` bytes, of this machine's memory: see [`allow`].
    ///
    /// # Errors
    /// The figure and the remedy.
    pub fn allow(&self, pages: u64, references: u64, more: u64) -> Result<()> {
        let (pages, references) =
            (self.page.saturating_mul(pages), self.reference.saturating_mul(references));
        let bytes = pages.saturating_add(references).saturating_add(more);
        allow(bytes, "use fewer --pages or --references, a shorter trace, or 'mrc --sample SHARE'")
    }
}

/// `bytes`, or a quarter of the available memory if that is less.
pub fn affordable(bytes: u64) -> u64 {
    available().map_or(bytes, |available| bytes.min(available / 4))
}

/// Refuses to take `bytes` of memory where that is more than half of what this process can take (of
/// the machine's memory, and of that of its cgroups), or cannot be had.
///
/// # Errors
/// The figure and `remedy`.
pub fn allow(bytes: u64, remedy: &str) -> Result<()> {
    match available() {
        None => bail!("the memory available is unknown (no MemAvailable in /proc/meminfo); {remedy}"),
        Some(available) if bytes > available / 2 => {
            bail!("{bytes} bytes of memory are more than half of the {available} bytes available; {remedy}")
        }
        Some(_) if !can_be_had(bytes) => bail!("no memory for {bytes} bytes; {remedy}"),
        Some(_) => Ok(()),
    }
}
