//! `clock`: whether time is true on this machine (Richard McDougall, 2007).
//!
//! Sleeps of one second are timed by every clock there is; the clocks are held against each other, the
//! processors' time stamp counters too, and each reading is timed itself.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Parameter;

/// The parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// The number of steps.
    pub steps: u32,
    /// The length of a step in milliseconds.
    pub step: u64,
    /// Another machine's clock server, HOST:PORT.
    pub reference: Option<String>,
}

/// The parameters as the command line has them.
pub const PARAMETERS: &[Parameter] = &[
    Parameter { name: "steps", default: "10", help: "the number of steps" },
    Parameter { name: "step", default: "1000", help: "the length of a step, ms" },
    Parameter {
        name: "reference",
        default: "none",
        help: "HOST:PORT where another machine runs: pagelab clock serve",
    },
];

impl Default for Clock {
    fn default() -> Self {
        Self { steps: 10, step: 1000, reference: None }
    }
}

impl Clock {
    /// The form that goes before a suite: under a second.
    pub fn short() -> Self {
        Self { steps: 4, step: 100, reference: None }
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--steps {} --step {}", self.steps, self.step)?;
        self.reference.iter().try_for_each(|reference| write!(f, " --reference {reference}"))
    }
}
