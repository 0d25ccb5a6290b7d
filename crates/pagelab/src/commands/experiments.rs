//! The experiments as arguments of `pagelab run`.

use std::path::PathBuf;

use pagelab_experiment::experiments::{
    Access, Child, Clock, Command, Faultscale, Fileread, Forkstorm, Mapping, PagesOf, Paging, Seqread, Touch,
    Vmtest, Work, Workers,
};
use pagelab_experiment::{Experiment, Setting, Size, Sizes};
use pagelab_reference::Pattern;

/// An experiment and its parameters.
#[derive(clap::Subcommand, Debug)]
pub enum ExperimentArguments {
    /// References to one anonymous mapping, each timed (Gorman 2002)
    Mapanon(PagingArguments),
    /// References to one mapping of a file, each timed
    Mapfile(PagingArguments),
    /// Throughput against active virtual memory, and its knees (Irlam 1990)
    Vmtest(VmtestArguments),
    /// Fork, exec and exit as fast as they go (Morton 2002)
    Forkstorm(ForkstormArguments),
    /// Faults, mappings, forks or a build against the number of workers (Dillon 2011)
    Faultscale(FaultscaleArguments),
    /// Random reads of files that fit in memory and do not (McDougall 2005)
    Fileread(FilereadArguments),
    /// Sequential reads against the transfer size (McDougall 2005)
    Seqread(SeqreadArguments),
    /// Whether time is true on this machine (McDougall 2007)
    Clock(ClockArguments),
    /// Any program of yours, under a memory limit or none: command -- PROGRAM ARGUMENTS
    Command(CommandArguments),
}

/// The parameters of mapanon and mapfile.
#[derive(clap::Args, Debug)]
pub struct PagingArguments {
    /// The mapping's size in pages
    #[arg(long, value_name = "N", default_value_t = Paging::default().pages, value_parser = clap::value_parser!(u64).range(1..))]
    pages: u64,
    /// The number of references
    #[arg(long, value_name = "N", default_value_t = Paging::default().references, value_parser = clap::value_parser!(u64).range(1..))]
    references: u64,
    /// The order of references (see: pagelab patterns)
    #[arg(long, value_name = "PATTERN", default_value_t = Paging::default().pattern)]
    pattern: Pattern,
    /// What a reference does: reads its whole page, reads a word, or writes a word
    #[arg(long, value_name = "page|word|write", default_value_t = Paging::default().touch)]
    touch: Touch,
    /// The seed of the pattern
    #[arg(long, value_name = "N", default_value_t = Paging::default().seed)]
    seed: u64,
    /// Touch every page twice, from the last down, before the references start
    #[arg(long)]
    warm: bool,
}

/// The parameters of vmtest.
#[derive(clap::Args, Debug)]
pub struct VmtestArguments {
    /// The segment of one process
    #[arg(long, value_name = "SIZE", default_value_t = Vmtest::default().process_size)]
    process_size: Size,
    /// Times that a process reads its segment, at most
    #[arg(long, value_name = "N", default_value_t = Vmtest::default().passes, value_parser = clap::value_parser!(u64).range(1..))]
    passes: u64,
    /// Seconds for each size, at most
    #[arg(long, value_name = "SECONDS", default_value_t = Vmtest::default().seconds, value_parser = positive)]
    seconds: f64,
    /// Active virtual memory: 1M,4M,16M or LO..HI or LO..HI:N with N points a doubling [default: 16K to twice the limit]
    #[arg(long, value_name = "SIZES")]
    sizes: Option<Sizes>,
    /// Wake-ups of the parent a second
    #[arg(long, value_name = "N", default_value_t = Vmtest::default().switch_rate, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    switch_rate: u32,
    /// The segments: one for all processes, one each that is written, or parts of one file
    #[arg(long, value_name = "shared|private|file", default_value_t = Vmtest::default().mapping)]
    mapping: Mapping,
    /// The pages they are made of
    #[arg(long, value_name = "4k|thp|hugetlb", default_value_t = Vmtest::default().pages_of)]
    pages_of: PagesOf,
    /// Processors that the processes may use
    #[arg(long, value_name = "N", default_value_t = Vmtest::default().cpus, value_parser = clap::value_parser!(u32).range(1..))]
    cpus: u32,
}

/// The parameters of forkstorm.
#[derive(clap::Args, Debug)]
pub struct ForkstormArguments {
    /// Copies that run at once
    #[arg(long, value_name = "N", default_value_t = Forkstorm::default().copies, value_parser = clap::value_parser!(u32).range(1..=4096))]
    copies: u32,
    /// Forks of each copy (with --script: iterations, of five forks each)
    #[arg(long, value_name = "N", default_value_t = Forkstorm::default().forks, value_parser = clap::value_parser!(u32).range(1..))]
    forks: u32,
    /// Pages that a copy has written before it forks
    #[arg(long, value_name = "N", default_value_t = Forkstorm::default().pages)]
    pages: u64,
    /// Pages of those that a child writes
    #[arg(long, value_name = "N", default_value_t = Forkstorm::default().touch)]
    touch: u64,
    /// How a child ends: it exits, or executes a program that exits
    #[arg(long, value_name = "exit|exec", default_value_t = Forkstorm::default().child)]
    child: Child,
    /// Run the published shell script over this file instead of the built-in storm
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
}

/// The parameters of faultscale.
#[derive(clap::Args, Debug)]
pub struct FaultscaleArguments {
    /// What the workers do
    #[arg(long, value_name = "anon|file|map|fork|build", default_value_t = Faultscale::default().work)]
    work: Work,
    /// What the workers are
    #[arg(long = "as", value_name = "threads|processes", default_value_t = Faultscale::default().as_)]
    as_: Workers,
    /// How many workers, one after the other
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', default_value = "1,2,3,4,6,8", value_parser = clap::value_parser!(u32).range(1..=4096))]
    workers: Vec<u32>,
    /// Seconds for each number of workers
    #[arg(long, value_name = "SECONDS", default_value_t = Faultscale::default().seconds, value_parser = positive)]
    seconds: f64,
    /// Pages of a worker's mapping
    #[arg(long, value_name = "N", default_value_t = Faultscale::default().pages, value_parser = clap::value_parser!(u64).range(1..))]
    pages: u64,
    /// build: copies at once
    #[arg(long, value_name = "N", default_value_t = Faultscale::default().copies, value_parser = clap::value_parser!(u32).range(1..=1024))]
    copies: u32,
    /// build: source files to write and compile
    #[arg(long, value_name = "N", default_value_t = Faultscale::default().sources, value_parser = clap::value_parser!(u32).range(1..))]
    sources: u32,
    /// build: a command instead, {jobs} being the number of workers: 'make -j{jobs}'
    #[arg(long, value_name = "COMMAND")]
    cmd: Option<String>,
}

/// The parameters of fileread.
#[derive(clap::Args, Debug)]
pub struct FilereadArguments {
    /// The ways to read
    #[arg(
        long,
        value_name = "pread|mmap|nowait,…",
        value_delimiter = ',',
        default_value = "pread,mmap,nowait"
    )]
    access: Vec<Access>,
    /// Random reads in each case
    #[arg(long, value_name = "N", default_value_t = Fileread::default().reads, value_parser = clap::value_parser!(u64).range(1..))]
    reads: u64,
    /// Bytes of a read
    #[arg(long, value_name = "SIZE", default_value_t = Fileread::default().read)]
    read: Size,
    /// The files: small in memory, large in memory, beyond it [default: an eighth, a half and twice the limit]
    #[arg(long, value_name = "SIZES")]
    sizes: Option<Sizes>,
    /// Seconds for each case, at most
    #[arg(long, value_name = "SECONDS", default_value_t = Fileread::default().seconds, value_parser = positive)]
    seconds: f64,
    /// Reads offered a second [default: as fast as they go]
    #[arg(long, value_name = "N", value_parser = positive)]
    rate: Option<f64>,
    /// The seed of the offsets
    #[arg(long, value_name = "N", default_value_t = Fileread::default().seed)]
    seed: u64,
}

/// The parameters of seqread.
#[derive(clap::Args, Debug)]
pub struct SeqreadArguments {
    /// The file's size
    #[arg(long, value_name = "SIZE", default_value_t = Seqread::default().size)]
    size: Size,
    /// Bytes of a read
    #[arg(long, value_name = "SIZES", default_value_t = Seqread::default().transfers)]
    transfers: Sizes,
    /// Seconds for each transfer size, at most
    #[arg(long, value_name = "SECONDS", default_value_t = Seqread::default().seconds, value_parser = positive)]
    seconds: f64,
}

/// The parameters of clock.
#[derive(clap::Args, Debug)]
pub struct ClockArguments {
    /// The number of steps
    #[arg(long, value_name = "N", default_value_t = Clock::default().steps, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    steps: u32,
    /// The length of a step in ms
    #[arg(long, value_name = "MS", default_value_t = Clock::default().step, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    step: u64,
    /// HOST:PORT where another machine runs: pagelab clock serve
    #[arg(long, value_name = "HOST:PORT")]
    reference: Option<String>,
}

/// The parameters of command.
#[derive(clap::Args, Debug)]
pub struct CommandArguments {
    /// ms between two looks at the program's memory
    #[arg(long, value_name = "MS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    sample: u64,
    /// The memory that the program uses at most: what its swap must hold [default: 256M, of a sweep its greatest size]
    #[arg(long, value_name = "SIZE")]
    most: Option<Size>,
    /// Find the least memory at which the program still runs at full speed
    #[arg(long, value_name = "LO..HI", value_parser = range)]
    pub sweep_memory: Option<(Size, Size)>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0);
    number.ok_or_else(|| format!("'{text}' is no number above 0"))
}

fn range(text: &str) -> Result<(Size, Size), String> {
    match text.parse::<Sizes>().map_err(|e| e.to_string())? {
        Sizes::Range { from, to, .. } => Ok((from, to)),
        Sizes::List(_) => Err("write LO..HI, such as 32M..2G".into()),
    }
}

impl ExperimentArguments {
    /// The experiment; what depends on the memory limit takes that of `setting`.
    pub fn experiment(&self, setting: &Setting) -> Experiment {
        let limit = setting.memory.map(|size| size.bytes(4096));
        match self {
            Self::Mapanon(a) => Experiment::Mapanon(a.paging()),
            Self::Mapfile(a) => Experiment::Mapfile(a.paging()),
            Self::Vmtest(a) => Experiment::Vmtest(Vmtest {
                process_size: a.process_size,
                passes: a.passes,
                seconds: a.seconds,
                sizes: a.sizes.clone().unwrap_or_else(|| Vmtest::sizes_for(limit)),
                switch_rate: a.switch_rate,
                mapping: a.mapping,
                pages_of: a.pages_of,
                cpus: a.cpus,
            }),
            Self::Forkstorm(a) => Experiment::Forkstorm(Forkstorm {
                copies: a.copies,
                forks: a.forks,
                pages: a.pages,
                touch: a.touch,
                child: a.child,
                script: a.script.clone(),
            }),
            Self::Faultscale(a) => Experiment::Faultscale(Faultscale {
                work: a.work,
                as_: a.as_,
                workers: a.workers.clone(),
                seconds: a.seconds,
                pages: a.pages,
                copies: a.copies,
                sources: a.sources,
                cmd: a.cmd.clone(),
            }),
            Self::Fileread(a) => Experiment::Fileread(Fileread {
                access: a.access.clone(),
                reads: a.reads,
                read: a.read,
                sizes: a.sizes.clone().unwrap_or_else(|| Fileread::sizes_for(limit)),
                seconds: a.seconds,
                rate: a.rate,
                seed: a.seed,
            }),
            Self::Seqread(a) => Experiment::Seqread(Seqread {
                size: a.size,
                transfers: a.transfers.clone(),
                seconds: a.seconds,
            }),
            Self::Clock(a) => {
                Experiment::Clock(Clock { steps: a.steps, step: a.step, reference: a.reference.clone() })
            }
            Self::Command(a) => {
                let new = Command::new(a.program.clone());
                let most = a.most.or(a.sweep_memory.map(|(_, most)| most)).unwrap_or(new.most);
                Experiment::Command(Command { sample: a.sample, most, ..new })
            }
        }
    }

    /// The range of memory limits that is to be searched, if one is.
    pub fn sweep(&self) -> Option<(Size, Size)> {
        match self {
            Self::Command(arguments) => arguments.sweep_memory,
            _ => None,
        }
    }
}

impl PagingArguments {
    fn paging(&self) -> Paging {
        Paging {
            pages: self.pages,
            references: self.references,
            pattern: self.pattern.clone(),
            touch: self.touch,
            seed: self.seed,
            warm: self.warm,
        }
    }
}
