//! Loads BPF programs and attaches them to tracepoints or to functions of the kernel.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::assembler::Assembler;
use super::btf::Btf;
use super::{TraceError, bpf, pair};
use crate::perf::{self, Event};

const LOAD: libc::c_long = 5;
const OPEN: libc::c_long = 17;
/// `BPF_PROG_TYPE_TRACEPOINT` and `BPF_PROG_TYPE_TRACING`.
const OF_TRACEPOINT: u32 = 5;
const OF_FUNCTION: u32 = 26;
/// The programs' licence: the kernel lets only programs with a GPL-compatible licence follow its
/// pointers. pagelab's own licence permits that.
const LICENCE: &std::ffi::CStr = c"Dual MIT/GPL";
/// What the kernel's verifier may say of a refused program.
const SAID: usize = 64 << 10;

/// A program at work for as long as this lives.
#[derive(Debug)]
pub(super) struct Program {
    _on: On,
    _program: OwnedFd,
}

/// The hook that a program is attached to.
#[derive(Debug)]
enum On {
    Tracepoint { _event: Event },
    Function { _link: OwnedFd },
}

/// When a program on a function runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    /// At the call, with the arguments (`BPF_TRACE_FENTRY`).
    Entered = 24,
    /// At the return, with the arguments followed by the result (`BPF_TRACE_FEXIT`).
    Left = 25,
}

/// A tracepoint, `subsystem:name`, and where its fields are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tracepoint(pub(super) &'static str);

impl Tracepoint {
    /// The offset and size of a field.
    pub(super) fn field(self, name: &str) -> Result<(usize, usize), TraceError> {
        perf::profile::place(self.0, name).ok_or_else(|| TraceError::Tracepoint(self.0.to_owned()))
    }

    /// Loads a program and runs it whenever the tracepoint is met, on every processor.
    pub(super) fn run(self, program: Assembler) -> Result<Program, TraceError> {
        let number =
            perf::profile::type_of(self.0).ok_or_else(|| TraceError::Tracepoint(self.0.to_owned()))?;
        let program = load(program, self.0, OF_TRACEPOINT, [0, 0])?;
        let event = Event::everywhere(number)
            .map_err(|e| TraceError::refused(&format!("the event {}", self.0), e))?;
        event
            .attach(program.as_raw_fd())
            .map_err(|e| TraceError::refused(&format!("to attach a program to {}", self.0), e))?;
        Ok(Program { _on: On::Tracepoint { _event: event }, _program: program })
    }
}

/// Loads a program and attaches it to the entry or the exit of a kernel function, on every CPU.
/// Since 5.5. The arguments are words of eight bytes; the program may follow pointers among them.
pub(super) fn run_on(btf: &Btf, name: &str, when: When, program: Assembler) -> Result<Program, TraceError> {
    let function = btf.function(name).ok_or_else(|| TraceError::Function(name.to_owned()))?;
    hang(load(program, name, OF_FUNCTION, [when as u32, function])?, name)
}

/// Attaches a program to the function or tracepoint that it was loaded for.
fn hang(program: OwnedFd, name: &str) -> Result<Program, TraceError> {
    let mut attributes = [0; 16];
    attributes[1] = pair(program.as_raw_fd() as u32, 0);
    let raw = bpf(OPEN, &mut attributes)
        .map_err(|e| TraceError::refused(&format!("to attach a program to {name}"), e))?;
    // SAFETY: a new descriptor that nobody else has.
    let link = unsafe { OwnedFd::from_raw_fd(raw) };
    Ok(Program { _on: On::Function { _link: link }, _program: program })
}

/// The same for a tracepoint, with the tracepoint's own arguments instead of the fields that it
/// records.
pub(super) fn run_at(btf: &Btf, name: &str, program: Assembler) -> Result<Program, TraceError> {
    /// `BPF_TRACE_RAW_TP`.
    const MET: u32 = 23;
    let number = btf.tracepoint(name).ok_or_else(|| TraceError::Tracepoint(name.to_owned()))?;
    hang(load(program, name, OF_FUNCTION, [MET, number])?, name)
}

/// Loads a program of `kind`. `when` is its attach type, `function` the BTF ID of the function.
fn load(
    program: Assembler,
    name: &str,
    kind: u32,
    [when, function]: [u32; 2],
) -> Result<OwnedFd, TraceError> {
    let code = program.finish();
    let mut said = vec![0_u8; SAID];
    let mut attributes = [0; 16];
    attributes[0] = pair(kind, code.len() as u32);
    attributes[1] = code.as_ptr().expose_provenance() as u64;
    attributes[2] = LICENCE.as_ptr().expose_provenance() as u64;
    attributes[8] = pair(0, when);
    attributes[13] = pair(0, function);
    let raw = bpf(LOAD, &mut attributes).or_else(|error| {
        // Try again with the verifier's log, which costs time to write.
        attributes[3] = pair(1, SAID as u32);
        attributes[4] = said.as_mut_ptr().expose_provenance() as u64;
        bpf(LOAD, &mut attributes).map_err(|_| error)
    });
    let raw = raw.map_err(|error| {
        let said = String::from_utf8_lossy(&said);
        let why = said.trim_end_matches('\0').lines().rev().take(4).collect::<Vec<_>>().join(" / ");
        let what = format!("the program on {name} ({why})");
        // A program that the verifier rejects and a caller without rights get the same error; only
        // the verifier writes a log.
        if why.is_empty() { TraceError::refused(&what, error) } else { TraceError::Refused { what, error } }
    })?;
    // SAFETY: a new descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}
