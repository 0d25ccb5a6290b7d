//! What a machine executes, by address: between two instructions that do nothing else each instruction is counted, and
//! where that was asked for also what its fetches, loads and stores miss in the caches of a modelled core ([`caches`]); or
//! they are written down ([`stream`]).
//!
//! An instruction that faults is counted each time that it is begun. The machine has one thread for all of its
//! processors, so a counter has one writer at a time.

use std::ffi::{c_int, c_uint, c_void};
use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::ptr;
use std::sync::Mutex;

use crate::api::{self, Block, ExecutedCallback, Id, Instruction};
use crate::counts::{Counter, Counts};
use crate::translated::Translated;
use crate::{caches, stream, touched};
use pagelab_ring::{BEGIN, END, INSTRUCTIONS, MARKS};

/// `QEMU_PLUGIN_INLINE_ADD_U64`.
const ADD: c_int = 0;
/// QEMU before 9 has it, as `qemu_plugin_register_vcpu_insn_exec_inline`.
type Inline = unsafe extern "C" fn(*mut Instruction, c_int, *mut c_void, u64);

/// Counts in addition to instructions.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Misses of a modelled core.
    pub caches: bool,
    /// Pages that user mode touches.
    pub pages: bool,
}

struct Counting {
    counts: Counts,
    inline: Option<Inline>,
    wanted: Wanted,
}

enum Task {
    Count(Counting),
    Record,
}

static TASK: Mutex<Option<Task>> = Mutex::new(None);

/// Begins to count, into the file at `path`.
///
/// # Errors
/// When it cannot be opened.
pub fn count(path: &Path, wanted: Wanted, id: Id) -> io::Result<()> {
    let output = OpenOptions::new().write(true).open(path)?;
    // SAFETY: looks a name up; where QEMU has the function it is of this type.
    let inline = unsafe {
        let found = libc::dlsym(libc::RTLD_DEFAULT, c"qemu_plugin_register_vcpu_insn_exec_inline".as_ptr());
        (!found.is_null()).then(|| std::mem::transmute::<*mut c_void, Inline>(found))
    };
    begin_with(Task::Count(Counting { counts: Counts::new(output), inline, wanted }), id);
    Ok(())
}

/// Begins to write references into the ring, which is open.
pub fn record(id: Id) {
    begin_with(Task::Record, id);
}

fn begin_with(task: Task, id: Id) {
    *TASK.lock().expect("nobody panics") = Some(task);
    // SAFETY: QEMU's function with this plugin's number, from its install function as it wants it.
    unsafe { api::qemu_plugin_register_vcpu_tb_trans_cb(id, translate) };
}

extern "C" fn translate(_: Id, block: *mut Block) {
    let mut task = TASK.lock().expect("nobody panics");
    let Some(task) = task.as_mut() else { return };
    let mut before = None;
    // SAFETY: the block is QEMU's, valid during this call.
    for number in 0..unsafe { api::qemu_plugin_tb_n_insns(block) } {
        let one = Translated::of(block, number);
        match task {
            Task::Count(counting) => before = Some(counting.translate(&one, before)),
            Task::Record => stream::translate(&one),
        }
        for (mark, callback) in [(BEGIN, begin as ExecutedCallback), (END, end)] {
            if one.size == MARKS && one.bytes() == mark {
                one.when_executed(callback, ptr::null_mut());
            }
        }
    }
}

impl Counting {
    /// Has an instruction counted; `before`: the line in which the one before it in its block ends. Where this one ends.
    fn translate(&mut self, one: &Translated, before: Option<u64>) -> u64 {
        let counter = self.counts.counter(one.address, one.size as u64);
        match self.inline {
            // SAFETY: the counter stays; QEMU's instruction.
            Some(inline) => unsafe {
                inline(one.instruction, ADD, counter.figures[INSTRUCTIONS].as_ptr().cast(), 1);
            },
            None => one.when_executed(executed, counter.pointer()),
        }
        if self.wanted.caches {
            caches::translate(one, before, counter);
        }
        if self.wanted.pages {
            touched::translate(one);
        }
        counter.last_line()
    }
}

extern "C" fn executed(_: c_uint, counter: *mut c_void) {
    // SAFETY: what [`translate`] registered.
    unsafe { Counter::at(counter) }.add(INSTRUCTIONS, 1);
}

extern "C" fn begin(_: c_uint, _: *mut c_void) {
    match TASK.lock().expect("nobody panics").as_mut() {
        Some(Task::Count(counting)) => {
            counting.counts.begin();
            if counting.wanted.caches {
                caches::begin();
            }
            if counting.wanted.pages {
                touched::begin();
            }
        }
        Some(Task::Record) => stream::begin(),
        None => {}
    }
}

extern "C" fn end(_: c_uint, _: *mut c_void) {
    match TASK.lock().expect("nobody panics").as_mut() {
        Some(Task::Count(counting)) => {
            caches::end();
            if let Err(error) = counting.counts.write(touched::end()) {
                eprintln!("pagelab's recorder: the counts cannot be written: {error}");
            }
        }
        Some(Task::Record) => stream::end(),
        None => {}
    }
}
