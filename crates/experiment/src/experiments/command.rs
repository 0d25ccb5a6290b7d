//! `command`: everything that can be seen about one program of the user's.

use serde::{Deserialize, Serialize};

use super::Footprint;
use crate::declaration::{self, displayed};
use crate::size::Size;
use crate::sizes::{Sizes, SizesError};

/// The parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Command {
    /// ms between two looks at the program's memory
    #[arg(long, value_name = "MS", default_value = "20", value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub sample: u64,
    /// The memory that the program uses at most: what its swap must hold [default: 256M, of a sweep its greatest size]
    #[arg(long, value_name = "SIZE")]
    pub most: Option<Size>,
    /// Keep a repetition whose program ends with another status than 0
    #[arg(long)]
    pub allow_failure: bool,
    /// Find the least memory at which the program still runs at full speed
    #[arg(long, value_name = "LO..HI", value_parser = range)]
    #[serde(skip)]
    pub sweep_memory: Option<(Size, Size)>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub program: Vec<String>,
}
displayed!(Command);

impl Default for Command {
    /// Without a program, which the command line cannot do without.
    fn default() -> Self {
        Self { program: Vec::new(), ..declaration::default(&["--", "program"]) }
    }
}

/// What a program is taken to use at most, where nothing is said.
const MOST: Size = Size::Bytes(256 << 20);

/// Two sizes that are no sweep.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
enum RangeError {
    #[error(transparent)]
    Sizes(#[from] SizesError),
    #[error("write LO..HI, such as 32M..2G")]
    List,
}

fn range(text: &str) -> Result<(Size, Size), RangeError> {
    match text.parse::<Sizes>()? {
        Sizes::Range { from, to, .. } => Ok((from, to)),
        Sizes::List(_) => Err(RangeError::List),
    }
}

impl Command {
    /// `program` with the defaults.
    pub fn new(program: Vec<String>) -> Self {
        Self { program, ..Self::default() }
    }

    /// What it is expected to hold.
    pub fn footprint(&self, page_size: u64) -> Footprint {
        let most = self.most.or(self.sweep_memory.map(|(_, most)| most)).unwrap_or(MOST);
        Footprint { anonymous: most.bytes(page_size), file: 0 }
    }
}
