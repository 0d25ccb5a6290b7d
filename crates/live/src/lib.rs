//! Experiments on the running kernel.
//!
//! - [`Host`] is the target `host`: it sets up the confinement, starts a worker process that performs
//!   the experiment inside it, forwards the worker's observations, and undoes everything.
//! - [`perform()`] performs an experiment in the calling process. The worker calls it, and so can an
//!   init process inside a guest kernel, which needs neither worker nor confinement.
//! - [`harness`] is what every experiment is measured with; [`experiments`] is how each is run.
//!
//! This crate times and counts; it computes no statistics.

pub mod experiments;
pub mod harness;
pub mod host;
pub mod plan;
pub mod set_up;
pub mod worker;

pub use experiments::perform;
pub use harness::context::ExecutionContext;
pub use host::Host;
pub use worker::worker_main;
