//! What the pages of a mapping hold: it decides how far they compress where swap is zram, or zswap is on.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::as_text::as_text;
use crate::declaration::Refusal;

/// What pages hold. No two pages are alike but those of zeros, and of a file that has some alike or is shorter than the
/// mapping.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Content {
    /// Of each page the last part, this share of it, repeats one word; what is before is pseudo-random.
    Compressible(f64),
    /// Zeros.
    Zero,
    /// Pseudo-random words alone.
    Random,
    /// The bytes of this file, again and again.
    File(PathBuf),
}

impl Default for Content {
    /// Half of each page: no page is same-filled, and one compresses to a little over half.
    fn default() -> Self {
        Self::Compressible(0.5)
    }
}

impl FromStr for Content {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let forms = || {
            Refusal::new(format!(
                "'{text}' must be one of compressible:SHARE (from 0 to 1), zero, random, file:PATH"
            ))
        };
        match text.split_once(':') {
            None if text == "zero" => Ok(Self::Zero),
            None if text == "random" => Ok(Self::Random),
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(path.into())),
            Some(("compressible", share)) => {
                let share = share.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
                share.map(Self::Compressible).ok_or_else(forms)
            }
            _ => Err(forms()),
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compressible(share) => write!(f, "compressible:{share}"),
            Self::Zero => f.write_str("zero"),
            Self::Random => f.write_str("random"),
            Self::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

as_text!(Content);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_parse_and_print_the_same() {
        for text in ["compressible:0.5", "compressible:0", "zero", "random", "file:/a:b"] {
            assert_eq!(text.parse::<Content>().unwrap().to_string(), text);
        }
        for text in
            ["", "zeros", "compressible", "compressible:2", "compressible:-1", "compressible:NaN", "file:"]
        {
            assert!(text.parse::<Content>().is_err(), "{text}");
        }
    }
}
