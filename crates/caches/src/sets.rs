//! One set-associative buffer.

/// How a buffer is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Entries.
    pub entries: u32,
    /// Entries in a set.
    pub ways: u32,
}

/// What stands where nothing was kept yet.
const EMPTY: u64 = u64::MAX;

/// The tags of each set, the latest used first.
#[derive(Clone, Debug)]
pub struct Sets {
    tags: Box<[u64]>,
    ways: usize,
    sets: u64,
    /// `sets - 1` where that is a power of two.
    mask: Option<u64>,
}

impl Sets {
    /// With nothing kept: at least one entry, and of ways no more than entries.
    pub fn new(entries: u64, ways: u32) -> Self {
        let ways = u64::from(ways).clamp(1, entries.max(1));
        let sets = (entries / ways).max(1);
        let tags = vec![EMPTY; (sets * ways) as usize].into();
        Self { tags, ways: ways as usize, sets, mask: sets.is_power_of_two().then(|| sets - 1) }
    }

    /// Whether the tag was there; it is afterwards, in place of the one that was used longest ago.
    #[inline]
    pub fn touch(&mut self, index: u64, tag: u64) -> bool {
        let set = match self.mask {
            Some(mask) => index & mask,
            None => index % self.sets,
        };
        let at = set as usize * self.ways;
        let set = &mut self.tags[at..at + self.ways];
        if set[0] == tag {
            return true;
        }
        let found = set.iter().position(|&held| held == tag);
        let end = found.unwrap_or(set.len() - 1);
        set.copy_within(..end, 1);
        set[0] = tag;
        found.is_some()
    }

    /// Drops the tags that are not to be kept.
    pub fn retain(&mut self, keep: impl Fn(u64) -> bool) {
        for set in self.tags.chunks_exact_mut(self.ways) {
            let mut kept = 0;
            for at in 0..set.len() {
                if set[at] != EMPTY && keep(set[at]) {
                    set[kept] = set[at];
                    kept += 1;
                }
            }
            set[kept..].fill(EMPTY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same by the definition: of each set a list, the latest used last.
    struct Naive {
        sets: Vec<Vec<u64>>,
        ways: usize,
    }

    impl Naive {
        fn touch(&mut self, index: u64, tag: u64) -> bool {
            let at = (index % self.sets.len() as u64) as usize;
            let set = &mut self.sets[at];
            let known = set.contains(&tag);
            set.retain(|&held| held != tag);
            set.push(tag);
            if set.len() > self.ways {
                set.remove(0);
            }
            known
        }
    }

    proptest! {
        #[test]
        fn every_touch_is_the_definitions(
            sets in 1u64..9,
            ways in 1u32..6,
            touches in prop::collection::vec((0u64..64, any::<bool>()), 1..400),
        ) {
            let mut one = Sets::new(sets * u64::from(ways), ways);
            let mut naive = Naive { sets: vec![Vec::new(); sets as usize], ways: ways as usize };
            for (number, (tag, drop)) in touches.into_iter().enumerate() {
                prop_assert_eq!(one.touch(tag, tag), naive.touch(tag, tag), "touch {}", number);
                if drop && number % 7 == 0 {
                    one.retain(|tag| tag % 3 != 0);
                    naive.sets.iter_mut().for_each(|set| set.retain(|tag| tag % 3 != 0));
                }
            }
        }
    }

    #[test]
    fn there_is_always_an_entry() {
        let mut none = Sets::new(0, 0);
        assert!(!none.touch(5, 1) && none.touch(5, 1) && !none.touch(5, 2));
    }
}
