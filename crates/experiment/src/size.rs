//! Sizes as people write them: bytes with K, M, G or T (powers of 1024), or pages with p.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::as_text::as_text;

/// An amount of memory. Pages stay pages until the page size of the target is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Size {
    /// Bytes.
    Bytes(u64),
    /// Pages of the target's base size.
    Pages(u64),
}

/// A text that is no size.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "'{0}' is not a size: must be bytes with K, M, G or T (powers of 1024), such as 64M, or pages with p, such as 16384p"
)]
pub struct SizeError(String);

impl Size {
    /// The size in bytes, saturating, where a page has `page_size` bytes.
    pub fn bytes(self, page_size: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Pages(pages) => pages.saturating_mul(page_size),
        }
    }

    /// The size in whole pages of `page_size` bytes, rounded down.
    pub fn pages(self, page_size: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes / page_size,
            Self::Pages(pages) => pages,
        }
    }
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || SizeError(text.to_owned());
        let text = text.trim();
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let number: u64 = digits.parse().map_err(|_| wrong())?;
        let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
            "p" => return Ok(Self::Pages(number)),
            "" | "b" => 0,
            "k" | "kib" => 10,
            "m" | "mib" => 20,
            "g" | "gib" => 30,
            "t" | "tib" => 40,
            _ => return Err(wrong()),
        };
        number.checked_mul(1 << shift).map(Self::Bytes).ok_or_else(wrong)
    }
}

as_text!(Size);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Pages(pages) => write!(f, "{pages}p"),
            Self::Bytes(bytes) => {
                for (shift, unit) in [(40, "T"), (30, "G"), (20, "M"), (10, "K")] {
                    if bytes != 0 && bytes.is_multiple_of(1 << shift) {
                        return write!(f, "{}{unit}", bytes >> shift);
                    }
                }
                write!(f, "{bytes}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_as_people_write_them() {
        for (text, bytes) in
            [("64M", 64 << 20), ("4k", 4096), ("2GiB", 2 << 30), ("512", 512), ("16p", 65536)]
        {
            assert_eq!(text.parse::<Size>().unwrap().bytes(4096), bytes, "{text}");
        }
        for text in ["", "M", "-1", "1.5G", "64X", "99999999999G", "é"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn printing_and_parsing_agree(bytes: u64) {
            let size = Size::Bytes(bytes);
            prop_assert_eq!(size.to_string().parse::<Size>().unwrap(), size);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text: String) {
            let _ = text.parse::<Size>();
        }
    }
}
