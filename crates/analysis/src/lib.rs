//! What observations say: comparison, regret, and the published studies held against their models.
//! Pure functions; nothing here prints.

pub mod comparison;
pub mod knee;
pub mod latency;
pub mod least_memory;
mod linear;
pub mod rank;
pub mod regret;
pub mod reproduce;
pub mod scaling;
pub mod stats;
pub mod vmtest;
