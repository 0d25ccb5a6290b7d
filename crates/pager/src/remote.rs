//! The memory of another process, whose pages a thread of its own takes out on our word (`crates/live/preload`).

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;

use pagelab_kernel::userfault::{Event, Userfault};
use pagelab_kernel::waiting;

use crate::engine::Space;

/// Bytes of a page; the library in the program knows no other.
pub const PAGE: usize = 4096;

const ENOENT: i32 = 2;
const ESRCH: i32 = 3;

/// The memory.
#[derive(Debug)]
pub struct Remote {
    events: Userfault,
    helper: UnixStream,
    /// The helper's thread, for whose faults nobody but this waits.
    thread: u32,
    pagemap: File,
    /// The address of each page, and the page of each address.
    addresses: Vec<usize>,
    pages: HashMap<usize, u32>,
    /// What was read and not looked at yet.
    pending: VecDeque<Event>,
    read: Vec<Event>,
}

impl Remote {
    /// The memory of `process`, with its events and the connection of its helper.
    ///
    /// # Errors
    /// When its page map cannot be read, or the helper says nothing.
    pub fn new(process: u32, events: Userfault, mut helper: UnixStream) -> io::Result<Self> {
        let mut word = [0; 8];
        helper.read_exact(&mut word)?;
        Ok(Self {
            events,
            helper,
            thread: u64::from_ne_bytes(word) as u32,
            pagemap: File::open(format!("/proc/{process}/pagemap"))?,
            addresses: Vec::new(),
            pages: HashMap::new(),
            pending: VecDeque::new(),
            read: Vec::new(),
        })
    }

    /// Its events.
    pub fn events(&self) -> &Userfault {
        &self.events
    }

    /// Pages that have a number.
    pub fn count(&self) -> u32 {
        self.addresses.len() as u32
    }

    /// The number of the page at `address`; a new one has the next.
    pub fn number(&mut self, address: usize) -> u32 {
        let address = address & !(PAGE - 1);
        *self.pages.entry(address).or_insert_with(|| {
            self.addresses.push(address);
            self.addresses.len() as u32 - 1
        })
    }

    /// The pages with a number from `start` on, before `end`.
    pub fn within(&self, start: usize, end: usize) -> Vec<u32> {
        if (end - start) / PAGE < self.pages.len() {
            let addresses = (start..end).step_by(PAGE);
            return addresses.filter_map(|address| self.pages.get(&address).copied()).collect();
        }
        let all = self.pages.iter().filter(|(address, _)| (start..end).contains(address));
        all.map(|(_, &page)| page).collect()
    }

    /// The addresses of a range whose pages are in the page table.
    ///
    /// # Errors
    /// When the page map cannot be read.
    pub fn present(&self, start: usize, length: usize) -> io::Result<Vec<usize>> {
        let mut found = Vec::new();
        let mut entries = vec![0; 8 * 4096];
        let mut at = start;
        while at < start + length {
            let wanted = ((start + length - at) / PAGE).min(4096);
            let read = self.pagemap.read_at(&mut entries[..8 * wanted], (at / PAGE * 8) as u64)?;
            if read < 8 {
                break;
            }
            for (n, entry) in entries[..read].chunks_exact(8).enumerate() {
                if entry[7] & 0x80 != 0 {
                    found.push(at + n * PAGE);
                }
            }
            at += read / 8 * PAGE;
        }
        Ok(found)
    }

    /// What has happened next.
    ///
    /// # Errors
    /// When the events cannot be read.
    pub fn happened(&mut self) -> io::Result<Option<Event>> {
        if self.pending.is_empty() {
            self.collect()?;
        }
        Ok(self.pending.pop_front())
    }

    /// Reads what has happened. What moved is renamed at once; all else is for later.
    fn collect(&mut self) -> io::Result<()> {
        self.read.clear();
        self.events.read(&mut self.read)?;
        for n in 0..self.read.len() {
            match self.read[n] {
                Event::Moved { from, to, length } => self.rename(from, to, length),
                other => self.pending.push_back(other),
            }
        }
        Ok(())
    }

    fn rename(&mut self, from: usize, to: usize, length: usize) {
        for page in self.within(from, from + length) {
            let old = self.addresses[page as usize];
            let new = old - from + to;
            self.pages.remove(&old);
            self.pages.insert(new, page);
            self.addresses[page as usize] = new;
        }
    }

    /// Does what the kernel refuses while the mappings change: that is over when its event was read.
    fn insist<T>(&mut self, does: impl Fn(&Userfault) -> io::Result<T>) -> io::Result<T> {
        loop {
            match does(&self.events) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.collect()?;
                    std::thread::yield_now();
                }
                other => return other,
            }
        }
    }

    /// Whether the program is giving the page up.
    fn is_going(&self, address: usize) -> bool {
        self.pending
            .iter()
            .any(|event| matches!(*event, Event::Gone { start, end } if (start..end).contains(&address)))
    }

    /// Has the helper take the page out; meanwhile nobody may wait for us.
    fn helped(&mut self, address: usize, content: &mut [u8]) -> io::Result<()> {
        self.helper.write_all(&address.to_ne_bytes())?;
        let mut got = 0;
        while got < content.len() {
            let [answer, happened] = waiting::readable([self.helper.as_fd(), self.events.as_fd()], None)?;
            if happened {
                self.collect()?;
                let own = |event: &Event| *event == Event::Gone { start: address, end: address + PAGE };
                if let Some(n) = self.pending.iter().position(own) {
                    // The helper's own: the program's was looked for before.
                    self.pending.remove(n);
                }
                let thread = self.thread;
                let met = |event: &Event| matches!(*event, Event::Fault { thread: who, .. } if who == thread);
                if let Some(n) = self.pending.iter().position(met) {
                    // The program gave it up meanwhile, and the helper met nothing.
                    self.pending.remove(n);
                    self.insist(|events| events.put_protected(address, &[0; PAGE]))?;
                }
            }
            if answer {
                match self.helper.read(&mut content[got..])? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    read => got += read,
                }
            }
        }
        Ok(())
    }
}

impl Space for Remote {
    fn page_size(&self) -> usize {
        PAGE
    }

    fn take(&mut self, page: u32, content: &mut [u8]) -> io::Result<bool> {
        self.collect()?;
        let address = self.addresses[page as usize];
        if self.is_going(address) {
            return Ok(false);
        }
        match self.insist(|events| events.protect(address, PAGE, true)) {
            Ok(()) => {}
            // Its mapping is gone, or the program is.
            Err(error) if matches!(error.raw_os_error(), Some(ENOENT | ESRCH)) => return Ok(false),
            Err(error) => return Err(error),
        }
        if self.is_going(address) || self.present(address, PAGE)?.is_empty() {
            return Ok(false);
        }
        self.helped(address, content)?;
        Ok(true)
    }

    fn put(&mut self, page: u32, content: Option<&[u8]>) -> io::Result<()> {
        let address = self.addresses[page as usize];
        self.insist(|events| match content {
            Some(content) => events.put(address, content),
            None => events.put_zeroes(address, PAGE),
        })
        .map(drop)
    }
}
