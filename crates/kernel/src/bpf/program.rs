//! A program loaded and hung on a tracepoint.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::assembler::Assembler;
use super::{TraceError, bpf, pair};
use crate::perf::{self, Event};

const LOAD: libc::c_long = 5;
/// `BPF_PROG_TYPE_TRACEPOINT`.
const KIND: u32 = 5;
/// What the kernel's verifier may say of a refused program.
const SAID: usize = 64 << 10;

/// A program at work for as long as this lives.
#[derive(Debug)]
pub(super) struct Program {
    _event: Event,
    _program: OwnedFd,
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
        let code = program.finish();
        let mut said = vec![0_u8; SAID];
        let mut attributes = [0; 16];
        attributes[0] = pair(KIND, code.len() as u32);
        attributes[1] = code.as_ptr().expose_provenance() as u64;
        attributes[2] = c"MIT".as_ptr().expose_provenance() as u64;
        let raw = bpf(LOAD, &mut attributes).or_else(|error| {
            // Once more for its reasons, which cost time to write.
            attributes[3] = pair(1, SAID as u32);
            attributes[4] = said.as_mut_ptr().expose_provenance() as u64;
            bpf(LOAD, &mut attributes).map_err(|_| error)
        });
        let raw = raw.map_err(|error| {
            let said = String::from_utf8_lossy(&said);
            let why = said.trim_end_matches('\0').lines().rev().take(4).collect::<Vec<_>>().join(" / ");
            TraceError::refused(&format!("the program on {} ({why})", self.0), error)
        })?;
        // SAFETY: a new descriptor that nobody else has.
        let program = unsafe { OwnedFd::from_raw_fd(raw) };
        let event = Event::everywhere(number)
            .map_err(|e| TraceError::refused(&format!("the event {}", self.0), e))?;
        event
            .attach(program.as_raw_fd())
            .map_err(|e| TraceError::refused(&format!("to hang a program on {}", self.0), e))?;
        Ok(Program { _event: event, _program: program })
    }
}
