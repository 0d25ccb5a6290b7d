//! What is random in a test: all of it from one seed.

/// SplitMix64 (Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Everything that follows depends on the seed alone.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 up to, and without, `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// One of these.
    pub fn of<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.below(list.len() as u64) as usize]
    }

    /// Spoils bytes as disks, copies and people do.
    pub fn spoil(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(8) {
            if bytes.is_empty() {
                bytes.extend(self.next().to_le_bytes());
                continue;
            }
            let at = self.below(bytes.len() as u64) as usize;
            let end = bytes.len().min(at + 1 + self.below(64) as usize);
            match self.below(8) {
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = self.next() as u8,
                2 => bytes[at..end].fill(0),
                3 => bytes[at..end].fill(0xff),
                4 => bytes.truncate(at),
                5 => drop(bytes.drain(at..end)),
                6 => {
                    let part = bytes[at..end].to_vec();
                    let to = self.below(bytes.len() as u64) as usize;
                    bytes.splice(to..to, part);
                }
                _ => {
                    for byte in &mut bytes[at..end] {
                        *byte = (*byte).wrapping_add(self.next() as u8 % 3).wrapping_sub(1);
                    }
                }
            }
        }
    }
}

/// Another each time.
pub fn seed() -> u64 {
    std::time::UNIX_EPOCH.elapsed().map_or(1, |now| now.as_nanos() as u64)
}
