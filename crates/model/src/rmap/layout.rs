//! The address spaces of sh, cat, wc and expr with the C library of 2002: one entry for each mapping, with
//! the pages a run touches in it.
//!
//! The segments are those of a dynamically linked program (`/proc/PID/maps` of the time). The pages
//! touched were not published one by one; they are set so that each program's sums are those that the
//! published counters give for one fork and one exec.

/// What a mapping maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// A file, by number: its pages are in the page cache, one copy for all.
    File(u32),
    /// Fresh memory.
    Anonymous,
}

/// A mapping, and how its pages are touched in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// What is mapped.
    pub object: Object,
    /// Pages only read. Of fresh memory these are the page of zeroes.
    pub read: u32,
    /// Pages read first and written later.
    pub read_then_written: u32,
    /// Pages whose first touch is a write.
    pub written: u32,
}

/// A program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program<'a> {
    /// Its name.
    pub name: &'static str,
    /// Its mappings.
    pub segments: &'a [Segment],
}

const fn text(file: u32, read: u32) -> Segment {
    Segment { object: Object::File(file), read, read_then_written: 0, written: 0 }
}

const fn data(file: u32, read: u32, read_then_written: u32, written: u32) -> Segment {
    Segment { object: Object::File(file), read, read_then_written, written }
}

const fn fresh(written: u32, zeroes: u32) -> Segment {
    Segment { object: Object::Anonymous, read: zeroes, read_then_written: 0, written }
}

// Files; data segments are other pages of the file than the text, so they get numbers of their own.
const LOADER: u32 = 0;
const LOADER_DATA: u32 = 1;
const LIBC: u32 = 2;
const LIBC_DATA: u32 = 3;
const LOCALE: u32 = 4;
const SH: u32 = 5;
const SH_DATA: u32 = 6;
const TERMCAP: u32 = 7;
const TERMCAP_DATA: u32 = 8;
const DL: u32 = 9;
const DL_DATA: u32 = 10;

/// How many files there are.
pub const FILES: u32 = 17;

/// The shell: 14 mappings, 222 pages, of which 26 are its own.
pub const SHELL: Program<'static> = Program {
    name: "sh",
    segments: &[
        text(SH, 106),
        data(SH_DATA, 2, 0, 5),
        fresh(7, 0),
        text(LOADER, 16),
        data(LOADER_DATA, 0, 0, 1),
        text(TERMCAP, 3),
        data(TERMCAP_DATA, 1, 0, 1),
        text(DL, 2),
        data(DL_DATA, 1, 0, 1),
        text(LIBC, 56),
        data(LIBC_DATA, 1, 0, 5),
        fresh(3, 0),
        text(LOCALE, 8),
        fresh(3, 0),
    ],
};

/// The shell's own pages, in the order of its segments.
pub const SHELL_OWN: u32 = 26;

/// The shell's mappings with so many pages of its own; those of its text make up for the
/// difference.
pub fn shell_with(own: u32) -> Vec<Segment> {
    let mut segments = SHELL.segments.to_vec();
    let read = segments[0].read + SHELL_OWN - own;
    segments[0].read = read;
    segments[1].written = segments[1].written + own - SHELL_OWN;
    segments
}

macro_rules! tool {
    ($name:literal, $file:literal, $text:literal, $anonymous:literal, $zeroes:literal) => {
        Program {
            name: $name,
            segments: &[
                text($file, $text),
                data($file + 1, 1, 1, 2),
                fresh($anonymous, $zeroes),
                text(LOADER, 17),
                data(LOADER_DATA, 1, 1, 1),
                text(LIBC, 64),
                data(LIBC_DATA, 4, 1, 4),
                fresh(3, 0),
                text(LOCALE, 35),
                fresh(2, 0),
            ],
        }
    };
}

/// The programs that the script runs.
pub const CAT: Program<'static> = tool!("cat", 11, 4, 4, 3);
/// See [`CAT`].
pub const WC: Program<'static> = tool!("wc", 13, 5, 5, 3);
/// See [`CAT`].
pub const EXPR: Program<'static> = tool!("expr", 15, 7, 5, 2);

impl Program<'_> {
    /// Pages of files that a run maps, copies of them included.
    pub fn file_pages(&self) -> u32 {
        let of_file = |segment: &&Segment| matches!(segment.object, Object::File(_));
        self.segments.iter().filter(of_file).map(Segment::pages).sum()
    }

    /// Pages of fresh memory that a run touches.
    pub fn fresh_pages(&self) -> u32 {
        self.segments.iter().map(Segment::pages).sum::<u32>() - self.file_pages()
    }
}

impl Segment {
    /// All pages touched.
    pub fn pages(&self) -> u32 {
        self.read + self.read_then_written + self.written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_one_fork_and_one_exec() {
        assert_eq!(SHELL.segments.len(), 14);
        let pages: u32 = SHELL.segments.iter().map(Segment::pages).sum();
        assert_eq!(pages, 222);
        let own: u32 = SHELL.segments.iter().map(|s| s.written + s.read_then_written).sum();
        assert_eq!(own, SHELL_OWN);
        for own in [SHELL_OWN - 3, SHELL_OWN, SHELL_OWN + 3] {
            let segments = shell_with(own);
            assert_eq!(segments.iter().map(Segment::pages).sum::<u32>(), 222);
            assert_eq!(segments.iter().map(|s| s.written + s.read_then_written).sum::<u32>(), own);
        }
        assert_eq!(shell_with(SHELL_OWN), SHELL.segments);
        let tools = [CAT, WC, EXPR];
        let mean = |of: fn(&Program<'static>) -> u32| tools.iter().map(of).sum::<u32>() as f64 / 3.0;
        // 137.3 file faults and 12.5 anonymous ones an exec.
        assert!((mean(Program::file_pages) - 137.3).abs() < 1.0, "{}", mean(Program::file_pages));
        assert!((mean(Program::fresh_pages) - 12.5).abs() < 0.5, "{}", mean(Program::fresh_pages));
    }
}
