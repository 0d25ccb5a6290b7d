//! Typed interfaces of the running kernel, one module each.
//!
//! This crate knows no experiment and computes no statistics. It contains unsafe code and system
//! calls.

pub mod affinity;
pub mod allocator;
pub mod block_device;
pub mod bpf;
pub mod cached_files;
pub mod cgroup;
pub mod content;
pub mod damon;
pub mod error;
pub mod files;
pub mod geometry;
pub mod hierarchy;
pub mod hugetlb;
pub mod init;
pub mod kthread;
pub mod lifetime;
pub mod mappings;
pub mod marks;
mod netlink;
pub mod numa;
pub mod page_cache;
pub mod page_frames;
pub mod pagemap;
pub mod perf;
pub mod port;
pub mod region;
pub mod root;
pub mod rusage;
pub mod settings;
pub mod spawn;
pub mod submission;
pub mod swap_area;
pub mod taskstats;
pub mod thp;
pub mod userfault;
pub mod waiting;
pub mod working_set;
pub mod zram;
