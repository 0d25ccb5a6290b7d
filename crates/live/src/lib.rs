//! Experiments on the running kernel: the only crate with unsafe code and system calls.
//!
//! - [`Host`] is the target `host`: it sets up the confinement, starts a worker process that performs
//!   the experiment inside it, forwards what the worker sees, and undoes everything.
//! - [`perform()`] performs an experiment in the calling process. The worker calls it, and so can an
//!   init process inside a guest kernel, which needs neither worker nor confinement.
//! - [`wire`] carries observations over a pipe or a serial line.
//!
//! This crate times and counts; it computes no statistics.

pub mod addressing;
pub mod affinity;
pub mod allocator;
mod alone;
pub mod bandwidth;
mod bare;
pub mod bpf;
mod cgroup;
pub mod clock;
pub mod clocktest;
pub mod command;
mod compressed;
pub mod confine;
pub mod content;
pub mod damon;
pub mod environment;
pub mod family;
pub mod faultscale;
pub mod fileread;
pub mod forkstorm;
pub mod fragment;
pub mod geometry;
pub mod harness;
pub mod host;
pub mod init;
pub mod kernel;
pub mod ksm;
mod kthread;
pub mod latency;
pub mod library;
pub mod lifetime;
pub mod mappings;
mod marker;
pub mod message;
pub mod microstates;
mod neighbour;
mod netlink;
pub mod observe;
mod oom;
pub mod operations;
pub mod pagemap;
pub mod paging;
pub mod perf;
pub mod perform;
mod phase;
pub mod place;
pub mod plan;
pub mod port;
mod processor;
pub mod profile;
mod reclaim;
pub mod region;
pub mod rooted;
pub mod rusage;
mod samples;
pub mod spawn;
pub mod taskstats;
pub mod terminal;
pub mod tier;
pub mod tracer;
pub mod userfault;
pub mod vmtest;
pub mod waiting;
pub mod wire;
pub mod worker;
pub mod working_set;

pub use confine::Recovery;
pub use host::Host;
pub use perform::perform;
pub use place::Place;
pub use worker::worker_main;
