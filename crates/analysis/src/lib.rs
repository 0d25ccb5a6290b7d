//! What observations say: comparison, regret, and the published studies held against their models.
//! Pure functions; nothing here prints.

pub mod comparison;
pub mod rank;
pub mod regret;
pub mod reproduce;
pub mod stats;
