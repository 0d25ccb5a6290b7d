//! A counter for each instruction, which is never given back: generated code writes it.

use std::collections::HashMap;
use std::ffi::c_void;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use pagelab_ring::{COUNTED, FIGURES, INSTRUCTIONS};

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

    /// Behind the word [`COUNTED`] address and figures of each instruction that was executed, in the machine's own order of
    /// bytes.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&mut self) -> io::Result<()> {
        let mut output = BufWriter::new(&self.output);
        output.write_all(&COUNTED.to_ne_bytes())?;
        for one in &self.all {
            let figures = one.figures.each_ref().map(|figure| figure.load(Relaxed));
            let count = figures[INSTRUCTIONS] - one.before.load(Relaxed);
            if count > 0 {
                let row = [one.address, count].into_iter().chain(figures[INSTRUCTIONS + 1..].iter().copied());
                row.map(u64::to_ne_bytes).try_for_each(|word| output.write_all(&word))?;
            }
        }
        output.flush()
    }
}
