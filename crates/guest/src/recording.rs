//! The references of a guest's load, read from the tracer's ring on a thread of its own and written in pagelab's own format
//! while the machine runs. A file that is not whole in the end is removed; what the file cannot take does not stop the machine.

use pagelab_experiment::environment;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread::JoinHandle;

use pagelab_experiment::build::note;
use pagelab_experiment::observation::Level;
use pagelab_experiment::{Failure, Observation, Recorder, Result};
use pagelab_live::harness::tracer::{self, Reader, Selection};
use pagelab_reference::trace::recorded::{Ending, Heading, Mapping, Writer};

/// Bits of an address below a page's number.
const SHIFT: u32 = 12;
/// Where the kernel's half of the addresses begins, which have 48 bits in a trace.
const KERNEL: u64 = 1 << 47;
/// What Linux has there on x86-64 with four levels of tables (Documentation/arch/x86/x86_64/mm.rst).
const AREAS: [(u64, u64, &str); 6] = [
    (0x8880_0000_0000, 0xc880_0000_0000, "kernel: direct map"),
    (0xc900_0000_0000, 0xe900_0000_0000, "kernel: vmalloc"),
    (0xea00_0000_0000, 0xeb00_0000_0000, "kernel: struct pages"),
    (0xfe00_0000_0000, 0xfe80_0000_0000, "kernel: entry areas"),
    (0xffff_8000_0000, 0xffff_a000_0000, "kernel: text and data"),
    (0xffff_a000_0000, 0xffff_ff00_0000, "kernel: modules"),
];

/// What the thread has when it ends.
struct Written {
    writer: Writer<BufWriter<File>>,
    pages: HashSet<u64>,
}

/// A recording that goes on.
pub struct Recording {
    path: PathBuf,
    ring: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Written>>>,
    whole: bool,
}

impl Recording {
    /// Begins one into a new file at `path`, of a `program` that `recorder` runs.
    ///
    /// # Errors
    /// When the file is there already or cannot be written, or the ring not be made.
    pub fn start(path: &Path, program: Vec<String>, recorder: String) -> Result<Self> {
        let failed = |e: io::Error| Failure::system(format!("beginning the trace {}", path.display()), &e);
        let kinds = ["load", "store", "fetch"].map(str::to_owned).to_vec();
        let heading = Heading { program, recorder, unit: 1 << SHIFT, kinds, reduced: None, window: None };
        let mut reader = Reader::new(Selection { shift: SHIFT, kinds: 0b111 }).map_err(failed)?;
        let file = File::create_new(path).map_err(failed)?;
        let mut new = Self {
            path: path.to_owned(),
            ring: tracer::path(reader.file()),
            stop: Arc::new(AtomicBool::new(false)),
            thread: None,
            whole: false,
        };
        let writer = Writer::new(BufWriter::with_capacity(1 << 20, file), &heading).map_err(failed)?;
        let mut written = Written { writer, pages: HashSet::new() };
        let stop = Arc::clone(&new.stop);
        let thread = std::thread::Builder::new().spawn(move || {
            let mut failed = None;
            loop {
                let over = stop.load(Acquire);
                // Where it cannot be written, it is read all the same: the machine waits for room in the ring.
                let seen = match failed {
                    None => written.read(&mut reader),
                    Some(_) => reader.read(&mut |_, _| Ok(())),
                };
                match seen {
                    Ok(0) if over => return failed.map_or(Ok(written), Err),
                    Ok(_) => {}
                    Err(error) => failed = Some(error),
                }
            }
        });
        new.thread = Some(thread.map_err(failed)?);
        Ok(new)
    }

    /// The ring, as the tracer finds it.
    pub fn ring(&self) -> &str {
        &self.ring
    }

    /// Ends it, once the machine has ended; `maps`: the mappings of the load's process. Says what was recorded.
    ///
    /// # Errors
    /// When it could not be written, or nothing came.
    pub fn finish(mut self, maps: &[(u64, u64, String)], recorder: &mut dyn Recorder) -> Result<()> {
        let failed = |e: io::Error| Failure::system("writing the trace", &e);
        let Written { writer, pages } = self.join().map_err(failed)?;
        if pages.is_empty() {
            return Err(Failure::unsupported(
                "no references were recorded",
                "the tracer needs a QEMU with plugins, such as Debian's",
            ));
        }
        let mut sorted: Vec<u64> = pages.into_iter().collect();
        sorted.sort_unstable();
        let areas = AREAS.iter().map(|&(start, end, name)| (start, end, name.to_owned()));
        let mappings = maps.iter().filter(|map| map.0 < KERNEL).cloned().chain(areas);
        let referenced = mappings.filter(|(start, end, _)| {
            sorted
                .get(sorted.partition_point(|&page| page < start >> SHIFT))
                .is_some_and(|p| p << SHIFT < *end)
        });
        let mappings =
            referenced.map(|(start, end, name)| Mapping { process: 0, start, end, name }).collect();
        let ending = Ending { status: "the load ran".to_owned(), mappings, ..Ending::default() };
        let (ending, bytes) = writer.finish(ending).map_err(failed)?;
        self.whole = true;
        let kernel = sorted.len() - sorted.partition_point(|&page| page < KERNEL >> SHIFT);
        let path = self.path.display().to_string();
        let text = format!(
            "{path}: {} references ({} loads, {} stores, {} fetches) to {} pages, {kernel} of them at the kernel's \
             addresses, in {bytes} bytes",
            ending.references(),
            ending.loads,
            ending.stores,
            ending.fetches,
            sorted.len(),
        );
        note(recorder, Level::Info, text)?;
        recorder.observe(Observation::Environment([(environment::TRACE_FILE.to_owned(), path)].into()))?;
        Ok(())
    }

    fn join(&mut self) -> io::Result<Written> {
        self.stop.store(true, Release);
        let ended = self.thread.take().map(JoinHandle::join);
        ended.and_then(Result::ok).unwrap_or_else(|| Err(io::Error::other("its thread has ended")))
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if !self.whole {
            let _ = self.join();
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Written {
    /// Writes what is ready; how many words.
    fn read(&mut self, reader: &mut Reader) -> io::Result<u64> {
        let Self { writer, pages } = self;
        reader.read(&mut |_, words| {
            let mut last = u64::MAX;
            writer.executed(0, 0, words, |page| {
                if page != last {
                    pages.insert(page);
                    last = page;
                }
            })
        })
    }
}
