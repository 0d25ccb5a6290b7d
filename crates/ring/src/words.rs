//! What a thread references, in words of 32 bits: which block of instructions it executes, and what is other than the last
//! time.
//!
//! A block's loads and stores are mostly to the pages that they were to when it was executed before, and it is mostly followed by
//! the block that followed it then. So a buffer *defines* each block that is executed, with what is fetched for it; from then on
//! a word *executes* it, with the references that it had the last time, of which further words *replace* those that are others,
//! or *cut* those that were not made; and a word *goes* on to so many blocks as they followed each other the last time. A
//! reference of no block stands *apart*. Each buffer begins anew: what stands in it needs no other.
//!
//! ```text
//! execute   number << 2 | 0                                   a block, numbered as the buffer defines them
//! replace   key << 12 | position << 2 | 1, key >> 20          its load or store at a position; behind the last: one more
//! cut       length << 2 | 2                                   the block has no more than these
//! define    runs << 3 | 3, runs times: key, key >> 32, count  the next number; what is fetched: runs of the same key
//! go        count << 3 | 7, the count not 0                   so many blocks are executed, each what followed the one before
//! apart     7, key, key >> 32                                 one reference, behind the block and not of it
//! ```
//!
//! What replaces and cuts belongs to the execution before it, and holds for those that follow.

/// A reference that reads.
pub const LOAD: u64 = 0;
/// A reference that writes.
pub const STORE: u64 = 1;
/// The fetch of an instruction.
pub const FETCH: u64 = 2;

/// The most loads and stores of a block; others stand apart.
pub const POSITIONS: usize = 1 << 10;
/// The most runs that are fetched for a block.
pub const FETCHED: usize = 1 << 10;
/// The most blocks that a buffer defines.
pub const BLOCKS: u32 = 1 << 30;

/// Bits of a key: a unit's number of 50, and two that say how it is referenced.
pub const KEY: u32 = 52;

/// Names a page, or whatever the granularity is, and how it is referenced.
#[inline]
pub const fn key(unit: u64, kind: u64) -> u64 {
    unit << 2 | kind
}

/// The unit and the kind of a key.
#[inline]
pub const fn parts(key: u64) -> (u64, u64) {
    (key >> 2, key & 3)
}

/// A block is executed.
#[inline]
pub const fn execute(number: u32) -> u32 {
    number << 2
}

/// Its load or store at `position` is another, in two words.
#[inline]
pub const fn replace(position: u32, key: u64) -> [u32; 2] {
    [(key as u32) << 12 | position << 2 | 1, (key >> 20) as u32]
}

/// It has `length` loads and stores alone.
#[inline]
pub const fn cut(length: u32) -> u32 {
    length << 2 | 2
}

/// A block follows, of which `runs` are fetched, each in the three words of [`fetched`].
#[inline]
pub const fn define(runs: u32) -> u32 {
    runs << 3 | 3
}

/// `count` instructions with the same key.
#[inline]
pub const fn fetched(key: u64, count: u32) -> [u32; 3] {
    [key as u32, (key >> 32) as u32, count]
}

/// The most blocks that a word goes on to.
pub const FAR: u32 = (1 << 29) - 1;

/// `count` blocks are executed, 1 to [`FAR`].
#[inline]
pub const fn go(count: u32) -> u32 {
    count << 3 | 7
}

/// A reference of no block.
#[inline]
pub const fn apart(key: u64) -> [u32; 3] {
    [7, key as u32, (key >> 32) as u32]
}

/// What a word says; what else belongs to it stands in the words behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// See [`execute`].
    Execute(u32),
    /// See [`replace`]: the position, and the lower bits of the key.
    Replace(u32, u64),
    /// See [`cut`].
    Cut(u32),
    /// See [`define`].
    Define(u32),
    /// See [`go`].
    Go(u32),
    /// See [`apart`].
    Apart,
}

impl Word {
    /// What `word` says.
    #[inline]
    pub const fn of(word: u32) -> Self {
        match word & 3 {
            0 => Self::Execute(word >> 2),
            1 => Self::Replace(word >> 2 & (POSITIONS as u32 - 1), (word >> 12) as u64),
            2 => Self::Cut(word >> 2),
            _ if word & 4 == 0 => Self::Define(word >> 3),
            _ if word == 7 => Self::Apart,
            _ => Self::Go(word >> 3),
        }
    }

    /// A key whose lower bits stood in [`Word::Replace`], and its upper ones in the word behind it.
    #[inline]
    pub const fn key(lower: u64, upper: u32) -> u64 {
        (upper as u64) << 20 | lower
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_data_reads_back() {
        let greatest = key((1 << 50) - 1, FETCH);
        let [low, high] = replace(1023, greatest);
        let Word::Replace(1023, lower) = Word::of(low) else { panic!("{:?}", Word::of(low)) };
        assert_eq!(Word::key(lower, high), greatest);
        assert_eq!(Word::of(execute(BLOCKS - 1)), Word::Execute(BLOCKS - 1));
        assert_eq!(Word::of(cut(1024)), Word::Cut(1024));
        assert_eq!(Word::of(define(1024)), Word::Define(1024));
        assert_eq!(Word::of(go(FAR)), Word::Go(FAR));
        assert_eq!(Word::of(apart(greatest)[0]), Word::Apart);
        assert_eq!(parts(key(7, STORE)), (7, STORE));
    }
}
