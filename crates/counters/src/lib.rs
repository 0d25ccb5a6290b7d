//! The kernel's counters under one name each, and the views drawn from them.
//!
//! Every counter has a name of four parts, as kstat gave them on Solaris:
//! `module:instance:name:statistic`, for example `vmstat:0:vm:pgfault` or `process:1:init:rss`.
//! A [`Tree`] reads those a [`Selection`] asks for, and opens no other module's files. Each module is
//! one [`Provider`], one small file in [`providers`]; its documentation shows how to add one.
//! [`views`] turn two [`Snapshot`]s into what an administrator looks at: pure functions whose formulas
//! are written beside them.
//!
//! The folder that stands for `/` is a parameter ([`Root`]), so that a recorded machine reads like a
//! live one. A file that is absent, has vanished or makes no sense is no error: its statistics are
//! absent. This crate makes no system call beyond reading files.

pub mod census;
pub mod openmetrics;
pub mod providers;
mod root;
mod select;
mod sink;
mod tree;
mod value;
pub mod views;
pub mod visible;

pub use providers::{Provider, text_files};
pub use root::Root;
pub use select::{Part, Selection, Selector, SelectorError};
pub use sink::{Group, Sink};
pub use tree::{Snapshot, Tree};
pub use value::{Kind, Sample, Unit, Value};
