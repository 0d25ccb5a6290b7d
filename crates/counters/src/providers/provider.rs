//! The interface of the providers.

use crate::root::Root;
use crate::sink::Sink;

/// A part of the kernel that counts.
pub trait Provider: Send + Sync {
    /// The first part of its counters' names.
    fn module(&self) -> &'static str;
    /// The family of the module: `vm`, `disk`, `cpu`, `process`, `cgroup` or `misc`.
    fn class(&self) -> &'static str;
    /// The files it reads, for the list of modules.
    fn source(&self) -> &'static str;
    /// Whether it is so costly to read that a selector must name the module.
    fn on_demand(&self) -> bool {
        false
    }
    /// Reads what the sink wants. What cannot be read is left out.
    fn read(&self, root: &Root, sink: &mut Sink<'_>);
}
