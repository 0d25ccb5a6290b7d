//! A program's references, recorded into a file: what `trace` and `run command` on models do.

mod qemu;

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::BufWriter;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use pagelab_experiment::words;
use pagelab_live::harness::tracer::{self, MAX_WINDOW, Selection, Source, Space, Streams, Traced, Window};
use pagelab_reference::trace::recorded::{self, Ending, Heading, Mapping, Origin, Outside, Writer};

use crate::failure::usage;
use crate::interrupt::Interrupt;

/// The kinds in the order of their numbers.
const KINDS: [&str; 3] = ["load", "store", "fetch"];
/// How long the program has between being asked to end and being ended.
const GRACE: Duration = Duration::from_secs(2);
/// Processes that a forked program leaves behind are waited for so long.
const REST: Duration = Duration::from_millis(500);

/// What is to be recorded.
pub struct Order<'a> {
    /// The program and its arguments, as they were typed.
    pub program: &'a [OsString],
    /// The file to write.
    pub path: &'a Path,
    /// Whether a file that is there is written over.
    pub force: bool,
    /// What a reference names and which are wanted.
    pub selection: Selection,
    /// What the program reads and writes.
    pub streams: Streams,
    /// The window through which it is recorded; `None`: every reference, under QEMU.
    pub window: Option<Window>,
}

/// What was recorded.
pub struct Recorded {
    pub heading: Heading,
    pub ending: Ending,
    /// Different pages, or lines.
    pub units: usize,
    /// Bytes of the file.
    pub bytes: u64,
    pub elapsed: Duration,
    pub status: ExitStatus,
    /// Whether the user ended it.
    pub interrupted: bool,
}

/// Runs the program and records it. Where the user ends it, the file is whole.
///
/// # Errors
/// When the program, QEMU or a library is not there or cannot be started, or the file cannot be
/// written.
pub fn record(order: &Order) -> Result<Recorded> {
    let kinds = order.selection.kinds;
    let program = qemu::resolved(order.program)?;
    let by = match order.window {
        Some(window) => Recorder::through(window, Path::new(&program[0]))?,
        None => Recorder::under_qemu(Path::new(&program[0]))?,
    };
    let path = order.path;
    let file = created(path, order.force)?;
    // The size of a window that grows is known only at the end. Until then the file states the
    // largest size, which is valid for every window.
    let grows = order.window.is_some_and(|window| window.grows);
    // A recording through a window does not distinguish stores from loads.
    let told = |kind: &u32| kinds & 1 << kind != 0 && !(order.window.is_some() && *kind == 1);
    let mut heading = Heading {
        program: words_of(order.program),
        recorder: by.words(),
        unit: 1 << order.selection.shift,
        kinds: (0..3).filter(told).map(|kind| KINDS[kind as usize].to_owned()).collect(),
        reduced: None,
        window: order.window.map(|window| if grows { MAX_WINDOW } else { window.pages }),
    };
    let again = file.try_clone().context("the trace")?;
    let mut recording = Recording {
        writer: Writer::new(BufWriter::with_capacity(1 << 20, file), &heading).context("the trace")?,
        pages: Pages::default(),
        mappings: Mappings::new(),
    };
    let interrupt = Interrupt::listen().context("cannot install signal handlers")?;
    let begun = Instant::now();
    let mut traced = by.start(&program, order)?;
    if traced.has_begun() && traced.refused().is_some() {
        // Otherwise the program would go on without a recorder.
        traced.end(true);
    }
    let (status, interrupted) = recording.follow(&mut traced, &interrupt, path)?;
    if !traced.has_begun() || traced.refused().is_some() {
        drop(recording);
        let _ = std::fs::remove_file(path);
        return Err(by.failed(order.program, &traced, status));
    }
    let unseen = traced.unseen();
    let passage = order.window.map(|_| traced.passage());
    // Each process has at least one thread.
    let more = passage.map_or(0, |passage| (passage.threads as usize).saturating_sub(traced.spaces().len()));
    let elapsed = begun.elapsed();
    let units = recording.pages.all.len();
    let ending = Ending {
        status: words(status),
        unrecorded_threads: unseen.threads,
        unrecorded_programs: unseen.programs,
        threads: (recording.pages.processes() + more) as u64,
        outside: passage.map(|passage| Outside {
            stack_pages: passage.stack_pages,
            other_pages: passage.other_pages,
            kernel_references: passage.by_kernel,
            kernel: !passage.without_kernel,
            emptied: passage.emptied,
        }),
        mappings: recording.referenced_mappings(order.selection.shift),
        streams: traced.spaces().into_iter().map(origin).collect(),
        ..Ending::default()
    };
    let (ending, bytes) = recording.writer.finish(ending).with_context(|| format!("{}", path.display()))?;
    // Anything but a regular file keeps the largest size.
    let is_file = std::fs::symlink_metadata(path).is_ok_and(|about| about.is_file());
    if let (true, true, Some(passage)) = (grows, is_file, passage) {
        let before = heading.clone();
        heading.window = Some(passage.widest);
        recorded::restate(&mut { again }, &before, &heading)
            .with_context(|| format!("{}", path.display()))?;
    }
    Ok(Recorded { heading, ending, units, bytes, elapsed, status, interrupted })
}

/// The recorder of a program.
enum Recorder {
    Qemu { qemu: PathBuf, version: qemu::Version, tracer: PathBuf },
    Window { library: PathBuf, window: Window },
}

impl Recorder {
    fn under_qemu(program: &Path) -> Result<Self> {
        let (qemu, version) = qemu::runs(program)?;
        let tracer = tracer::find_tracer().ok_or_else(|| {
            anyhow!(
                "the tracer, libpagelab_tracer.so, is not next to pagelab\nhint: 'make install' installs \
                both; PAGELAB_TRACER names another place"
            )
        })?;
        Ok(Self::Qemu { qemu, version, tracer })
    }

    fn through(window: Window, program: &Path) -> Result<Self> {
        let library = pagelab_pager::program::library().ok_or_else(|| {
            anyhow!(
                "the library, libpagelab_preload.so, is not next to pagelab\nhint: 'make install' installs \
                both; PAGELAB_PRELOAD names another place"
            )
        })?;
        if pagelab_pager::program::is_static(program) {
            bail!(
                "{} is statically linked and loads no library, which --window needs\nhint: record it without --window",
                program.display()
            );
        }
        Ok(Self::Window { library, window })
    }

    /// Its name in the heading of a trace.
    fn words(&self) -> String {
        match self {
            Self::Qemu { version, .. } => version.words.clone(),
            Self::Window { .. } => "pagelab trace --window".to_owned(),
        }
    }

    fn start(&self, program: &[OsString], order: &Order) -> Result<Traced> {
        let (started, name) = match self {
            Self::Qemu { qemu, version, tracer } => (
                Traced::start(qemu, version.major, tracer, program, order.selection, order.streams),
                qemu.display(),
            ),
            Self::Window { library, window } => (
                Traced::start_through_window(library, program, order.selection, *window, order.streams),
                Path::new(&program[0]).display(),
            ),
        };
        started.with_context(|| format!("{name} cannot be started"))
    }

    /// The error if nothing was recorded.
    fn failed(&self, program: &[OsString], traced: &Traced, status: ExitStatus) -> anyhow::Error {
        let program = program[0].to_string_lossy();
        match (self, traced.refused()) {
            (Self::Qemu { qemu, .. }, _) => {
                anyhow!("{} did not load the tracer; its messages are above", qemu.display())
            }
            (_, Some(refusal)) => anyhow!(
                "{program} cannot be recorded through a window: {refusal}\nhint: record it without --window"
            ),
            _ => anyhow!(
                "{program} does not load the library ({}): it is set-user-ID, or uses another C library\n\
                hint: record it without --window",
                words(status)
            ),
        }
    }
}

/// What is known of an address space.
fn origin(space: Space) -> Origin {
    Origin { process: space.process, program: space.words, ..Origin::default() }
}

/// The processes of a recording that run one program.
pub struct Part {
    /// The program's, without its folder.
    pub name: String,
    pub references: u64,
    pub processes: u64,
}

/// The programs of a recording, that with the most references first.
pub fn by_program(streams: &[Origin]) -> Vec<Part> {
    let mut list: Vec<Part> = Vec::new();
    for stream in streams {
        let path = Path::new(stream.program.first().map_or("?", String::as_str));
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(part) = list.iter_mut().find(|part| part.name == name) {
            part.references += stream.references();
            part.processes += 1;
        } else {
            list.push(Part { name, references: stream.references(), processes: 1 });
        }
    }
    list.sort_by_key(|part| std::cmp::Reverse(part.references));
    list
}

/// The file that a recording of `program` goes to where none is named.
pub fn usual_path(program: &std::ffi::OsStr) -> PathBuf {
    let name = Path::new(program).file_name().unwrap_or_default();
    PathBuf::from(format!("{}.trace", name.to_string_lossy()))
}

/// A program and its arguments as a heading has them.
pub fn words_of(program: &[OsString]) -> Vec<String> {
    program.iter().map(|word| words::escaped(word)).collect()
}

/// The new file at `path`; an existing one is replaced with `force` alone.
pub fn created(path: &Path, force: bool) -> Result<File> {
    crate::file::create(path, force).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            usage(format!("{} exists\nhint: --force replaces it; or name another file", path.display()))
        }
        _ => anyhow!(error).context(format!("{} cannot be written", path.display())),
    })
}

/// What goes into the file.
struct Recording {
    writer: Writer<BufWriter<File>>,
    pages: Pages,
    mappings: Mappings,
}

/// What the processes have mapped, looked at now and then, and when one is about to end or to execute another program: what is
/// mapped and unmapped between two samples has no name.
struct Mappings {
    list: Vec<Mapping>,
    seen: HashSet<Mapping>,
    /// The next look, and the time until the one after it.
    next: Instant,
    pause: Duration,
}

impl Mappings {
    /// Between the first two looks, and between any two at most.
    const PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(200)];
    /// More are not kept.
    const MAX_MAPPINGS: usize = 20_000;

    fn new() -> Self {
        let (list, seen) = (Vec::new(), HashSet::new());
        Self { list, seen, next: Instant::now(), pause: Self::PAUSES[0] }
    }

    /// Looks at all of them where it is time, and at those that wait for it.
    fn update(&mut self, traced: &Traced) {
        let due = Instant::now() >= self.next;
        for space in traced.open(!due) {
            self.update_space(&space);
            traced.looked_at(&space);
        }
        if due {
            self.next = Instant::now() + self.pause;
            self.pause = (self.pause * 3 / 2).min(Self::PAUSES[1]);
        }
    }

    fn update_space(&mut self, space: &Space) {
        if self.list.len() < Self::MAX_MAPPINGS {
            let program = Path::new(space.words.first().map_or("", String::as_str));
            for found in pagelab_kernel::mappings::of(space.process, program) {
                let mapping =
                    Mapping { process: space.image, start: found.start, end: found.end, name: found.name };
                if self.seen.insert(mapping.clone()) {
                    self.list.push(mapping);
                }
            }
        }
    }
}

impl Recording {
    /// Writes until the program and what it has forked have ended; how, and whether the user ended it.
    fn follow(
        &mut self,
        traced: &mut Traced,
        interrupt: &Interrupt,
        path: &Path,
    ) -> Result<(ExitStatus, bool)> {
        let (mut asked, mut over): (Option<Instant>, Option<Instant>) = (None, None);
        loop {
            self.mappings.update(traced);
            let ended = traced.ended().context("cannot wait for the program")?;
            let seen = traced
                .read(&mut |source, words| self.write(source, words))
                .with_context(|| format!("{} cannot be written", path.display()))?;
            if let Some(status) = ended
                && seen == 0
            {
                // What it has forked may go on.
                let since = *over.get_or_insert_with(Instant::now);
                if !traced.is_recorded() || since.elapsed() > REST && asked.is_some() {
                    return Ok((status, asked.is_some()));
                }
            }
            if interrupt.requested() {
                match asked {
                    None => {
                        traced.end(false);
                        asked = Some(Instant::now());
                    }
                    Some(since) if since.elapsed() > GRACE => traced.end(true),
                    Some(_) => {}
                }
            }
        }
    }

    /// The mappings that it references: QEMU's own are not among them.
    fn referenced_mappings(&self, shift: u32) -> Vec<Mapping> {
        let mut units: Vec<(u32, u64)> = self.pages.all.iter().copied().collect();
        units.sort_unstable();
        let referenced = |mapping: &&Mapping| {
            let first = (mapping.process, mapping.start >> shift);
            let found = units.get(units.partition_point(|&unit| unit < first));
            found.is_some_and(|&(process, unit)| process == mapping.process && unit << shift < mapping.end)
        };
        self.mappings.list.iter().filter(referenced).cloned().collect()
    }

    fn write(&mut self, source: Source, words: &[u32]) -> std::io::Result<()> {
        let Self { writer, pages, .. } = self;
        writer.executed(source.image, source.thread, words, |unit| pages.note(source.image, unit))
    }
}

/// Pages that are looked at before all.
const RECENT: usize = 1 << 14;

/// The different pages.
struct Pages {
    all: HashSet<(u32, u64)>,
    /// Those noted last, by their lowest bits, with the process above [`Self::PROCESS`]: most references are to one of them.
    recent: Box<[u64; RECENT]>,
}

impl Default for Pages {
    fn default() -> Self {
        Self { all: HashSet::new(), recent: Box::new([u64::MAX; RECENT]) }
    }
}

impl Pages {
    /// Bits of a unit's number, and the first of a process's.
    const PROCESS: u32 = 48;

    /// Number of processes that have these pages.
    fn processes(&self) -> usize {
        self.all.iter().map(|&(process, _)| process).collect::<HashSet<_>>().len()
    }

    #[inline]
    fn note(&mut self, process: u32, page: u64) {
        let key = u64::from(process) << Self::PROCESS | page;
        let recent = &mut self.recent[page as usize % RECENT];
        if *recent != key {
            *recent = key;
            self.all.insert((process, page));
        }
    }
}

/// How a program ended.
fn words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "unknown end".to_owned(),
    }
}
