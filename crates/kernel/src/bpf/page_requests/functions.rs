//! The BPF programs on kernel functions: they count the pages that a read returned or a fault
//! mapped.

use super::super::TraceError;
use super::super::assembler::*;
use super::super::program::{Program, When, run_on};
use super::maker::*;
use super::maps::WRITTEN;

/// Loads and attaches all of them.
pub(super) fn all(maker: &Maker) -> Result<Vec<Program>, TraceError> {
    maker.on_functions()
}

impl Maker<'_> {
    fn on_functions(&self) -> Result<Vec<Program>, TraceError> {
        // Attach the programs that record pages before those that count requests.
        let mut programs = vec![
            self.reads_ahead("page_cache_sync_ra", Wait::Read)?,
            self.reads_ahead("page_cache_async_ra", Wait::Ahead)?,
            self.reads_ahead("page_cache_ra_unbounded", Wait::Unless)?,
            self.faults()?,
            self.fault_ends()?,
            self.added(|_| ())?,
            self.deleted()?,
            self.dirtied()?,
            self.written()?,
            self.read()?,
            self.mapped()?,
        ];
        if self.btf.function("filemap_splice_read").is_some() {
            programs.push(self.spliced()?);
        }
        if self.btf.function("do_set_pmd").is_some() {
            programs.push(self.mapped_huge()?);
        }
        Ok(programs)
    }

    fn on(&self, name: &str, when: When, program: Assembler) -> Result<Program, TraceError> {
        run_on(self.btf, name, when, program)
    }

    /// Stores the range of the pages that hold the R9 bytes before file position R2.
    fn pages_before(&self, program: &mut Assembler) {
        let shift = self.layout.shift;
        program.copy(R3, R2).subtract(R3, R9).shift_right_by(R3, shift).store(FRAME, FIRST, R3);
        program.add_value(R2, (1 << shift) - 1).shift_right_by(R2, shift).store(FRAME, END, R2);
    }

    /// `filemap_read(kiocb, iov_iter, already)`: the result includes the bytes already read.
    fn read(&self) -> Result<Program, TraceError> {
        let (mut program, l) = (Assembler::default(), &self.layout);
        program.load(R7, R1, ARGUMENT[0]).load(R8, R1, ARGUMENT[2]).load(R9, R1, ARGUMENT[3]);
        program.subtract(R9, R8).jump_if(R9, If::AtMost, 0, "end").load(R2, R7, l.position);
        self.pages_before(&mut program);
        program.load(R1, R7, l.file).load(R1, R1, l.mapping_of_file);
        self.file_key(&mut program);
        self.request(&mut program, MAX_WORDS);
        self.on("filemap_read", When::Left, program)
    }

    /// `filemap_splice_read(file, position, pipe, length, flags)`.
    fn spliced(&self) -> Result<Program, TraceError> {
        let (mut program, l) = (Assembler::default(), &self.layout);
        program.load(R7, R1, ARGUMENT[0]).load(R9, R1, ARGUMENT[5]).jump_if(R9, If::AtMost, 0, "end");
        program.load(R8, R1, ARGUMENT[1]);
        read_kernel(&mut program, R8, 0);
        program.load(R2, FRAME, at(TEMPORARY));
        self.pages_before(&mut program);
        program.load(R1, R7, l.mapping_of_file);
        self.file_key(&mut program);
        self.request(&mut program, MAX_WORDS);
        self.on("filemap_splice_read", When::Left, program)
    }

    /// Sets R7 to the `vm_fault`, R6 to the file's inode, and the key to the file.
    fn fault_key(&self, program: &mut Assembler) {
        let l = &self.layout;
        program.load(R7, R1, ARGUMENT[0]).load(R1, R7, l.area).load(R1, R1, l.file_of_area);
        program.load(R1, R1, l.mapping_of_file);
        self.not_shared(program);
        self.file_key(program);
    }

    /// `set_pte_range(vm_fault, folio, page, pages, address)`, or `do_set_pte(vm_fault, page,
    /// address)` before 6.6: maps the faulting page and those around it.
    fn mapped(&self) -> Result<Program, TraceError> {
        let (mut program, l) = (Assembler::default(), &self.layout);
        let has_ranges = self.btf.function("set_pte_range").is_some();
        if has_ranges {
            program.load(R8, R1, ARGUMENT[4]).load(R9, R1, ARGUMENT[3]);
            program.shift_left_by(R9, 32).shift_right_by(R9, 32);
        } else {
            program.load(R8, R1, ARGUMENT[2]).set(R9, 1);
        }
        self.fault_key(&mut program);
        program.load(R2, R7, l.page_of_fault).load(R3, R7, l.address).shift_right_by(R3, l.shift);
        program.subtract(R2, R3).shift_right_by(R8, l.shift).add(R2, R8).store(FRAME, FIRST, R2);
        program.add(R2, R9).store(FRAME, END, R2);
        self.request(&mut program, MAX_WORDS_OF_FOLIO);
        self.on(if has_ranges { "set_pte_range" } else { "do_set_pte" }, When::Entered, program)
    }

    /// `do_set_pmd(vm_fault, [folio,] page)`: returns 0 if it mapped a huge page.
    fn mapped_huge(&self) -> Result<Program, TraceError> {
        const NAME: &str = "do_set_pmd";
        let (mut program, l) = (Assembler::default(), &self.layout);
        let pages = 1 << (l.shift - 3);
        program.load(R8, R1, ARGUMENT[self.btf.arguments(NAME).unwrap_or(2)]).shift_left_by(R8, 32);
        program.jump_if(R8, If::Not, 0, "end");
        self.fault_key(&mut program);
        program.load(R2, R7, l.page_of_fault).load(R3, R7, l.address).shift_right_by(R3, l.shift);
        program.and_value(R3, pages - 1).subtract(R2, R3).store(FRAME, FIRST, R2);
        program.add_value(R2, pages).store(FRAME, END, R2);
        self.request(&mut program, MAX_WORDS_OF_FOLIO);
        self.on(NAME, When::Left, program)
    }

    /// `…(readahead_control, …)`. For `Wait::Read` the second argument is the number of pages.
    fn reads_ahead(&self, name: &str, wait: Wait) -> Result<Program, TraceError> {
        let (mut program, l) = (Assembler::default(), &self.layout);
        program.load(R7, R1, ARGUMENT[0]).load(R8, R7, l.index_of_read_ahead);
        if wait == Wait::Read {
            program.load(R9, R1, ARGUMENT[1]).add(R9, R8);
        }
        program.load(R1, R7, l.mapping_of_read_ahead);
        self.file_key(&mut program);
        self.waits(&mut program, wait);
        self.on(name, When::Entered, program)
    }

    /// `filemap_fault(vm_fault)`.
    fn faults(&self) -> Result<Program, TraceError> {
        let mut program = Assembler::default();
        self.fault_key(&mut program);
        program.load(R8, R7, self.layout.page_of_fault).copy(R9, R8).add_value(R9, 1);
        self.thread(&mut program);
        self.note_wait(&mut program, 1);
        self.on("filemap_fault", When::Entered, program)
    }

    fn fault_ends(&self) -> Result<Program, TraceError> {
        let mut program = Assembler::default();
        self.thread(&mut program);
        program.ask(MAP_DELETE, self.maps.waiting.number(), THREAD);
        self.on("filemap_fault", When::Left, program)
    }

    /// `__folio_mark_dirty(folio, mapping, warn)`, called once per clean folio that becomes dirty.
    fn dirtied(&self) -> Result<Program, TraceError> {
        self.on("__folio_mark_dirty", When::Entered, self.dirtying())
    }

    /// `__folio_start_writeback(folio, keep)`. The program skips pages that go to swap.
    fn written(&self) -> Result<Program, TraceError> {
        let (mut program, mapping) = (Assembler::default(), self.layout.mapping_of_folio);
        program.load(R7, R1, ARGUMENT[0]);
        read_kernel(&mut program, R7, mapping.0);
        program.load(R1, FRAME, at(TEMPORARY)).and_value(R1, NO_FILE).jump_if(R1, If::Not, 0, "end");
        program.load(R1, R7, mapping);
        self.not_shared(&mut program);
        self.file_key(&mut program);
        self.pages_of_folio(&mut program);
        self.who(&mut program);
        self.count(&mut program, &[(WRITTEN, PAGES)]);
        self.note_name(&mut program);
        self.on("__folio_start_writeback", When::Entered, program)
    }
}
