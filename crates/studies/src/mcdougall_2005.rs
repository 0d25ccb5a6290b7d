//! McDougall 2005: the Solaris page cache. Reading a file through segmap and segkpm; free list,
//! cache list and scanner before and after the cyclic page cache.

mod shown;

use std::sync::{Mutex, PoisonError};

use pagelab_analysis::figure::{Axis, BarRow, Bars, Column, Plot, Series, Table};
use pagelab_experiment::experiments::{Access, Fileread};
use pagelab_experiment::{Experiment, Run, Size, Sizes, tables};
use pagelab_model::pagecache::parameters::COSTS;
use pagelab_model::pagecache::path::random_reads;
use pagelab_model::pagecache::segment::{Full, by_scanner, from_cache_list};
use pagelab_model::pagecache::transfer::Disk;
use pagelab_model::pagecache::{Costs, Load, Path, Rates, Release, Shares, memory};
use pagelab_model::parameter::{Declared, Parameter as Declaration, Parts, SEED, Seed};
use pagelab_model::parameter_table;
use pagelab_model::systems::two_handed::{Scanner, Tunables};
use pagelab_simulation::spread::each;

use crate::book::{At, ModelFigure};
use crate::error::StudyError;
use crate::here::{self, Live, at};
use crate::options::{Answers, Options, Shown};
use crate::published::{Sheet, sheet};
use crate::study::{Parameter, columns, facts, study_plot};
use shown::{cells_bars, here, parameter_list, processors, server, start, transfers};

const NAME: &str = "mcdougall-2005";
pub(crate) const PUBLISHED: Sheet = sheet!("mcdougall-fileread.csv");

pub(crate) const IOSTAT: Sheet = sheet!("mcdougall-iostat.csv");
pub(crate) const PRSTAT: Sheet = sheet!("mcdougall-prstat.csv");
pub(crate) const VMSTAT: Sheet = sheet!("mcdougall-vmstat.csv");

/// The machine of the read test, in pages of 8 KiB and a sixteenth of its size: 4 GB with windows
/// of 64 MB.
#[derive(Clone, Copy)]
struct Reading {
    frames: u32,
    windows: u32,
    processors: u32,
}

const READING: Reading = Reading { frames: 32_768, windows: 512, processors: 2 };
const READS: u64 = 200_000;

const READING_PARAMETERS: &[Declaration<Reading>] = parameter_table! {
    whole "processors" "" [1.0, 1024.0] "CPUs of the test machine", assumed("not published"), (processors);
    whole "frames" "pages" [8192.0, 262144.0] "memory of the read test, in pages of 8 KiB",
        assumed("a sixteenth of 4 GB; the windows are a sixteenth, too"), (frames);
    whole "windows" "pages" [16.0, 4096.0] "segmap windows in the read test",
        documented("SEGMAPDEFAULT on x64, 64 MB, divided by 16; 12% of free memory on SPARC"), (windows);
};

/// The machine on which a program with a large segment starts, and the disk that is read in order.
#[derive(Clone, Copy)]
struct Machine {
    /// GB of files in 64 GB of memory.
    files: f64,
    /// GB per second.
    zeroed: f64,
    /// MiB per second.
    fastscan: f64,
    /// Seconds per rotation of the disk.
    turn: f64,
}

const MACHINE: Machine = Machine { files: 54.0, zeroed: 1.0, fastscan: 64.0, turn: 60.0 / 7200.0 };

const MACHINE_PARAMETERS: &[Declaration<Machine>] = parameter_table! {
    number "files" "GB" [0.0, 62.0] "files in the 64 GB before the program starts",
        assumed("files fill the memory left by programs and the kernel"), (files);
    number "zeroed" "GB/s" [0.01, 100.0] "zeroing rate of a CPU",
        assumed("block stores of one CPU of the time"), (zeroed);
    number "fastscan" "MiB/s" [1.0, 4096.0] "scan rate (fastscan) before sampling", documented("OpenSolaris vm_pageout.c"), (fastscan);
    number "turn" "s" [0.001, 0.04] "rotation of the disk", assumed("7,200 rpm"), (turn);
};

/// A file server that also runs applications.
const SERVER_PARAMETERS: &[Declaration<Load>] = parameter_table! {
    whole "server-frames" "pages" [16384.0, 262144.0] "memory of the file server, in pages of 8 KiB",
        assumed("512 MB; not published"), (frames);
    whole "server-reads" "/s" [4.0, 20000.0] "reads of the file server", assumed("not published"), (reads);
    whole "server-anonymous" "pages" [0.0, 200000.0] "memory of its applications, in pages of 8 KiB",
        assumed("a third of memory; not published"), (anonymous);
};

/// The inputs of the model.
struct Given {
    costs: Costs,
    reading: Reading,
    machine: Machine,
    server: Load,
    seed: Seed,
}

impl Given {
    fn usual(options: &Options, cells: &[(String, [f64; 2])]) -> Self {
        let seed = Seed(options.seed);
        Self { costs: costs(cells), reading: READING, machine: MACHINE, server: LOAD, seed }
    }

    fn parts(&mut self) -> Parts<'_> {
        Parts::default()
            .and(COSTS, &mut self.costs)
            .and(READING_PARAMETERS, &mut self.reading)
            .and(MACHINE_PARAMETERS, &mut self.machine)
            .and(SERVER_PARAMETERS, &mut self.server)
            .and(SEED, &mut self.seed)
            // The rotation time of the disk affects only a chart.
            .without(&["turn"])
    }

    /// The inputs with the options' change.
    fn by(options: &Options, cells: &[(String, [f64; 2])]) -> Self {
        let mut given = Self::usual(options, cells);
        options.apply(given.parts());
        given.server.fastscan = (given.machine.fastscan * MB / f64::from(LOAD.page)) as u32;
        given
    }
}

pub(crate) fn parameters(options: &Options) -> Result<Vec<Declared>, StudyError> {
    Ok(Given::usual(options, &published()?).parts().declared())
}

const MB: f64 = 1048576.0;
const GB: u64 = 1 << 30;
const PAGE: u64 = 8192;

/// Case, µs on Solaris 8, µs on Solaris 10.
fn published() -> Result<Vec<(String, [f64; 2])>, StudyError> {
    let cells: Vec<(String, [f64; 2])> = PUBLISHED.rows()?;
    for case in ["small-in-memory", "large-in-memory", "large-non-cached"] {
        if !cells.iter().any(|(name, _)| name == case) {
            return Err(PUBLISHED.wrong(format!("no row of {case}")));
        }
    }
    Ok(cells)
}

fn cell(cells: &[(String, [f64; 2])], case: &str, release: usize) -> f64 {
    cells.iter().find(|(name, _)| name == case).map_or(f64::NAN, |(_, figures)| figures[release])
}

/// The costs of the parts, from four of the six cells: what one case has more than another. The
/// other two are held out: Solaris 10's smallest, whose call is Solaris 8's, and its largest.
fn costs(cells: &[(String, [f64; 2])]) -> Costs {
    let [small, large, missed] = CASES.map(|case| cell(cells, case, 0));
    let large_10 = cell(cells, CASES[1], 1);
    Costs {
        call: small,
        reclaim: large_10 - small,
        map: large - large_10 - Costs::SOLARIS.cross_call * f64::from(READING.processors - 1),
        input: missed - large,
        ..Costs::SOLARIS
    }
}

const CASES: [&str; 3] = ["small-in-memory", "large-in-memory", "large-non-cached"];

/// What the claims are answered from.
struct Model {
    /// The parameters with their values.
    declared: Vec<Declared>,
    machine: Machine,
    server: Load,
    cells: Vec<(String, [f64; 2])>,
    /// Where the reads of each case find their page.
    shares: [Shares; 3],
    /// By release: µs of a read of each case.
    reads: [[f64; 3]; 2],
    /// Seconds to start with 50 GB, before and after.
    start: [f64; 2],
    /// The file server before, with priority paging and after, and a shortage after.
    servers: Vec<Rates>,
    /// The disk that is read in order.
    disk: Disk,
}

fn model(options: &Options) -> Result<Model, StudyError> {
    let cells = published()?;
    let mut given = Given::by(options, &cells);
    let declared = given.parts().declared();
    let Given { costs, reading, machine, server, seed: Seed(seed) } = given;
    let Reading { frames, windows, processors } = reading;
    let shares = [windows / 2, frames / 4 * 3, frames * 10]
        .map(|file| random_reads(file, windows, frames, READS, seed));
    let reads = [Path::Segmap, Path::Kpm].map(|path| {
        let mut costs = costs;
        if options.without("free-calls") {
            costs.call = 0.0;
        } else if options.without("free-input") {
            costs.input = 0.0;
        }
        shares.each_ref().map(|found| costs.read(path, found, processors).own)
    });
    let before = if options.without("cyclic-before") { Release::Cyclic } else { Release::Scanner };
    let priority = if options.without("no-priority") { Release::Scanner } else { Release::Priority };
    let after = if options.without("no-cyclic") { Release::Scanner } else { Release::Cyclic };
    let short = if options.without("applications-fit") { server } else { SHORT };
    let servers = [(before, server, 240), (priority, server, 240), (after, server, 240), (after, short, 60)];
    let servers = each(4, |n| served(servers[n].0, &servers[n].1, servers[n].2, seed));
    let by = |release, wanted| start_with(&machine, release, wanted);
    let wanted = 50 * GB / PAGE;
    let disk = disk(machine.turn, !options.without("no-read-ahead"))?;
    Ok(Model {
        declared,
        machine,
        server,
        cells,
        shares,
        reads,
        start: [by(before, wanted), by(after, wanted)],
        servers,
        disk,
    })
}

/// What a server's memory does in so many seconds. Each run is kept: no fitted constant has a part
/// in it.
fn served(release: Release, load: &Load, seconds: u32, seed: u64) -> Rates {
    type Kept = ((Release, Load, u32, u64), Rates);
    static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());
    let key = (release, *load, seconds, seed);
    let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let found = kept().iter().find(|(other, _)| *other == key).map(|(_, rates)| *rates);
    found.unwrap_or_else(|| {
        let rates = memory::run(release, load, seconds, seed);
        kept().push((key, rates));
        rates
    })
}

fn answering(model: Model) -> Answers {
    Box::new(move |At { id, row }| {
        let [before, priority, after, short] = &model.servers[..] else { return None };
        let read_in = |rates: &Rates| rates.epi + rates.api;
        let tunables = Tunables::sampled(512_136, 4096, u32::MAX);
        Some(match id {
            "read-s8" => (*model.reads[0].get(row.checked_sub(1)?)?).into(),
            "read-s10" => (*model.reads[1].get(row.checked_sub(1)?)?).into(),
            "lotsfree" => f64::from(tunables.lotsfree).into(),
            "fastscan" => f64::from(tunables.fastscan).into(),
            "desfree" => f64::from(tunables.desfree).into(),
            "minfree" => f64::from(tunables.minfree).into(),
            "slowscan" => f64::from(tunables.slowscan).into(),
            "desscan" => f64::from(tunables.desscan(tunables.lotsfree)).into(),
            "maxphys-1mb" => (mb_per_second(&model.disk, 1024.0)).into(),
            "maxphys-64kb" => {
                (100.0 * mb_per_second(&model.disk, 64.0) / mb_per_second(&model.disk, 1024.0)).into()
            }
            "start-before" => (model.start[0] / 60.0).into(),
            "start-after" => model.start[1].into(),
            "before-loses" => ModelFigure::of(read_in(before), format!("sr {:.0}/s", before.sr)),
            "priority-spares" => ModelFigure::of(
                read_in(priority) / read_in(before),
                format!("{:.1}/s and {:.1}/s", read_in(priority), read_in(before)),
            ),
            "after-scans-not" => after.sr.into(),
            "after-free" => (100.0 * after.free / f64::from(model.server.frames)).into(),
            "short-scans" => short.sr.into(),
            "short-free" => (kb_of_page(&SHORT) * short.free).into(),
            "short-pages-out" => (kb_of_page(&SHORT) * short.apo).into(),
            _ => return None,
        })
    })
}

pub(crate) fn answers(options: &Options) -> Result<Answers, StudyError> {
    Ok(answering(model(options)?))
}

pub(crate) fn study(options: &Options) -> Result<(Answers, Shown), StudyError> {
    let model = model(options)?;
    let cells = &model.cells;
    let mut reads = Table::new(
        "A random read of 8 KiB",
        "case",
        columns! {
            "%" 1 "found in a window" "found in memory";
            "µs" 0 "Solaris 8 published";
            "µs" 1 "Solaris 8 model";
            "µs" 0 "Solaris 10 published";
            "µs" 1 "Solaris 10 model";
        },
    );
    for (n, case) in CASES.into_iter().enumerate() {
        let found = &model.shares[n];
        let mut figures = vec![Some(100.0 * found.window), Some(100.0 * found.cached)];
        for release in 0..2 {
            figures.extend([Some(cell(cells, case, release)), Some(model.reads[release][n])]);
        }
        reads.row(case, figures);
    }
    let (start, start_plot) = start(&model.machine);
    let (transfers, transfers_plot) = transfers(model.machine.turn)?;
    let (columns, apps) = server(&model.servers, &model.server);
    let (calls, calls_plot) = processors(cells, &model.shares[1]);
    let shown = Shown {
        parameters: parameter_list(&model.declared),
        here: here::repeated(&options.here, |runs| here(runs, &reads)),
        tables: vec![reads, calls, columns, apps, start, transfers],
        bars: vec![cells_bars(cells, &model.reads)],
        plots: vec![start_plot, transfers_plot, calls_plot],
        opening: 1,
        notes: vec![
            "Four of the six cells give the four costs, so they are identities; Solaris 10's largest is predicted. That \
             its call costs what Solaris 8's does is 7% too much."
                .into(),
            "Pages written out come out far below the published rate: each output is one page here and 40 a second \
             are allowed, where Solaris writes clusters of neighbours with one request."
                .into(),
            "Neither the processors of the test nor the costs of a cross-call were published: their growth \
             with the number of processors is a prediction from assumed costs."
                .into(),
        ],
    };
    Ok((answering(model), shown))
}

/// The sizes that stand for the three cases under the limit.
const SIZES: [u64; 3] = [8 << 20, 32 << 20, 128 << 20];

pub(crate) fn live() -> Vec<Live> {
    let fileread = Fileread {
        access: vec![Access::Pread],
        reads: 10_000,
        sizes: Some(Sizes::List(SIZES.map(Size::Bytes).to_vec())),
        seconds: 1.5,
        ..Fileread::default()
    };
    let experiment = Experiment::Fileread(fileread);
    vec![Live { name: "fileread", experiment, memory: Some(Size::Bytes(64 << 20)) }]
}

/// Pages of a GB.
const OF_GB: f64 = (GB / PAGE) as f64;

/// 64 GB, of which files fill most and lotsfree is free.
fn full(machine: &Machine) -> Full {
    let pages = 64 * GB / PAGE;
    let free = u64::from(Tunables::solaris(pages as u32, PAGE as u32).lotsfree);
    Full { pages, files: (machine.files * OF_GB) as u64, free }
}

/// Seconds to start with so many pages under a release.
fn start_with(machine: &Machine, release: Release, wanted: u64) -> f64 {
    let full = full(machine);
    let zeroed = machine.zeroed * OF_GB;
    match release {
        Release::Cyclic => from_cache_list(&full, wanted, zeroed),
        Release::Scanner | Release::Priority => {
            let scanner = Scanner { fastscan: (machine.fastscan * MB) as u64, ..Scanner::SOLARIS };
            by_scanner(&full, wanted, &Tunables::of(&scanner, full.pages as u32, PAGE as u32), zeroed)
        }
    }
}

/// KB of a page.
fn kb_of_page(load: &Load) -> f64 {
    f64::from(load.page) / 1024.0
}

/// 512 MB: a server of files beside applications of 172 MB.
const LOAD: Load = Load {
    frames: 65_536,
    page: 8192,
    files: 262_144,
    reads: 2000,
    anonymous: 20_000,
    programs: 2000,
    hot: 0.5,
    idle: 120.0,
    fastscan: 8192,
};
/// Applications that exceed memory by a quarter, on the author's machine of 2 GB
/// (`kstat -n system_pages`: 512,136 pages): half of its pages a second, the most that its scanner
/// may do, is just above the printed rates.
const SHORT: Load = Load {
    frames: 512_136,
    page: 4096,
    anonymous: 625_000,
    programs: 15_600,
    hot: 0.3,
    idle: 60.0,
    fastscan: u32::MAX,
    ..LOAD
};

/// A row of `iostat -xn`: reads and writes a second, KB read and written a second, and the rest by
/// its column.
type Iostat = (f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, String);

/// Reads a second, KB read a second, and ms of a read on the raw disk.
fn raw_reads() -> Result<[f64; 3], StudyError> {
    let rows: Vec<Iostat> = IOSTAT.rows()?;
    let first = rows.first().map(|(reads, _, kb, .., service, _, _, _)| [*reads, *kb, *service]);
    first.ok_or_else(|| IOSTAT.wrong("no row"))
}

/// The disk that serves the printed reads.
fn disk(turn: f64, reads_ahead: bool) -> Result<Disk, StudyError> {
    let [reads, kb, service] = raw_reads()?;
    Ok(Disk::served(kb / reads * 1024.0, service / 1e3, turn, reads_ahead))
}

/// MB a second in transfers of so many KB.
fn mb_per_second(disk: &Disk, kb: f64) -> f64 {
    disk.requests(kb * 1024.0) * kb / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_differences_of_cells() {
        let cells = published().unwrap();
        let costs = costs(&cells);
        assert_eq!(costs, Costs::SOLARIS);
        let missed = Shares { window: 0.0, cached: 0.0 };
        assert_eq!(costs.read(Path::Segmap, &missed, READING.processors).own, 236.0);
        assert_eq!(costs.read(Path::Kpm, &missed, READING.processors).own, 153.0);
    }
}
