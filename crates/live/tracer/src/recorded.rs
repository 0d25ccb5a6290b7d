//! What is recorded of a program: which kinds of references, and in units of which size.

use std::sync::atomic::AtomicU32;

use crate::api;

/// Bits of an address that name nothing.
pub static SHIFT: AtomicU32 = AtomicU32::new(12);
/// See [`stores`].
pub static STORES: AtomicU32 = AtomicU32::new(0);
/// The kinds that are recorded.
pub static KINDS: AtomicU32 = AtomicU32::new(0);

/// The most bytes that QEMU accesses at once.
const LARGEST: u64 = 16;

/// Whether the largest access at `address` would end in the next unit of `1 << shift` bytes.
#[inline]
pub fn near_end(address: u64, shift: u32) -> bool {
    address & ((1 << shift) - 1) > (1 << shift) - LARGEST
}

/// Whether an access ends in another unit than it begins.
pub fn crosses(what: u32, address: u64, shift: u32) -> bool {
    // SAFETY: looks at the word alone.
    let bytes = 1 << unsafe { api::qemu_plugin_mem_size_shift(what) };
    (address ^ (address + bytes - 1)) >> shift != 0
}

/// The bits of QEMU's word for an access that say that it is a store: asked once, for it is a call into QEMU.
pub fn stores() -> u32 {
    // SAFETY: looks at the word alone.
    let is_store = |bit: &u32| unsafe { api::qemu_plugin_mem_is_store(1 << bit) };
    (0..u32::BITS).filter(is_store).map(|bit| 1 << bit).sum()
}
