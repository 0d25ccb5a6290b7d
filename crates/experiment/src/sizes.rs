//! Sweeps over sizes: a list, or a range with so many points for each doubling.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::as_text::as_text;
use crate::size::Size;

/// Points of a sweep, at most.
const MAX_POINTS: usize = 200;

/// The sizes of a sweep, as people write them: `1M,4M,16M`, `256K..128M`, `256K..128M:4`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Sizes {
    /// These.
    List(Vec<Size>),
    /// A geometric row from the first to the last, so many for each doubling.
    Range {
        /// The first.
        from: Size,
        /// The last.
        to: Size,
        /// Points for each doubling.
        each: u32,
    },
}

/// A text that is not a list or range of sizes.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "'{text}' is not a list or range of sizes: {problem}\nhint: write 1M,4M,16M, or 256K..128M, or 256K..128M:4 for 4 points per doubling"
)]
pub struct SizesError {
    text: String,
    problem: String,
}

impl Sizes {
    /// The sizes in bytes, ascending, each once, rounded down to whole pages of `page_size` bytes and
    /// at least one page.
    pub fn bytes(&self, page_size: u64) -> Vec<u64> {
        let whole = |bytes: u64| (bytes / page_size).max(1) * page_size;
        let mut all: Vec<u64> = match self {
            Self::List(sizes) => sizes.iter().map(|s| whole(s.bytes(page_size))).collect(),
            Self::Range { from, to, each } => {
                let (from, to) = (whole(from.bytes(page_size)), whole(to.bytes(page_size)));
                let point =
                    |n: u32| whole((from as f64 * 2f64.powf(f64::from(n) / f64::from(*each))).round() as u64);
                let between = (0..).map(point).take_while(|&bytes| bytes < to).take(MAX_POINTS - 1);
                between.chain([to]).collect()
            }
        };
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Working sets from the first-level caches to beyond the last one, which is `last_cache`: from `from` bytes, doubled, to so many
    /// times it; at least to 128 MiB, which also stands for a cache that is not known, and at most to 1 GiB, and to half of a
    /// memory limit.
    pub fn beyond_caches(from: u64, times: u64, limit: Option<u64>, last_cache: Option<u64>) -> Self {
        let to = last_cache.unwrap_or(0).saturating_mul(times).clamp(128 << 20, 1 << 30);
        let to = limit.map_or(to, |limit| to.min(limit / 2)).max(from);
        Self::Range { from: Size::Bytes(from), to: Size::Bytes(to), each: 1 }
    }

    /// The greatest in bytes.
    pub fn greatest(&self, page_size: u64) -> u64 {
        self.bytes(page_size).last().copied().unwrap_or(0)
    }
}

impl FromStr for Sizes {
    type Err = SizesError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong =
            |problem: &dyn fmt::Display| SizesError { text: text.to_owned(), problem: problem.to_string() };
        let size = |text: &str| text.parse::<Size>().map_err(|e| wrong(&e));
        let Some((from, rest)) = text.split_once("..") else {
            let list = text.split(',').map(size).collect::<Result<Vec<_>, _>>()?;
            return match list.len() <= MAX_POINTS && list.iter().all(|s| s.bytes(1) > 0) {
                true => Ok(Self::List(list)),
                false => Err(wrong(&format!("must be 1 to {MAX_POINTS} sizes above 0"))),
            };
        };
        let (to, each) = rest.split_once(':').unwrap_or((rest, "2"));
        let each = each.parse().ok().filter(|n| (1..=64).contains(n));
        let (from, to) = (size(from)?, size(to)?);
        // Pages and bytes compare only where the page size is known.
        let ordered = match (from, to) {
            (Size::Bytes(a), Size::Bytes(b)) | (Size::Pages(a), Size::Pages(b)) => a <= b,
            _ => true,
        };
        if from.bytes(1) == 0 || !ordered {
            return Err(wrong(&"must begin above 0 and not end below its beginning"));
        }
        let each = each.ok_or_else(|| wrong(&"must have 1 to 64 points per doubling"))?;
        Ok(Self::Range { from, to, each })
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(sizes) => {
                let texts: Vec<String> = sizes.iter().map(Size::to_string).collect();
                f.write_str(&texts.join(","))
            }
            Self::Range { from, to, each } => write!(f, "{from}..{to}:{each}"),
        }
    }
}

as_text!(Sizes);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sweeps_as_people_write_them() {
        let bytes = |text: &str| text.parse::<Sizes>().unwrap().bytes(4096);
        assert_eq!(bytes("16K..64K:1"), [16 << 10, 32 << 10, 64 << 10]);
        assert_eq!(bytes("64K..100K"), [64 << 10, 88 << 10, 100 << 10]);
        assert_eq!(bytes("4p,1p,4p"), [4096, 16384]);
        assert_eq!(bytes("5"), [4096]);
        assert_eq!("1M..4M".parse::<Sizes>().unwrap().to_string(), "1M..4M:2");
        for text in ["", "1M..", "4M..1M", "0..1M", "1M..2M:0", "1M..2M:65", "0"] {
            assert!(text.parse::<Sizes>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text: String) {
            let _ = text.parse::<Sizes>().map(|s| s.bytes(4096));
        }

        #[test]
        fn printing_and_parsing_agree(from in 1u64..1 << 40, more in 0u64..1 << 40, each in 1u32..65) {
            let sizes = Sizes::Range { from: Size::Bytes(from), to: Size::Bytes(from + more), each };
            prop_assert_eq!(&sizes.to_string().parse::<Sizes>().unwrap(), &sizes);
            let bytes = sizes.bytes(4096);
            prop_assert!(bytes.windows(2).all(|w| w[0] < w[1]) && bytes.len() <= MAX_POINTS);
        }
    }
}
