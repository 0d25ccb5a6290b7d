//! What one core has of caches and translation buffers, fed with a stream of addresses.

use crate::sets::{Buffer, Sets};

/// Bytes of a line.
pub const LINE: u64 = 64;
/// Bits of an address below the number of a base page of 4 KiB, and of a large one of 2 MiB.
const BASE: u32 = 12;
const LARGE: u32 = 21;
/// Bits of a virtual address that tell pages apart, and of a tag those that are the frame's.
const VIRTUAL: u64 = (1 << 48) - 1;
const FRAME: u32 = 28;
/// From here up virtual addresses are the kernel's: bit 47, which the ones above repeat.
const KERNEL: u64 = 1 << 47;

/// The buffers of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// First-level caches of instructions and data, and the second level of both: lines.
    pub code: Buffer,
    /// See `code`.
    pub data: Buffer,
    /// See `code`.
    pub second: Buffer,
    /// First-level translation buffers of instructions: base pages, large pages.
    pub code_pages: [Buffer; 2],
    /// Those of data.
    pub data_pages: [Buffer; 2],
    /// The second-level translation buffer, of both sides and sizes.
    pub second_pages: Buffer,
}

impl Geometry {
    /// A core of an Intel server processor of the Skylake generation (Intel's optimization reference manual, Skylake
    /// server microarchitecture): L1I 32 KiB and L1D 32 KiB of 8 ways, L2 1 MiB of 16; ITLB 128 entries of 8 ways and 8
    /// for large pages, DTLB 64 of 4 and 32 of 4 for large pages, STLB 1,536 of 12.
    pub const SKYLAKE: Self = Self {
        code: Buffer { entries: 512, ways: 8 },
        data: Buffer { entries: 512, ways: 8 },
        second: Buffer { entries: 16384, ways: 16 },
        code_pages: [Buffer { entries: 128, ways: 8 }, Buffer { entries: 8, ways: 8 }],
        data_pages: [Buffer { entries: 64, ways: 4 }, Buffer { entries: 32, ways: 4 }],
        second_pages: Buffer { entries: 1536, ways: 12 },
    };
}

impl std::fmt::Display for Geometry {
    /// `L1I 32K/8, L1D 32K/8, L2 1024K/16, ITLB 128/8 and 8/8, DTLB 64/4 and 32/4, STLB 1536/12`: size and ways.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lines = |b: Buffer| format!("{}K/{}", u64::from(b.entries) * LINE / 1024, b.ways);
        let pages = |b: Buffer| format!("{}/{}", b.entries, b.ways);
        let both = |[base, large]: [Buffer; 2]| format!("{} and {}", pages(base), pages(large));
        write!(f, "L1I {}, L1D {}, L2 {}, ", lines(self.code), lines(self.data), lines(self.second))?;
        write!(f, "ITLB {}, DTLB {}, ", both(self.code_pages), both(self.data_pages))?;
        write!(f, "STLB {}", pages(self.second_pages))
    }
}

/// What refers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The fetch of an instruction.
    Code,
    /// A load or a store.
    Data,
}

/// How many levels a reference missed: 0 to 2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    /// Caches.
    pub caches: u8,
    /// Translation buffers; who misses both walks the tables.
    pub pages: u8,
}

/// One side's first level.
#[derive(Clone, Debug)]
struct First {
    lines: Sets,
    pages: [Sets; 2],
}

/// Caches and translation buffers, with what they hold.
///
/// A cache is indexed and tagged by the place in memory. An entry of a translation buffer is one of a page and its frame:
/// a page that has come back in another frame misses. Of the kernel's addresses large pages are those of Linux's direct
/// map, its text and its array of struct page on x86-64 with four levels of tables; the kernel's entries are global.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    code: First,
    data: First,
    second: Sets,
    second_pages: Sets,
}

impl Hierarchy {
    /// With nothing in any buffer.
    pub fn new(geometry: &Geometry) -> Self {
        let sets = |buffer: Buffer| Sets::new(u64::from(buffer.entries), buffer.ways);
        let first = |lines, pages: [Buffer; 2]| First { lines: sets(lines), pages: pages.map(sets) };
        Self {
            code: first(geometry.code, geometry.code_pages),
            data: first(geometry.data, geometry.data_pages),
            second: sets(geometry.second),
            second_pages: sets(geometry.second_pages),
        }
    }

    /// Refers to the line at virtual `address` that lies at `place` in memory.
    #[inline]
    pub fn refer(&mut self, side: Side, address: u64, place: u64) -> Missed {
        let first = match side {
            Side::Code => &mut self.code,
            Side::Data => &mut self.data,
        };
        let size = usize::from(is_large(address));
        let bits = [BASE, LARGE][size];
        let page = (address & VIRTUAL) >> bits;
        let low = bits - BASE;
        let tag = page << low << FRAME | (place >> bits << low) & ((1 << FRAME) - 1);
        let mut missed = Missed::default();
        if !first.pages[size].touch(page, tag) {
            missed.pages = 1 + u8::from(!self.second_pages.touch(page, tag));
        }
        let line = place / LINE;
        if !first.lines.touch(line, line) {
            missed.caches = 1 + u8::from(!self.second.touch(line, line));
        }
        missed
    }

    /// Another address space: only the kernel's translations stay.
    pub fn switch(&mut self) {
        self.drop_pages(|tag| tag >> FRAME & KERNEL >> BASE != 0);
    }

    /// No translation stays.
    pub fn flush(&mut self) {
        self.drop_pages(|_| false);
    }

    fn drop_pages(&mut self, keep: impl Fn(u64) -> bool + Copy) {
        let firsts = self.code.pages.iter_mut().chain(&mut self.data.pages);
        firsts.chain([&mut self.second_pages]).for_each(|sets| sets.retain(keep));
    }
}

/// Whether Linux maps this address by pages of 2 MiB: the direct map, the array of struct page, the kernel's text.
fn is_large(address: u64) -> bool {
    const AREAS: [std::ops::Range<u64>; 3] = [
        0xffff_8800_0000_0000..0xffff_c880_0000_0000,
        0xffff_ea00_0000_0000..0xffff_eb00_0000_0000,
        0xffff_ffff_8000_0000..0xffff_ffff_a000_0000,
    ];
    address >> 63 != 0 && AREAS.iter().any(|area| area.contains(&address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DIRECT: u64 = 0xffff_8880_0000_0000;

    fn data(core: &mut Hierarchy, address: u64) -> Missed {
        core.refer(Side::Data, address, address & VIRTUAL)
    }

    /// Misses of passes over so many pages, a line of each: of the buffers' first level and of both.
    fn passes(pages: u64, first: u64, count: u64) -> (u64, u64) {
        let mut core = Hierarchy::new(&Geometry::SKYLAKE);
        let mut sums = (0, 0);
        for page in (0..count).flat_map(|_| 0..pages) {
            let missed = data(&mut core, first + page * 4096);
            sums.0 += u64::from(missed.pages >= 1);
            sums.1 += u64::from(missed.pages == 2);
        }
        sums
    }

    #[test]
    fn pages_in_order_miss_beyond_the_reach_and_never_within() {
        assert_eq!(passes(64, 1 << 30, 10), (64, 64), "fits the first level");
        assert_eq!(passes(1536, 1 << 30, 10), (15360, 1536), "fits the second");
        assert_eq!(passes(3072, 1 << 30, 10), (30720, 30720), "twice the reach: LRU keeps none");
        assert_eq!(passes(3072, DIRECT, 10), (6, 6), "6 large pages");
    }

    #[test]
    fn lines_in_order_miss_beyond_a_caches_size() {
        let misses = |lines: u64| {
            let mut core = Hierarchy::new(&Geometry::SKYLAKE);
            let mut sums = (0, 0);
            for line in (0..4).flat_map(|_| 0..lines) {
                let missed = data(&mut core, (1 << 30) + line * LINE);
                sums.0 += u64::from(missed.caches >= 1);
                sums.1 += u64::from(missed.caches == 2);
            }
            sums
        };
        assert_eq!(misses(512), (512, 512));
        assert_eq!(misses(16384), (65536, 16384));
        assert_eq!(misses(32768), (131_072, 131_072));
    }

    #[test]
    fn a_switch_keeps_the_kernels_translations_and_all_lines() {
        let mut core = Hierarchy::new(&Geometry::SKYLAKE);
        data(&mut core, 1 << 30);
        data(&mut core, DIRECT);
        core.switch();
        assert_eq!(data(&mut core, 1 << 30), Missed { caches: 0, pages: 2 });
        assert_eq!(data(&mut core, DIRECT), Missed::default());
        core.flush();
        assert_eq!(data(&mut core, DIRECT), Missed { caches: 0, pages: 2 });
    }

    #[test]
    fn a_page_in_another_frame_is_another_translation_of_the_same_page() {
        let mut core = Hierarchy::new(&Geometry::SKYLAKE);
        core.refer(Side::Data, 0x1000, 0x5000);
        assert_eq!(core.refer(Side::Data, 0x1000, 0x9000), Missed { caches: 2, pages: 2 });
        assert_eq!(core.refer(Side::Data, 0x2000, 0x9000), Missed { caches: 0, pages: 2 }, "an alias");
    }

    #[test]
    fn sides_have_first_levels_of_their_own_and_share_the_second() {
        let mut core = Hierarchy::new(&Geometry::SKYLAKE);
        core.refer(Side::Code, 0x1000, 0x1000);
        assert_eq!(core.refer(Side::Data, 0x1000, 0x1000), Missed { caches: 1, pages: 1 });
        assert_eq!(core.refer(Side::Code, 0x1000, 0x1000), Missed::default());
    }

    /// The whole by its definition: lists of what was used last, searched.
    #[derive(Default)]
    struct Naive {
        code: Vec<u64>,
        data: Vec<u64>,
        second: Vec<u64>,
        pages: [[Vec<u64>; 2]; 2],
        second_pages: Vec<u64>,
    }

    /// Whether `key` is among the latest `ways` of its set.
    fn naive(
        list: &mut Vec<u64>,
        buffer: Buffer,
        index: u64,
        key: u64,
        index_of: impl Fn(u64) -> u64,
    ) -> bool {
        let sets = u64::from(buffer.entries / buffer.ways);
        let place = list.iter().rev().filter(|&&held| index_of(held) % sets == index % sets);
        let found = place.take(buffer.ways as usize).any(|&held| held == key);
        list.retain(|&held| held != key);
        list.push(key);
        found
    }

    impl Naive {
        fn refer(&mut self, geometry: &Geometry, side: Side, address: u64) -> Missed {
            let size = usize::from((DIRECT..DIRECT + (1 << 40)).contains(&address));
            let page = if size == 1 { address >> 21 } else { address >> 12 };
            // A large page's number is not a base page's.
            let page = page << 1 | size as u64;
            let (lines, line_list, page_buffer) = match side {
                Side::Code => (geometry.code, &mut self.code, geometry.code_pages[size]),
                Side::Data => (geometry.data, &mut self.data, geometry.data_pages[size]),
            };
            let page_list = &mut self.pages[usize::from(side == Side::Data)][size];
            let mut missed = Missed::default();
            if !naive(page_list, page_buffer, page >> 1, page, |held| held >> 1) {
                let second = geometry.second_pages;
                let found = naive(&mut self.second_pages, second, page >> 1, page, |held| held >> 1);
                missed.pages = 1 + u8::from(!found);
            }
            let line = (address & VIRTUAL) / LINE;
            if !naive(line_list, lines, line, line, |held| held) {
                let found = naive(&mut self.second, geometry.second, line, line, |held| held);
                missed.caches = 1 + u8::from(!found);
            }
            missed
        }
    }

    const SMALL: Geometry = Geometry {
        code: Buffer { entries: 8, ways: 2 },
        data: Buffer { entries: 12, ways: 3 },
        second: Buffer { entries: 32, ways: 4 },
        code_pages: [Buffer { entries: 4, ways: 2 }, Buffer { entries: 2, ways: 2 }],
        data_pages: [Buffer { entries: 6, ways: 3 }, Buffer { entries: 2, ways: 1 }],
        second_pages: Buffer { entries: 12, ways: 3 },
    };

    proptest! {
        #[test]
        fn every_reference_misses_what_the_definition_says(
            references in prop::collection::vec((any::<bool>(), any::<bool>(), 0u64..40, 0u64..64), 1..600),
        ) {
            let (mut core, mut twin) = (Hierarchy::new(&SMALL), Naive::default());
            for (code, kernel, page, line) in references {
                let side = if code { Side::Code } else { Side::Data };
                // Of the kernel's, eight large pages.
                let address = match kernel {
                    true => DIRECT + ((page % 8) << 21) + (page << 12) + line * LINE,
                    false => (1 << 30) + (page << 12) + line * LINE,
                };
                prop_assert_eq!(
                    core.refer(side, address, address & VIRTUAL),
                    twin.refer(&SMALL, side, address)
                );
            }
        }
    }

    #[test]
    fn a_core_says_what_it_is() {
        let words = "L1I 32K/8, L1D 32K/8, L2 1024K/16, ITLB 128/8 and 8/8, DTLB 64/4 and 32/4, STLB 1536/12";
        assert_eq!(Geometry::SKYLAKE.to_string(), words);
    }
}
