//! What observations say: comparison, knees, scaling, regret.
//! Pure functions; nothing here prints.

pub mod comparison;
pub mod knee;
pub mod least_memory;
mod linear;
pub mod rank;
pub mod regret;
pub mod scaling;
pub mod stats;
pub mod vmtest;
