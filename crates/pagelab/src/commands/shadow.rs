//! `pagelab shadow`: simulates other memory sizes and policies on the live requests of the page
//! cache, and compares their misses with the kernel's.

use std::ffi::OsString;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use pagelab_analysis::curves::short_names;
use pagelab_counters::views::cachestat::Counts;
use pagelab_experiment::{Size, TargetSpec};
use pagelab_kernel::bpf::page_requests::stream::{Event, Kind, PageStream, file_number};
use pagelab_kernel::hierarchy;
use pagelab_kernel::region::page_size;
use pagelab_reference::trace::recorded::{Ending, Heading, LOAD, RUNS, Run, STORE, Writer};
use pagelab_report::shadow::{change, hit_ratio};
use pagelab_report::text;
use pagelab_simulation::cost;
use pagelab_simulation::live::{Live, Misses, Simulated, pages_within};
use serde_json::{Value, json};

use super::need;
use super::replay::{Replayable, model, model_target};
use crate::context::Context;
use crate::failure::usage;
use crate::interrupt::Interrupt;
use crate::output::{SCHEMA_VERSION, remark, say, sentences};
use crate::stream::frames;
use crate::tracing::created;

/// Time between two reads of the ring.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Time between two reads of the page cache's size, and of the list of cgroups.
const SIZE_INTERVAL: Duration = Duration::from_millis(500);

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:
  sudo pagelab shadow --memory 1G,2G --on lru --on s3-fifo --for 60
  sudo pagelab shadow --memory 512M --on linux-lru --cgroup nginx.service
  sudo pagelab shadow --memory 4G --sample 1/16 --for 600 --json
  sudo pagelab shadow --memory 64M --record files.trace -- tar c src
",
    after_help = "BPF programs send each request of the page cache to pagelab, which needs root and a \
kernel with BTF. pagelab gives the requests to a simulated memory for each policy and size. The kernel's \
misses are its own count in the same period: pages that a request had to wait for, and first requests of \
pages that read-ahead brought in.

The simulated memories start empty and read no page ahead. A page that the kernel had cached before the \
start counts as a hit at its first request. 'linux-lru' simulates the kernel's active and inactive lists, and \
'linux-mglru' its generations (MGLRU), for files that tasks read through descriptors.

The state takes at most --max-memory. Requests of further pages are left out, and a warning states their \
number; --sample 1/N simulates one page of N, with one frame of N. The ring between the kernel and pagelab \
has 16 MiB; requests that find it full are lost, and a warning states their number.

Not in the stream: accesses to mapped pages that cause no fault, writes to cached pages, direct I/O, tmpfs. \
A page that enters the cache by a write occupies the simulated memories, and is no miss. Pages of deleted \
files stay in the simulated memories until the policy evicts them."
)]
pub struct Arguments {
    /// The memory sizes: bytes with K, M, G, or pages with p
    #[arg(long, value_name = "SIZE", num_args = 1.., value_delimiter = ',', required = true)]
    memory: Vec<Size>,
    /// The models, with or without 'model:'
    #[arg(long, value_name = "MODEL", value_parser = model_target, default_values = ["model:lru", "model:s3-fifo"])]
    on: Vec<TargetSpec>,
    /// Only requests of tasks in this memory cgroup (its path, or the last part of it) and those below
    #[arg(long, value_name = "CGROUP")]
    cgroup: Option<String>,
    /// End after this many seconds [default: Ctrl-C ends]
    #[arg(long = "for", value_name = "SECONDS", value_parser = seconds, conflicts_with = "program")]
    period: Option<Duration>,
    /// Simulate one page of N
    #[arg(long, value_name = "1/N", value_parser = share, default_value = "1/1")]
    sample: u32,
    /// The most memory for the simulations [default: 512M, at most a quarter of the available]
    #[arg(long, value_name = "SIZE")]
    max_memory: Option<Size>,
    /// Write the requests to a trace that 'replay' and 'mrc' read
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Overwrite an existing trace
    #[arg(long, requires = "record")]
    force: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Observe until this program ends
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// Parses a number of seconds, with or without `s`.
fn seconds(text: &str) -> Result<Duration, &'static str> {
    let number = text.strip_suffix('s').unwrap_or(text).parse().ok();
    let number = number.filter(|number: &f64| (0.1..=86_400.0).contains(number));
    number.map(Duration::from_secs_f64).ok_or("must be between 0.1 and 86400 seconds")
}

/// Parses the `N` of `1/N`.
fn share(text: &str) -> Result<u32, &'static str> {
    let number = text.strip_prefix("1/").and_then(|number| number.parse().ok());
    number.filter(|number| (1..=1_000_000).contains(number)).ok_or("write 1/N, N between 1 and 1000000")
}

/// The name of a target's model, and its simulation.
fn simulated(target: &TargetSpec) -> Result<(String, Simulated)> {
    match model(target)? {
        (name, Replayable::Policy(kind)) if kind.needs_future() => Err(usage(format!(
            "--on {name}: needs the future, which a live stream does not have\n\
            hint: record it with --record FILE, then: pagelab replay FILE --on {name}"
        ))),
        (name, Replayable::Policy(kind)) => Ok((name, Simulated::Policy(kind))),
        (name, Replayable::System(system)) if system.name == "linux-lru" => Ok((name, Simulated::LinuxLru)),
        (name, Replayable::System(system)) if system.name == "linux-mglru" => {
            Ok((name, Simulated::LinuxMglru))
        }
        (name, Replayable::System(_)) => Err(usage(format!(
            "--on {name}: simulates mapped memory, not the page cache\nhint: use linux-lru, linux-mglru or a policy"
        ))),
    }
}

/// Observes, simulates and prints.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let page = page_size() as u64;
    let sizes: Vec<_> = arguments.memory.iter().copied().map(crate::stream::Memory::Size).collect();
    let sizes = frames(&sizes, page, 1)?;
    let models = arguments.on.iter().map(simulated).collect::<Result<Vec<_>>>()?;
    let short = short_names(&models.iter().map(|(model, _)| model.as_str()).collect::<Vec<_>>());
    let (mut memories, mut runs) = (Vec::new(), Vec::new());
    for &frames in &sizes {
        for ((model, simulated), short) in models.iter().zip(&short) {
            memories.push(Memory { model, short, frames });
            runs.push((simulated.clone(), frames));
        }
    }
    let budget = arguments.max_memory.map_or_else(|| cost::affordable(512 << 20), |size| size.bytes(page));
    cost::allow(budget, "use less --max-memory")?;
    let max_pages = pages_within(budget, runs.len());
    let rate = 1.0 / f64::from(arguments.sample);
    let live = Live::new(&runs, rate, max_pages).map_err(|error| usage(format!("--sample: {error}")))?;
    let group = arguments.cgroup.as_deref().map(group).transpose()?;
    let interrupt = Interrupt::listen().context("cannot install signal handlers")?;
    let stream = PageStream::start(group.as_deref())?;
    let recording = arguments.record.as_deref().map(|path| Recording::new(path, arguments.force));
    let mut observed =
        Observed { stream, live, recording: recording.transpose()?, cached: None, period: Duration::ZERO };
    if !context.quiet && !arguments.json {
        let pages = f64::from(max_pages) * page as f64 * f64::from(arguments.sample);
        remark!(
            "observing with BPF programs on {}; {} of state are enough for {} of different file pages",
            observed.stream.source(),
            text::bytes(budget as f64),
            text::bytes(pages)
        );
    }
    let program = arguments.program.split_first().map(|(name, rest)| started(name, rest)).transpose()?;
    let ended = observed.follow(program, arguments.period, interrupt)?;
    let (counts, unclassified) = observed.stream.counts();
    let result = Outcome { observed: &observed, counts, unclassified, memories, sample: arguments.sample };
    if arguments.json {
        say!("{}", result.object());
    } else {
        result.print(context);
    }
    if let (Some(recording), Some(path)) = (observed.recording.take(), &arguments.record) {
        let references =
            recording.finish().with_context(|| format!("{} cannot be written", path.display()))?;
        if !context.quiet {
            remark!("{}: {} requests", path.display(), text::count(references as f64));
        }
    }
    if let (Some(status), Some(name)) = (ended.filter(|status| !status.success()), arguments.program.first())
    {
        remark!("warning: {} failed ({status}); the figures cover its run", name.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// The directory of a memory cgroup of version 1 or 2.
fn group(name: &str) -> Result<PathBuf> {
    let mount = hierarchy::mount().ok_or_else(|| anyhow!("this machine has no memory controller"))?;
    need::cgroup::below(&mount, name)
}

/// Starts the program.
fn started(name: &OsString, rest: &[OsString]) -> Result<Child> {
    let child = std::process::Command::new(name).args(rest).spawn();
    child.map_err(|error| usage(format!("{} cannot be started: {error}", name.display())))
}

/// Waits a second for the program to end, which a Ctrl-C reaches as well, and then kills it.
fn end(program: &mut Child) -> Result<()> {
    let begun = Instant::now();
    while program.try_wait()?.is_none() {
        if begun.elapsed() > Duration::from_secs(1) {
            program.kill()?;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// The stream of requests and the simulations.
struct Observed {
    stream: PageStream,
    live: Live,
    recording: Option<Recording>,
    /// Minimum and maximum size of the page cache in bytes.
    cached: Option<(u64, u64)>,
    period: Duration,
}

impl Observed {
    /// Reads the stream until the program or the period ends, or a signal arrives. Returns how the
    /// program ended, if it did.
    fn follow(
        &mut self,
        mut program: Option<Child>,
        period: Option<Duration>,
        interrupt: Interrupt,
    ) -> Result<Option<ExitStatus>> {
        let begun = Instant::now();
        let mut next = begun;
        loop {
            // The events before the end belong to the period, so they are read after this check.
            let ended = program.as_mut().map_or(Ok(None), Child::try_wait)?;
            let is_over = ended.is_some()
                || interrupt.requested()
                || period.is_some_and(|period| begun.elapsed() >= period);
            self.take()?;
            if Instant::now() >= next || is_over {
                next = Instant::now() + SIZE_INTERVAL;
                self.stream.update_groups();
                let size = self.stream.cached_bytes();
                let widest = |(least, most): (u64, u64), size: u64| (least.min(size), most.max(size));
                self.cached = size.map(|size| widest(self.cached.unwrap_or((size, size)), size));
            }
            if is_over {
                self.period = begun.elapsed();
                program.as_mut().map_or(Ok(()), end)?;
                return Ok(ended);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Reads the available events.
    fn take(&mut self) -> Result<()> {
        let Self { stream, live, recording, .. } = self;
        let mut written = Ok(());
        stream.drain(|Event { kind, device, inode, pages }| {
            let file = (device, inode);
            if let Some(recording) = recording {
                if recording.file == file {
                    return;
                }
                if written.is_ok() && kind != Kind::Read {
                    written = recording.add(live, file, &pages, kind);
                }
            }
            match kind {
                Kind::Requested => live.request(file, pages),
                Kind::Read => live.read(file, pages),
                Kind::Written => live.write(file, pages),
            }
        });
        written.context("the trace cannot be written")
    }
}

/// The trace of `--record`.
struct Recording {
    writer: Writer<BufWriter<File>>,
    runs: Vec<Run>,
    /// The file of the trace, whose own pages are left out.
    file: (u32, u64),
}

impl Recording {
    fn new(path: &Path, force: bool) -> Result<Self> {
        let file = created(path, force)?;
        let about = file.metadata().with_context(|| format!("{}", path.display()))?;
        let heading = Heading {
            program: vec!["the page cache".to_owned()],
            recorder: "pagelab shadow".to_owned(),
            unit: page_size() as u64,
            kinds: vec!["load".to_owned(), "store".to_owned()],
            reduced: None,
            window: None,
        };
        Ok(Self {
            writer: Writer::new(BufWriter::new(file), &heading).context("the trace")?,
            runs: Vec::new(),
            file: file_number(&about),
        })
    }

    /// Adds the pages of an event.
    fn add(
        &mut self,
        live: &mut Live,
        file: (u32, u64),
        pages: &std::ops::Range<u64>,
        kind: Kind,
    ) -> std::io::Result<()> {
        let kind = if kind == Kind::Written { STORE } else { LOAD };
        for page in live.names(file, pages).unwrap_or_default() {
            self.runs.push((page, kind, 1));
            if self.runs.len() == RUNS {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.runs.is_empty() { Ok(()) } else { self.writer.block(0, 0, self.runs.drain(..)) }
    }

    /// Completes the trace, and returns its number of references.
    fn finish(mut self) -> std::io::Result<u64> {
        self.flush()?;
        let ending = Ending { status: "the end of the period".to_owned(), ..Ending::default() };
        Ok(self.writer.finish(ending)?.0.references())
    }
}

/// A simulated memory.
struct Memory<'a> {
    model: &'a str,
    /// The model without its parameters, if that distinguishes the models.
    short: &'a str,
    frames: u32,
}

impl Memory<'_> {
    fn bytes(&self) -> u64 {
        u64::from(self.frames) * page_size() as u64
    }
}

/// The figures to print.
struct Outcome<'a> {
    observed: &'a Observed,
    counts: Counts,
    unclassified: u64,
    memories: Vec<Memory<'a>>,
    sample: u32,
}

impl Outcome<'_> {
    /// Number of requested pages that the kernel had to read.
    fn kernel(&self) -> u64 {
        self.counts.misses + self.counts.ahead
    }

    /// Each simulated memory with its misses.
    fn rows(&self) -> impl Iterator<Item = (&Memory<'_>, Misses)> {
        self.memories.iter().zip(self.observed.live.misses())
    }

    fn print(&self, context: &Context) {
        let Observed { stream, live, cached, period, .. } = self.observed;
        let counted = live.counted();
        let count = |number: f64| text::count(number.round());
        let held = cached.map_or_else(String::new, |(least, most)| {
            let [least, most] = [least, most].map(|size| text::bytes(size as f64));
            let held = if least == most { most } else { format!("{least} to {most}") };
            format!("; it held {held} of file pages")
        });
        let answer = format!(
            "In {}, the kernel had {} misses for {} requests of pages (hit ratio {}){held}.",
            text::duration(period.as_nanos() as f64),
            count(self.kernel() as f64),
            count(self.counts.requests() as f64),
            hit_ratio(self.kernel() as f64, self.counts.requests() as f64),
        );
        sentences(&answer, "", "  ", &context.style);
        let row = |(memory, misses): (&Memory, Misses)| {
            vec![
                text::bytes(memory.bytes() as f64),
                memory.short.to_owned(),
                count(misses.all),
                hit_ratio(misses.all, counted.requests as f64),
                change(misses.all, self.kernel() as f64),
            ]
        };
        let rows: Vec<_> = self.rows().map(row).collect();
        say!(
            "{}",
            text::table(
                &["memory", "model", "misses", "hit ratio", "compared with the kernel"],
                &rows,
                &context.style
            )
        );
        let (pages, files) = live.size();
        let mut notes = vec![format!(
            "{} of the misses are compulsory: first requests of pages that had to be read. {} first requests \
            found pages that were cached before the start, and count as hits everywhere.",
            count(live.compulsory()),
            count(live.cached_before()),
        )];
        notes.push(match self.sample {
            1 => format!(
                "Every page was simulated: {} pages of {} files.",
                count(pages as f64),
                count(files as f64)
            ),
            sample => format!(
                "Sampled: one page of {sample} was simulated ({} pages, {} requests of them).",
                count(pages as f64),
                count(counted.simulated as f64)
            ),
        });
        notes.push(
            "Not seen: accesses to mapped pages without a fault, writes to cached pages, direct I/O."
                .to_owned(),
        );
        for note in notes {
            sentences(&note, "", "  ", &context.style);
        }
        if stream.dropped() == 0 {
            say!("No request was lost.");
        } else {
            remark!(
                "warning: {} pages of events were lost because the ring was full: the simulations miss them; use \
                fewer models and sizes",
                count(stream.dropped() as f64)
            );
        }
        if counted.left_out > 0 {
            remark!(
                "warning: {} requests of pages were left out because --max-memory was used up: use --sample 1/{} or \
                more memory",
                count(counted.left_out as f64),
                self.sample.saturating_mul(4)
            );
        }
        if self.unclassified > 0 {
            remark!(
                "warning: {} pages are missing in the kernel's count: a BPF map was full, or a request too large",
                count(self.unclassified as f64)
            );
        }
    }

    fn object(&self) -> Value {
        let Observed { stream, live, cached, period, .. } = self.observed;
        let (counted, kernel) = (live.counted(), self.kernel() as f64);
        let row = |(memory, misses): (&Memory, Misses)| {
            json!({
                "model": memory.model, "frames": memory.frames, "memory_bytes": memory.bytes(),
                "misses": misses.all, "miss_ratio": misses.ratio,
                "of_kernel_misses": (kernel > 0.0).then(|| misses.all / kernel),
            })
        };
        json!({
            "schema_version": SCHEMA_VERSION,
            "seconds": period.as_secs_f64(),
            "source": stream.source(),
            "kernel": {
                "hits": self.counts.hits, "misses": self.counts.misses, "ahead": self.counts.ahead,
                "unclassified": self.unclassified,
                "cached_bytes_min": cached.map(|sizes| sizes.0), "cached_bytes_max": cached.map(|sizes| sizes.1),
            },
            "requests": counted.requests,
            "compulsory": live.compulsory(),
            "cached_before": live.cached_before(),
            "sample": self.sample,
            "simulated_pages": live.size().0,
            "lost": stream.dropped(),
            "left_out": counted.left_out,
            "models": self.rows().map(row).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_and_samples_are_read() {
        assert_eq!(seconds("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert!(seconds("0").is_err() && seconds("60m").is_err());
        assert_eq!((share("1/1"), share("1/64")), (Ok(1), Ok(64)));
        assert!(share("64").is_err() && share("1/0").is_err());
    }

    #[test]
    fn models_without_a_page_cache_are_refused() {
        let of = |name: &str| simulated(&model_target(name).unwrap());
        assert_eq!(of("linux-lru").unwrap().1, Simulated::LinuxLru);
        assert_eq!(of("linux-mglru").unwrap().1, Simulated::LinuxMglru);
        assert!(of("s3-fifo").is_ok());
        assert!(of("opt").unwrap_err().to_string().contains("replay FILE --on opt"));
        assert!(of("svr4-two-handed").unwrap_err().to_string().contains("use linux-lru"));
    }
}
