//! The BPF programs on tracepoints, for kernels that refuse programs on functions.
//!
//! `mm_filemap_get_pages` fires for each batch of a read, with the whole remaining range. The
//! program therefore counts the request at the first event and ignores the others. Pages that enter
//! the cache for a request already counted were not hits. A batch has at most 31 folios, so a warm
//! request for fewer pages has one batch.
//!
//! `mm_filemap_map_pages` reports the range around a fault in which the kernel maps cached pages.
//! The program counts the whole range. A page that the kernel cannot map this way (the one that
//! starts the next read-ahead) also fires `mm_filemap_fault`.

use super::super::TraceError;
use super::super::assembler::*;
use super::super::program::{Program, Tracepoint, run_at};
use super::maker::*;
use super::maps::{HITS, MISSES};

/// Folios of a batch (`PAGEVEC_SIZE`), plus one.
const BATCH: i32 = 32;

/// The words of a thread's last request, as byte offsets: device and padding, inode, first
/// remaining page, last page as requested, 1 if it had to wait, end, thread.
const REST: usize = 16;
const LAST: usize = 24;
const COLD: usize = 32;
const REQUEST_END: usize = 40;

/// The words of a thread's last fault: device and number of continuations, inode, first page and
/// end of the range around it, page of a fault (plus 1), hits of a range that equals the previous
/// one, thread.
const CONTINUED: usize = 4;
const AROUND: usize = 16;
const AROUND_END: usize = 24;
const FAULT: usize = 32;
const AGAIN: usize = 40;

/// The thread, in both.
const OF_THREAD: usize = 48;
/// Whether the range equals the previous one ([`REPEATED`]) and continues it ([`CONTINUES`]), and
/// the number of its pages that were already counted.
const SAME: i16 = -296;
const REPEATED: i32 = 1;
const CONTINUES: i32 = 2;
const BEFORE: i16 = -304;

/// Loads and attaches all of them.
pub(super) fn all(maker: &Maker) -> Result<Vec<Program>, TraceError> {
    maker.on_tracepoints()
}

impl Maker<'_> {
    fn on_tracepoints(&self) -> Result<Vec<Program>, TraceError> {
        Ok(vec![
            self.reads_ahead_at("readahead:page_cache_sync_ra", Wait::Read)?,
            self.reads_ahead_at("readahead:page_cache_async_ra", Wait::Ahead)?,
            self.reads_ahead_at("readahead:page_cache_ra_order", Wait::Unless)?,
            self.reads_ahead_at("readahead:page_cache_ra_unbounded", Wait::Unless)?,
            self.added(|program| self.correct(program))?,
            self.deleted()?,
            run_at(self.btf, "writeback_dirty_folio", self.dirtying())?,
            self.faults_at()?,
            self.maps_around()?,
            self.reads_batches()?,
        ])
    }

    fn reads_ahead_at(&self, name: &'static str, wait: Wait) -> Result<Program, TraceError> {
        let (mut program, point) = (Assembler::default(), Tracepoint(name));
        program.load(R7, R1, point.field("s_dev")?).load(R6, R1, point.field("i_ino")?);
        program.load(R8, R1, point.field("index")?).set(R9, 0);
        if let Ok(pages) = point.field("req_count") {
            program.load(R9, R1, pages).add(R9, R8);
        }
        program.set(R0, 0).store_word(FRAME, KEY, R7).store_word(FRAME, KEY + 4, R0);
        program.store(FRAME, KEY + 8, R6);
        self.waits(&mut program, wait);
        point.run(program)
    }

    /// Sets R0 to the current thread's place in `map`. Jumps to `other` unless it holds a state of
    /// this thread and of the key's file. Clobbers R1 to R5.
    fn last(&self, program: &mut Assembler, map: i32, other: &'static str) {
        program.ask(MAP_LOOKUP, map, SLOT).jump_if(R0, If::Equal, 0, "end");
        program.load(R1, R0, (OF_THREAD, 4)).load(R2, FRAME, (THREAD as usize, 4));
        program.jump_if_both(R1, If::Not, R2, other);
        self.same_file(program, other);
    }

    /// Stores a new state of the key's file in the place in R0. Its words from the third on are
    /// these registers, or 0. Clobbers R1.
    fn new_state(&self, program: &mut Assembler, words: [Option<Register>; 4]) {
        program.load(R1, FRAME, (KEY as usize, 4)).store(R0, 0, R1);
        program.load(R1, FRAME, at(KEY + 8)).store(R0, 8, R1);
        for (n, word) in words.into_iter().enumerate() {
            let place = 16 + 8 * n as i16;
            match word {
                Some(register) => program.store(R0, place, register),
                None => program.store_value(R0, place, 0),
            };
        }
        program.load(R1, FRAME, (THREAD as usize, 4)).store(R0, OF_THREAD as i16, R1);
    }

    /// Stores the pages from R7 to R8 (exclusive) that are within the file whose inode is in R6.
    /// Ends the program if there are none.
    fn pages_in_file(&self, program: &mut Assembler) {
        let l = &self.layout;
        program.load(R2, R6, l.length).add_value(R2, (1 << l.shift) - 1).shift_right_by(R2, l.shift);
        program.copy(R3, R8).jump_if_both(R2, If::AtLeast, R3, "in file").copy(R3, R2).label("in file");
        program.jump_if_both(R7, If::AtLeast, R3, "end");
        program.store(FRAME, FIRST, R7).store(FRAME, END, R3);
    }

    /// Turns hits of the thread's last request into misses if their pages enter the cache only now.
    fn correct(&self, program: &mut Assembler) {
        self.last(program, self.maps.requests.number(), "not counted");
        program.load(R1, R0, (REST, 8)).load(R2, FRAME, at(FIRST));
        program.jump_if_both(R1, If::AtLeast, R2, "from").copy(R1, R2).label("from");
        program.load(R2, R0, (REQUEST_END, 8)).load(R3, FRAME, at(END));
        program.jump_if_both(R3, If::AtLeast, R2, "to").copy(R2, R3).label("to");
        program.jump_if_both(R1, If::AtLeast, R2, "not counted");
        program.store(FRAME, COUNTED_FIRST, R1).store(FRAME, COUNTED_END, R2);
        program.store_value(R0, COLD as i16, 1).subtract(R2, R1).store(FRAME, WAITED_FOR, R2);
        program.set(R1, 0).subtract(R1, R2).store(FRAME, PAGES, R1);
        self.who(program);
        self.count(program, &[(HITS, PAGES), (MISSES, WAITED_FOR)]);
        program.label("not counted");
    }

    /// `mm_filemap_get_pages(mapping, index, last)`.
    fn reads_batches(&self) -> Result<Program, TraceError> {
        let (mut program, map) = (Assembler::default(), self.maps.requests.number());
        program.load(R7, R1, ARGUMENT[1]).load(R8, R1, ARGUMENT[2]).load(R1, R1, ARGUMENT[0]);
        self.file_key(&mut program);
        self.thread(&mut program);
        self.last(&mut program, map, "new");
        program.load(R1, R0, (LAST, 8)).jump_if_both(R1, If::Not, R8, "new");
        program.load(R1, R0, (REST, 8)).jump_if_both(R1, If::AtLeast, R7, "new");
        // The rest of the request, unless the request would have had one batch.
        program.copy(R2, R8).subtract(R2, R1).jump_if(R2, If::AtLeast, BATCH - 1, "rest");
        program.load(R2, R0, (COLD, 8)).jump_if(R2, If::Equal, 0, "new");
        program.label("rest").load(R1, R0, (REQUEST_END, 8)).jump_if_both(R7, If::AtLeast, R1, "piece");
        program.store(R0, REST as i16, R7).jump("end").label("piece").copy(R7, R1).label("new");
        program.store(FRAME, SAME, R8).add_value(R8, 1);
        self.pages_in_file(&mut program);
        // Count a large request in pieces.
        program.copy(R2, R7).add_value(R2, (MAX_WORDS - 1) * 64);
        program.jump_if_both(R2, If::AtLeast, R3, "whole").store(FRAME, END, R2).copy(R3, R2).label("whole");
        program.copy(R8, R3).load(R9, FRAME, at(SAME));
        self.new_state(&mut program, [Some(R7), Some(R9), None, Some(R8)]);
        self.take(&mut program, MAX_WORDS);
        self.hits(&mut program);
        program.load(R1, FRAME, at(WAITED_FOR)).load(R2, FRAME, at(READ_AHEAD)).add(R1, R2);
        program.jump_if(R1, If::Equal, 0, "warm").ask(MAP_LOOKUP, map, SLOT);
        program.jump_if(R0, If::Equal, 0, "warm").store_value(R0, COLD as i16, 1).label("warm");
        self.count_request(&mut program);
        run_at(self.btf, "mm_filemap_get_pages", program)
    }

    /// `mm_filemap_fault(mapping, index)`.
    fn faults_at(&self) -> Result<Program, TraceError> {
        let mut program = Assembler::default();
        let [requests, faults] = [&self.maps.requests, &self.maps.faults].map(|map| map.number());
        program.load(R7, R1, ARGUMENT[1]).load(R1, R1, ARGUMENT[0]);
        self.file_key(&mut program);
        program.store_value(FRAME, WAITED_FOR, 0).store_value(FRAME, READ_AHEAD, 0);
        self.thread(&mut program);
        self.last(&mut program, faults, "new");
        // A retry of the fault after the wait.
        program.load(R1, R0, (FAULT, 8)).add_value(R1, -1).jump_if_both(R1, If::Equal, R7, "end");
        program.load(R1, R0, (AROUND, 8)).load(R2, R0, (AROUND_END, 8));
        program.jump_if_both(R7, If::Below, R1, "new").jump_if_both(R7, If::AtLeast, R2, "new");
        // The page is in a range that was counted, and counted again for this fault: subtract the
        // second count.
        program.load(R2, R0, (AGAIN, 8)).store_value(R0, AGAIN as i16, 0);
        program.copy(R1, R7).add_value(R1, 1).store(R0, FAULT as i16, R1);
        program.set(R1, 0).subtract(R1, R2).store(FRAME, PAGES, R1);
        program.store_value(FRAME, FIRST, 0).store_value(FRAME, END, 0).jump("count").label("new");
        program.copy(R8, R7).add_value(R8, 1);
        self.new_state(&mut program, [None, None, Some(R8), None]);
        program.ask(MAP_LOOKUP, requests, SLOT).jump_if(R0, If::Equal, 0, "end");
        self.new_state(&mut program, [Some(R7), None, None, Some(R8)]);
        program.store(FRAME, FIRST, R7).store(FRAME, END, R8);
        self.take(&mut program, MAX_WORDS_OF_FOLIO);
        self.hits(&mut program);
        program.label("count");
        self.count_request(&mut program);
        run_at(self.btf, "mm_filemap_fault", program)
    }

    /// `mm_filemap_map_pages(mapping, first, last)`.
    fn maps_around(&self) -> Result<Program, TraceError> {
        let (mut program, map) = (Assembler::default(), self.maps.faults.number());
        program.load(R7, R1, ARGUMENT[1]).load(R8, R1, ARGUMENT[2]).add_value(R8, 1);
        program.load(R1, R1, ARGUMENT[0]);
        self.not_shared(&mut program);
        self.file_key(&mut program);
        self.pages_in_file(&mut program);
        program.store_value(FRAME, SAME, 0).store_value(FRAME, BEFORE, 0);
        self.thread(&mut program);
        self.last(&mut program, map, "new");
        program.load(R1, R0, (FAULT, 8)).jump_if(R1, If::Equal, 0, "no fault").add_value(R1, -1);
        program.jump_if_both(R1, If::Below, R7, "no fault").jump_if_both(R1, If::AtLeast, R8, "no fault");
        program.store_value(FRAME, BEFORE, 1).label("no fault");
        program.load(R1, R0, (AROUND, 8)).jump_if_both(R1, If::Not, R7, "new");
        program.load(R1, R0, (AROUND_END, 8)).jump_if_both(R1, If::Not, R8, "new");
        program.store_value(FRAME, SAME, REPEATED);
        // After a fault in the range, the kernel maps what it could not map before. It maps at
        // least one page each time.
        program.load(R1, FRAME, at(BEFORE)).jump_if(R1, If::Equal, 0, "new");
        program.load(R1, R0, (CONTINUED, 4)).add_value(R1, 1).copy(R2, R8).subtract(R2, R7);
        program.jump_if_both(R1, If::AtLeast, R2, "new").store_word(R0, CONTINUED as i16, R1);
        program.store_value(FRAME, SAME, CONTINUES).jump("continued").label("new");
        self.new_state(&mut program, [Some(R7), Some(R8), None, None]);
        program.label("continued");
        self.take(&mut program, MAX_WORDS_OF_FOLIO);
        self.hits(&mut program);
        program.load(R2, FRAME, at(BEFORE)).subtract(R1, R2).store(FRAME, PAGES, R1);
        program.load(R2, FRAME, at(SAME)).jump_if(R2, If::Equal, 0, "another");
        program.jump_if(R2, If::Equal, REPEATED, "repeated").store_value(FRAME, PAGES, 0);
        program.store_value(FRAME, FIRST, 0).store_value(FRAME, END, 0).jump("another").label("repeated");
        program.ask(MAP_LOOKUP, map, SLOT).jump_if(R0, If::Equal, 0, "another");
        program.load(R1, FRAME, at(PAGES)).store(R0, AGAIN as i16, R1).label("another");
        self.count_request(&mut program);
        run_at(self.btf, "mm_filemap_map_pages", program)
    }
}
