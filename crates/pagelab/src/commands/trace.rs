//! `pagelab trace -- PROGRAM…`: the references of a program, recorded into a file.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use pagelab_live::tracer::{self, Selection, Source, Traced};
use pagelab_reference::trace::recorded::{Ending, Heading, Writer};
use pagelab_report::text;

use crate::context::Context;
use crate::failure::{CommandError, usage};
use crate::interrupt::Interrupt;
use crate::output::remark;

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:
  pagelab trace -- sort words
  pagelab trace -o import.trace -- sqlite3 my.db '.import big.csv t'
  pagelab mrc import.trace                     its miss curve
  pagelab replay import.trace --memory 10%,50% --on model:lru,model:opt
",
    after_help = "The program runs under QEMU's user mode, some ten times slower, with its own input and output. What the kernel \
reads and writes of its memory (a buffer of read(2)) is not seen. Threads and forked processes are recorded; a program \
that it executes is run by the machine itself and is not: trace that one by itself."
)]
pub struct Arguments {
    /// The file to write [default: the program's name and .trace]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(long)]
    force: bool,
    /// What a reference names: pages of 4096 bytes, or lines of 64
    #[arg(long, value_enum, default_value_t = Granularity::Page)]
    granularity: Granularity,
    /// Record loads and stores alone, or instruction fetches alone
    #[arg(long, value_enum)]
    only: Option<Only>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Granularity {
    Page,
    Line,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Only {
    Data,
    Code,
}

/// The kinds in the order of their numbers.
const KINDS: [&str; 3] = ["load", "store", "fetch"];
/// How long the program has between being asked to end and being ended.
const GRACE: Duration = Duration::from_secs(2);
/// Processes that a forked program leaves behind are waited for so long.
const REST: Duration = Duration::from_millis(500);

/// Records.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let unit_shift = match arguments.granularity {
        Granularity::Page => 12,
        Granularity::Line => 6,
    };
    let kinds: u32 = match arguments.only {
        None => 0b111,
        Some(Only::Data) => 0b011,
        Some(Only::Code) => 0b100,
    };
    let program = resolved(&arguments.program)?;
    let (qemu, version) = qemu_for(Path::new(&program[0]))?;
    let tracer = tracer::find_tracer().ok_or_else(|| {
        anyhow!(
            "the tracer, libpagelab_tracer.so, is not beside pagelab: build it (cargo build --release -p pagelab-tracer) \
             or name it (PAGELAB_TRACER)"
        )
    })?;
    let path = match &arguments.output {
        Some(path) => path.clone(),
        None => {
            let name = Path::new(&arguments.program[0]).file_name().unwrap_or_default();
            PathBuf::from(format!("{}.trace", name.to_string_lossy()))
        }
    };
    let file = created(&path, arguments.force)?;
    let heading = Heading {
        program: arguments.program.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        recorder: version.words,
        unit: 1 << unit_shift,
        kinds: (0..3).filter(|kind| kinds & 1 << kind != 0).map(|kind| KINDS[kind].to_owned()).collect(),
        reduced: None,
    };
    let mut recording = Recording {
        writer: Writer::new(BufWriter::with_capacity(1 << 20, file), &heading).context("the trace")?,
        pages: Pages::default(),
    };
    let interrupt = Interrupt::listen().context("the signal handlers cannot be installed")?;
    let begun = Instant::now();
    let selection = Selection { shift: unit_shift, kinds };
    let mut traced = Traced::start(&qemu, version.major, &tracer, &program, selection)
        .with_context(|| format!("{} cannot be started", qemu.display()))?;
    let (status, interrupted) = recording.follow(&mut traced, &interrupt, &path)?;
    if !traced.has_begun() {
        drop(recording);
        let _ = std::fs::remove_file(&path);
        bail!(
            "{} did not load the tracer (its own words stand above): it must be built with plugins, as Debian's qemu-user \
             is",
            qemu.display()
        );
    }
    let unseen = traced.unseen();
    let elapsed = begun.elapsed();
    let pages = recording.pages.all.len();
    let ending = Ending {
        status: words(status),
        unrecorded_threads: unseen.threads,
        unrecorded_programs: unseen.programs,
        ..Ending::default()
    };
    let (ending, bytes) = recording.writer.finish(ending).with_context(|| format!("{}", path.display()))?;
    if !context.quiet {
        summary(&path, &heading, &ending, pages, bytes, elapsed);
    }
    if interrupted {
        return Err(CommandError::Stopped.into());
    }
    Ok(ExitCode::from(status.code().map_or(1, |code| code as u8)))
}

/// The new file at `path`; one that is there is written over with `force` alone.
pub fn created(path: &Path, force: bool) -> Result<File> {
    let mut options = File::options();
    options.write(true);
    let opened = if force {
        options.create(true).truncate(true).open(path)
    } else {
        options.create_new(true).open(path)
    };
    opened.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            usage(format!("{} is there already: --force writes over it, -o names another", path.display()))
        }
        _ => anyhow!(error).context(format!("{} cannot be written", path.display())),
    })
}

/// Says what was recorded.
fn summary(path: &Path, heading: &Heading, ending: &Ending, pages: usize, bytes: u64, elapsed: Duration) {
    let count = |n: u64| text::count(n as f64);
    let units = if heading.unit == 4096 { "pages" } else { "lines of 64 bytes" };
    remark!(
        "{}: {} references to {} {units}, in {} ({} loads, {} stores, {} fetches; {} after {})",
        path.display(),
        count(ending.references()),
        count(pages as u64),
        text::bytes(bytes as f64),
        count(ending.loads),
        count(ending.stores),
        count(ending.fetches),
        ending.status,
        text::duration(elapsed.as_nanos() as f64),
    );
    if ending.threads > 1 {
        remark!("processes: {}; threads: {}, each in its own order", ending.processes, ending.threads);
    }
    if ending.unrecorded_programs > 0 {
        remark!(
            "not in the trace: what it executed, {} in all; QEMU hands other programs to the machine (trace each by itself)",
            match ending.unrecorded_programs {
                1 => "one program".to_owned(),
                number => format!("{number} programs"),
            }
        );
    }
    if ending.unrecorded_threads > 0 {
        remark!("{} threads beyond 256 at a time are not in the trace", ending.unrecorded_threads);
    }
}

/// What goes into the file.
struct Recording {
    writer: Writer<BufWriter<File>>,
    pages: Pages,
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
            let ended = traced.ended().context("the program cannot be waited for")?;
            let seen = traced
                .read(&mut |source, runs| self.write(source, runs))
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

    fn write(&mut self, source: Source, runs: &[u64]) -> std::io::Result<()> {
        let parts = runs.iter().map(|&run| pagelab_live::tracer::parts(run));
        for (page, ..) in parts.clone() {
            self.pages.note(source.process, page);
        }
        self.writer.block(source.process, source.thread, parts)
    }
}

/// The different pages.
struct Pages {
    all: HashSet<(u32, u64)>,
    /// Those noted last, by their lowest bits: most references are to one of them.
    recent: Box<[(u32, u64)]>,
}

impl Default for Pages {
    fn default() -> Self {
        Self { all: HashSet::new(), recent: vec![(0, u64::MAX); 1 << 12].into() }
    }
}

impl Pages {
    #[inline]
    fn note(&mut self, process: u32, page: u64) {
        let recent = &mut self.recent[page as usize & ((1 << 12) - 1)];
        if *recent != (process, page) {
            *recent = (process, page);
            self.all.insert(*recent);
        }
    }
}

/// How a program ended.
fn words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "it is not known how it ended".to_owned(),
    }
}

/// The program's file with its arguments: looked for in PATH, and a script's interpreter before it.
fn resolved(program: &[OsString]) -> Result<Vec<OsString>> {
    let mut words = program.to_vec();
    for _ in 0..4 {
        let file = in_path(Path::new(&words[0]))
            .ok_or_else(|| anyhow!("there is no program '{}'", words[0].to_string_lossy()))?;
        words[0] = file.clone().into();
        let mut head = [0; 256];
        let length = File::open(&file)
            .and_then(|mut opened| opened.read(&mut head))
            .with_context(|| format!("{} cannot be read", file.display()))?;
        let Some(line) = head[..length].strip_prefix(b"#!") else { return Ok(words) };
        let line = line.split(|&b| b == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line).trim().to_owned();
        let (interpreter, argument) =
            line.split_once(' ').map_or((&line[..], None), |(a, b)| (a, Some(b.trim())));
        let before = std::iter::once(interpreter).chain(argument).map(OsString::from);
        words.splice(0..0, before);
        // env executes what it is given, which would not be recorded.
        if interpreter.ends_with("/env") {
            words.remove(0);
        }
    }
    bail!("{}: a script whose interpreter is a script, and so on", program[0].to_string_lossy())
}

fn in_path(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// QEMU's version.
struct Version {
    words: String,
    major: u32,
}

/// The QEMU that runs the program.
fn qemu_for(program: &Path) -> Result<(PathBuf, Version)> {
    let mut head = [0; 20];
    let mut file = File::open(program).with_context(|| format!("{}", program.display()))?;
    let read = file.read(&mut head).with_context(|| format!("{}", program.display()))?;
    let machine = match (read, &head) {
        (20, [0x7f, b'E', b'L', b'F', 2, 1, ..]) => u16::from_le_bytes([head[18], head[19]]),
        _ => bail!("{} is no program of 64 bits (ELF, little-endian)", program.display()),
    };
    let name = match machine {
        62 => "qemu-x86_64",
        183 => "qemu-aarch64",
        243 => "qemu-riscv64",
        other => {
            bail!("{}: programs of its machine (ELF number {other}) cannot be traced", program.display())
        }
    };
    let remedy = format!("{name} is not here: install QEMU's user mode (apt-get install qemu-user)");
    let qemu = in_path(Path::new(name)).ok_or_else(|| anyhow!(remedy))?;
    let output =
        Command::new(&qemu).arg("--version").output().with_context(|| format!("{}", qemu.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let words = text.lines().next().unwrap_or_default().trim().to_owned();
    let number = words.split_whitespace().find_map(|word| word.split('.').next()?.parse().ok());
    Ok((qemu, Version { major: number.unwrap_or(0), words }))
}
