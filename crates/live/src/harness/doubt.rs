//! Which references may have faulted, told without a system call.
//!
//! On x86-64 a mark tells exactly whether the kernel was entered. The segment register ES holds a
//! null selector other than 0; in 64-bit mode nobody uses it. A return from an interrupt or
//! exception to user mode (IRET) replaces null selectors by 0, so the mark is gone after every
//! fault, and still there after a reference that met none. Looking at it takes a fraction of a
//! nanosecond, and faults take no longer for it. (Intel SDM volume 2, IRET, "return to outer
//! privilege level"; AMD64 manual volume 3, IRET.) A kernel that returns otherwise would leave the
//! mark where it is (FRED, some emulators): so [`Mark::trusted`] tries it before each run.
//!
//! Elsewhere a reference is in doubt that took as long as the quickest fault ([`Slow`]).
//!
//! A perf event of page faults whose ring is read in memory tells as much as the mark, and adds 330
//! to 410 ns to each fault where a first touch takes 1,500 (AMD EPYC, Linux 6.18); a BPF program at
//! the tracepoint of user faults 70 to 90.

#[cfg(target_arch = "x86_64")]
use std::io;

#[cfg(target_arch = "x86_64")]
use pagelab_kernel::region::Region;

/// Tells which references may have faulted.
pub trait Doubt {
    /// Its name in the environment (`fault.detection`).
    const NAME: &'static str;
    /// Whether a hit in doubt was interrupted, and no other was.
    const INTERRUPTIONS: bool;
    /// To be called before the first reference, and again after each that was in doubt.
    fn arm(&self);
    /// Whether the last reference, which took so long, may have faulted.
    fn is(&self, nanoseconds: u64) -> bool;
}

/// A reference is in doubt from so many nanoseconds on.
#[derive(Clone, Copy, Debug)]
pub struct Slow(pub u64);

impl Doubt for Slow {
    const NAME: &'static str = "time";
    const INTERRUPTIONS: bool = false;

    #[inline(always)]
    fn arm(&self) {}

    #[inline(always)]
    fn is(&self, nanoseconds: u64) -> bool {
        nanoseconds >= self.0
    }
}

/// A mark that every fault and every interrupt takes away; see the module's comment.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub struct Mark(());

/// Faults and hits with which the mark is tried.
#[cfg(target_arch = "x86_64")]
const TRIALS: usize = 1024;

#[cfg(target_arch = "x86_64")]
impl Mark {
    /// The mark, where it does what it should: each of some first touches takes it away, and hits
    /// leave it but for the interrupts among them.
    ///
    /// # Errors
    /// When the kernel refuses memory.
    pub fn trusted() -> io::Result<Option<Self>> {
        let region = Region::base_pages(TRIALS)?;
        let mark = Self(());
        let gone = || {
            let touched = (0..TRIALS).map(|page| {
                mark.arm();
                // SAFETY: the page lies within the region, which nobody else uses.
                unsafe { region.base().add(page * region.page_size()).write_volatile(1) };
                mark.is(0)
            });
            touched.filter(|&gone| gone).count()
        };
        let (faults, hits) = (gone(), gone());
        Ok((faults == TRIALS && hits < TRIALS / 10).then_some(mark))
    }
}

#[cfg(target_arch = "x86_64")]
impl Doubt for Mark {
    const NAME: &'static str = "mark";
    const INTERRUPTIONS: bool = true;

    #[inline(always)]
    fn arm(&self) {
        // SAFETY: 3 is a null selector, which may be loaded in 64-bit mode and changes no access to
        // memory; compilers take ES for as unused as it is there.
        unsafe { std::arch::asm!("mov es, {0:x}", in(reg) 3_u16, options(nostack, preserves_flags)) };
    }

    #[inline(always)]
    fn is(&self, _nanoseconds: u64) -> bool {
        let selector: u32;
        // SAFETY: reads a register. Not `nomem`: it stays behind the reference.
        unsafe { std::arch::asm!("mov {0:e}, es", out(reg) selector, options(nostack, preserves_flags)) };
        selector == 0
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_gone_after_a_fault_and_stays_without_one() {
        let Some(mark) = Mark::trusted().unwrap() else {
            // An emulator that keeps the selector.
            return;
        };
        let region = Region::base_pages(64).unwrap();
        let read = |page: usize| {
            mark.arm();
            // SAFETY: within the region.
            std::hint::black_box(unsafe { region.base().add(page * region.page_size()).read_volatile() });
            mark.is(0)
        };
        assert!((0..64).all(read), "each first read faults");
        // Interrupts come some hundred times a second.
        assert!((0..64).filter(|&page| read(page)).count() < 8);
        // A system call leaves it, an interrupt does not.
        mark.arm();
        while !mark.is(0) {}
    }
}
