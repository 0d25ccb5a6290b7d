//! `command`: everything that can be seen about one program of the user's.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Footprint, Parameter};
use crate::size::Size;

/// The parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// The program and its arguments.
    pub program: Vec<String>,
    /// Milliseconds between two looks at its memory.
    pub sample: u64,
    /// The most memory that it is expected to use: what its swap must hold.
    pub most: Size,
}

/// The parameters as the command line has them.
pub const PARAMETERS: &[Parameter] = &[
    Parameter { name: "sample", default: "20", help: "ms between two looks at its memory" },
    Parameter {
        name: "most",
        default: "256M",
        help: "the memory that it uses at most: what the swap must hold",
    },
    Parameter {
        name: "sweep-memory",
        default: "none",
        help: "LO..HI: find the least memory at which the program still runs at full speed",
    },
];

impl Command {
    /// `program` with the defaults.
    pub fn new(program: Vec<String>) -> Self {
        Self { program, sample: 20, most: Size::Bytes(256 << 20) }
    }

    /// What it is expected to hold.
    pub fn footprint(&self, page_size: u64) -> Footprint {
        Footprint { anonymous: self.most.bytes(page_size), file: 0 }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--sample {} --most {} --", self.sample, self.most)?;
        let plain = |word: &str| {
            !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c))
        };
        self.program.iter().try_for_each(|word| match plain(word) {
            true => write!(f, " {word}"),
            false => write!(f, " '{}'", word.replace('\'', "'\\''")),
        })
    }
}
