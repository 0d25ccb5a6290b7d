//! Restores a machine page by page: QEMU asks for each page when the machine first touches it, and
//! is sent the page from the file that the machine was saved to.
//!
//! QEMU calls this postcopy (`docs/devel/migration.rst`): the machine runs under userfaultfd while
//! its memory is still with the sender. The devices are sent first, then each page on request.
//! Commands and messages are those of QEMU's `migration/savevm.c` and `migration/migration.c`.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::saved::{
    Block, END_OF_SECTION, FOOTER, PAGE, PAGE_SIZE, SECTION_PART, Saved, ZERO, ZEROS, foreign,
};

/// A command within a stream.
pub const COMMAND: u8 = 8;

/// The commands.
const OPEN_RETURN_PATH: u16 = 1;
const POSTCOPY_ADVISE: u16 = 3;
const POSTCOPY_LISTEN: u16 = 4;
pub const POSTCOPY_RUN: u16 = 5;
const POSTCOPY_DISCARD: u16 = 6;
const PACKAGED: u16 = 7;

/// Messages of the receiver.
pub const REQUEST_WITH_BLOCK: u16 = 3;
pub const REQUEST: u16 = 4;

/// Pages sent between two polls for requests.
const BATCH: usize = 1024;

/// The pages that a restored machine touched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Numbers of pages, in the order of their first touch.
    pub pages: Vec<u32>,
    /// When half of them had been touched, after the machine began to run.
    pub half: Duration,
    /// Bytes sent for them: pages of zeros take none.
    pub bytes: u64,
    /// How long they were recorded.
    pub recorded: Duration,
}

/// Restores a machine over `line`, and records the pages that it requests within `first`. After that
/// it sends all others too. Ends when QEMU closes the line.
///
/// # Errors
/// When QEMU requests a page outside the machine, or the file cannot be read.
pub fn serve(saved: &Saved, file: &File, mut line: UnixStream, first: Duration) -> io::Result<Touched> {
    let mut sender = Sender::new(saved, file);
    let (mut times, mut touched) = (Vec::new(), Touched::default());
    let mut ran = Duration::ZERO;
    let served = line.write_all(&beginning(saved)).and_then(|()| {
        let begun = Instant::now();
        let mut requests = Requests::default();
        loop {
            ran = begun.elapsed();
            let left = first.checked_sub(ran).filter(|left| !left.is_zero());
            line.set_read_timeout(Some(match left {
                Some(left) => left,
                // Between two batches, whether there is a request.
                None if sender.has_unsent() => Duration::from_micros(1),
                None => Duration::from_secs(1),
            }))?;
            match requests.read(&mut line) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Ok(1..) => {}
                ended => {
                    ran = begun.elapsed();
                    return ended.map(drop);
                }
            }
            while let Some((block, page)) = requests.next(saved)? {
                let sent = sender.send(block, page, &mut line)?;
                if let (Some(_), Some(bytes)) = (left, sent) {
                    times.push(begun.elapsed());
                    touched.pages.push(saved.blocks[block].first + page);
                    touched.bytes += bytes;
                }
            }
            if left.is_none() {
                sender.send_others(BATCH, &mut line)?;
            }
        }
    });
    match served {
        // QEMU was ended.
        Err(e) if !matches!(e.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => Err(e),
        _ => {
            touched.recorded = ran.min(first);
            touched.half = times.get(times.len() / 2).copied().unwrap_or_default();
            Ok(touched)
        }
    }
}

/// All that comes before the machine runs.
pub fn beginning(saved: &Saved) -> Vec<u8> {
    let mut out = saved.header.clone();
    command(&mut out, OPEN_RETURN_PATH, &[]);
    // The sizes of pages, one bit each, and the size of the guest's pages.
    command(&mut out, POSTCOPY_ADVISE, &[PAGE_SIZE.to_be_bytes(), PAGE_SIZE.to_be_bytes()].concat());
    out.extend(&saved.sizes);
    for block in &saved.blocks {
        // The version, the name with a zero after it, and the range to begin without: all of it.
        let name = [&[0, block.name.len() as u8], &block.name[..], &[0]].concat();
        let bytes = block.places.len() as u64 * PAGE_SIZE;
        command(&mut out, POSTCOPY_DISCARD, &[&name[..], &0u64.to_be_bytes(), &bytes.to_be_bytes()].concat());
    }
    let mut package = Vec::new();
    command(&mut package, POSTCOPY_LISTEN, &[]);
    package.extend(&saved.devices);
    command(&mut package, POSTCOPY_RUN, &[]);
    command(&mut out, PACKAGED, &(package.len() as u32).to_be_bytes());
    out.extend(package);
    out
}

fn command(out: &mut Vec<u8>, number: u16, data: &[u8]) {
    out.push(COMMAND);
    out.extend(number.to_be_bytes());
    out.extend((data.len() as u16).to_be_bytes());
    out.extend(data);
}

/// Sends each page once.
struct Sender<'a> {
    saved: &'a Saved,
    file: &'a File,
    sent: Vec<Vec<bool>>,
    /// Up to this page of this block all are sent.
    next: (usize, usize),
    message: Vec<u8>,
}

impl<'a> Sender<'a> {
    fn new(saved: &'a Saved, file: &'a File) -> Self {
        let sent = saved.blocks.iter().map(|block| vec![false; block.places.len()]).collect();
        Self { saved, file, sent, next: (0, 0), message: Vec::new() }
    }

    /// Sends a page; the bytes of its content, or `None` where it was sent before.
    fn send(&mut self, block: usize, page: u32, to: &mut impl Write) -> io::Result<Option<u64>> {
        let sent = &mut self.sent[block][page as usize];
        if std::mem::replace(sent, true) {
            return Ok(None);
        }
        let Block { name, places, .. } = &self.saved.blocks[block];
        let (address, place) = (u64::from(page) * PAGE_SIZE, places[page as usize]);
        let message = &mut self.message;
        message.clear();
        message.push(SECTION_PART);
        message.extend(self.saved.section.to_be_bytes());
        message.extend((address | if place == ZEROS { ZERO } else { PAGE }).to_be_bytes());
        message.push(name.len() as u8);
        message.extend(name);
        if place == ZEROS {
            message.push(0);
        } else {
            let begin = message.len();
            message.resize(begin + PAGE_SIZE as usize, 0);
            self.file.read_exact_at(&mut message[begin..], place)?;
        }
        message.extend(END_OF_SECTION.to_be_bytes());
        message.push(FOOTER);
        message.extend(self.saved.section.to_be_bytes());
        to.write_all(message)?;
        Ok(Some(if place == ZEROS { 0 } else { PAGE_SIZE }))
    }

    fn has_unsent(&self) -> bool {
        self.next.0 < self.saved.blocks.len()
    }

    /// Sends up to `count` pages that were not sent.
    fn send_others(&mut self, count: usize, to: &mut impl Write) -> io::Result<()> {
        let mut left = count;
        while left > 0 && self.has_unsent() {
            let (block, page) = self.next;
            if page == self.sent[block].len() {
                self.next = (block + 1, 0);
                continue;
            }
            left -= usize::from(self.send(block, page as u32, to)?.is_some());
            self.next.1 += 1;
        }
        Ok(())
    }
}

/// The requests that QEMU has sent.
#[derive(Default)]
struct Requests {
    bytes: Vec<u8>,
    /// Bytes that have been parsed.
    done: usize,
    block: Option<usize>,
    /// Pages of the last request that are left: the block, the first, and the end.
    left: Option<(usize, u32, u32)>,
}

impl Requests {
    /// Reads what has arrived: the number of bytes.
    fn read(&mut self, from: &mut impl Read) -> io::Result<usize> {
        self.bytes.drain(..std::mem::take(&mut self.done));
        let mut some = [0; 4096];
        let count = from.read(&mut some)?;
        self.bytes.extend(&some[..count]);
        Ok(count)
    }

    /// The next requested page.
    fn next(&mut self, saved: &Saved) -> io::Result<Option<(usize, u32)>> {
        loop {
            if let Some((block, page, end)) = self.left.take_if(|(_, page, end)| page < end) {
                self.left = Some((block, page + 1, end));
                return Ok(Some((block, page)));
            }
            let bytes = &self.bytes[self.done..];
            let Some((head, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
            let (kind, length) =
                (u16::from_be_bytes([head[0], head[1]]), usize::from(u16::from_be_bytes([head[2], head[3]])));
            let Some(data) = rest.get(..length) else { return Ok(None) };
            self.done += 4 + length;
            if matches!(kind, REQUEST | REQUEST_WITH_BLOCK) {
                let wrong = || foreign("no page that QEMU asks for");
                let (start, data) = data.split_first_chunk::<8>().ok_or_else(wrong)?;
                let (bytes, name) = data.split_first_chunk::<4>().ok_or_else(wrong)?;
                if kind == REQUEST_WITH_BLOCK {
                    let name = name.get(1..).unwrap_or_default();
                    self.block = saved.blocks.iter().position(|block| block.name == name);
                }
                let block = self.block.ok_or_else(wrong)?;
                let (start, bytes) = (u64::from_be_bytes(*start), u64::from(u32::from_be_bytes(*bytes)));
                let end = start.checked_add(bytes).ok_or_else(wrong)?.div_ceil(PAGE_SIZE);
                if end > saved.blocks[block].places.len() as u64 {
                    return Err(wrong());
                }
                self.left = Some((block, (start / PAGE_SIZE) as u32, end as u32));
            }
        }
    }
}
