//! What each thread does and waits for, as far as no counter says it:
//!
//! | figure | tracepoints |
//! |---|---|
//! | system calls | `raw_syscalls:sys_enter` |
//! | signals | `signal:signal_deliver` |
//! | time in futex(2) to wait, `futex_wait` or `futex_waitv` | `raw_syscalls:sys_enter` to `sys_exit` |
//! | time asleep in a page fault on an instruction | `exceptions:page_fault_user` at the address of the instruction itself; `sched:sched_switch` away to sleep, `sched:sched_wakeup` |
//!
//! A fault ends without a tracepoint: it is over at the next system call or fault at the latest, and
//! between its end and that the thread is in user mode, where it is interrupted but does not sleep.

use pagelab_counters::Root;
use pagelab_counters::views::prstat::Traced;

use super::assembler::*;
use super::map::{Full, Map};
use super::program::{Program, Tracepoint};
use super::{TraceError, now};

/// Threads remembered; one that was idle for long is forgotten, and begins anew.
const THREADS: u32 = 16_384;

/// The words of a thread's value, as offsets in bytes.
const CALLS: i16 = 0;
const SIGNALS: i16 = 8;
const LOCK: i16 = 16;
const LOCK_SINCE: i16 = 24;
const TEXT: i16 = 32;
const TEXT_SINCE: i16 = 40;
/// 1 in a fault on an instruction.
const IN_TEXT_FAULT: i16 = 48;
const WORDS: usize = 7;

/// The key on the frame, and a new value below it.
const KEY: i16 = -8;
const NEW: i16 = -64;

/// The calls that wait in futex(2): FUTEX_WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2.
const WAITING: [i32; 5] = [0, 6, 9, 11, 13];
/// The operation without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME.
const OPERATION: i32 = 127;
/// `futex_wait` (6.7), the same number everywhere.
const FUTEX_WAIT: i32 = 455;

/// Counts for each thread of the machine for as long as it lives.
#[derive(Debug)]
pub struct Tasks {
    threads: Map<1, WORDS>,
    _programs: Vec<Program>,
}

impl Tasks {
    /// Begins.
    ///
    /// # Errors
    /// When the kernel lacks what it takes or the caller the rights.
    pub fn start() -> Result<Self, TraceError> {
        let threads = Map::new(Full::Evicts, THREADS)?;
        let map = threads.number();
        let programs = vec![
            enters(map)?,
            leaves(map)?,
            signals(map)?,
            faults(map)?,
            sleeps(map)?,
            wakes(map)?,
            ends(map)?,
        ];
        let new = Self { threads, _programs: programs };
        new.add_who_waits_already();
        Ok(new)
    }

    /// Threads that were in futex(2) before the start wait from the start on.
    fn add_who_waits_already(&self) {
        let since = now();
        let root = Root::live();
        for process in root.list_numbers("proc") {
            for thread in root.list_numbers(&format!("proc/{process}/task")) {
                let call = root.line(&format!("proc/{process}/task/{thread}/syscall"));
                if let (true, Ok(thread)) = (call.is_some_and(|c| waits(&c)), u32::try_from(thread)) {
                    let mut value = [0; WORDS];
                    value[LOCK_SINCE as usize / 8] = since;
                    // One that has moved since is there already, and knows better.
                    self.threads.put_if_absent([thread], value);
                }
            }
        }
    }

    /// What a thread did since the start, a wait that still lasts included; nothing where it did nothing.
    pub fn thread(&self, thread: u64) -> Traced {
        let key = u32::try_from(thread).unwrap_or(0);
        let value = self.threads.get([key]).unwrap_or_default();
        let word = |offset: i16| value[offset as usize / 8];
        let until_now = |since: u64| if since == 0 { 0 } else { now().saturating_sub(since) };
        Traced {
            calls: word(CALLS),
            signals: word(SIGNALS),
            lock_wait: word(LOCK) + until_now(word(LOCK_SINCE)),
            text_wait: word(TEXT) + until_now(word(TEXT_SINCE)),
        }
    }
}

/// Whether a line of /proc/TID/syscall (the call's number, its arguments) is of a call that waits.
fn waits(line: &str) -> bool {
    let mut words = line.split(' ');
    let Some(number) = words.next().and_then(|n| n.parse().ok()) else { return false };
    let operation = words.nth(1).and_then(|word| i32::from_str_radix(word.trim_start_matches("0x"), 16).ok());
    waiting_calls().contains(&number)
        || number == libc::SYS_futex as i32 && operation.is_some_and(|o| WAITING.contains(&(o & OPERATION)))
}

/// R6 = the context, R7 = the value of the thread in R0; `end` where there is none.
fn find(program: &mut Assembler, map: i32) {
    program.store_word(FRAME, KEY, R0);
    program.ask(MAP_LOOKUP, map, KEY);
    program.jump_if(R0, If::Equal, 0, "end").copy(R7, R0);
}

/// As [`find`] for the calling thread, which gets a value where it has none.
fn find_or_begin(program: &mut Assembler, map: i32) {
    program.copy(R6, R1).call(CURRENT).store_word(FRAME, KEY, R0);
    program.ask(MAP_LOOKUP, map, KEY);
    program.jump_if(R0, If::Not, 0, "found");
    for word in 0..WORDS as i16 {
        program.store_value(FRAME, NEW + word * 8, 0);
    }
    program.put_if_absent(map, KEY, NEW);
    program.ask(MAP_LOOKUP, map, KEY);
    program.jump_if(R0, If::Equal, 0, "end").label("found").copy(R7, R0);
}

/// Adds what has passed since the time at `since` to the sum at `sum`.
fn add_since(program: &mut Assembler, sum: i16, since: i16) {
    program.load(R8, R7, (since as usize, 8)).jump_if(R8, If::Equal, 0, "end");
    program.store_value(R7, since, 0).call(CLOCK).subtract(R0, R8);
    program.load(R8, R7, (sum as usize, 8)).add(R8, R0).store(R7, sum, R8);
}

fn add_one(program: &mut Assembler, count: i16) {
    program.load(R8, R7, (count as usize, 8)).add_value(R8, 1).store(R7, count, R8);
}

fn enters(map: i32) -> Result<Program, TraceError> {
    let point = Tracepoint("raw_syscalls:sys_enter");
    let (number, arguments) = (point.field("id")?, point.field("args")?);
    let mut program = Assembler::default();
    find_or_begin(&mut program, map);
    add_one(&mut program, CALLS);
    program.store_value(R7, IN_TEXT_FAULT, 0).store_value(R7, LOCK_SINCE, 0).load(R8, R6, number);
    for call in waiting_calls() {
        program.jump_if(R8, If::Equal, call, "waits");
    }
    program.jump_if(R8, If::Not, libc::SYS_futex as i32, "end");
    program.load(R8, R6, (arguments.0 + 8, 8)).and_value(R8, OPERATION);
    for operation in WAITING {
        program.jump_if(R8, If::Equal, operation, "waits");
    }
    program.jump("end").label("waits").call(CLOCK).store(R7, LOCK_SINCE, R0);
    point.run(program)
}

fn waiting_calls() -> [i32; 2] {
    [libc::SYS_futex_waitv as i32, FUTEX_WAIT]
}

fn leaves(map: i32) -> Result<Program, TraceError> {
    let point = Tracepoint("raw_syscalls:sys_exit");
    let mut program = Assembler::default();
    program.load(R8, R1, point.field("id")?);
    for call in waiting_calls() {
        program.jump_if(R8, If::Equal, call, "waited");
    }
    program.jump_if(R8, If::Not, libc::SYS_futex as i32, "end").label("waited").call(CURRENT);
    find(&mut program, map);
    add_since(&mut program, LOCK, LOCK_SINCE);
    point.run(program)
}

fn signals(map: i32) -> Result<Program, TraceError> {
    let mut program = Assembler::default();
    find_or_begin(&mut program, map);
    add_one(&mut program, SIGNALS);
    Tracepoint("signal:signal_deliver").run(program)
}

fn faults(map: i32) -> Result<Program, TraceError> {
    let point = Tracepoint("exceptions:page_fault_user");
    let mut program = Assembler::default();
    program.load(R8, R1, point.field("address")?).load(R9, R1, point.field("ip")?);
    program.jump_if_both(R8, If::Equal, R9, "text").call(CURRENT);
    find(&mut program, map);
    program.store_value(R7, IN_TEXT_FAULT, 0).jump("end").label("text");
    find_or_begin(&mut program, map);
    program.store_value(R7, IN_TEXT_FAULT, 1);
    point.run(program)
}

fn sleeps(map: i32) -> Result<Program, TraceError> {
    let point = Tracepoint("sched:sched_switch");
    let mut program = Assembler::default();
    // 0 is running; beyond a byte is how it was interrupted.
    program.load(R8, R1, point.field("prev_state")?).and_value(R8, 255).jump_if(R8, If::Equal, 0, "end");
    program.load(R0, R1, point.field("prev_pid")?);
    find(&mut program, map);
    program.load(R8, R7, (IN_TEXT_FAULT as usize, 8)).jump_if(R8, If::Equal, 0, "end");
    program.call(CLOCK).store(R7, TEXT_SINCE, R0);
    point.run(program)
}

fn wakes(map: i32) -> Result<Program, TraceError> {
    let point = Tracepoint("sched:sched_wakeup");
    let mut program = Assembler::default();
    program.load(R0, R1, point.field("pid")?);
    find(&mut program, map);
    add_since(&mut program, TEXT, TEXT_SINCE);
    point.run(program)
}

fn ends(map: i32) -> Result<Program, TraceError> {
    let mut program = Assembler::default();
    program.call(CURRENT).store_word(FRAME, KEY, R0);
    program.map(R1, map).copy(R2, FRAME).add_value(R2, KEY.into()).call(MAP_DELETE);
    Tracepoint("sched:sched_process_exit").run(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_wait_are_known() {
        let futex = libc::SYS_futex;
        assert!(waits(&format!("{futex} 0x7f00 0x189 0x2 0x0 0x0 0xffffffff 0x7ffd 0x7f01")));
        assert!(!waits(&format!("{futex} 0x7f00 0x81 0x1 0x0")), "a wake");
        for other in ["running", "", "0 0x0 0x0", "-1 0x7ffd 0x7f01"] {
            assert!(!waits(other), "{other}");
        }
    }
}
