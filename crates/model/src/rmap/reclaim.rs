//! The other side of the trade: what finding all mappings of a page costs.

use super::mechanism::{Costs, FOLIO, Kind, Work};

/// Lines of a walk from an address to its entry: the upper levels are shared by neighbours, so one line of
/// the directory and one of the table.
const WALK: u64 = 2;
/// Entries in a line of a page table (4 bytes each, lines of 32 bytes).
const ENTRIES_IN_LINE: u64 = 8;

/// A page that reclaim wants, and its surroundings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Address spaces that map it.
    pub sharers: u64,
    /// Mappings of its object that do not map this page (copied since, or never touched).
    pub others: u64,
    /// Entries in all page tables.
    pub entries: u64,
    /// Pages that one round of reclaim wants; a walk of all page tables serves all of them.
    pub batch: u64,
}

/// The work of finding and clearing all entries of one page.
pub fn unmap(kind: Kind, wanted: &Wanted) -> Work {
    let clear = Work { operations: wanted.sharers, atomics: wanted.sharers, misses: wanted.sharers, slab: 0 };
    let find = match kind {
        // Every entry of every process is looked at; the batch shares the walk.
        Kind::None => {
            let operations = wanted.entries.max(wanted.sharers) / wanted.batch.max(1);
            Work { operations, misses: operations / ENTRIES_IN_LINE, ..Work::default() }
        }
        // One element for each mapping; it leads to the entry.
        Kind::Chain => {
            Work { operations: wanted.sharers, atomics: 2, misses: 1 + wanted.sharers, slab: wanted.sharers }
        }
        // Every mapping of the object is looked up.
        Kind::Object => through_object(wanted),
        // One walk builds the chains of all pages: each entry is looked at and gets an element.
        Kind::Lazy => {
            let build = Work {
                operations: wanted.sharers,
                atomics: 2 * wanted.sharers,
                misses: wanted.sharers + wanted.sharers.div_ceil(ENTRIES_IN_LINE),
                slab: wanted.sharers,
            };
            build + unmap(Kind::Chain, wanted)
        }
        // One look for all pages of a folio.
        Kind::Folio => {
            let all = through_object(wanted);
            let share = |n: u64| n.div_ceil(u64::from(FOLIO));
            Work {
                operations: share(all.operations),
                atomics: share(all.atomics),
                misses: share(all.misses),
                slab: 0,
            }
        }
    };
    match kind {
        Kind::Lazy => find,
        _ => find + clear,
    }
}

fn through_object(wanted: &Wanted) -> Work {
    let mappings = wanted.sharers + wanted.others;
    Work { operations: mappings, atomics: 2, misses: 1 + mappings * (1 + WALK), slab: 0 }
}

/// The work of one entry's life under each kind: made at fork or fault, dropped at exit or exec.
pub fn entry_life(kind: Kind, sharers: u64, pages_in_mapping: u64) -> Work {
    let link = |pages: u64| Work {
        // Rounded up, so that a long mapping's share is not lost.
        operations: 2u64.div_ceil(pages),
        atomics: 4u64.div_ceil(pages),
        misses: 4u64.div_ceil(pages),
        slab: 2u64.div_ceil(pages),
    };
    match kind {
        Kind::None => Work::default(),
        // The latest is found first where children die before their parents: two elements on average.
        Kind::Chain => Work {
            operations: 2,
            atomics: 4,
            misses: if sharers > 1 { 4 } else { 0 },
            slab: if sharers > 1 { 2 } else { 0 },
        },
        Kind::Object => Work { operations: 2, atomics: 2, misses: 2, slab: 0 } + link(pages_in_mapping),
        Kind::Lazy => Work { operations: 2, atomics: 2, misses: 2, slab: 0 },
        Kind::Folio => Work { operations: 1, atomics: 1, misses: 1, slab: 0 },
    }
}

/// Time of [`unmap`] in ns.
pub fn unmap_time(kind: Kind, wanted: &Wanted, costs: &Costs) -> f64 {
    costs.time(&unmap(kind, wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_find_only_what_maps_and_objects_look_at_all() {
        let wanted = Wanted { sharers: 3, others: 0, entries: 100_000, batch: 32 };
        let more = Wanted { others: 50, ..wanted };
        assert_eq!(unmap(Kind::Chain, &wanted), unmap(Kind::Chain, &more));
        assert!(unmap(Kind::Object, &more).misses > 10 * unmap(Kind::Object, &wanted).misses);
        assert!(unmap(Kind::Folio, &more).misses < unmap(Kind::Object, &more).misses / 8);
    }

    #[test]
    fn every_kind_costs_more_the_more_share() {
        for kind in super::super::mechanism::KINDS {
            let at = |sharers| {
                let wanted = Wanted { sharers, others: 0, entries: 100_000, batch: 32 };
                unmap_time(kind, &wanted, &Costs::QUAD_PENTIUM_III)
            };
            assert!(at(1) > 0.0 && at(10) > at(1) && at(1000) > at(10), "{kind:?}");
        }
    }
}
