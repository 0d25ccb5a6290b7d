//! The parts that programs on functions and on tracepoints share: the stack frame, the offsets of
//! kernel structures, and the counting of requests.

use pagelab_counters::views::cachestat::By;

use super::super::TraceError;
use super::super::assembler::*;
use super::super::btf::Btf;
use super::super::program::{Program, Tracepoint};
use super::channel::{Channel, Kind, RECORD_WORDS};
use super::maps::{AHEAD, DIRTIED, GROUPS, HITS, MISSES, Maps, THREADS, WASTED, WORDS};
use super::names::{BYTES, LEVELS};
use crate::region::page_size;

/// The stack frame. Key of a 64-page word: device, padding, inode, number of the word.
pub(super) const KEY: i16 = -24;
pub(super) const WORD: i16 = KEY + 16;
/// The pages of the request, the end exclusive; the numbers of those that a task waited for and of
/// those read ahead.
pub(super) const FIRST: i16 = -32;
pub(super) const END: i16 = -40;
pub(super) const WAITED_FOR: i16 = -48;
pub(super) const READ_AHEAD: i16 = -56;
/// The owner's key, and the value of a new owner.
pub(super) const WHO: i16 = -72;
pub(super) const NEW: i16 = WHO - 8 * WORDS as i16;
/// The thread; the pages that it waits for: device, in-fault flag, inode, first, end.
pub(super) const THREAD: i16 = -128;
/// The thread's place in `requests` and `faults`.
pub(super) const SLOT: i16 = THREAD + 4;
pub(super) const WAIT: i16 = -160;
pub(super) const WAITED_FIRST: i16 = -168;
pub(super) const WAITED_END: i16 = -176;
pub(super) const TEMPORARY: i16 = -184;
pub(super) const NEW_WORD: i16 = -200;
pub(super) const PAGES: i16 = -208;
/// A key of zero.
pub(super) const ZERO: i16 = -216;
pub(super) const MASK: i16 = -224;
/// Pages that were counted as hits before they entered the cache.
pub(super) const COUNTED_FIRST: i16 = -232;
pub(super) const COUNTED_END: i16 = -240;
/// A record on the stack.
const RECORD: i16 = -336;
/// The file's number in `groups`.
const GROUP: i16 = -344;
/// `BPF_RB_NO_WAKEUP`: pagelab polls.
const SILENTLY: i32 = 1;

/// Maximum number of words that a program visits per request: 64 MiB in 4 KiB pages. The rest
/// counts as lost. (The verifier walks every iteration of a loop before it accepts a program.)
pub(super) const MAX_WORDS: i32 = 256;
/// The same for a folio or a fault.
pub(super) const MAX_WORDS_OF_FOLIO: i32 = 64;
/// include/uapi/linux/magic.h; reads of shared memory bypass these functions.
pub(super) const TMPFS: i32 = 0x0102_1994;
/// `PAGE_MAPPING_FLAGS`: set if a page belongs to no file.
pub(super) const NO_FILE: i32 = 3;
/// `BPF_ANY`.
pub(super) const ALWAYS: i32 = 0;

/// Offsets of the members that the programs read in this kernel's structures, each with its size in
/// bytes.
pub(super) struct Layout {
    pub(super) position: Place,
    pub(super) file: Place,
    pub(super) mapping_of_file: Place,
    pub(super) host: Place,
    pub(super) inode: Place,
    pub(super) super_block: Place,
    pub(super) length: Place,
    pub(super) device: Place,
    pub(super) magic: Place,
    pub(super) area: Place,
    pub(super) page_of_fault: Place,
    pub(super) address: Place,
    pub(super) file_of_area: Place,
    pub(super) mapping_of_read_ahead: Place,
    pub(super) index_of_read_ahead: Place,
    pub(super) mapping_of_folio: Place,
    pub(super) index_of_folio: Place,
    pub(super) flags: Place,
    pub(super) pages_of_folio: Place,
    pub(super) head: i32,
    pub(super) aliases: Place,
    pub(super) alias: usize,
    pub(super) parent: Place,
    pub(super) name: Place,
    pub(super) cgroups: Place,
    pub(super) memory: Place,
    pub(super) cgroup: Place,
    pub(super) node: Place,
    pub(super) id: Place,
    /// Binary logarithm of the page size.
    pub(super) shift: i32,
}

pub(super) type Place = (usize, usize);

impl Layout {
    pub(super) fn of(btf: &Btf) -> Result<Self, TraceError> {
        let long = |structure, member| Ok::<_, TraceError>((btf.offset(structure, member)?, 8));
        let short = |structure, member| Ok::<_, TraceError>((btf.offset(structure, member)?, 4));
        let controller = btf.value("cgroup_subsys_id", "memory_cgrp_id")? as usize;
        Ok(Self {
            position: long("kiocb", "ki_pos")?,
            file: long("kiocb", "ki_filp")?,
            mapping_of_file: long("file", "f_mapping")?,
            host: long("address_space", "host")?,
            inode: long("inode", "i_ino")?,
            super_block: long("inode", "i_sb")?,
            length: long("inode", "i_size")?,
            device: short("super_block", "s_dev")?,
            magic: long("super_block", "s_magic")?,
            area: long("vm_fault", "vma")?,
            page_of_fault: long("vm_fault", "pgoff")?,
            address: long("vm_fault", "address")?,
            file_of_area: long("vm_area_struct", "vm_file")?,
            mapping_of_read_ahead: long("readahead_control", "mapping")?,
            index_of_read_ahead: long("readahead_control", "_index")?,
            mapping_of_folio: long("folio", "mapping")?,
            index_of_folio: long("folio", "index")?,
            flags: long("folio", "flags")?,
            // Renamed in 6.15.
            pages_of_folio: short("folio", "_nr_pages").or_else(|_| short("folio", "_folio_nr_pages"))?,
            head: btf.value("pageflags", "PG_head")? as i32,
            aliases: long("inode", "i_dentry.first")?,
            alias: btf.offset("dentry", "d_u.d_alias")?,
            parent: long("dentry", "d_parent")?,
            name: long("dentry", "d_name.name")?,
            cgroups: long("task_struct", "cgroups")?,
            memory: (btf.offset("css_set", "subsys")? + 8 * controller, 8),
            cgroup: long("cgroup_subsys_state", "cgroup")?,
            node: long("cgroup", "kn")?,
            id: long("kernfs_node", "id")?,
            shift: page_size().trailing_zeros() as i32,
        })
    }
}

/// Generates the programs.
pub(super) struct Maker<'a> {
    pub(super) btf: &'a Btf,
    pub(super) layout: Layout,
    pub(super) maps: &'a Maps,
    pub(super) by: By,
    /// The channel for requests, if there is a reader.
    pub(super) channel: Option<&'a Channel>,
}

/// The wait that a program records when read-ahead starts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// The thread waits for the requested pages.
    Read,
    /// No thread waits.
    Ahead,
    /// No thread waits, unless an earlier record says so.
    Unless,
}

pub(super) const ARGUMENT: [Place; 6] = [(0, 8), (8, 8), (16, 8), (24, 8), (32, 8), (40, 8)];

impl Maker<'_> {
    /// Sets R6 to the inode of the `address_space` in R1, and the key to its device and number.
    /// Clobbers R0 to R3.
    pub(super) fn file_key(&self, program: &mut Assembler) {
        let l = &self.layout;
        program.load(R6, R1, l.host).load(R2, R6, l.inode).jump_if(R2, If::Equal, 0, "end");
        program.load(R1, R6, l.super_block).load(R3, R1, l.device);
        program.set(R0, 0).store_word(FRAME, KEY, R3).store_word(FRAME, KEY + 4, R0);
        program.store(FRAME, KEY + 8, R2);
    }

    /// Ends the program if the `address_space` in R1 is shared memory. Clobbers R2.
    pub(super) fn not_shared(&self, program: &mut Assembler) {
        let l = &self.layout;
        program.load(R2, R1, l.host).load(R2, R2, l.super_block).load(R2, R2, l.magic);
        program.jump_if(R2, If::Equal, TMPFS, "end");
    }

    /// Stores the owner's key.
    pub(super) fn who(&self, program: &mut Assembler) {
        let l = &self.layout;
        match self.by {
            By::Machine => program,
            By::Process => {
                program.call(CURRENT).shift_right_by(R0, 32);
                program.store_value(FRAME, WHO, 0).store(FRAME, WHO + 8, R0)
            }
            By::Cgroup => {
                program.call(CURRENT_TASK).load(R1, R0, l.cgroups).load(R1, R1, l.memory);
                program.load(R1, R1, l.cgroup).load(R1, R1, l.node).load(R1, R1, l.id);
                program.store_value(FRAME, WHO, 0).store(FRAME, WHO + 8, R1)
            }
            By::File => {
                program.load(R1, FRAME, at(KEY)).store(FRAME, WHO, R1);
                program.load(R1, FRAME, at(KEY + 8)).store(FRAME, WHO + 8, R1)
            }
        };
    }

    /// Adds the number of pages in R2 to the lost pages.
    pub(super) fn lose(&self, program: &mut Assembler) {
        program.store(FRAME, TEMPORARY, R2).set(R0, 0).store_word(FRAME, ZERO, R0);
        program.ask(MAP_LOOKUP, self.maps.lost.number(), ZERO).jump_if(R0, If::Equal, 0, "end");
        program.load(R2, FRAME, at(TEMPORARY)).atomic_add(R0, 0, R2);
    }

    /// Stores the current thread, and its place in `requests` and `faults`.
    pub(super) fn thread(&self, program: &mut Assembler) {
        program.call(CURRENT).store_word(FRAME, THREAD, R0);
        program.and_value(R0, THREADS as i32 - 1).store_word(FRAME, SLOT, R0);
    }

    /// Stores the number of the key's file in `groups`. Clobbers R1.
    fn group(&self, program: &mut Assembler) {
        program.load(R1, FRAME, at(KEY + 8)).and_value(R1, GROUPS as i32 - 1).store_word(FRAME, GROUP, R1);
    }

    /// Adds `change` to the number of words of the file's group. Jumps to `over` if there is none,
    /// which never happens. Clobbers R0 to R5.
    fn count_word(&self, program: &mut Assembler, change: i32, over: &'static str) {
        program.ask(MAP_LOOKUP, self.maps.groups.number(), GROUP).jump_if(R0, If::Equal, 0, over);
        program.set(R1, change).atomic_add(R0, 0, R1);
    }

    /// Loops over the words of the request. `body` gets a pointer to the word's value in R7 and the
    /// request's bits in R8, and may clobber R0 to R5. R6 is preserved.
    pub(super) fn words(
        &self,
        program: &mut Assembler,
        insert: bool,
        most: i32,
        body: impl Fn(&mut Assembler),
    ) {
        let map = self.maps.unasked.number();
        if insert {
            self.group(program);
        }
        program.load(R1, FRAME, at(FIRST)).shift_right_by(R1, 6).store(FRAME, WORD, R1).set(R9, 0);
        program.label("word").ask(MAP_LOOKUP, map, KEY);
        if insert {
            program.jump_if(R0, If::Not, 0, "there");
            program.store_value(FRAME, NEW_WORD, 0).store_value(FRAME, NEW_WORD + 8, 0);
            // Counted first, so that no other CPU misses the word.
            self.count_word(program, 1, "next");
            program.put_if_absent(map, KEY, NEW_WORD).jump_if(R0, If::Equal, 0, "inserted");
            self.count_word(program, -1, "next");
            program.label("inserted").ask(MAP_LOOKUP, map, KEY);
            program.jump_if(R0, If::Not, 0, "there").set(R2, 64);
            self.lose(program);
            program.jump("next").label("there");
        } else {
            program.jump_if(R0, If::Equal, 0, "next");
        }
        program.copy(R7, R0);
        bits(program, FIRST, END, ["low", "high", "none"]);
        body(program);
        program.label("next").load_apart(R1, WORD).add_value(R1, 1).store(FRAME, WORD, R1);
        program.and_value(R1, -1).shift_left_by(R1, 6).load_apart(R2, END);
        program.jump_if_both(R1, If::AtLeast, R2, "counted");
        program.add_value(R9, 1).jump_if(R9, If::Below, most, "word").subtract(R2, R1);
        program.store(FRAME, END, R1);
        self.lose(program);
        program.label("counted");
    }

    /// Clears the bits of the request, and stores the numbers of pages that had one in `WAITED_FOR`
    /// and `READ_AHEAD`.
    pub(super) fn take(&self, program: &mut Assembler, most: i32) {
        program.load(R1, FRAME, at(END)).zero(R1, R1);
        program.store(FRAME, WAITED_FOR, R1).store(FRAME, READ_AHEAD, R1);
        let (map, groups) = (self.maps.unasked.number(), self.maps.groups.number());
        self.group(program);
        program.ask(MAP_LOOKUP, groups, GROUP).jump_if(R0, If::Equal, 0, "search");
        program.load(R1, R0, (0, 8)).jump_if(R1, If::Equal, 0, "no words").label("search");
        self.words(program, false, most, |program| {
            program.copy(R1, R8).not(R1).copy(R2, R1);
            for (word, register, sum, over) in [(0, R1, WAITED_FOR, "waited"), (8, R2, READ_AHEAD, "ahead")] {
                program.atomic_fetch_and(R7, word, register).and(register, R8);
                program.jump_if(register, If::Equal, 0, over).count_bits(register, R3, R4);
                program.load(R3, FRAME, at(sum)).add(R3, register).store(FRAME, sum, R3).label(over);
            }
            // Delete a word without bits.
            program.load(R1, R7, (0, 8)).jump_if(R1, If::Not, 0, "next");
            program.load(R1, R7, (8, 8)).jump_if(R1, If::Not, 0, "next").ask(MAP_DELETE, map, KEY);
            program.jump_if(R0, If::Not, 0, "next");
            self.count_word(program, -1, "next");
        });
        program.label("no words");
    }

    /// Adds the numbers on the frame to the words of the owner's value.
    pub(super) fn count(&self, program: &mut Assembler, sums: &[(i16, i16)]) {
        if self.by == By::Machine {
            program.set(R0, 0).store_word(FRAME, ZERO, R0);
            program.ask(MAP_LOOKUP, self.maps.machine.number(), ZERO).jump_if(R0, If::Equal, 0, "end");
        } else {
            let map = self.maps.owners.number();
            program.ask(MAP_LOOKUP, map, WHO).jump_if(R0, If::Not, 0, "owner");
            for word in 0..WORDS as i16 {
                program.store_value(FRAME, NEW + word * 8, 0);
            }
            program.put_if_absent(map, WHO, NEW).ask(MAP_LOOKUP, map, WHO).jump_if(R0, If::Not, 0, "owner");
            program.load(R2, FRAME, at(sums[0].1));
            self.lose(program);
            program.jump("end").label("owner");
        }
        program.copy(R7, R0);
        for ((word, sum), over) in sums.iter().zip(["first", "second", "third"]) {
            program.load(R1, FRAME, at(*sum)).jump_if(R1, If::Equal, 0, over);
            program.atomic_add(R7, *word, R1).label(over);
        }
    }

    /// Counts a request for the pages on the frame, of the file whose inode is in R6.
    pub(super) fn request(&self, program: &mut Assembler, most: i32) {
        self.take(program, most);
        self.hits(program);
        self.count_request(program);
    }

    /// Counts the hits, the pages of the request that had no bit, in R1 and `PAGES`.
    pub(super) fn hits(&self, program: &mut Assembler) {
        program.load(R1, FRAME, at(END));
        for less in [FIRST, WAITED_FOR, READ_AHEAD] {
            program.load(R2, FRAME, at(less)).subtract(R1, R2);
        }
        program.store(FRAME, PAGES, R1);
    }

    pub(super) fn count_request(&self, program: &mut Assembler) {
        self.send(program, Kind::Requested, "sent");
        self.who(program);
        self.count(program, &[(HITS, PAGES), (MISSES, WAITED_FOR), (AHEAD, READ_AHEAD)]);
        self.note_name(program);
    }

    /// Sends a record of the pages on the stack frame, if there are any. Clobbers R0 to R5. `over` is
    /// a label that is unique in the program.
    pub(super) fn send(&self, program: &mut Assembler, kind: Kind, over: &'static str) {
        let Some(channel) = self.channel else { return };
        program.load(R1, FRAME, at(FIRST)).load(R2, FRAME, at(END));
        program.jump_if_both(R1, If::AtLeast, R2, over).store(FRAME, RECORD + 16, R1);
        program.store(FRAME, RECORD + 24, R2).set(R1, kind as i32).store_word(FRAME, RECORD, R1);
        program.load(R1, FRAME, (KEY as usize, 4)).store_word(FRAME, RECORD + 4, R1);
        program.load(R1, FRAME, at(KEY + 8)).store(FRAME, RECORD + 8, R1);
        if let Some(groups) = &channel.groups {
            self.who(program);
            program.ask(MAP_LOOKUP, groups.number(), WHO + 8).jump_if(R0, If::Equal, 0, over);
        }
        program.map(R1, channel.ring.number()).copy(R2, FRAME).add_value(R2, RECORD.into());
        program.set(R3, 8 * RECORD_WORDS as i32).set(R4, SILENTLY).call(RING_OUTPUT);
        program.jump_if(R0, If::Equal, 0, over).set(R0, 0).store_word(FRAME, ZERO, R0);
        program.ask(MAP_LOOKUP, channel.dropped.number(), ZERO).jump_if(R0, If::Equal, 0, over);
        program.load(R1, FRAME, at(RECORD + 16)).load(R2, FRAME, at(RECORD + 24)).subtract(R2, R1);
        program.atomic_add(R0, 0, R2).label(over);
    }

    /// Records the owner's name if it has none: the name of the process, or the path of the file
    /// whose inode is in R6.
    pub(super) fn note_name(&self, program: &mut Assembler) {
        if !matches!(self.by, By::Process | By::File) {
            return;
        }
        let (names, l) = (self.maps.names.number(), &self.layout);
        program.ask(MAP_LOOKUP, names, WHO).jump_if(R0, If::Not, 0, "end");
        program.set(R0, 0).store_word(FRAME, ZERO, R0).ask(MAP_LOOKUP, self.maps.blank.number(), ZERO);
        program.jump_if(R0, If::Equal, 0, "end").copy(R3, R0).set(R4, IF_ABSENT);
        program.ask(MAP_UPDATE, names, WHO).ask(MAP_LOOKUP, names, WHO);
        program.jump_if(R0, If::Equal, 0, "end").copy(R7, R0);
        if self.by == By::Process {
            program.copy(R1, R7).set(R2, 16).call(CURRENT_NAME);
            return;
        }
        // The inode's first dentry, from the address of a member of it.
        read_kernel(program, R6, l.aliases.0);
        program.load(R8, FRAME, at(TEMPORARY)).jump_if(R8, If::Equal, 0, "end");
        program.add_value(R8, -(l.alias as i32));
        for level in 0..LEVELS {
            read_kernel(program, R8, l.name.0);
            program.copy(R1, R7).add_value(R1, (level * BYTES).into()).set(R2, BYTES.into());
            program.load(R3, FRAME, at(TEMPORARY)).call(READ_KERNEL_TEXT);
            read_kernel(program, R8, l.parent.0);
            program.load(R9, FRAME, at(TEMPORARY)).jump_if_both(R9, If::Equal, R8, "end").copy(R8, R9);
        }
    }

    /// Jumps to `other` unless the record in R0 belongs to the key's file.
    pub(super) fn same_file(&self, program: &mut Assembler, other: &'static str) {
        program.load(R1, R0, (0, 4)).load(R2, FRAME, (KEY as usize, 4));
        program.jump_if_both(R1, If::Not, R2, other).load(R1, R0, (8, 8)).load(R2, FRAME, at(KEY + 8));
        program.jump_if_both(R1, If::Not, R2, other);
    }

    /// Records that the thread waits for the pages from R8 to R9 of the key's file.
    pub(super) fn note_wait(&self, program: &mut Assembler, in_fault: i32) {
        program.load(R1, FRAME, (KEY as usize, 4)).store_word(FRAME, WAIT, R1);
        program.set(R1, in_fault).store_word(FRAME, WAIT + 4, R1);
        program.load(R1, FRAME, at(KEY + 8)).store(FRAME, WAIT + 8, R1);
        program.store(FRAME, WAIT + 16, R8).store(FRAME, WAIT + 24, R9);
        program.copy(R3, FRAME).add_value(R3, WAIT.into()).set(R4, ALWAYS);
        program.ask(MAP_UPDATE, self.maps.waiting.number(), THREAD);
    }

    /// Records a wait for the pages from R8 to R9 of the key's file when read-ahead starts.
    pub(super) fn waits(&self, program: &mut Assembler, wait: Wait) {
        if wait != Wait::Read {
            program.set(R8, 0).set(R9, 0);
        }
        self.thread(program);
        program.ask(MAP_LOOKUP, self.maps.waiting.number(), THREAD).jump_if(R0, If::Equal, 0, "new");
        self.same_file(program, "new");
        if wait == Wait::Unless {
            program.jump("end");
        } else {
            // A fault waits for one page, however many pages are read with it.
            program.load(R1, R0, (4, 4)).jump_if(R1, If::Not, 0, "end");
        }
        program.label("new");
        self.note_wait(program, 0);
    }

    /// Stores the key and the pages of a folio that enters or leaves the cache.
    pub(super) fn folio_of(&self, program: &mut Assembler, point: Tracepoint) -> Result<(), TraceError> {
        program.load(R7, R1, point.field("s_dev")?).load(R8, R1, point.field("i_ino")?);
        program.load(R9, R1, point.field("index")?).set(R6, 1);
        // Before 6.2 the tracepoint may lack the order.
        if let Ok(order) = point.field("order") {
            program.load(R2, R1, order).shift_left(R6, R2);
        }
        program.set(R0, 0).store_word(FRAME, KEY, R7).store_word(FRAME, KEY + 4, R0);
        program.store(FRAME, KEY + 8, R8).store(FRAME, FIRST, R9).add(R9, R6).store(FRAME, END, R9);
        Ok(())
    }

    /// Marks the pages that read-ahead adds. Pages added otherwise, for example by a write, were
    /// not read and get no mark. `correct` handles pages whose request was counted before they
    /// entered the cache.
    pub(super) fn added(&self, correct: impl Fn(&mut Assembler)) -> Result<Program, TraceError> {
        let point = Tracepoint("filemap:mm_filemap_add_to_page_cache");
        let mut program = Assembler::default();
        self.folio_of(&mut program, point)?;
        program.store_value(FRAME, COUNTED_FIRST, 0).store_value(FRAME, COUNTED_END, 0);
        self.thread(&mut program);
        program.ask(MAP_LOOKUP, self.maps.waiting.number(), THREAD).jump_if(R0, If::Equal, 0, "not read");
        self.same_file(&mut program, "not read");
        program.load(R1, R0, (16, 8)).store(FRAME, WAITED_FIRST, R1);
        program.load(R1, R0, (24, 8)).store(FRAME, WAITED_END, R1);
        correct(&mut program);
        self.words(&mut program, true, MAX_WORDS_OF_FOLIO, |program| {
            program.store(FRAME, MASK, R8);
            bits(program, COUNTED_FIRST, COUNTED_END, ["counted low", "counted high", "counted none"]);
            program.not(R8).load(R1, FRAME, at(MASK)).and(R1, R8).store(FRAME, MASK, R1);
            bits(program, WAITED_FIRST, WAITED_END, ["waited low", "waited high", "waited none"]);
            program.load(R1, FRAME, at(MASK)).copy(R2, R1).and(R1, R8).not(R8).and(R2, R8);
            program.atomic_or(R7, 0, R1).atomic_or(R7, 8, R2);
        });
        self.send(&mut program, Kind::Read, "read sent");
        program.jump("end").label("not read");
        self.send(&mut program, Kind::Written, "written sent");
        point.run(program)
    }

    pub(super) fn deleted(&self) -> Result<Program, TraceError> {
        let point = Tracepoint("filemap:mm_filemap_delete_from_page_cache");
        let mut program = Assembler::default();
        self.folio_of(&mut program, point)?;
        self.take(&mut program, MAX_WORDS_OF_FOLIO);
        if matches!(self.by, By::Machine | By::File) {
            program.load(R1, FRAME, at(READ_AHEAD)).jump_if(R1, If::Equal, 0, "end");
            self.who(&mut program);
            self.count(&mut program, &[(WASTED, READ_AHEAD)]);
        }
        point.run(program)
    }

    /// Stores the range and the number of the pages of the folio in R7.
    pub(super) fn pages_of_folio(&self, program: &mut Assembler) {
        let l = &self.layout;
        program.set(R9, 1).load(R1, R7, l.flags).shift_right_by(R1, l.head).and_value(R1, 1);
        program.jump_if(R1, If::Equal, 0, "small").load(R9, R7, l.pages_of_folio).label("small");
        program.load(R1, R7, l.index_of_folio).store(FRAME, FIRST, R1).store(FRAME, PAGES, R9);
        program.add(R1, R9).store(FRAME, END, R1);
    }

    /// Counts a clean folio (first argument) of a file (second argument) that becomes dirty. A
    /// write uses the page, so its bits are cleared.
    pub(super) fn dirtying(&self) -> Assembler {
        let mut program = Assembler::default();
        program.load(R7, R1, ARGUMENT[0]).load(R1, R1, ARGUMENT[1]).jump_if(R1, If::Equal, 0, "end");
        self.file_key(&mut program);
        self.pages_of_folio(&mut program);
        self.take(&mut program, MAX_WORDS_OF_FOLIO);
        self.who(&mut program);
        self.count(&mut program, &[(DIRTIED, PAGES)]);
        self.note_name(&mut program);
        program
    }
}

/// Copies the eight bytes at `offset` from the address in `from` to `TEMPORARY`. Clobbers R0 to R5.
pub(super) fn read_kernel(program: &mut Assembler, from: Register, offset: usize) {
    program.copy(R1, FRAME).add_value(R1, TEMPORARY.into()).set(R2, 8);
    program.copy(R3, from).add_value(R3, offset as i32).call(READ_KERNEL);
}

/// Eight bytes on the frame.
pub(super) fn at(offset: i16) -> Place {
    (offset as usize, 8)
}

/// Sets R8 to the word's bits for the pages from `first` to `end`. Clobbers R1 to R4.
pub(super) fn bits(program: &mut Assembler, first: i16, end: i16, [low, high, none]: [&'static str; 3]) {
    program.load_apart(R1, WORD).shift_left_by(R1, 6).set(R8, 0);
    program.load_apart(R2, end).jump_if_both(R1, If::AtLeast, R2, none);
    program.load_apart(R3, first).copy(R4, R1).add_value(R4, 64).and_value(R4, -1);
    program.jump_if_both(R3, If::AtLeast, R4, none).set(R8, -1);
    program.jump_if_both(R1, If::AtLeast, R3, low).subtract(R3, R1).shift_left(R8, R3).label(low);
    program.subtract(R2, R1).jump_if(R2, If::AtLeast, 64, high);
    program.set(R3, -1).shift_left(R3, R2).not(R3).and(R8, R3).label(high).label(none);
}
