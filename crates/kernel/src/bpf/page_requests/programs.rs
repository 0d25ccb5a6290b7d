//! All programs: on functions, or else on tracepoints.

use pagelab_counters::views::cachestat::By;

use super::super::TraceError;
use super::super::btf::Btf;
use super::super::program::Program;
use super::maker::{Layout, Maker};
use super::maps::Maps;
use super::{functions, tracepoints};

/// What the programs hang on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hooks {
    /// Functions, which say exactly what they did.
    Functions,
    /// Tracepoints, since Linux 6.18.
    Tracepoints,
}

/// All of them at work: on functions, or on tracepoints where the kernel does not permit that.
pub(super) fn all(btf: &Btf, maps: &Maps, by: By) -> Result<(Vec<Program>, Hooks), TraceError> {
    let maker = Maker { btf, layout: Layout::of(btf)?, maps, by };
    let on_functions = match functions::all(&maker) {
        Ok(programs) => return Ok((programs, Hooks::Functions)),
        Err(error) => error,
    };
    match tracepoints::all(&maker) {
        Ok(programs) => Ok((programs, Hooks::Tracepoints)),
        // Older kernels lack the tracepoints: the first reason says more.
        Err(TraceError::Tracepoint(_) | TraceError::Function(_)) => Err(on_functions),
        Err(error) => Err(error),
    }
}
