//! The pages of one mapping that reclaim frees and that enter the page cache, one by one and in
//! order.
//!
//! | pages | event | hook | shows |
//! |---|---|---|---|
//! | anonymous | reclaim frees a page | function `workingset_eviction` | page, actor, workingset flag |
//! | of a file | a page enters the cache | tracepoint `mm_filemap_add_to_page_cache` | page |
//! | of a file | a page leaves the cache | tracepoint `mm_filemap_delete_from_page_cache` | page, kswapd or another task |
//! | of a file | the same by reclaim | function `workingset_eviction` | whether at a cgroup's limit, workingset flag |
//!
//! `workingset_eviction` runs for each folio that reclaim frees, except clean pages of
//! `madvise(MADV_FREE)`. Its second argument is the cgroup whose limit caused the reclaim, if any.
//! Some kernels refuse programs on functions: then there are no anonymous pages, and a file's
//! actors are kswapd and other tasks.
//!
//! An anonymous page is identified by its virtual page number, which the kernel keeps in
//! `folio->index` for a mapping that was never moved. A page of another process at the same address
//! is indistinguishable.

use std::ops::Range;

use super::TraceError;
use super::assembler::*;
use super::btf::Btf;
use super::map::{Full, Map, MapOfProcessors};
use super::program::{Program, Tracepoint, When, run_on};
use super::ring::Ring;

/// Bytes of the ring: 170,000 records.
const RING: u32 = 4 << 20;
/// The words of a record: kind, actor and workingset flag in a byte each and the number of pages in
/// the upper half; the first page.
const RECORD_WORDS: usize = 2;

/// `PF_KSWAPD`, include/linux/sched.h: the current task is kswapd.
const PF_KSWAPD: i32 = 0x0002_0000;
/// `PAGE_MAPPING_FLAGS` and `PAGE_MAPPING_ANON`, include/linux/page-flags.h.
const MAPPING_FLAGS: i32 = 3;
const ANONYMOUS: i32 = 1;
const OF_FILE: i32 = 0;
/// `BPF_RB_NO_WAKEUP`: pagelab polls.
const SILENTLY: i32 = 1;

const ENTERED: i32 = 0;
const LEFT: i32 = 1;
/// Actors in a record.
const TASK: i32 = 0;
const KSWAPD: i32 = 1;
const CGROUP: i32 = 2;
const DIRECT: i32 = 3;
/// Workingset flags in a record, plus one.
const UNKNOWN: i32 = 0;

/// The stack frame: the record, a copied word, a key of zero.
const RECORD: i16 = -16;
const COPIED: i16 = -24;
const ZERO: i16 = -32;

/// The function that reclaim calls for each folio that it frees.
const FREES: &str = "workingset_eviction";

/// The pages to watch.
#[derive(Clone, Debug)]
pub enum Watched {
    /// Private anonymous memory at the virtual page numbers of [`ReclaimLog::watch`].
    Anonymous,
    /// A file, by the kernel's number of its device and its inode
    /// ([`super::page_requests::stream::file_number`]).
    File {
        /// The device.
        device: u32,
        /// The inode.
        inode: u64,
    },
}

/// The task that freed a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// kswapd.
    Kswapd,
    /// A task in an allocation, because the machine was short of memory (direct reclaim).
    Direct,
    /// A task at the limit of a cgroup, or one that writes to `memory.reclaim`.
    Cgroup,
    /// A task other than kswapd; the hook does not show why.
    Task,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Pages entered memory.
    Entered {
        /// The first page, from the start of the range or the file.
        page: u64,
        /// The number of pages: those of a folio.
        pages: u32,
    },
    /// Reclaim freed pages.
    Left {
        /// The first page, from the start of the range or the file.
        page: u64,
        /// The number of pages: those of a folio.
        pages: u32,
        /// Who freed them.
        by: Actor,
        /// The kernel's flag `PG_workingset`: the folio was active before, or was fetched again
        /// soon after an earlier eviction. `None`: not known.
        workingset: Option<bool>,
    },
}

/// Watches pages until it is dropped.
#[derive(Debug)]
pub struct ReclaimLog {
    ring: Ring<RECORD_WORDS>,
    dropped: Map<1, 1>,
    range: Map<1, 2>,
    on_functions: bool,
    _programs: Vec<Program>,
}

impl ReclaimLog {
    /// Starts the programs.
    ///
    /// # Errors
    /// If the kernel has no BTF or no such tracepoint, the caller lacks the privileges, or the
    /// kernel refuses programs on functions and `watched` is anonymous.
    pub fn start(watched: &Watched) -> Result<Self, TraceError> {
        let btf = Btf::read()?;
        let maker = Maker {
            layout: Layout::of(&btf)?,
            btf: &btf,
            ring: Ring::new(RING)?,
            dropped: Map::new(Full::Refuses, 1)?,
            range: Map::array(1)?,
            reason: MapOfProcessors::array(1)?,
        };
        maker.dropped.put([0], [0]);
        let (programs, on_functions) = match watched {
            Watched::Anonymous => (vec![maker.anonymous()?], true),
            Watched::File { device, inode } => {
                let reasons = maker.reasons();
                let on_functions = reasons.is_ok();
                let mut programs = vec![maker.entered(*device, *inode)?, maker.left(*device, *inode)?];
                programs.extend(reasons);
                (programs, on_functions)
            }
        };
        let Maker { ring, dropped, range, .. } = maker;
        Ok(Self { ring, dropped, range, on_functions, _programs: programs })
    }

    /// Sets the virtual page numbers to watch. Before this call no anonymous page is reported.
    pub fn watch(&self, pages: Range<u64>) {
        self.range.put([0], [pages.start, pages.end]);
    }

    /// Passes every available event to `take`, in order.
    pub fn drain(&mut self, mut take: impl FnMut(Event)) {
        self.ring.drain(|[head, page]| take(event(head, page)));
    }

    /// Whether the programs see the reason of reclaim and the workingset flag.
    pub fn is_on_functions(&self) -> bool {
        self.on_functions
    }

    /// Number of events lost because the ring was full.
    pub fn dropped(&self) -> u64 {
        self.dropped.get([0]).map_or(0, |[events]| events)
    }
}

/// Decodes a record.
fn event(head: u64, page: u64) -> Event {
    let [kind, by, workingset, _, a, b, c, d] = head.to_ne_bytes();
    let pages = u32::from_ne_bytes([a, b, c, d]);
    if i32::from(kind) == ENTERED {
        return Event::Entered { page, pages };
    }
    let by = match i32::from(by) {
        KSWAPD => Actor::Kswapd,
        CGROUP => Actor::Cgroup,
        DIRECT => Actor::Direct,
        _ => Actor::Task,
    };
    let workingset = (i32::from(workingset) != UNKNOWN).then_some(workingset == 2);
    Event::Left { page, pages, by, workingset }
}

type Place = (usize, usize);

/// Offsets and sizes of the members that the programs read.
struct Layout {
    mapping: usize,
    index: Place,
    flags: Place,
    task_flags: Place,
    /// The bit of `PG_workingset`.
    workingset: i32,
}

impl Layout {
    fn of(btf: &Btf) -> Result<Self, TraceError> {
        Ok(Self {
            mapping: btf.offset("folio", "mapping")?,
            index: (btf.offset("folio", "index")?, 8),
            flags: (btf.offset("folio", "flags")?, 8),
            task_flags: (btf.offset("task_struct", "flags")?, 4),
            workingset: btf.value("pageflags", "PG_workingset")? as i32,
        })
    }
}

/// Generates the programs.
struct Maker<'a> {
    btf: &'a Btf,
    layout: Layout,
    ring: Ring<RECORD_WORDS>,
    dropped: Map<1, 1>,
    /// The first virtual page number to watch and the end.
    range: Map<1, 2>,
    /// On each CPU, the actor and the workingset flag of the folio that leaves next, as in a
    /// record; 0 if reclaim is not at work.
    reason: MapOfProcessors<1, 1>,
}

impl Maker<'_> {
    /// Sets R8 to the actor and the workingset flag of the folio in R6, as in a record. The cgroup
    /// is in R7. Clobbers R0 and R1.
    fn reason_of(&self, program: &mut Assembler) {
        let l = &self.layout;
        self.kswapd(program, "not kswapd");
        program.set(R8, KSWAPD << 8).jump("actor").label("not kswapd").set(R8, DIRECT << 8);
        program.jump_if(R7, If::Equal, 0, "actor").set(R8, CGROUP << 8).label("actor");
        program.load(R1, R6, l.flags).shift_right_by(R1, l.workingset).and_value(R1, 1).add_value(R1, 1);
        program.shift_left_by(R1, 16).add(R8, R1);
    }

    /// Jumps to `other` unless the current task is kswapd. Clobbers R0 to R5.
    fn kswapd(&self, program: &mut Assembler, other: &'static str) {
        program.call(CURRENT_TASK).load(R1, R0, self.layout.task_flags).and_value(R1, PF_KSWAPD);
        program.jump_if(R1, If::Equal, 0, other);
    }

    /// Sends a record: its head in R8, the number of pages in R9, the first page in R7.
    fn send(&self, program: &mut Assembler) {
        program.store_word(FRAME, RECORD, R8).store_word(FRAME, RECORD + 4, R9);
        program.store(FRAME, RECORD + 8, R7).map(R1, self.ring.number()).copy(R2, FRAME);
        program.add_value(R2, RECORD.into()).set(R3, 8 * RECORD_WORDS as i32).set(R4, SILENTLY);
        program.call(RING_OUTPUT).jump_if(R0, If::Equal, 0, "end").set(R0, 0).store_word(FRAME, ZERO, R0);
        program.ask(MAP_LOOKUP, self.dropped.number(), ZERO).jump_if(R0, If::Equal, 0, "end");
        program.set(R1, 1).atomic_add(R0, 0, R1);
    }

    /// The arguments of `workingset_eviction`: sets R6 to the folio, R7 to the cgroup, and R1 to
    /// the kind of the folio's mapping. Clobbers R0 to R5.
    fn freed(&self, program: &mut Assembler) {
        program.load(R6, R1, (0, 8)).load(R7, R1, (8, 8));
        // The pointer as a number: its lowest bits are flags.
        program.copy(R1, FRAME).add_value(R1, COPIED.into()).set(R2, 8).copy(R3, R6);
        program.add_value(R3, self.layout.mapping as i32).call(READ_KERNEL);
        program.load(R1, FRAME, (COPIED as usize, 8)).and_value(R1, MAPPING_FLAGS);
    }

    /// `workingset_eviction(folio, cgroup)` of anonymous pages.
    fn anonymous(&self) -> Result<Program, TraceError> {
        let (mut program, l) = (Assembler::default(), &self.layout);
        self.freed(&mut program);
        program.jump_if(R1, If::Not, ANONYMOUS, "end");
        program.load(R9, R6, l.index).set(R0, 0).store_word(FRAME, ZERO, R0);
        program.ask(MAP_LOOKUP, self.range.number(), ZERO).jump_if(R0, If::Equal, 0, "end");
        program.load(R1, R0, (0, 8)).jump_if_both(R9, If::Below, R1, "end");
        program.load(R2, R0, (8, 8)).jump_if_both(R9, If::AtLeast, R2, "end").subtract(R9, R1);
        self.reason_of(&mut program);
        program.add_value(R8, LEFT).copy(R7, R9).set(R9, 1);
        self.send(&mut program);
        run_on(self.btf, FREES, When::Entered, program)
    }

    /// `workingset_eviction(folio, cgroup)`, called before the page of a file leaves the cache:
    /// keeps the reason for [`Self::left`].
    fn reasons(&self) -> Result<Program, TraceError> {
        let mut program = Assembler::default();
        self.freed(&mut program);
        program.jump_if(R1, If::Not, OF_FILE, "end");
        self.reason_of(&mut program);
        self.reason(&mut program, "end");
        program.store(R0, 0, R8);
        run_on(self.btf, FREES, When::Entered, program)
    }

    /// Sets R0 to this CPU's reason, or jumps to `none`. Clobbers R1 to R5.
    fn reason(&self, program: &mut Assembler, none: &'static str) {
        program.set(R0, 0).store_word(FRAME, ZERO, R0);
        program.ask(MAP_LOOKUP, self.reason.number(), ZERO).jump_if(R0, If::Equal, 0, none);
    }

    /// Sets R7 to the page and R9 to the number of pages of a folio of this file that enters or
    /// leaves the cache. Ends the program for another file.
    fn folio_of(
        &self,
        program: &mut Assembler,
        point: Tracepoint,
        (device, inode): (u32, u64),
    ) -> Result<(), TraceError> {
        program.load(R2, R1, point.field("s_dev")?).load(R3, R1, point.field("i_ino")?);
        program.load(R7, R1, point.field("index")?).set(R9, 1);
        // Before 6.2 the tracepoint may lack the order.
        if let Ok(order) = point.field("order") {
            program.load(R4, R1, order).shift_left(R9, R4);
        }
        program.set_long(R4, device.into()).jump_if_both(R2, If::Not, R4, "end");
        program.set_long(R4, inode).jump_if_both(R3, If::Not, R4, "end");
        Ok(())
    }

    fn entered(&self, device: u32, inode: u64) -> Result<Program, TraceError> {
        let (mut program, point) = (Assembler::default(), Tracepoint("filemap:mm_filemap_add_to_page_cache"));
        self.folio_of(&mut program, point, (device, inode))?;
        program.set(R8, ENTERED);
        self.send(&mut program);
        point.run(program)
    }

    fn left(&self, device: u32, inode: u64) -> Result<Program, TraceError> {
        let (mut program, point) =
            (Assembler::default(), Tracepoint("filemap:mm_filemap_delete_from_page_cache"));
        // The reason is for this folio, whichever file it belongs to.
        program.copy(R6, R1).set(R8, 0);
        self.reason(&mut program, "no reason");
        program.load(R8, R0, (0, 8)).store_value(R0, 0, 0).label("no reason").copy(R1, R6);
        self.folio_of(&mut program, point, (device, inode))?;
        program.jump_if(R8, If::Not, 0, "known");
        self.kswapd(&mut program, "task");
        program.set(R8, KSWAPD << 8).jump("known").label("task").set(R8, TASK << 8);
        program.label("known").add_value(R8, LEFT);
        self.send(&mut program);
        point.run(program)
    }
}

#[cfg(test)]
mod tests {
    use super::super::pair;
    use super::*;

    #[test]
    fn a_record_is_decoded_as_the_programs_write_it() {
        let of = |head: i32, pages: u32, page: u64| event(pair(head as u32, pages), page);
        assert_eq!(of(ENTERED, 4, 12), Event::Entered { page: 12, pages: 4 });
        let left = |by, workingset| Event::Left { page: 7, pages: 1, by, workingset };
        assert_eq!(of(LEFT | KSWAPD << 8 | 2 << 16, 1, 7), left(Actor::Kswapd, Some(true)));
        assert_eq!(of(LEFT | CGROUP << 8 | 1 << 16, 1, 7), left(Actor::Cgroup, Some(false)));
        assert_eq!(of(LEFT | DIRECT << 8 | 1 << 16, 1, 7), left(Actor::Direct, Some(false)));
        assert_eq!(of(LEFT | TASK << 8, 1, 7), left(Actor::Task, None));
    }
}
