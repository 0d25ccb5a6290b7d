//! The generator behind every seeded pattern and shuffle.
//!
//! xoshiro256** by David Blackman and Sebastiano Vigna ("Scrambled linear pseudorandom number
//! generators", 2018), its state filled from the seed by SplitMix64 as the authors recommend.
//! Kept here, and not taken from a crate, because a published stream must stay the same for ever.

use crate::progress::{Progress, Stopped};

/// xoshiro256**: 256 bits of state, period 2^256 − 1.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// A generator whose state is the first four outputs of SplitMix64 started at `seed`.
    pub fn new(seed: u64) -> Self {
        let mut x = seed;
        let state = std::array::from_fn(|_| {
            x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = x;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        });
        Self { state }
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A whole number in `0..bound`, without bias (Lemire, "Fast random integer generation in an
    /// interval", 2019). `bound` must not be 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0);
        let mut m = u128::from(self.next_u64()) * u128::from(bound);
        if (m as u64) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (m as u64) < threshold {
                m = u128::from(self.next_u64()) * u128::from(bound);
            }
        }
        (m >> 64) as u64
    }

    /// A number in `[0, 1)` with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Shuffles in place (Fisher and Yates; Durstenfeld's form, from the last element down). `progress`
    /// is told now and then how far it is, from 0 to 1, and may end it.
    ///
    /// # Errors
    /// [`Stopped`] where `progress` ends it.
    pub fn shuffle<T>(&mut self, items: &mut [T], progress: Progress) -> Result<(), Stopped> {
        for i in (1..items.len()).rev() {
            if i % (1 << 20) == 0 {
                progress(1.0 - i as f64 / items.len() as f64)?;
            }
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;
    use crate::progress::unwatched;

    #[test]
    fn splitmix_seeding_and_xoshiro_agree_with_the_authors_reference_code() {
        // From the authors' C code: state {1, 2, 3, 4} gives these first outputs.
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| rng.next_u64()).collect();
        assert_eq!(first, [11520, 0, 1509978240, 1215971899390074240]);
        // SplitMix64 from 0 begins with this well-known value.
        assert_eq!(Rng::new(0).state[0], 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn below_stays_below_and_reaches_every_value() {
        let mut rng = Rng::new(7);
        let mut seen = [false; 10];
        for _ in 0..1000 {
            seen[rng.below(10) as usize] = true;
        }
        assert!(seen.iter().all(|&s| s));
    }

    #[test]
    fn a_shuffle_is_a_permutation() {
        let mut items: Vec<u32> = (0..100).collect();
        Rng::new(3).shuffle(&mut items, &mut unwatched).unwrap();
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
