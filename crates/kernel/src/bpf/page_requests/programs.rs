//! Selects the programs: on functions, or else on tracepoints.

use pagelab_counters::views::cachestat::By;

use super::super::TraceError;
use super::super::btf::Btf;
use super::super::program::Program;
use super::channel::Channel;
use super::maker::{Layout, Maker};
use super::maps::Maps;
use super::{functions, tracepoints};

/// The hooks that the programs are attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hooks {
    /// Functions, which show exactly the pages returned or mapped.
    Functions,
    /// Tracepoints, since Linux 6.18.
    Tracepoints,
}

/// Attaches all programs: to functions, or to tracepoints if the kernel refuses functions.
pub(super) fn all(
    btf: &Btf,
    maps: &Maps,
    by: By,
    channel: Option<&Channel>,
) -> Result<(Vec<Program>, Hooks), TraceError> {
    let maker = Maker { btf, layout: Layout::of(btf)?, maps, by, channel };
    let on_functions = match functions::all(&maker) {
        Ok(programs) => return Ok((programs, Hooks::Functions)),
        Err(error) => error,
    };
    match tracepoints::all(&maker) {
        Ok(programs) => Ok((programs, Hooks::Tracepoints)),
        // Older kernels lack the tracepoints, so the first error is more useful.
        Err(TraceError::Tracepoint(_) | TraceError::Function(_)) => Err(on_functions),
        Err(error) => Err(error),
    }
}
