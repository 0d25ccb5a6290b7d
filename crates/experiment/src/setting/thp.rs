//! The condition `thp`: which transparent huge pages anonymous memory gets, in one word or by their sizes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::as_text::as_text;
use crate::declaration::{Refusal, closest, words};

/// The transparent huge page mode for anonymous memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Huge pages wherever they fit.
    Always,
    /// Huge pages where the program asks for them.
    Madvise,
    /// No huge pages.
    Never,
}
words!(Mode);

/// Which transparent huge pages anonymous memory gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Thp {
    /// Those of the size that the processor maps in one entry, or those of the sizes that are set to follow (`inherit`).
    Mode(Mode),
    /// Of each size in KiB what is said, of every other size none.
    Sizes(Vec<(u64, Mode)>),
}

impl Thp {
    /// The modes that it names.
    pub fn modes(&self) -> impl Iterator<Item = Mode> {
        let (one, several) = match self {
            Self::Mode(mode) => (Some(*mode), [].as_slice()),
            Self::Sizes(sizes) => (None, sizes.as_slice()),
        };
        one.into_iter().chain(several.iter().map(|(_, mode)| *mode))
    }
}

impl FromStr for Thp {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if !text.contains(':') {
            let word = Mode::from_str(text);
            return word.map(Self::Mode).map_err(|_| {
                let meant = closest(text, ["always", "madvise", "never"]);
                let meant = meant.map(|word| format!(" (did you mean {word}?)")).unwrap_or_default();
                Refusal::new(format!(
                    "'{text}' must be one of always, madvise, never, or sizes as in 64k:always,2m:madvise{meant}"
                ))
            });
        }
        let mut sizes: Vec<(u64, Mode)> = Vec::new();
        for part in text.split(',') {
            let (size, mode) = part
                .split_once(':')
                .ok_or_else(|| Refusal::new(format!("'{part}' is not SIZE:MODE as in 64k:always")))?;
            let size = kib(size)?;
            if sizes.iter().any(|(known, _)| *known == size) {
                return Err(Refusal::new(format!("'{text}' names a size twice")));
            }
            sizes.push((size, mode.parse().map_err(|e: Refusal| e)?));
        }
        sizes.sort_by_key(|(size, _)| *size);
        Ok(Self::Sizes(sizes))
    }
}

/// A size such as 64k or 2m in KiB: a power of two.
fn kib(text: &str) -> Result<u64, Refusal> {
    let wrong = || Refusal::new(format!("'{text}' is no size of a huge page such as 64k or 2m"));
    let lower = text.to_ascii_lowercase();
    let lower = lower.strip_suffix('b').unwrap_or(&lower);
    let (digits, unit) = match (lower.strip_suffix('k'), lower.strip_suffix('m'), lower.strip_suffix('g')) {
        (Some(digits), ..) => (digits, 1),
        (_, Some(digits), _) => (digits, 1 << 10),
        (.., Some(digits)) => (digits, 1 << 20),
        _ => return Err(wrong()),
    };
    let size = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    size.filter(|size| size.is_power_of_two()).ok_or_else(wrong)
}

impl fmt::Display for Thp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mode(mode) => mode.fmt(f),
            Self::Sizes(sizes) => {
                for (n, (size, mode)) in sizes.iter().enumerate() {
                    let comma = if n > 0 { "," } else { "" };
                    match size {
                        size if size % (1 << 20) == 0 => write!(f, "{comma}{}g:{mode}", size >> 20)?,
                        size if size % (1 << 10) == 0 => write!(f, "{comma}{}m:{mode}", size >> 10)?,
                        size => write!(f, "{comma}{size}k:{mode}")?,
                    }
                }
                Ok(())
            }
        }
    }
}

as_text!(Thp);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_and_sizes_parse_and_print_the_same() {
        for (text, shown) in [
            ("always", "always"),
            ("64k:always,2m:madvise", "64k:always,2m:madvise"),
            ("2048kB:never,16K:always", "16k:always,2m:never"),
        ] {
            let thp: Thp = text.parse().unwrap();
            assert_eq!(thp.to_string(), shown);
            assert_eq!(shown.parse::<Thp>().unwrap(), thp);
        }
        for text in [
            "",
            "sometimes",
            "64k",
            "64k:always,",
            "64k:sometimes",
            "60k:always",
            "64k:always,64K:never",
            "64:always",
        ] {
            assert!(text.parse::<Thp>().is_err(), "{text}");
        }
        let refused = "alwys".parse::<Thp>().unwrap_err().to_string();
        assert!(refused.contains("did you mean always?"), "{refused}");
        let modes: Vec<Mode> = "64k:always,2m:madvise".parse::<Thp>().unwrap().modes().collect();
        assert_eq!(modes, [Mode::Always, Mode::Madvise]);
    }
}
