//! Models of virtual memory, in virtual time: pure, without clock, system call or hidden randomness.

pub mod policy;
