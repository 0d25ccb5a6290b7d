//! Instructions by address, of a machine: each instruction has a counter that the generated code itself counts up, and
//! two instructions that do nothing else say from where to where.
//!
//! An instruction that faults is counted each time that it is begun. The machine has one thread for all of its
//! processors, so a counter has one writer at a time.

use std::collections::HashMap;
use std::ffi::{c_int, c_uint, c_void};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::api::{self, Block, Id, Instruction, NO_REGISTERS};
use pagelab_ring::{BEGIN, END, MARKS};

/// `QEMU_PLUGIN_INLINE_ADD_U64`.
const ADD: c_int = 0;
/// QEMU before 9 has it, as `qemu_plugin_register_vcpu_insn_exec_inline`.
type Inline = unsafe extern "C" fn(*mut Instruction, c_int, *mut c_void, u64);

/// What is counted of an address.
struct Counter {
    address: u64,
    count: AtomicU64,
    /// The count when counting began.
    before: AtomicU64,
}

struct Counting {
    output: File,
    /// Never given back: the generated code writes them.
    counters: Vec<&'static Counter>,
    by_address: HashMap<u64, &'static Counter>,
    inline: Option<Inline>,
}

static COUNTING: Mutex<Option<Counting>> = Mutex::new(None);

/// Begins; what is counted goes to the file at `path`.
///
/// # Errors
/// When it cannot be opened.
pub fn open(path: &Path, id: Id) -> io::Result<()> {
    let output = OpenOptions::new().write(true).open(path)?;
    // SAFETY: looks a name up; where QEMU has the function it is of this type.
    let inline = unsafe {
        let found = libc::dlsym(libc::RTLD_DEFAULT, c"qemu_plugin_register_vcpu_insn_exec_inline".as_ptr());
        (!found.is_null()).then(|| std::mem::transmute::<*mut c_void, Inline>(found))
    };
    let new = Counting { output, counters: Vec::new(), by_address: HashMap::new(), inline };
    *COUNTING.lock().expect("nobody panics") = Some(new);
    // SAFETY: QEMU's function with this plugin's number, from its install function as it wants it.
    unsafe { api::qemu_plugin_register_vcpu_tb_trans_cb(id, translate) };
    Ok(())
}

extern "C" fn translate(_: Id, block: *mut Block) {
    let mut counting = COUNTING.lock().expect("nobody panics");
    let Some(counting) = counting.as_mut() else { return };
    // SAFETY: the block is QEMU's, valid during this call, and has so many instructions.
    for i in 0..unsafe { api::qemu_plugin_tb_n_insns(block) } {
        // SAFETY: as above; the place of an instruction in the machine's memory is null where it has none.
        let (instruction, address, size, place) = unsafe {
            let instruction = api::qemu_plugin_tb_get_insn(block, i);
            (
                instruction,
                api::qemu_plugin_insn_vaddr(instruction),
                api::qemu_plugin_insn_size(instruction),
                api::qemu_plugin_insn_haddr(instruction).cast::<u8>(),
            )
        };
        let counter = counting.counter(address);
        // SAFETY: the counter stays; QEMU's instruction.
        unsafe {
            match counting.inline {
                Some(inline) => inline(instruction, ADD, counter.count.as_ptr().cast(), 1),
                None => api::qemu_plugin_register_vcpu_insn_exec_cb(
                    instruction,
                    executed,
                    NO_REGISTERS,
                    ptr::from_ref(counter).cast_mut().cast(),
                ),
            }
        }
        for (mark, callback) in [(BEGIN, begin as api::ExecutedCallback), (END, end)] {
            // SAFETY: the bytes of an instruction lie in the machine's memory, which this process has mapped.
            let is_it = size == MARKS
                && !place.is_null()
                && unsafe { std::slice::from_raw_parts(place, MARKS) } == mark;
            if is_it {
                // SAFETY: QEMU's instruction, and a callback that takes no data.
                unsafe {
                    api::qemu_plugin_register_vcpu_insn_exec_cb(
                        instruction,
                        callback,
                        NO_REGISTERS,
                        ptr::null_mut(),
                    );
                }
            }
        }
    }
}

extern "C" fn executed(_: c_uint, counter: *mut c_void) {
    // SAFETY: what [`translate`] registered, which stays.
    unsafe { &*counter.cast::<Counter>() }.count.fetch_add(1, Relaxed);
}

extern "C" fn begin(_: c_uint, _: *mut c_void) {
    if let Some(counting) = COUNTING.lock().expect("nobody panics").as_mut() {
        counting.counters.iter().for_each(|one| one.before.store(one.count.load(Relaxed), Relaxed));
    }
}

extern "C" fn end(_: c_uint, _: *mut c_void) {
    if let Some(counting) = COUNTING.lock().expect("nobody panics").as_mut()
        && let Err(error) = counting.write()
    {
        eprintln!("pagelab's recorder: the counts cannot be written: {error}");
    }
}

impl Counting {
    fn counter(&mut self, address: u64) -> &'static Counter {
        if let Some(known) = self.by_address.get(&address) {
            return known;
        }
        let new = Counter { address, count: AtomicU64::new(0), before: AtomicU64::new(0) };
        let new: &'static Counter = Box::leak(Box::new(new));
        self.by_address.insert(address, new);
        self.counters.push(new);
        new
    }

    /// Address and count of each that was executed, in the machine's own order of bytes.
    fn write(&mut self) -> io::Result<()> {
        let mut output = BufWriter::new(&self.output);
        for one in &self.counters {
            let count = one.count.load(Relaxed) - one.before.load(Relaxed);
            if count > 0 {
                output.write_all(&one.address.to_ne_bytes())?;
                output.write_all(&count.to_ne_bytes())?;
            }
        }
        output.flush()
    }
}
