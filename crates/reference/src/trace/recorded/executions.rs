//! What a program executes, item by item: from the words of the tracer's ([`pagelab_ring::words`]) or the bytes of a frame, back
//! into references.

use pagelab_ring::words::{FETCH, FETCHED, KEY, Word, parts};

use super::Run;
use super::numbers::{get, put, unzigzag, zigzag};

/// What is wrong with items: they stand in a place where they mean nothing.
#[derive(Debug, PartialEq, Eq)]
pub struct Damaged;

/// The most bytes of an item in a frame.
pub(super) const ITEM: usize = 20;

/// What is said of an execution: see [`pagelab_ring::words`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// The block of this number.
    Execute(u32),
    /// At a position, another.
    Replace(u32, Key),
    /// No more than so many.
    Cut(u32),
    /// A block of so many runs that are fetched.
    Define(u32),
    /// One of these: key and count.
    Fetched(Key, u32),
    /// So many as they followed each other the last time.
    Go(u32),
    /// A reference of no block.
    Apart(u64),
}

/// A key, or what is to be added to the one that was there; for a run that is fetched to the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Is(u64),
    Added(i64),
}

impl Key {
    #[inline]
    fn beside(self, was: u64) -> u64 {
        match self {
            Self::Is(key) => key,
            Self::Added(difference) => was.wrapping_add_signed(difference),
        }
    }
}

/// What gives items in their order.
pub(super) trait Source {
    /// The next one; `None` at the end. `fetched`: how many runs of a definition are still to come.
    fn next(&mut self, fetched: u32) -> Option<Result<Item, Damaged>>;
}

/// Words of the tracer's.
impl Source for &[u32] {
    #[inline]
    fn next(&mut self, fetched: u32) -> Option<Result<Item, Damaged>> {
        let (&word, rest) = self.split_first()?;
        *self = rest;
        let mut word_behind = || {
            let (&word, rest) = self.split_first().ok_or(Damaged)?;
            *self = rest;
            Ok(word)
        };
        let mut parse = || {
            if fetched > 0 {
                let key = u64::from(word_behind()?) << 32 | u64::from(word);
                return Ok(Item::Fetched(Key::Is(key), word_behind()?));
            }
            Ok(match Word::of(word) {
                Word::Execute(number) => Item::Execute(number),
                Word::Replace(position, lower) => {
                    Item::Replace(position, Key::Is(Word::key(lower, word_behind()?)))
                }
                Word::Cut(length) => Item::Cut(length),
                Word::Define(runs) => Item::Define(runs),
                Word::Go(count) => Item::Go(count),
                Word::Apart => {
                    let lower = u64::from(word_behind()?);
                    Item::Apart(u64::from(word_behind()?) << 32 | lower)
                }
            })
        };
        Some(parse())
    }
}

/// Bytes of a frame.
impl Source for &[u8] {
    #[inline]
    fn next(&mut self, fetched: u32) -> Option<Result<Item, Damaged>> {
        if self.is_empty() {
            return None;
        }
        let mut number = || get(self).ok_or(Damaged);
        let mut parse = || {
            let first = number()?;
            if fetched > 0 {
                let count = u32::try_from(number()?).map_err(|_| Damaged)?;
                return Ok(Item::Fetched(Key::Added(unzigzag(first)), count));
            }
            let rest = u32::try_from(first >> 2).map_err(|_| Damaged)?;
            Ok(match first & 3 {
                0 => Item::Execute(rest),
                1 => Item::Replace(rest, Key::Added(unzigzag(number()?))),
                2 => Item::Cut(rest),
                _ if rest & 1 == 0 => Item::Define(rest >> 1),
                _ if rest >> 1 > 0 => Item::Go(rest >> 1),
                _ => Item::Apart(number()?),
            })
        };
        Some(parse())
    }
}

impl Item {
    /// Writes it to the beginning of `out`, of a replaced or fetched key what is added to the one that `was` there; how many bytes.
    #[inline]
    pub fn put(self, was: u64, out: &mut [u8]) -> usize {
        let added = |key: Key| match key {
            Key::Is(key) => zigzag(key.wrapping_sub(was).cast_signed()),
            Key::Added(difference) => zigzag(difference),
        };
        match self {
            Self::Execute(number) => put(u64::from(number) << 2, out),
            Self::Replace(position, key) => {
                let at = put(u64::from(position) << 2 | 1, out);
                at + put(added(key), &mut out[at..])
            }
            Self::Cut(length) => put(u64::from(length) << 2 | 2, out),
            Self::Define(runs) => put(u64::from(runs) << 3 | 3, out),
            Self::Fetched(key, count) => {
                let at = put(added(key), out);
                at + put(count.into(), &mut out[at..])
            }
            Self::Go(count) => put(u64::from(count) << 3 | 7, out),
            Self::Apart(key) => {
                let at = put(7, out);
                at + put(key, &mut out[at..])
            }
        }
    }
}

/// What takes what items say.
pub(super) trait Listener {
    /// Whether it takes references; else their sums alone.
    const REFERENCES: bool;
    /// These follow.
    fn references(&mut self, runs: &[Run]);
    /// So many runs with these loads, stores and fetches were there so many times, before or after this.
    fn sums(&mut self, runs: u64, sums: [u64; 3], times: u64);
    /// A unit is named: each is, before it is referenced.
    fn unit(&mut self, unit: u64);
}

/// A block that is defined.
#[derive(Debug, Default)]
struct Block {
    /// Key and count.
    fetches: Vec<(u64, u32)>,
    /// The loads and stores of its last execution.
    keys: Vec<u64>,
    /// The loads, stores and fetches of it.
    sums: [u64; 3],
    /// Both as runs, where they are known; no two that follow each other are to the same unit in the same way.
    runs: Vec<Run>,
}

/// What is looked at of a block each time that it is executed, apart from the rest so that more of it stays in the processor's
/// caches.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// What was executed after it.
    next: u32,
    /// How often it was executed with the references that it has, and that was not told.
    times: u32,
}

impl Link {
    /// After what nothing was executed.
    const NONE: u32 = u32::MAX;
}

impl Block {
    /// Tells what was executed, for it will be another.
    #[inline]
    fn settle(&mut self, link: &mut Link, listener: &mut impl Listener) {
        if link.times > 0 {
            let others = self.keys.windows(2).filter(|pair| pair[0] != pair[1]).count();
            let runs = self.fetches.len() + others + usize::from(!self.keys.is_empty());
            listener.sums(runs as u64, self.sums, link.times.into());
            link.times = 0;
        }
        self.runs.clear();
    }

    fn runs(&mut self) -> &[Run] {
        if self.runs.is_empty() {
            let Self { fetches, keys, runs, .. } = self;
            fetches.iter().for_each(|&(key, count)| push(runs, key, count.into()));
            keys.iter().for_each(|&key| push(runs, key, 1));
        }
        &self.runs
    }
}

fn push(runs: &mut Vec<Run>, key: u64, count: u64) {
    let (unit, kind) = parts(key);
    match runs.last_mut() {
        Some(last) if (last.0, last.1) == (unit, kind) => last.2 += count,
        _ => runs.push((unit, kind, count)),
    }
}

/// Follows the items of a buffer.
#[derive(Debug, Default)]
pub(super) struct Executions {
    blocks: Vec<Block>,
    links: Vec<Link>,
    /// Of them those of this buffer.
    defined: usize,
    /// How many runs of the last of these are still to come.
    fetched: u32,
    /// The one that was executed last, and whether more may become known of that.
    last: Option<usize>,
    open: bool,
    /// How many follow as they did the last time.
    going: u32,
    /// The key that was there before the last one that was replaced or fetched.
    was: u64,
}

impl Executions {
    /// Begins a buffer.
    pub fn begin(&mut self) {
        let (blocks, links) = (std::mem::take(&mut self.blocks), std::mem::take(&mut self.links));
        *self = Self { blocks, links, ..Self::default() };
    }

    /// Takes the next item, or goes on; what it took, `None` where nothing is left.
    ///
    /// # Errors
    /// When it means nothing here.
    #[inline]
    pub fn take(
        &mut self,
        items: &mut impl Source,
        listener: &mut impl Listener,
    ) -> Result<Option<Item>, Damaged> {
        if self.going > 0 {
            self.go(listener)?;
            return Ok(Some(Item::Go(1)));
        }
        let Some(item) = items.next(self.fetched).transpose()? else {
            return if self.fetched == 0 { Ok(None) } else { Err(Damaged) };
        };
        match item {
            Item::Execute(number) => {
                let number = number as usize;
                if number >= self.defined {
                    return Err(Damaged);
                }
                self.close(listener);
                if let Some(last) = self.last {
                    self.links[last].next = number as u32;
                }
                (self.last, self.open) = (Some(number), true);
            }
            Item::Go(count) => {
                self.going = count;
                self.go(listener)?;
            }
            Item::Replace(position, key) => self.replace(position as usize, key, listener)?,
            Item::Cut(length) => {
                let (block, link) = self.open()?;
                if length as usize > block.keys.len() {
                    return Err(Damaged);
                }
                block.settle(link, listener);
                for key in block.keys.drain(length as usize..) {
                    block.sums[parts(key).1 as usize] -= 1;
                }
            }
            Item::Define(runs) => self.define(runs)?,
            Item::Fetched(key, count) => {
                self.fetched -= 1;
                let block = &mut self.blocks[self.defined - 1];
                self.was = block.fetches.last().map_or(0, |&(key, _)| key);
                let key = sound(key.beside(self.was))?;
                block.fetches.push((key, count));
                block.sums[parts(key).1 as usize] += u64::from(count);
                listener.unit(parts(key).0);
            }
            Item::Apart(key) => {
                let (unit, kind) = parts(sound(key)?);
                self.close(listener);
                listener.unit(unit);
                listener.references(&[(unit, kind, 1)]);
                let mut sums = [0; 3];
                sums[kind as usize] = 1;
                listener.sums(1, sums, 1);
            }
        }
        Ok(Some(item))
    }

    /// Tells what is left at the end of a buffer.
    pub fn end(&mut self, listener: &mut impl Listener) {
        self.close(listener);
        let executed = self.blocks.iter_mut().zip(&mut self.links).take(self.defined);
        executed.for_each(|(block, link)| block.settle(link, listener));
    }

    /// The key that was there before the last one that was replaced or fetched; 0: none.
    #[inline]
    pub fn was(&self) -> u64 {
        self.was
    }

    /// The block that is executed, of which more becomes known.
    #[inline]
    fn open(&mut self) -> Result<(&mut Block, &mut Link), Damaged> {
        let open = self.last.filter(|_| self.open).ok_or(Damaged)?;
        Ok((&mut self.blocks[open], &mut self.links[open]))
    }

    #[inline]
    fn replace(&mut self, position: usize, key: Key, listener: &mut impl Listener) -> Result<(), Damaged> {
        let (block, link) = self.open()?;
        let known = block.keys.get(position).copied();
        let was = known.unwrap_or(0);
        let key = sound(key.beside(was))?;
        block.settle(link, listener);
        if known.is_some() {
            block.sums[parts(was).1 as usize] -= 1;
            block.keys[position] = key;
        } else if position == block.keys.len() {
            block.keys.push(key);
        } else {
            return Err(Damaged);
        }
        block.sums[parts(key).1 as usize] += 1;
        listener.unit(parts(key).0);
        self.was = was;
        Ok(())
    }

    /// All is known of what is executed.
    #[inline]
    fn close<L: Listener>(&mut self, listener: &mut L) {
        if let Some(last) = self.last.filter(|_| self.open) {
            self.executed(last, listener);
            if L::REFERENCES {
                listener.references(self.blocks[last].runs());
            }
            self.open = false;
        }
    }

    /// Counts an execution.
    #[inline]
    fn executed(&mut self, number: usize, listener: &mut impl Listener) {
        let link = &mut self.links[number];
        link.times += 1;
        if link.times == u32::MAX {
            self.blocks[number].settle(link, listener);
        }
    }

    /// Goes on: where references are taken to one block, else to all.
    #[inline]
    fn go<L: Listener>(&mut self, listener: &mut L) -> Result<(), Damaged> {
        let mut last = self.last.ok_or(Damaged)?;
        self.close(listener);
        let steps = if L::REFERENCES { 1 } else { self.going };
        self.going -= steps;
        for step in 0..steps {
            if step > 0 {
                self.executed(last, listener);
            }
            last = self.links[last].next as usize;
            if last >= self.defined {
                return Err(Damaged);
            }
        }
        (self.last, self.open) = (Some(last), true);
        Ok(())
    }

    /// The next block, of so many runs.
    #[cold]
    fn define(&mut self, runs: u32) -> Result<(), Damaged> {
        if runs as usize > FETCHED {
            return Err(Damaged);
        }
        if self.defined == self.blocks.len() {
            self.blocks.push(Block::default());
            self.links.push(Link { next: Link::NONE, times: 0 });
        }
        self.links[self.defined] = Link { next: Link::NONE, times: 0 };
        let block = &mut self.blocks[self.defined];
        block.fetches.clear();
        block.keys.clear();
        block.runs.clear();
        block.sums = [0; 3];
        self.defined += 1;
        self.fetched = runs;
        Ok(())
    }
}

/// A key of a unit and a kind that there are.
#[inline]
fn sound(key: u64) -> Result<u64, Damaged> {
    (key >> KEY == 0 && parts(key).1 <= FETCH).then_some(key).ok_or(Damaged)
}
