//! How long the kernel holds a thread up because too much is dirty:
//! `writeback:balance_dirty_pages`, which is met before each pause with its length in milliseconds
//! (0 and less where there is none).

use super::TraceError;
use super::assembler::*;
use super::map::{Full, Map};
use super::program::{Program, Tracepoint};

const POINT: Tracepoint = Tracepoint("writeback:balance_dirty_pages");

/// The words of the thread's value, as offsets in bytes: pauses, and their milliseconds.
const PAUSES: i16 = 0;
const TIME: i16 = 8;

/// The thread's number on the frame.
const KEY: i16 = -8;

/// Adds up the pauses of the calling thread for as long as it lives.
#[derive(Debug)]
pub struct Throttle {
    thread: Map<1, 2>,
    key: [u32; 1],
    _program: Program,
}

/// Pauses and their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paused {
    /// How many.
    pub pauses: u64,
    /// How long the kernel meant them to be together, ns; each is whole ticks of its timer.
    pub time: u64,
}

impl Throttle {
    /// Begins, of the calling thread.
    ///
    /// # Errors
    /// When the kernel lacks what it takes or the caller the rights.
    pub fn start() -> Result<Self, TraceError> {
        let thread = Map::new(Full::Refuses, 1)?;
        let key = [rustix::thread::gettid().as_raw_pid().unsigned_abs()];
        thread.put(key, [0, 0]);
        let mut program = Assembler::default();
        program.load(R6, R1, POINT.field("pause")?);
        program.jump_if(R6, If::AtMost, 0, "end");
        program.call(CURRENT).store_word(FRAME, KEY, R0);
        program.ask(MAP_LOOKUP, thread.number(), KEY);
        program.jump_if(R0, If::Equal, 0, "end").atomic_add(R0, TIME, R6);
        program.set(R1, 1).atomic_add(R0, PAUSES, R1);
        let program = POINT.run(program)?;
        Ok(Self { thread, key, _program: program })
    }

    /// Since the start.
    pub fn sample(&self) -> Paused {
        let [pauses, milliseconds] = self.thread.get(self.key).unwrap_or_default();
        Paused { pauses, time: milliseconds.saturating_mul(1_000_000) }
    }
}
