//! Resolves faults: which pages are in the page table, which are resident and hidden, which are stored.
//!
//! Of the pages that the policy holds, `mapped` at most are in the program's page table. The others are *hidden*: their
//! content is in a frame of the engine's, and the next reference to one is a fault, which tells the policy of the
//! reference and maps the page again; the page that has been mapped longest is hidden in its place. So the share of
//! the frames that is hidden says how much of the references a policy sees: all where no page stays mapped, misses
//! alone where every page does. (VMS did the same by two FIFO lists: Turner and Levy, "Segmented FIFO page
//! replacement", SIGMETRICS 1981.)
//!
//! A page that the policy gives up is compressed and stored; a reference to it is a miss.

use std::io;
use std::time::Instant;

use pagelab_kernel::userfault::Paged;

use crate::line::Line;
use crate::policy::Chooser;
use crate::store::Store;

/// The memory that is paged.
pub trait Space {
    /// Bytes of a page.
    fn page_size(&self) -> usize;

    /// Copies a page that is in the page table into `content` and takes it out. `false`: it was gone.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn take(&mut self, page: u32, content: &mut [u8]) -> io::Result<bool>;

    /// Puts a page with this content into the page table, of zeroes without, and wakes who waits for it.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn put(&mut self, page: u32, content: Option<&[u8]>) -> io::Result<()>;
}

impl Space for &Paged {
    fn page_size(&self) -> usize {
        self.region().page_size()
    }

    fn take(&mut self, page: u32, content: &mut [u8]) -> io::Result<bool> {
        Paged::take(self, page, content).map(|()| true)
    }

    fn put(&mut self, page: u32, content: Option<&[u8]>) -> io::Result<()> {
        let address = self.address(page);
        match content {
            Some(content) => self.events().put(address, content),
            None => self.events().put_zeroes(address, self.page_size()),
        }
        .map(drop)
    }
}

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Residence {
    /// Never referenced, or empty.
    Nowhere,
    Mapped,
    /// In this frame of the engine's.
    Hidden(u32),
    Stored,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// First references to a page: it was given zeroes.
    pub first: u64,
    /// References to hidden pages: seen by the policy, and hits.
    pub hidden: u64,
    /// References to stored pages.
    pub fetched: u64,
    /// Pages stored.
    pub stored: u64,
    /// Time of the engine on faults of hidden pages and of stored ones, ns.
    pub service: [u64; 2],
    /// Of that, in the policy, ns.
    pub policy: u64,
}

impl Tally {
    /// What was done since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            first: self.first - before.first,
            hidden: self.hidden - before.hidden,
            fetched: self.fetched - before.fetched,
            stored: self.stored - before.stored,
            service: [0, 1].map(|n| self.service[n] - before.service[n]),
            policy: self.policy - before.policy,
        }
    }

    /// References that the policy was told of.
    pub fn seen(&self) -> u64 {
        self.first + self.hidden + self.fetched
    }
}

/// The engine.
pub struct Engine<'a, S> {
    space: S,
    policy: Chooser<'a>,
    store: Store,
    places: Vec<Residence>,
    /// The mapped pages, from the one that has been mapped longest.
    mapped: Line,
    /// How many pages may be mapped.
    window: usize,
    /// The frames of hidden pages, and which of them are free.
    frames: Vec<u8>,
    free: Vec<u32>,
    page: Vec<u8>,
    gone: Vec<u32>,
    /// Whether all pages are back for a moment.
    restored: bool,
    tally: Tally,
}

impl<'a, S: Space> Engine<'a, S> {
    /// For the pages `0..pages` of `space`, none of them there, with as many frames as `policy` has; `window` of them
    /// (at least 1) mapped at most.
    ///
    /// # Errors
    /// When zstd has no memory.
    pub fn new(space: S, pages: u32, frames: u32, window: u32, policy: Chooser<'a>) -> io::Result<Self> {
        let size = space.page_size();
        // One page is hidden before the frame of the one that is mapped for it is free.
        let hidden = frames.saturating_sub(window.max(1)) + 2;
        Ok(Self {
            store: Store::new(pages, size)?,
            places: vec![Residence::Nowhere; pages as usize],
            mapped: Line::new(pages),
            window: window.max(1) as usize,
            frames: vec![0; hidden as usize * size],
            free: (0..hidden).rev().collect(),
            page: vec![0; size],
            gone: Vec::with_capacity(16),
            restored: false,
            tally: Tally::default(),
            space,
            policy,
        })
    }

    /// There are `pages` pages from now on.
    pub fn grow(&mut self, pages: u32) {
        self.policy.grow(pages);
        self.store.grow(pages);
        self.places.resize(pages as usize, Residence::Nowhere);
        self.mapped.grow(pages);
    }

    /// What was done so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The evicted pages.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The memory.
    pub fn space(&mut self) -> &mut S {
        &mut self.space
    }

    /// Pages that are resident, mapped or hidden.
    pub fn resident(&self) -> u64 {
        self.places.iter().filter(|place| matches!(place, Residence::Mapped | Residence::Hidden(_))).count()
            as u64
    }

    /// Whether the page is resident.
    pub fn is_resident(&self, page: u32) -> bool {
        matches!(self.places[page as usize], Residence::Mapped | Residence::Hidden(_))
    }

    /// Whether the page is stored.
    pub fn is_stored(&self, page: u32) -> bool {
        self.places[page as usize] == Residence::Stored
    }

    /// Whether the page is mapped.
    pub fn is_mapped(&self, page: u32) -> bool {
        self.places[page as usize] == Residence::Mapped
    }

    /// Resolves the fault of a reference to a page that is not mapped.
    ///
    /// # Errors
    /// When the kernel refuses, or policy and places disagree.
    pub fn fault(&mut self, page: u32) -> io::Result<()> {
        let begun = Instant::now();
        let place = self.places[page as usize];
        self.gone.clear();
        let hit = self.policy.reference(page, &mut self.gone);
        let decided = begun.elapsed().as_nanos() as u64;
        // Of a page that the program has emptied the policy does not know that.
        if hit != matches!(place, Residence::Hidden(_)) && place != Residence::Nowhere {
            return Err(io::Error::other(format!(
                "the policy and the pager disagree on page {page}: {place:?}"
            )));
        }
        for n in 0..self.gone.len() {
            self.evict(self.gone[n])?;
        }
        // All before the page is put, which wakes who waits: what it does then is in nobody's way.
        self.make_room()?;
        match place {
            Residence::Hidden(frame) => {
                let size = self.page.len();
                let at = frame as usize * size;
                self.space.put(page, Some(&self.frames[at..at + size]))?;
                self.free.push(frame);
                self.tally.hidden += 1;
            }
            Residence::Stored => {
                let content = match self.store.take(page, &mut self.page)? {
                    None => return Err(io::Error::other(format!("page {page} is not in the store"))),
                    Some(holds) => holds.then_some(&self.page[..]),
                };
                self.space.put(page, content)?;
                self.tally.fetched += 1;
            }
            Residence::Nowhere => {
                self.space.put(page, None)?;
                self.tally.first += 1;
            }
            Residence::Mapped => return Err(io::Error::other(format!("page {page} is mapped"))),
        }
        self.places[page as usize] = Residence::Mapped;
        self.mapped.push(page);
        let taken = begun.elapsed().as_nanos() as u64;
        match place {
            Residence::Hidden(_) => self.tally.service[0] += taken,
            Residence::Stored => self.tally.service[1] += taken,
            _ => return Ok(()),
        }
        self.tally.policy += decided;
        Ok(())
    }

    /// Takes a page over that is in the page table already.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn adopt(&mut self, page: u32) -> io::Result<()> {
        if self.places[page as usize] != Residence::Nowhere {
            return Ok(());
        }
        self.gone.clear();
        self.policy.reference(page, &mut self.gone);
        for n in 0..self.gone.len() {
            self.evict(self.gone[n])?;
        }
        self.make_room()?;
        self.places[page as usize] = Residence::Mapped;
        self.mapped.push(page);
        self.tally.first += 1;
        Ok(())
    }

    /// A page is empty now, or gone; the policy is not told, for no model is.
    pub fn forget(&mut self, page: u32) {
        match self.places[page as usize] {
            Residence::Nowhere => {}
            Residence::Mapped => drop(self.mapped.remove(page)),
            Residence::Hidden(frame) => self.free.push(frame),
            Residence::Stored => self.store.forget(page),
        }
        self.places[page as usize] = Residence::Nowhere;
    }

    /// Puts every page back, for a moment: [`Self::withdraw`] takes them out again.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn restore(&mut self) -> io::Result<Vec<u32>> {
        let mut restored = Vec::new();
        self.restored = true;
        for page in 0..self.places.len() as u32 {
            match self.places[page as usize] {
                Residence::Nowhere | Residence::Mapped => continue,
                Residence::Hidden(frame) => {
                    let at = frame as usize * self.page.len();
                    self.space.put(page, Some(&self.frames[at..at + self.page.len()]))?;
                    self.free.push(frame);
                }
                Residence::Stored => {
                    let holds = self.store.take(page, &mut self.page)?.unwrap_or(false);
                    self.space.put(page, holds.then_some(&self.page[..]))?;
                }
            }
            restored.push(page);
            self.places[page as usize] = Residence::Mapped;
            self.mapped.push(page);
        }
        Ok(restored)
    }

    /// Takes out again what [`Self::restore`] put back: the pages that the policy has are hidden, the others stored.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn withdraw(&mut self, restored: &[u32]) -> io::Result<()> {
        self.restored = false;
        let given_up = restored.iter().copied().filter(|&page| !self.policy.holds(page));
        for page in given_up.collect::<Vec<_>>() {
            if self.places[page as usize] == Residence::Mapped {
                self.evict(page)?;
                // It was stored before.
                self.tally.stored -= u64::from(self.places[page as usize] == Residence::Stored);
            }
        }
        while self.mapped.len() > self.window {
            self.hide_oldest()?;
        }
        Ok(())
    }

    /// Hides every page, so that the next reference to any is seen.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn hide_all(&mut self) -> io::Result<()> {
        while self.mapped.len() > 0 {
            self.hide_oldest()?;
        }
        Ok(())
    }

    /// Hides pages until one more may be mapped.
    fn make_room(&mut self) -> io::Result<()> {
        while !self.restored && self.mapped.len() >= self.window {
            self.hide_oldest()?;
        }
        Ok(())
    }

    fn hide_oldest(&mut self) -> io::Result<()> {
        let Some(page) = self.mapped.first() else { return Ok(()) };
        let frame = self.free.pop().ok_or_else(|| io::Error::other("no frame is free"))?;
        let size = self.page.len();
        let at = frame as usize * size;
        self.mapped.remove(page);
        if self.space.take(page, &mut self.frames[at..at + size])? {
            self.places[page as usize] = Residence::Hidden(frame);
        } else {
            self.free.push(frame);
            self.places[page as usize] = Residence::Nowhere;
        }
        Ok(())
    }

    /// Stores a page that the policy gave up.
    fn evict(&mut self, page: u32) -> io::Result<()> {
        let size = self.page.len();
        match self.places[page as usize] {
            Residence::Mapped => {
                self.mapped.remove(page);
                if !self.space.take(page, &mut self.page)? {
                    self.places[page as usize] = Residence::Nowhere;
                    return Ok(());
                }
                self.store.put(page, &self.page)?;
            }
            Residence::Hidden(frame) => {
                let at = frame as usize * size;
                self.store.put(page, &self.frames[at..at + size])?;
                self.free.push(frame);
            }
            // It was given up by the program before the policy did.
            Residence::Nowhere => return Ok(()),
            Residence::Stored => return Err(io::Error::other(format!("page {page} is stored already"))),
        }
        self.places[page as usize] = Residence::Stored;
        self.tally.stored += 1;
        Ok(())
    }
}
