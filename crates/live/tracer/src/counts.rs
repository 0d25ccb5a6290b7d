//! A counter for each instruction, which is never given back: generated code writes it.

use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use pagelab_ring::{COUNTED, FIGURES, INSTRUCTIONS, UNCOUNTED};

use crate::touched::{is_user, page};

/// What is counted of an instruction.
pub struct Counter {
    /// Where it is in the machine's virtual memory.
    pub address: u64,
    /// Its bytes.
    pub size: u64,
    /// By their numbers in [`pagelab_ring`].
    pub figures: [AtomicU64; FIGURES],
    /// The instructions when counting began.
    before: AtomicU64,
}

impl Counter {
    /// Adds to a figure; who has the machine's one thread is alone.
    #[inline]
    pub fn add(&self, figure: usize, count: u64) {
        let figure = &self.figures[figure];
        figure.store(figure.load(Relaxed) + count, Relaxed);
    }

    /// The line in which its last byte is.
    pub fn last_line(&self) -> u64 {
        (self.address + self.size.max(1) - 1) / pagelab_caches::LINE
    }

    /// As a callback gets it.
    pub fn pointer(&'static self) -> *mut c_void {
        ptr::from_ref(self).cast_mut().cast()
    }

    /// The counter that a callback got.
    ///
    /// # Safety
    /// `pointer` is of [`Counter::pointer`].
    #[inline]
    pub unsafe fn at(pointer: *mut c_void) -> &'static Self {
        // SAFETY: one of [`Counts`], which stay.
        unsafe { &*pointer.cast::<Self>() }
    }
}

/// All counters, and where they are written.
pub struct Counts {
    output: File,
    all: Vec<&'static Counter>,
    known: HashMap<(u64, u64), &'static Counter>,
}

impl Counts {
    /// With none.
    pub fn new(output: File) -> Self {
        Self { output, all: Vec::new(), known: HashMap::new() }
    }

    /// That of the instruction of so many bytes at an address: a kernel patches its code, and lengths with it.
    pub fn counter(&mut self, address: u64, size: u64) -> &'static Counter {
        if let Some(known) = self.known.get(&(address, size)) {
            return known;
        }
        let figures = [const { AtomicU64::new(0) }; FIGURES];
        let new = Counter { address, size, figures, before: AtomicU64::new(0) };
        let new: &'static Counter = Box::leak(Box::new(new));
        self.known.insert((address, size), new);
        self.all.push(new);
        new
    }

    /// From here on it counts.
    pub fn begin(&mut self) {
        for one in &self.all {
            one.before.store(one.figures[INSTRUCTIONS].load(Relaxed), Relaxed);
        }
    }

    /// Writes the words [`COUNTED`] and the number of pages, then address and figures of each
    /// instruction that was executed, in native byte order. `touched`: the data pages of user mode,
    /// to which this function adds the pages of its code.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&mut self, touched: Option<HashSet<u64>>) -> io::Result<()> {
        let executed = |one: &Counter| one.figures[INSTRUCTIONS].load(Relaxed) - one.before.load(Relaxed);
        let pages = touched.map(|mut pages| {
            let code = self.all.iter().filter(|one| is_user(one.address) && executed(one) > 0);
            pages.extend(code.flat_map(|one| [one.address, one.address + one.size.max(1) - 1].map(page)));
            pages.len() as u64
        });
        let mut output = BufWriter::new(&self.output);
        output.write_all(&COUNTED.to_ne_bytes())?;
        output.write_all(&pages.unwrap_or(UNCOUNTED).to_ne_bytes())?;
        for one in &self.all {
            let figures = one.figures.each_ref().map(|figure| figure.load(Relaxed));
            let count = executed(one);
            if count > 0 {
                let row = [one.address, count].into_iter().chain(figures[INSTRUCTIONS + 1..].iter().copied());
                row.map(u64::to_ne_bytes).try_for_each(|word| output.write_all(&word))?;
            }
        }
        output.flush()
    }
}
