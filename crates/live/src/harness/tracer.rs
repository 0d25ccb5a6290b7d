//! Runs a program under QEMU's user mode and reads the references that its translator saw, or runs
//! it without QEMU and reads the references that a window of its pages lets through.
//!
//! QEMU loads pagelab's tracer (crates/live/tracer) as a plugin, which writes each thread's
//! references into a ring of its own in a mapping without a file ([`pagelab_ring`]); this side
//! reads them while the program runs. Plugin and mapping are handed over as descriptors of this
//! process, so nothing is left of them whatever ends first. Through a window the program's loader
//! loads pagelab's library (crates/live/preload), which writes into the same mapping.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use pagelab_kernel::spawn;
use pagelab_ring::{
    BUFFERS, BYTES, CLOSED, FREE, Header, IMAGES, Image, LAYOUT, OPEN, RINGS, SLOTS, Slot, TABLE, WORDS,
    refusals, words,
};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::harness::library;

pub use pagelab_ring::{MAX_WINDOW, MIN_WINDOW, SLOWDOWN};

/// What stands behind the version in the plugin's data.
const MARK: &[u8] = b"pagelab's tracer";
/// The version of the plugin interface: for QEMU before 9, and for 9 and later. The first was tried
/// with 7.2, the second not.
const VERSIONS: [i32; 2] = [1, 2];
/// How long to wait for references when there are none.
const IDLE: Duration = Duration::from_micros(200);

/// Which thread references come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// The number of its address space, from 0: a process that was forked and a program that was
    /// executed have others.
    pub image: u32,
    /// The thread's within it, from 0; the number of an ended one may come again.
    pub thread: u32,
}

/// Takes words of one thread, a buffer's or the beginning of one ([`pagelab_ring::words`]); what it
/// returns ends the reading.
pub type Sink<'a, E> = dyn FnMut(Source, &[u32]) -> Result<(), E> + 'a;

/// What is to be recorded.
#[derive(Clone, Copy, Debug)]
pub struct Selection {
    /// Bits of an address that name nothing: 12 for pages of 4096 bytes.
    pub shift: u32,
    /// 1 << [`pagelab_ring::words::LOAD`] and the like.
    pub kinds: u32,
}

/// The pages of a program that are accessible without a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Number of pages, [`MIN_WINDOW`] to [`MAX_WINDOW`].
    pub pages: u32,
    /// Whether it grows until the program is no more than [`SLOWDOWN`] times slower.
    pub grows: bool,
}

/// How a recording through a window went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passage {
    /// The largest window of any of the programs.
    pub widest: u32,
    /// Threads whose references were recorded.
    pub threads: u32,
    /// References that the kernel made for the program.
    pub by_kernel: u64,
    /// Whether references of the kernel are missing.
    pub without_kernel: bool,
    /// Pages of stacks, and other pages, that are not in the window.
    pub stack_pages: u64,
    /// See above.
    pub other_pages: u64,
    /// How often all pages were hidden, because references may have been missed or the window grew.
    pub emptied: u64,
}

/// What a recorded program reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// The caller's.
    Own,
    /// Nothing, as of a program that is measured; what it writes to standard error is passed on.
    Nothing,
}

/// An address space: the program's, that of a process that was forked, or of a program that was
/// executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Its number, from 0.
    pub image: u32,
    /// The process.
    pub process: u32,
    /// The program and its arguments, the latter cut where they are long.
    pub words: Vec<String>,
}

/// Sums that the tracer keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unseen {
    /// Threads beyond [`SLOTS`] at a time, and those of processes beyond [`IMAGES`], which were not
    /// recorded.
    pub threads: u32,
    /// Programs that were executed and are not recorded: the tracer's module `programs` says which.
    pub programs: u32,
}

/// The mapping.
#[derive(Debug)]
struct Ring {
    base: *mut u8,
    file: File,
}

// SAFETY: what lies in the mapping is atomic, and handed over by what is.
unsafe impl Send for Ring {}

impl Ring {
    fn new(selection: Selection) -> io::Result<Self> {
        let file = File::from(memfd_create("pagelab's references", MemfdFlags::CLOEXEC)?);
        file.set_len(BYTES as u64)?;
        let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::NORESERVE);
        // SAFETY: a new mapping of a file that is as long as it; it is unmapped when this is dropped.
        let base = unsafe { mmap(std::ptr::null_mut(), BYTES, rights, flags, &file, 0)? };
        let ring = Self { base: base.cast(), file };
        let header = ring.header();
        header.shift.store(selection.shift, Relaxed);
        header.kinds.store(selection.kinds, Relaxed);
        header.reader.store(std::process::id(), Relaxed);
        header.layout.store(LAYOUT, Release);
        Ok(ring)
    }

    fn header(&self) -> &Header {
        // SAFETY: the mapping lives as long as this, begins with a header, and was zero.
        unsafe { &*self.base.cast::<Header>() }
    }

    fn slots(&self) -> &[Slot; SLOTS] {
        // SAFETY: as for the header, behind which they lie, aligned alike.
        unsafe { &*self.base.add(size_of::<Header>()).cast::<[Slot; SLOTS]>() }
    }

    fn images(&self) -> &[Image; IMAGES] {
        // SAFETY: as for the slots, behind which they lie, aligned alike.
        unsafe { &*self.base.add(TABLE).cast::<[Image; IMAGES]>() }
    }

    /// What is known of an address space.
    fn space(&self, number: u32) -> Space {
        let mut space = Space { image: number, ..Space::default() };
        let Some(image) = self.images().get(number as usize) else { return space };
        space.process = image.process.load(Relaxed);
        let (mut named, mut parent) = (image, image.parent.load(Relaxed));
        // A forked one was begun after the one that it was forked from.
        while let Some(before) = parent.checked_sub(1).filter(|&before| before < number) {
            named = &self.images()[before as usize];
            parent = named.parent.load(Relaxed).min(parent - 1);
        }
        let length = named.length.load(Acquire) as usize;
        let bytes: Vec<u8> = named.words.iter().take(length).map(|cell| cell.load(Relaxed)).collect();
        let words = bytes.split(|&byte| byte == 0).filter(|_| length > 0);
        space.words = words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        space
    }

    /// Copies the words of buffer `filled` of slot `number`, so many.
    fn copy(&self, number: usize, filled: u64, count: usize, words: &mut Vec<u32>) {
        let at = (number * BUFFERS + filled as usize % BUFFERS) * WORDS;
        // SAFETY: `number` is below SLOTS and `count` no more than WORDS: it lies in the mapping.
        let shared = unsafe {
            std::slice::from_raw_parts(self.base.add(RINGS).cast::<AtomicU32>().add(at), count.min(WORDS))
        };
        words.clear();
        words.extend(shared.iter().map(|word| word.load(Relaxed)));
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: nothing borrows from it any more.
        let _ = unsafe { munmap(self.base.cast(), BYTES) };
    }
}

/// The reading side of a ring.
#[derive(Debug)]
pub struct Reader {
    ring: Ring,
    words: Vec<u32>,
}

impl Reader {
    /// Of a new ring.
    ///
    /// # Errors
    /// When the system refuses the mapping.
    pub fn new(selection: Selection) -> io::Result<Self> {
        Ok(Self { ring: Ring::new(selection)?, words: Vec::with_capacity(WORDS) })
    }

    /// The ring's file, for the tracer.
    pub fn file(&self) -> &File {
        &self.ring.file
    }

    /// Gives all words that are ready, of one thread at a time in its order; how many. Waits a
    /// little when there are none.
    ///
    /// # Errors
    /// What `each` returns.
    pub fn read<E>(&mut self, each: &mut Sink<'_, E>) -> Result<u64, E> {
        let mut seen = 0;
        for number in 0..SLOTS {
            seen += self.read_slot(number, each)?;
        }
        if seen == 0 {
            std::thread::sleep(IDLE);
        }
        Ok(seen)
    }

    fn read_slot<E>(&mut self, number: usize, each: &mut Sink<'_, E>) -> Result<u64, E> {
        let slot = &self.ring.slots()[number];
        let state = slot.state.load(Acquire);
        let process = slot.process.load(Acquire);
        if state == FREE || process == 0 {
            return Ok(0);
        }
        let (mut read, mut seen) = (slot.read.load(Relaxed), 0);
        // Looked at before what it has left: a process that is gone writes no more. That is a file
        // of /proc's to read, for which there is time where no buffer is full.
        let over = state == CLOSED || (read == slot.filled.load(Acquire) && is_gone(process));
        let source = Source { image: slot.image.load(Relaxed), thread: slot.thread.load(Relaxed) };
        // No more than there are now: who is called back has other things to look at meanwhile.
        let filled = slot.filled.load(Acquire);
        while read < filled {
            let count = slot.words[read as usize % BUFFERS].load(Relaxed);
            self.ring.copy(number, read, count as usize, &mut self.words);
            read += 1;
            slot.read.store(read, Release);
            seen += self.words.len() as u64;
            each(source, &self.words)?;
        }
        if over {
            let going = slot.going.load(Acquire);
            self.ring.copy(number, read, slot.used.load(Acquire) as usize, &mut self.words);
            self.words.extend((going > 0).then(|| words::go(going as u32)));
            seen += self.words.len() as u64;
            slot.process.store(0, Relaxed);
            slot.state.store(FREE, Release);
            if !self.words.is_empty() {
                each(source, &self.words)?;
            }
        }
        Ok(seen)
    }
}

/// A program that is being recorded; killed and waited for when dropped.
#[derive(Debug)]
pub struct Traced {
    reader: Reader,
    /// Opened by name, also by programs that are executed.
    _plugin: Option<File>,
    child: Child,
    ended: Option<ExitStatus>,
}

impl Traced {
    /// Starts `program` under `qemu` with the tracer at `tracer`. It dies with the calling thread.
    ///
    /// # Errors
    /// When the tracer cannot be read, or the system refuses the mapping or the start.
    pub fn start(
        qemu: &Path,
        major: u32,
        tracer: &Path,
        program: &[OsString],
        selection: Selection,
        streams: Streams,
    ) -> io::Result<Self> {
        let plugin = plugin(tracer, major)?;
        let reader = Reader::new(selection)?;
        let mut command = Command::new(qemu);
        command.arg("-plugin").arg(format!("{},ring={}", path(&plugin), path(reader.file())));
        command.arg("-0").args(program.first()).args(program);
        Self::begin(command, reader, Some(plugin), streams)
    }

    /// Starts `program` with `library`, which records it through a window. The program dies with
    /// the calling thread.
    ///
    /// # Errors
    /// When the system refuses the mapping or the start.
    pub fn start_through_window(
        library: &Path,
        program: &[OsString],
        selection: Selection,
        window: Window,
        streams: Streams,
    ) -> io::Result<Self> {
        let reader = Reader::new(selection)?;
        let header = &reader.ring.header().window;
        header.pages.store(window.pages, Relaxed);
        header.grows.store(window.grows.into(), Release);
        let (first, rest) = program.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(first);
        let mut libraries = library.as_os_str().to_owned();
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            libraries.push(":");
            libraries.push(others);
        }
        command.args(rest).env("LD_PRELOAD", libraries).env("PAGELAB_WINDOW", path(reader.file()));
        Self::begin(command, reader, None, streams)
    }

    fn begin(
        mut command: Command,
        reader: Reader,
        plugin: Option<File>,
        streams: Streams,
    ) -> io::Result<Self> {
        if streams == Streams::Nothing {
            command.stdin(Stdio::null()).stdout(Stdio::null());
        }
        spawn::dies_with_caller(&mut command);
        let mut child = command.spawn()?;
        while reader.ring.header().begun.load(Acquire) == 0 && child.try_wait()?.is_none() {
            std::thread::sleep(IDLE);
        }
        Ok(Self { reader, _plugin: plugin, child, ended: None })
    }

    /// Why the program, or one that it executed, could not be recorded through a window; `None` if
    /// it could.
    pub fn refused(&self) -> Option<&'static str> {
        match self.reader.ring.header().window.refused.load(Acquire) {
            0 => None,
            refusals::MAPPINGS => Some("the kernel does not report mappings (PROCMAP_QUERY, Linux 6.11)"),
            refusals::USERFAULT => {
                Some("the kernel has no userfaultfd for all memory (UFFD_FEATURE_WP_ASYNC, Linux 6.7)")
            }
            refusals::EVENTS => {
                Some("the kernel does not record its page faults (see kernel.perf_event_paranoid)")
            }
            _ => Some("the system lacks memory, or the recording lacks room for another program"),
        }
    }

    /// How a recording through a window went.
    pub fn passage(&self) -> Passage {
        let window = &self.reader.ring.header().window;
        Passage {
            widest: window.widest.load(Acquire),
            threads: window.threads.load(Relaxed),
            by_kernel: window.by_kernel.load(Relaxed),
            without_kernel: window.without_kernel.load(Relaxed) != 0,
            stack_pages: window.stack_pages.load(Relaxed),
            other_pages: window.other_pages.load(Relaxed),
            emptied: window.emptied.load(Relaxed),
        }
    }

    /// Whether the tracer was loaded.
    pub fn has_begun(&self) -> bool {
        self.reader.ring.header().begun.load(Acquire) != 0
    }

    /// Gives what is ready, as [`Reader::read`].
    ///
    /// # Errors
    /// What `each` returns.
    pub fn read<E>(&mut self, each: &mut Sink<'_, E>) -> Result<u64, E> {
        self.reader.read(each)
    }

    /// How the program ended, if it has.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait()?;
        }
        Ok(self.ended)
    }

    /// Whether a thread of it, or of a process that it has forked, is still recorded.
    pub fn is_recorded(&self) -> bool {
        self.reader.ring.slots().iter().any(|slot| slot.state.load(Acquire) == OPEN)
    }

    /// The address spaces that are recorded now, but for those whose process is about to execute
    /// another program; with `waiting`, only those whose process waits until what it has mapped was
    /// looked at.
    pub fn open(&self, waiting: bool) -> Vec<Space> {
        let ring = &self.reader.ring;
        let wanted = |number: &u32| {
            ring.images().get(*number as usize).is_some_and(|image| {
                image.leaving.load(Acquire) == 0 && (!waiting || image.waiting.load(Acquire) != 0)
            })
        };
        let open = |slot: &&Slot| slot.state.load(Acquire) == OPEN && slot.process.load(Acquire) != 0;
        let numbers = ring.slots().iter().filter(open).map(|slot| slot.image.load(Relaxed));
        let mut list: Vec<u32> = numbers.filter(wanted).collect();
        list.sort_unstable();
        list.dedup();
        list.into_iter().map(|number| ring.space(number)).collect()
    }

    /// What the process of this address space has mapped was looked at: it need not wait.
    pub fn looked_at(&self, space: &Space) {
        if let Some(image) = self.reader.ring.images().get(space.image as usize) {
            image.waiting.store(0, Release);
        }
    }

    /// All address spaces so far.
    pub fn spaces(&self) -> Vec<Space> {
        let count = self.reader.ring.header().images.load(Acquire).min(IMAGES as u32);
        (0..count).map(|number| self.reader.ring.space(number)).collect()
    }

    /// Asks the program to end, or, the second time, ends it.
    pub fn end(&mut self, at_once: bool) {
        let signal = if at_once { libc::SIGKILL } else { libc::SIGTERM };
        if matches!(self.ended(), Ok(None)) {
            // SAFETY: our own child, which was not waited for yet.
            unsafe { libc::kill(self.child.id().cast_signed(), signal) };
        }
    }

    /// What was not recorded.
    pub fn unseen(&self) -> Unseen {
        let header = self.reader.ring.header();
        Unseen { threads: header.lost.load(Relaxed), programs: header.executed.load(Relaxed) }
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        if matches!(self.ended(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The tracer for a QEMU of this major version, as a file that is gone with this process.
///
/// # Errors
/// When the tracer cannot be read, or is none.
pub fn plugin(tracer: &Path, major: u32) -> io::Result<File> {
    let plugin = File::from(memfd_create("pagelab's tracer", MemfdFlags::CLOEXEC)?);
    (&plugin).write_all(&for_version(fs::read(tracer)?, VERSIONS[usize::from(major >= 9)])?)?;
    Ok(plugin)
}

/// Under which path other processes find a file of this one.
pub fn path(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

/// Whether a process has ended, as one that nobody has waited for yet has too.
fn is_gone(process: u32) -> bool {
    match fs::read_to_string(format!("/proc/{process}/stat")) {
        Ok(text) => text.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X'])),
        Err(_) => true,
    }
}

/// The plugin's file for a version of the interface.
fn for_version(mut plugin: Vec<u8>, version: i32) -> io::Result<Vec<u8>> {
    let at = plugin.windows(MARK.len()).position(|bytes| bytes == MARK).filter(|&at| at >= 4);
    let at = at.ok_or_else(|| io::Error::other("it is not the tracer of pagelab"))?;
    plugin[at - 4..at].copy_from_slice(&version.to_ne_bytes());
    Ok(plugin)
}

/// Where the tracer is.
pub fn find_tracer() -> Option<PathBuf> {
    library::find("PAGELAB_TRACER", "libpagelab_tracer.so")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_stands_before_the_mark() {
        let plugin = [b"....\x01\0\0\0".as_slice(), MARK, b"..."].concat();
        assert_eq!(for_version(plugin, 2).unwrap()[4..8], 2i32.to_ne_bytes());
        assert!(for_version(b"another library".to_vec(), 2).is_err());
    }

    #[test]
    fn what_is_gone() {
        assert!(!is_gone(std::process::id()));
        let mut child = Command::new("true").spawn().unwrap();
        std::thread::sleep(Duration::from_millis(200));
        assert!(is_gone(child.id()), "not waited for");
        child.wait().unwrap();
        assert!(is_gone(child.id()));
    }
}
