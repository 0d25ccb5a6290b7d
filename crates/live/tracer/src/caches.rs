//! The caches and translation buffers of a modelled core, fed with what the machine fetches, loads and stores between
//! its marks; they begin empty.
//!
//! Data are told apart by their physical address, code by its virtual one: QEMU 7.2's word on where code is depends on how
//! blocks were cut, and that on what was executed before. Within the large pages of the kernel's text both give a line the same set.
//! An access, or an instruction, that goes on in the next page counts in its first. QEMU tells of no address that
//! invalidates one translation (invlpg): a page that comes back in the same frame is still translated.

use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

use crate::api;
use crate::counts::Counter;
use crate::translated::Translated;
use pagelab_caches::{Geometry, Hierarchy, LINE, Missed, Side};
use pagelab_ring::{L1D, L1I, L2, REFERENCES, TLB, WALKS};

/// The core, while it is fed.
static CORE: AtomicPtr<Hierarchy> = AtomicPtr::new(ptr::null_mut());
/// A bit that no physical address has, where the places of code differ from those of data, and the bits of an address there.
const CODE: u64 = 1 << 62;
/// See [`CODE`].
const VIRTUAL: u64 = (1 << 48) - 1;

#[inline]
fn core() -> Option<&'static mut Hierarchy> {
    // SAFETY: null, or of [`begin`]; the machine has one thread, and no callback calls another.
    unsafe { CORE.load(Relaxed).as_mut() }
}

/// An empty core is fed from here on.
pub fn begin() {
    end();
    CORE.store(Box::into_raw(Box::new(Hierarchy::new(&Geometry::SKYLAKE))), Relaxed);
}

/// Nothing is fed any more.
pub fn end() {
    let core = CORE.swap(ptr::null_mut(), Relaxed);
    if !core.is_null() {
        // SAFETY: of [`begin`], and nobody has it.
        drop(unsafe { Box::from_raw(core) });
    }
}

/// Has the fetches and accesses of an instruction fed; `before`: the line in which the block's instruction before it ends,
/// which is in the cache already.
pub fn translate(one: &Translated, before: Option<u64>, counter: &'static Counter) {
    if before != Some(one.address / LINE) || counter.last_line() != one.address / LINE {
        one.when_executed(fetch, counter.pointer());
    }
    one.when_it_accesses(access, counter.pointer());
    match control_register(one.bytes()) {
        Some(3) => one.when_executed(switch, ptr::null_mut()),
        Some(4) => one.when_executed(flush, ptr::null_mut()),
        _ => {}
    }
}

/// The control register that an x86 instruction writes (0F 22 /r): 3 is another address space, 4 drops all translations.
fn control_register(bytes: &[u8]) -> Option<u8> {
    let rest = match bytes {
        [0x40..=0x43 | 0x48..=0x4b, rest @ ..] => rest,
        all => all,
    };
    match rest {
        [0x0f, 0x22, operands] => Some(operands >> 3 & 7),
        _ => None,
    }
}

extern "C" fn switch(_: c_uint, _: *mut c_void) {
    if let Some(core) = core() {
        core.switch();
    }
}

extern "C" fn flush(_: c_uint, _: *mut c_void) {
    if let Some(core) = core() {
        core.flush();
    }
}

extern "C" fn fetch(_: c_uint, counter: *mut c_void) {
    let Some(core) = core() else { return };
    // SAFETY: what [`translate`] registered.
    let counter = unsafe { Counter::at(counter) };
    let place = counter.address & VIRTUAL | CODE;
    refer(core, counter, Side::Code, (counter.address, place, counter.size));
}

extern "C" fn access(_: c_uint, what: u32, address: u64, counter: *mut c_void) {
    let Some(core) = core() else { return };
    // SAFETY: what [`translate`] registered.
    let counter = unsafe { Counter::at(counter) };
    counter.add(REFERENCES, 1);
    // SAFETY: QEMU's own word for this access, during its callback; what it returns is looked at at once.
    let (place, size) = unsafe {
        let found = api::qemu_plugin_get_hwaddr(what, address);
        // A device's registers are in no cache.
        if found.is_null() || api::qemu_plugin_hwaddr_is_io(found) {
            return;
        }
        (api::qemu_plugin_hwaddr_phys_addr(found), 1 << api::qemu_plugin_mem_size_shift(what))
    };
    refer(core, counter, Side::Data, (address, place, size));
}

/// Feeds the line, or the two lines, of so many bytes.
#[inline]
fn refer(core: &mut Hierarchy, counter: &Counter, side: Side, (address, place, size): (u64, u64, u64)) {
    note(counter, side, core.refer(side, address, place));
    let rest = LINE - address % LINE;
    if size > rest && address % 4096 + rest < 4096 {
        note(counter, side, core.refer(side, address + rest, place + rest));
    }
}

#[inline]
fn note(counter: &Counter, side: Side, missed: Missed) {
    if missed == Missed::default() {
        return;
    }
    let first = if side == Side::Code { L1I } else { L1D };
    counter.add(first, u64::from(missed.caches >= 1));
    counter.add(L2, u64::from(missed.caches == 2));
    counter.add(TLB, u64::from(missed.pages >= 1));
    counter.add(WALKS, u64::from(missed.pages == 2));
}
