//! The memory that a stream is replayed with: an amount, or a share of the stream's pages.

use std::str::FromStr;

use crate::Size;
use crate::declaration::Refusal;
use crate::size::SizeError;

/// An amount of memory as `replay` and `mrc` take it: a size, or a percentage of the stream's pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Memory {
    /// Bytes or pages.
    Size(Size),
    /// A share of the stream's pages, above 0 and up to 100.
    Percent(f64),
}

impl FromStr for Memory {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        match text.trim().strip_suffix('%') {
            None => text
                .parse()
                .map(Self::Size)
                .map_err(|e: SizeError| Refusal::new(format!("{e}, or a percentage of the pages"))),
            Some(number) => {
                let percent = number.parse().ok().filter(|p: &f64| *p > 0.0 && *p <= 100.0);
                percent.map(Self::Percent).ok_or_else(|| {
                    Refusal::new(format!("'{text}': write a percentage of the pages above 0 and up to 100"))
                })
            }
        }
    }
}

/// Sizes in pages, each at least 1, for a stream of `pages` pages.
///
/// # Errors
/// When a size is less than a page, or more than 2^32 - 1.
pub fn frames(sizes: &[Memory], page_size: u64, pages: u32) -> Result<Vec<u32>, Refusal> {
    sizes
        .iter()
        .map(|memory| match *memory {
            Memory::Percent(percent) => Ok(((f64::from(pages) * percent / 100.0).round() as u32).max(1)),
            Memory::Size(size) => match u32::try_from(size.pages(page_size)) {
                Ok(0) => Err(Refusal::new(format!("{size} is less than a page of {page_size} bytes"))),
                Ok(frames) => Ok(frames),
                Err(_) => Err(Refusal::new(format!("{size} is more than {} pages", u32::MAX))),
            },
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_a_size_or_a_percentage() {
        let memory = |text: &str| text.parse::<Memory>();
        let list = [
            memory("10p").unwrap(),
            memory("64K").unwrap(),
            memory("12.5%").unwrap(),
            memory("0.1%").unwrap(),
        ];
        assert_eq!(frames(&list, 4096, 200).unwrap(), [10, 16, 25, 1]);
        for wrong in ["0%", "101%", "x%", "", "5q"] {
            assert!(memory(wrong).is_err(), "{wrong}");
        }
        assert!(frames(&[memory("100").unwrap()], 4096, 200).is_err());
    }
}
