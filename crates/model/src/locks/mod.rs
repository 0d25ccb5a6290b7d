//! Locks of a VM system under parallel builds: one token for everything, or locks of objects and pages.
//!
//! A job's work is a delay (its own computing) and visits to a lock. With one lock the network is solved
//! exactly ([`mva`]); with several, or to see single events, by discrete events ([`network`]). A build
//! ([`build`]) alternates between phases of one job and of many.

pub mod build;
pub mod mva;
pub mod network;

pub use build::{Build, Machine, Outcome};
pub use mva::{ALONE, Token};
