//! Policies written in Python: a class that is told of hits and misses and names the victims.

use pagelab_model::policy::PolicyKind;
use pagelab_model::policy::plugged::Replacement;
use pagelab_simulation::plugged;
use pyo3::prelude::*;

use crate::error;
use crate::trace::Trace;

/// A policy of an argument.
pub enum Plug {
    /// A built-in one, and its name as it was asked for.
    Kind(PolicyKind, String),
    /// A class, called with the frames for each replay, and its name.
    Own(Py<PyAny>, String),
}

impl Plug {
    /// A name, or a class.
    pub fn of(argument: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(name) = argument.extract::<String>() {
            return Ok(Self::Kind(name.parse().map_err(error::value)?, name));
        }
        if !argument.is_callable() {
            return Err(error::value("a policy is a name, or a class with on_hit(page) and on_miss(page)"));
        }
        let name = argument.getattr("__name__").and_then(|name| name.extract::<String>());
        Ok(Self::Own(argument.clone().unbind(), name.unwrap_or_else(|_| "policy".to_owned())))
    }

    /// The name as results have it.
    pub fn name(&self) -> &str {
        let (Self::Kind(_, name) | Self::Own(_, name)) = self;
        name
    }
}

/// An instance, and what it raised.
struct Instance<'py> {
    hit: Bound<'py, PyAny>,
    miss: Bound<'py, PyAny>,
    raised: Option<PyErr>,
}

impl Replacement for Instance<'_> {
    fn on_hit(&mut self, page: u32) {
        if self.raised.is_none() {
            self.raised = self.hit.call1((page,)).err();
        }
    }

    fn on_miss(&mut self, page: u32) -> Option<u32> {
        // No page has this number, so the replay ends.
        const NOBODY: Option<u32> = Some(u32::MAX);
        if self.raised.is_some() {
            return NOBODY;
        }
        match self.miss.call1((page,)).and_then(|victim| victim.extract::<Option<u32>>()) {
            Ok(victim) => victim,
            Err(raised) => {
                self.raised = Some(raised);
                NOBODY
            }
        }
    }
}

/// The misses of a class's instance with so many frames; it holds the interpreter's lock, for all of it is Python.
///
/// # Errors
/// What the instance raised; a victim that cannot go.
pub fn misses(py: Python<'_>, class: &Py<PyAny>, trace: &Trace, frames: u32) -> PyResult<u64> {
    let instance = class.bind(py).call1((frames,))?;
    let (hit, miss) = (instance.getattr("on_hit")?, instance.getattr("on_miss")?);
    let bar = py.import("pagelab._progress")?.getattr("Bar")?.call1(("replaying",))?;
    let instance = Instance { hit, miss, raised: None };
    let counted = trace.attached(py, |references| {
        plugged::misses(instance, references, trace.page_count(), frames, |instance, share| {
            if let Some(raised) = instance.raised.take() {
                return Err(raised);
            }
            bar.call_method1("at", (share,))?;
            py.check_signals()
        })?
        .map_err(error::value)
    });
    bar.call_method0("close")?;
    counted
}
