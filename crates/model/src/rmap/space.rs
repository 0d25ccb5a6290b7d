//! Address spaces and their page tables: fork, exec, exit and the kinds of faults.

use super::layout::{FILES, Object, Program};
use super::mechanism::{Chains, Counted, FOLIO, Kind, Mapper, Page, Work};

/// The page of zeroes, which no reverse map notes.
const ZEROES: Page = Page::MAX;
/// Pages that a file may have.
const FILE_PAGES: u32 = 128;

/// Calls, by the names of Morton's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the kernel function it counts the calls of, or the caller")]
pub struct Counts {
    pub forks: u64,
    pub execs: u64,
    pub copy_page_range: u64,
    pub add_copy_page_range: u64,
    pub add_do_no_page: u64,
    pub add_do_anonymous_page: u64,
    pub add_do_wp_page: u64,
    pub add_put_dirty_page: u64,
    pub add_nope: u64,
    pub remove_zap_pte_range: u64,
    pub remove_do_wp_page: u64,
    pub remove_nope: u64,
    pub do_no_page: u64,
    pub do_wp_page: u64,
}

impl Counts {
    /// All entries noted, the page of zeroes included.
    pub fn adds(&self) -> u64 {
        self.add_copy_page_range
            + self.add_do_no_page
            + self.add_do_anonymous_page
            + self.add_do_wp_page
            + self.add_put_dirty_page
    }

    /// All entries forgotten, the page of zeroes included.
    pub fn removes(&self) -> u64 {
        self.remove_zap_pte_range + self.remove_do_wp_page
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    page: Page,
    /// A private page that may be written: only without leave while it is shared.
    own: bool,
    writable: bool,
}

/// One address space: the entries of each mapping.
#[derive(Clone, Debug, Default)]
struct Space {
    mappings: Vec<Vec<Entry>>,
}

/// Whose call of the reverse map it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// `copy_page_range`.
    Fork,
    /// `zap_pte_range`.
    Drop,
    /// `do_no_page` of a file's page, or an argument page of exec.
    Touch,
    /// `do_anonymous_page`.
    Fresh,
    /// `do_wp_page`.
    Write,
}

/// One call of the reverse map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// The page.
    pub page: Page,
    /// Who maps it.
    pub mapper: Mapper,
    /// Whether the mapping is noted or forgotten.
    pub add: bool,
    /// Whether the page was just allocated.
    pub new: bool,
    /// Whose call it is.
    pub caller: Caller,
}

/// All address spaces, the pages and the reverse map.
#[derive(Debug, Default)]
pub struct Memory {
    /// The calls since they were last asked for, if they are recorded.
    ops: Option<Vec<Op>>,
    spaces: Vec<Space>,
    idle: Vec<Mapper>,
    free: Vec<Page>,
    next: Page,
    /// Noted mappings.
    pub chains: Chains,
    /// What the counting kinds did.
    pub counted: Counted,
    /// The calls.
    pub counts: Counts,
}

impl Memory {
    /// Memory with the files in the page cache and no process.
    pub fn new() -> Self {
        let next = FILES * FILE_PAGES;
        let mut memory = Self { next, ..Self::default() };
        memory.chains.page(next);
        memory
    }

    /// Forgets the counts, not the state.
    pub fn reset_counts(&mut self) {
        self.counts = Counts::default();
        self.counted = Counted::default();
    }

    /// Records the calls of the reverse map from now on.
    pub fn record(&mut self) {
        self.ops = Some(Vec::new());
    }

    /// The calls recorded since the last time, in order.
    pub fn ops(&mut self) -> Vec<Op> {
        self.ops.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// What this kind of reverse map did.
    pub fn work(&self, kind: Kind) -> Work {
        let (adding, removing) = self.chains.work();
        match kind {
            Kind::None => Work::default(),
            Kind::Chain => adding + removing,
            Kind::Object => self.counted.object,
            Kind::Lazy => self.counted.lazy,
            Kind::Folio => self.counted.folio,
        }
    }

    /// A process with nothing mapped.
    pub fn process(&mut self) -> Mapper {
        self.idle.pop().unwrap_or_else(|| {
            self.spaces.push(Space::default());
            self.spaces.len() as Mapper - 1
        })
    }

    /// `fork`: every entry is copied, and what may be written is protected in both.
    pub fn fork(&mut self, parent: Mapper) -> Mapper {
        self.counts.forks += 1;
        let child = self.process();
        let mut mappings = std::mem::take(&mut self.spaces[parent as usize].mappings);
        for mapping in &mut mappings {
            self.counts.copy_page_range += 1;
            self.counted.mapping();
            for entry in mapping.iter_mut() {
                entry.writable = false;
                self.counts.add_copy_page_range += 1;
                self.add(entry.page, child, Caller::Fork);
            }
            self.entries(mapping);
        }
        self.spaces[child as usize].mappings = mappings.clone();
        self.spaces[parent as usize].mappings = mappings;
        child
    }

    /// A fork that copies nothing: the child has no mapping.
    pub fn fork_empty(&mut self) -> Mapper {
        self.counts.forks += 1;
        self.process()
    }

    /// `exec`: the old entries go; `arguments` pages of the new stack are there; then the program
    /// touches its pages.
    pub fn exec(&mut self, process: Mapper, program: &Program, arguments: u32) {
        self.counts.execs += 1;
        self.drop_entries(process);
        let mut stack = Vec::new();
        for _ in 0..arguments {
            self.counts.add_put_dirty_page += 1;
            stack.push(self.fresh(process, Caller::Touch));
        }
        let mut mappings = Vec::new();
        for (number, segment) in program.segments.iter().enumerate() {
            self.counted.mapping();
            // The last mapping is the stack.
            let last = number + 1 == program.segments.len();
            let mut mapping = if last { std::mem::take(&mut stack) } else { Vec::new() };
            let mut runs = 0;
            for index in 0..segment.pages() {
                let written = index >= segment.read + segment.read_then_written;
                self.counts.do_no_page += 1;
                let entry = match segment.object {
                    Object::File(_) if written => {
                        self.counts.add_do_no_page += 1;
                        self.fresh(process, Caller::Touch)
                    }
                    Object::File(file) => {
                        self.counts.add_do_no_page += 1;
                        let page = file * FILE_PAGES + index;
                        self.add(page, process, Caller::Touch);
                        // A fault maps what else of the folio is in the page cache.
                        runs += u64::from(index % FOLIO == 0);
                        let own = index >= segment.read;
                        Entry { page, own, writable: false }
                    }
                    Object::Anonymous => {
                        self.counts.add_do_anonymous_page += 1;
                        if index < segment.read {
                            self.add(ZEROES, process, Caller::Fresh);
                            Entry { page: ZEROES, own: true, writable: false }
                        } else {
                            self.fresh(process, Caller::Fresh)
                        }
                    }
                };
                mapping.push(entry);
            }
            let shared = mapping.iter().filter(|e| e.page < FILES * FILE_PAGES).count() as u64;
            self.counted.entries(shared, runs, 0);
            mappings.push(mapping);
        }
        self.spaces[process as usize].mappings = mappings;
        for (segment, number) in program.segments.iter().zip(0..) {
            for index in segment.read..segment.read + segment.read_then_written {
                self.write(process, number, index as usize);
            }
        }
    }

    /// Maps fresh memory and writes every page of it.
    pub fn map_written(&mut self, process: Mapper, pages: u32) {
        self.counted.mapping();
        self.counts.do_no_page += u64::from(pages);
        self.counts.add_do_anonymous_page += u64::from(pages);
        let mapping = (0..pages).map(|_| self.fresh(process, Caller::Fresh)).collect();
        self.spaces[process as usize].mappings.push(mapping);
    }

    /// Writes the first `count` pages of the mapping made last.
    pub fn write_last(&mut self, process: Mapper, count: u32) {
        if let Some(last) = self.spaces[process as usize].mappings.len().checked_sub(1) {
            (0..count as usize).for_each(|index| self.write(process, last, index));
        }
    }

    /// `exit`: all entries go.
    pub fn exit(&mut self, process: Mapper) {
        self.drop_entries(process);
        self.idle.push(process);
    }

    /// Writes the first `count` of the process's own pages, in the order of its mappings.
    pub fn write_own(&mut self, process: Mapper, count: u32) {
        let own: Vec<(usize, usize)> = self.spaces[process as usize]
            .mappings
            .iter()
            .enumerate()
            .flat_map(|(m, mapping)| mapping.iter().enumerate().map(move |(e, entry)| (m, e, entry)))
            .filter(|(_, _, entry)| entry.own)
            .map(|(m, e, _)| (m, e))
            .take(count as usize)
            .collect();
        for (mapping, entry) in own {
            self.write(process, mapping, entry);
        }
    }

    fn write(&mut self, process: Mapper, mapping: usize, index: usize) {
        let entry = self.spaces[process as usize].mappings[mapping][index];
        if entry.writable {
            return;
        }
        self.counts.do_wp_page += 1;
        let file = entry.page < FILES * FILE_PAGES;
        let alone = !file && entry.page != ZEROES && self.chains.mappers(entry.page).len() == 1;
        let new = if alone {
            Entry { writable: true, ..entry }
        } else {
            self.counts.add_do_wp_page += 1;
            self.counts.remove_do_wp_page += 1;
            self.remove(entry.page, process, Caller::Write);
            self.counted.entries(1, 1, 0);
            self.fresh(process, Caller::Write)
        };
        self.spaces[process as usize].mappings[mapping][index] = new;
    }

    fn fresh(&mut self, process: Mapper, caller: Caller) -> Entry {
        let page = self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        self.chains.page(page);
        self.add(page, process, caller);
        self.counted.entries(1, 1, 1);
        Entry { page, own: true, writable: true }
    }

    fn drop_entries(&mut self, process: Mapper) {
        for mapping in std::mem::take(&mut self.spaces[process as usize].mappings) {
            self.counted.mapping();
            self.entries(&mapping);
            for entry in mapping {
                self.counts.remove_zap_pte_range += 1;
                self.remove(entry.page, process, Caller::Drop);
            }
        }
    }

    /// Tells the counting kinds of entries made or dropped together.
    fn entries(&mut self, mapping: &[Entry]) {
        let folio = |page: Page| {
            if page < FILES * FILE_PAGES {
                (page / FILE_PAGES, page % FILE_PAGES / FOLIO)
            } else {
                (page, u32::MAX)
            }
        };
        let real = || mapping.iter().filter(|entry| entry.page != ZEROES);
        let mut runs = 0;
        let mut last = None;
        for entry in real() {
            let this = folio(entry.page);
            runs += u64::from(last != Some(this));
            last = Some(this);
        }
        self.counted.entries(real().count() as u64, runs, 0);
    }

    fn add(&mut self, page: Page, mapper: Mapper, caller: Caller) {
        if page == ZEROES {
            self.counts.add_nope += 1;
            return;
        }
        if let Some(ops) = &mut self.ops {
            let new = page >= FILES * FILE_PAGES && self.chains.mappers(page).is_empty();
            ops.push(Op { page, mapper, add: true, new, caller });
        }
        self.chains.add(page, mapper);
    }

    fn remove(&mut self, page: Page, mapper: Mapper, caller: Caller) {
        if page == ZEROES {
            self.counts.remove_nope += 1;
            return;
        }
        if let Some(ops) = &mut self.ops {
            ops.push(Op { page, mapper, add: false, new: false, caller });
        }
        self.chains.remove(page, mapper);
        if page >= FILES * FILE_PAGES && self.chains.mappers(page).is_empty() {
            self.free.push(page);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::{CAT, SHELL, SHELL_OWN};
    use super::*;

    #[test]
    fn a_shared_page_is_copied_and_the_last_one_reused() {
        let mut memory = Memory::new();
        let shell = memory.process();
        memory.exec(shell, &SHELL, 1);
        memory.reset_counts();
        let child = memory.fork(shell);
        assert_eq!(memory.counts.copy_page_range, 14);
        assert_eq!(memory.counts.add_copy_page_range, 223);
        memory.write_own(child, 5);
        assert_eq!((memory.counts.do_wp_page, memory.counts.add_do_wp_page), (5, 5));
        memory.write_own(shell, 6);
        assert_eq!((memory.counts.do_wp_page, memory.counts.add_do_wp_page), (11, 6));
        memory.exit(child);
        memory.write_own(shell, SHELL_OWN + 1);
        assert_eq!(memory.counts.add_do_wp_page, 6);
    }

    #[test]
    fn everything_noted_is_forgotten() {
        let mut memory = Memory::new();
        let shell = memory.process();
        memory.exec(shell, &SHELL, 1);
        let child = memory.fork(shell);
        memory.exec(child, &CAT, 2);
        memory.exit(child);
        memory.exit(shell);
        assert_eq!(memory.counts.adds(), memory.counts.removes());
        assert_eq!(memory.counts.add_nope, memory.counts.remove_nope);
        let (adding, removing) = memory.chains.work();
        assert_eq!(adding.operations + memory.counts.add_nope, memory.counts.adds());
        assert_eq!(adding.slab, removing.slab);
    }
}
