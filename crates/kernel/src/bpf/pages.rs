//! Executables' pages that come into the page cache and leave it:
//! `filemap:mm_filemap_add_to_page_cache` and `mm_filemap_delete_from_page_cache`, counted by file;
//! which files are executables, the mappings of the processes tell ([`executable_files`]).

use std::collections::HashSet;

use pagelab_counters::Root;
use pagelab_counters::census::{FileNumber, executable_files};
use pagelab_counters::views::vmstat::Executables;

use super::TraceError;
use super::assembler::*;
use super::map::{Full, Map};
use super::program::{Program, Tracepoint};

/// Files remembered between two samples; of more, those touched longest ago are forgotten.
const FILES: u32 = 16_384;

/// The key on the frame: device, nothing, inode; and a new value below it.
const KEY: i16 = -16;
const NEW: i16 = -32;

/// Counts each file's pages for as long as it lives.
#[derive(Debug)]
pub struct Pages {
    files: Map<4, 2>,
    executables: HashSet<FileNumber>,
    _programs: Vec<Program>,
}

impl Pages {
    /// Begins.
    ///
    /// # Errors
    /// When the kernel lacks what it takes or the caller the rights.
    pub fn start() -> Result<Self, TraceError> {
        let files = Map::new(Full::Evicts, FILES)?;
        let programs = vec![
            counting(files.number(), Tracepoint("filemap:mm_filemap_add_to_page_cache"), 0)?,
            counting(files.number(), Tracepoint("filemap:mm_filemap_delete_from_page_cache"), 8)?,
        ];
        Ok(Self { files, executables: HashSet::new(), _programs: programs })
    }

    /// The pages of executables that came and went since the last sample. An executable is a file that
    /// some process maps executable now or did at an earlier look: a program that begins and ends
    /// between two samples for the first time is none.
    pub fn sample(&mut self, root: &Root) -> Executables {
        self.executables.extend(executable_files(root));
        let mut found = Executables::default();
        for key in self.files.keys() {
            let Some([added, deleted]) = self.files.take(key) else { continue };
            let inode = super::pair(key[2], key[3]);
            if self.executables.contains(&FileNumber { device: key[0], inode }) {
                found.paged_in += added;
                found.freed += deleted;
            }
        }
        found
    }
}

/// Adds the pages to the word at `offset` of their file's value.
fn counting(map: i32, point: Tracepoint, offset: i16) -> Result<Program, TraceError> {
    let mut program = Assembler::default();
    program.load(R7, R1, point.field("s_dev")?).load(R8, R1, point.field("i_ino")?).set(R6, 1);
    // A folio of several pages; before 6.2 the tracepoint says nothing of it, and it counts as one.
    if let Ok(order) = point.field("order") {
        program.load(R9, R1, order).shift_left(R6, R9);
    }
    program.set(R0, 0).store_word(FRAME, KEY, R7).store_word(FRAME, KEY + 4, R0).store(FRAME, KEY + 8, R8);
    program.ask(MAP_LOOKUP, map, KEY);
    program.jump_if(R0, If::Not, 0, "found");
    program.store_value(FRAME, NEW, 0).store_value(FRAME, NEW + 8, 0);
    program.put_if_absent(map, KEY, NEW);
    program.ask(MAP_LOOKUP, map, KEY);
    program.jump_if(R0, If::Equal, 0, "end").label("found").atomic_add(R0, offset, R6);
    point.run(program)
}
