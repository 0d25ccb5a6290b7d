//! Dense page numbers: 0, 1, 2, … in the order of first reference.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A hash for page numbers: one multiplication to 128 bits, folded. Traces are not adversaries.
#[derive(Default)]
struct Fold(u64);

impl Hasher for Fold {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, n: u64) {
        let product = u128::from(self.0 ^ n ^ 0x243f_6a88_85a3_08d3) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

/// Numbers the pages of a trace in the order in which they first appear. About 20 bytes a page.
#[derive(Default)]
pub struct Densifier {
    ids: HashMap<u64, u32, BuildHasherDefault<Fold>>,
}

impl Densifier {
    /// The dense number of `page`; `None` when there would be 2^32 − 1 pages or more.
    #[inline]
    pub fn number(&mut self, page: u64) -> Option<u32> {
        let next = self.ids.len();
        match self.ids.get(&page) {
            Some(&id) => Some(id),
            None => {
                let id = u32::try_from(next).ok().filter(|&id| id < u32::MAX - 1)?;
                self.ids.insert(page, id);
                Some(id)
            }
        }
    }

    /// How many pages have a number.
    pub fn pages(&self) -> u32 {
        self.ids.len() as u32
    }
}
