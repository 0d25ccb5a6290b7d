//! The Sun-4 family under SunOS 4: translations live in a small static memory, and nowhere else.
//!
//! A page map entry group (pmeg) translates one aligned 256 KiB range of one address space. A machine
//! has 128 to 1024 of them. When none is free another process loses one, with every translation in it,
//! and faults once for each page when it comes back. The model composes four mechanisms: the pool of
//! pmegs and hardware contexts ([`pool`]), the machines ([`family`]), a run queue with wake-ups
//! ([`scheduler`]) and the processes of vmtest ([`vmtest`]). It advances from event to event: a fault,
//! a run of present pages, a wake-up, the end of a slice.

pub mod family;
pub mod parameters;
pub mod pool;
pub mod scheduler;
pub mod vmtest;

pub use family::{FAMILY, Machine, SPARCSTATION_1, SPARCSTATION_2};
pub use parameters::PARAMETERS;
pub use pool::{Contexts, Copies, Victim};
pub use scheduler::Scheduler;
pub use vmtest::{Costs, Outcome, Sun4, VmTest};
