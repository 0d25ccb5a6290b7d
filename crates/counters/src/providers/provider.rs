//! What every provider has.

use crate::root::Root;
use crate::sink::Sink;

/// Reads what a sink wants.
type Read = Box<dyn Fn(&Root, &mut Sink<'_>) + Send + Sync>;

/// A part of the kernel that counts.
pub struct Provider {
    /// The first part of its counters' names.
    pub module: &'static str,
    /// The family of the module: `vm`, `disk`, `cpu`, `process`, `cgroup` or `misc`.
    pub class: &'static str,
    /// The files it reads, for the list of modules.
    pub source: &'static str,
    /// Whether it is so costly to read that a selector must name the module.
    pub on_demand: bool,
    read: Read,
}

impl Provider {
    /// One whose `read` gives what the sink wants. What cannot be read is left out.
    pub fn new(
        module: &'static str,
        class: &'static str,
        source: &'static str,
        read: impl Fn(&Root, &mut Sink<'_>) + Send + Sync + 'static,
    ) -> Self {
        Self { module, class, source, on_demand: false, read: Box::new(read) }
    }

    /// The same, read only when a selector names the module.
    #[must_use]
    pub fn on_demand(self) -> Self {
        Self { on_demand: true, ..self }
    }

    /// Reads what the sink wants.
    pub fn read(&self, root: &Root, sink: &mut Sink<'_>) {
        (self.read)(root, sink);
    }
}
