//! McDougall 2005: the Solaris page cache. Reading a file through segmap and segkpm; free list, cache list
//! and scanner before and after the cyclic page cache.

use pagelab_experiment::experiments::{Access, Fileread};
use pagelab_experiment::{Experiment, Run, Size, Sizes};
use pagelab_model::pagecache::path::random_reads;
use pagelab_model::pagecache::segment::{Full, by_scanner, from_cache_list};
use pagelab_model::pagecache::{Costs, Load, Path, Rates, Release, Shares, memory, memstat};
use pagelab_model::systems::two_handed::Tunables;

use crate::claim::{
    Axis, Claim, Column, Parameter, Plot, Series, Split, Standing, Study, Table, Tolerance, Verdict,
};
use crate::here::{self, Live, at};
use crate::published::{Sheet, sheet};
use crate::{Options, StudyError};

const NAME: &str = "mcdougall-2005";
const PUBLISHED: Sheet = sheet!("mcdougall-fileread.csv");

/// The machine of the read test, in pages of 8 KiB and a sixteenth of its size: 4 GB with windows of 64 MB.
const MEMORY: u32 = 32_768;
const WINDOWS: u32 = 512;
const READS: u64 = 200_000;
/// Processors of that machine, and what an unmap costs with more of them.
const PROCESSORS: u32 = 2;
const CROSS_CALL: f64 = Costs::SOLARIS_8.cross_call;
const INTERRUPTED: f64 = Costs::SOLARIS_8.interrupted;

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

/// The costs of the parts, from five of the six cells: what one case has more than another.
fn costs(cells: &[(String, [f64; 2])], release: usize) -> Costs {
    let small = cell(cells, "small-in-memory", release);
    let reclaim = cell(cells, "large-in-memory", 1) - cell(cells, "small-in-memory", 1);
    let map = cell(cells, "large-in-memory", 0) - cell(cells, "small-in-memory", 0) - reclaim;
    Costs {
        call: small,
        reclaim,
        map: map - CROSS_CALL * f64::from(PROCESSORS - 1),
        cross_call: CROSS_CALL,
        interrupted: INTERRUPTED,
        input: cell(cells, "large-non-cached", 0) - cell(cells, "large-in-memory", 0),
    }
}

/// The study.
///
/// # Errors
/// When the published figures cannot be read.
pub fn study(options: &Options) -> Result<Study, StudyError> {
    let cells = published()?;
    let seed = options.seed;
    let mut claims = Vec::new();
    let shares: Vec<(&str, Shares)> = [
        ("small-in-memory", WINDOWS / 2),
        ("large-in-memory", MEMORY / 4 * 3),
        ("large-non-cached", MEMORY * 10),
    ]
    .map(|(case, file)| (case, random_reads(file, WINDOWS, MEMORY, READS, seed)))
    .to_vec();
    let releases = [("Solaris 8", Path::Segmap), ("Solaris 10", Path::Kpm)];
    let mut reads = Table::new(
        "A random read of 8 KiB",
        "case",
        vec![
            Column::new("found in a window", "%", 1),
            Column::new("found in memory", "%", 1),
            Column::new("Solaris 8 published", "µs", 0),
            Column::new("Solaris 8 model", "µs", 1),
            Column::new("Solaris 10 published", "µs", 0),
            Column::new("Solaris 10 model", "µs", 1),
        ],
    );
    for (case, found) in &shares {
        let mut figures = vec![Some(100.0 * found.window), Some(100.0 * found.cached)];
        for (release, (name, path)) in releases.iter().enumerate() {
            let printed = cell(&cells, case, release);
            let model = costs(&cells, release).read(*path, found, PROCESSORS).own;
            let held = *case == "large-non-cached" && release == 1;
            let split = if held { Split::HeldOut } else { Split::Fitted };
            let what = format!("{case}, {name}: processor time of a read");
            claims.push(Claim::figure(NAME, what, "µs", printed, model, Tolerance::Share(0.1), split));
            figures.extend([Some(printed), Some(model)]);
        }
        reads.row(*case, figures);
    }
    kstat(&mut claims);
    divided(&mut claims);
    let (start, start_plot) = start(&mut claims);
    let (columns, apps) = server(&mut claims, seed);
    let (calls, calls_plot) = processors(&cells, &shares[1].1);
    Ok(Study {
        name: NAME,
        title: "The Solaris page cache: segmap and segkpm, the scanner and the cyclic page cache",
        source: "Richard McDougall, weblog, 12 July 2005 and the entries on memstat and kstat",
        claims,
        parameters: parameters(&cells),
        here: here(&options.here, &reads),
        tables: vec![reads, calls, columns, apps, start],
        plots: vec![calls_plot, start_plot],
        notes: vec![
            "Five of the six cells give the five costs; the sixth (not cached, Solaris 10) is predicted. \
             That it meets to within 3 % says that the parts add up, not more."
                .into(),
            "Neither the processors of the test nor the costs of a cross-call were published: their growth \
             with the number of processors is a prediction from assumed costs."
                .into(),
        ],
    })
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

/// The published cells and the model's, from the table of reads, and this machine's.
fn here(runs: &[Run], reads: &Table) -> Table {
    let live = live();
    let seen = live[0].seen(runs).and_then(|seen| seen.table("fileread"));
    let mut columns: Vec<Column> = reads.columns[2..].to_vec();
    columns.push(Column::new("here", "µs", 1));
    let mut table = here::table(NAME, &live, runs, "case, processor time of a read of 8 KiB", columns);
    for ((case, figures), size) in reads.rows.iter().zip(SIZES) {
        let here = seen.and_then(|seen| at(seen, "size", size as f64, "cpu.each")).map(|ns| ns / 1e3);
        table.row(case.as_str(), figures[2..].iter().copied().chain([here]));
    }
    table
}

/// `kstat -n system_pages` of a machine with 512,136 pages of 4 KiB.
fn kstat(claims: &mut Vec<Claim>) {
    let tunables = memstat::sampled(512_136, 4096, u32::MAX);
    for (name, printed, model) in [
        ("lotsfree", 8002, tunables.lotsfree),
        ("desfree", 4001, tunables.desfree),
        ("minfree", 2000, tunables.minfree),
        ("fastscan", 256_068, tunables.fastscan),
        ("slowscan", 100, tunables.slowscan),
        ("desscan", 25, tunables.desscan(tunables.lotsfree)),
    ] {
        let what = format!("kstat system_pages: {name}");
        let (printed, model) = (f64::from(printed), f64::from(model));
        claims.push(Claim::figure(NAME, what, "pages", printed, model, Tolerance::Exact, Split::HeldOut));
    }
}

/// `::memstat` of the same machine: pages, MB and percent as printed.
fn divided(claims: &mut Vec<Claim>) {
    let (total, physmem) = (512_136, 522_272);
    for (name, pages, megabytes, percent) in [
        ("Kernel", 53_444, 208, 10),
        ("Anon", 119_088, 465, 23),
        ("Exec and libs", 2299, 8, 0),
        ("Page cache", 29_185, 114, 6),
        ("Free (cachelist)", 347, 1, 0),
        ("Free (freelist)", 317_909, 1241, 61),
    ] {
        for (unit, printed, model) in [
            ("MB", megabytes, memstat::megabytes(pages, 4096)),
            ("%", percent, memstat::percent(pages, total, physmem)),
        ] {
            let what = format!("memstat: {name}");
            let (printed, model) = (printed as f64, model as f64);
            claims.push(Claim::figure(NAME, what, unit, printed, model, Tolerance::Exact, Split::HeldOut));
        }
    }
    let model = memstat::megabytes(physmem, 4096) as f64;
    let what = "memstat: total";
    claims.push(Claim::figure(NAME, what, "MB", 2040.0, model, Tolerance::Exact, Split::HeldOut));
}

/// Pages zeroed a second: 1 GB.
const ZEROED: f64 = (GB / PAGE) as f64;

fn start(claims: &mut Vec<Claim>) -> (Table, Plot) {
    let pages = 64 * GB / PAGE;
    let tunables = Tunables::solaris(pages as u32, PAGE as u32);
    let full = Full { pages, files: 54 * GB / PAGE, free: u64::from(tunables.lotsfree) };
    let mut table = Table::new(
        "Starting a program with a large segment on 64 GB, of which files fill 54 GB",
        "segment",
        vec![
            Column::new("before: by the scanner", "min", 1),
            Column::new("after: from the cache list", "s", 1),
        ],
    );
    let mut before = Vec::new();
    let mut after = Vec::new();
    for gigabytes in [1u64, 2, 5, 10, 20, 30, 40, 50] {
        let wanted = gigabytes * GB / PAGE;
        let scanner = by_scanner(&full, wanted, &tunables, ZEROED);
        let cache = from_cache_list(&full, wanted, ZEROED);
        before.push((gigabytes as f64, scanner));
        after.push((gigabytes as f64, cache));
        table.row(format!("{gigabytes} GB"), [Some(scanner / 60.0), Some(cache)]);
        if gigabytes == 50 {
            let minutes = scanner / 60.0;
            let verdict = match minutes {
                m if (20.0..=30.0).contains(&m) => Verdict::Reproduced,
                m if (15.0..=40.0).contains(&m) => Verdict::Partly,
                _ => Verdict::Not,
            };
            claims.push(Claim::words(
                NAME,
                "starting with 50 GB, before the cyclic page cache",
                "min",
                Some("20 to 30"),
                minutes,
                verdict,
                Split::HeldOut,
            ));
            claims.push(Claim::words(
                NAME,
                "starting with 50 GB, after",
                "s",
                Some("under 60"),
                cache,
                if cache < 60.0 { Verdict::Reproduced } else { Verdict::Not },
                Split::HeldOut,
            ));
        }
    }
    let series = |name: &str, points| Series { name: name.into(), published: false, points };
    let printed = |name: &str, points| Series { name: format!("published, {name}"), published: true, points };
    let plot = Plot {
        title: "Time to start with a large segment".into(),
        x: Axis { label: "segment (GB)", log: false },
        y: Axis { label: "seconds", log: true },
        series: vec![
            // 20 to 30 minutes, and under a minute.
            printed("before: by the scanner", vec![(50.0, 1200.0), (50.0, 1800.0)]),
            printed("after: from the cache list", vec![(50.0, 60.0)]),
            series("before: by the scanner", before),
            series("after: from the cache list", after),
        ],
    };
    (table, plot)
}

fn server(claims: &mut Vec<Claim>, seed: u64) -> (Table, Table) {
    let load = Load {
        frames: 65_536,
        files: 262_144,
        reads: 2000,
        anonymous: 20_000,
        programs: 2000,
        hot: 0.5,
        idle: 120.0,
        fastscan: 8192,
    };
    let short = Load { anonymous: 80_000, hot: 0.3, idle: 60.0, fastscan: u32::MAX, ..load };
    let cases = [
        ("2.6 and 7, file server", Release::Scanner, load),
        ("7 with priority paging, file server", Release::Priority, load),
        ("8 and later, file server", Release::Cyclic, load),
        ("8 and later, applications larger than memory", Release::Cyclic, short),
    ];
    let found: Vec<Rates> = std::thread::scope(|scope| {
        let running: Vec<_> = cases
            .iter()
            .map(|(_, release, load)| scope.spawn(move || memory::run(*release, load, 240, seed)))
            .collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let pages = |name: &'static str| Column::new(name, "/s", 0);
    let kb = |name: &'static str| Column::new(name, "KB/s", 0);
    let mut columns = Table::new(
        "vmstat -p: 512 MB, 2,000 reads of 8 KiB a second beside applications of 172 MB",
        "release and load",
        vec![
            Column::new("free", "KB", 0),
            pages("re"),
            pages("mf"),
            kb("fr"),
            Column::new("de", "KB", 0),
            pages("sr"),
            kb("epi"),
            kb("epo"),
            kb("epf"),
            kb("api"),
            kb("apo"),
            kb("apf"),
            kb("fpi"),
            kb("fpo"),
            kb("fpf"),
        ],
    );
    let mut apps = Table::new(
        "Who loses pages",
        "release and load",
        vec![
            Column::new("applications' pages taken", "/s", 1),
            Column::new("applications' page-ins", "/s", 1),
            Column::new("allocations that waited", "/s", 1),
            Column::new("the server's hits", "%", 1),
        ],
    );
    for ((name, ..), r) in cases.iter().zip(&found) {
        let figures = [8.0 * r.free, r.re, r.mf, 8.0 * r.fr, 0.0, r.sr]
            .into_iter()
            .chain([r.epi, r.epo, r.epf, r.api, r.apo, r.apf, r.fpi, r.fpo, r.fpf].map(|pages| 8.0 * pages));
        columns.row(*name, figures.map(Some));
        apps.row(*name, [r.epf + r.apf, r.epi + r.api, r.waits, 100.0 * r.hits].map(Some));
    }
    let [before, priority, after, shortage] = [found[0], found[1], found[2], found[3]];
    let mut words = |what: &str, published: &str, model: String, shown: bool| {
        let verdict = if shown { Verdict::Reproduced } else { Verdict::Not };
        claims.push(Claim::words(NAME, what, "", Some(published), model, verdict, Split::HeldOut));
    };
    words(
        "file server before: the scanner runs always and applications lose pages",
        "in words",
        format!("sr {:.0}/s, {:.0} pages of applications a second", before.sr, before.epi + before.api),
        before.sr > 0.0 && before.epi + before.api > 1.0,
    );
    words(
        "with priority paging: the scanner runs, applications keep their pages",
        "in words",
        format!("sr {:.0}/s, {:.1} pages of applications a second", priority.sr, priority.epi + priority.api),
        priority.sr > 0.0 && priority.epi + priority.api < 0.1 * (before.epi + before.api),
    );
    words(
        "file server after: no scanning, memory free",
        "sr 0, free about 985,000 KB",
        format!("sr {:.0}/s, free {:.0} KB of 524,288", after.sr, 8.0 * after.free),
        after.sr == 0.0 && after.free > 0.3 * f64::from(load.frames),
    );
    words(
        "shortage after: sr above 0, little free, anonymous pages in and out",
        "sr 65,871 to 238,522, free down to 8,000 KB",
        format!(
            "sr {:.0}/s, free {:.0} KB, api {:.0} KB/s",
            shortage.sr,
            8.0 * shortage.free,
            8.0 * shortage.api
        ),
        shortage.sr > 0.0
            && shortage.free < f64::from(load.frames) / 64.0
            && shortage.api > 0.0
            && shortage.apo > 0.0,
    );
    (columns, apps)
}

fn processors(cells: &[(String, [f64; 2])], shares: &Shares) -> (Table, Plot) {
    let counts = [1u32, 2, 4, 8, 16, 32, 64];
    let mut table = Table::new(
        "Random reads of a file larger than segmap, by processors: all of them read",
        "processors",
        vec![
            Column::new("cross-calls a read, Solaris 8", "", 1),
            Column::new("own time of a read, Solaris 8", "µs", 0),
            Column::new("with the others' time", "µs", 0),
            Column::new("reads a second, Solaris 8", "/s", 0),
            Column::new("reads a second, Solaris 10", "/s", 0),
        ],
    );
    let mut lines = [Vec::new(), Vec::new()];
    for count in counts {
        let old = costs(cells, 0).read(Path::Segmap, shares, count);
        let new = costs(cells, 1).read(Path::Kpm, shares, count);
        let rate =
            |read: &pagelab_model::pagecache::path::Read| f64::from(count) * 1e6 / (read.own + read.others);
        table.row(
            count.to_string(),
            [old.cross_calls, old.own, old.own + old.others, rate(&old), rate(&new)].map(Some),
        );
        lines[0].push((f64::from(count), rate(&old)));
        lines[1].push((f64::from(count), rate(&new)));
    }
    let [old, new] = lines;
    let plot = Plot {
        title: "Reads a second of a file larger than segmap".into(),
        x: Axis { label: "processors", log: true },
        y: Axis { label: "reads a second", log: true },
        series: vec![
            Series { name: "Solaris 8, segmap".into(), published: false, points: old },
            Series { name: "Solaris 10, segkpm".into(), published: false, points: new },
        ],
    };
    (table, plot)
}

fn parameters(cells: &[(String, [f64; 2])]) -> Vec<Parameter> {
    let parameter = |name, value, unit, standing| Parameter { name, value, unit, standing };
    let fitted = |on: &str| Standing::Fitted { on: on.to_owned() };
    let (old, new) = (costs(cells, 0), costs(cells, 1));
    let source = "OpenSolaris vm_pageout.c";
    vec![
        parameter("call and copy, Solaris 8", old.call, "µs", fitted("small-in-memory, Solaris 8")),
        parameter("call and copy, Solaris 10", new.call, "µs", fitted("small-in-memory, Solaris 10")),
        parameter(
            "taking a page from the cache list",
            new.reclaim,
            "µs",
            fitted("large- less small-in-memory, Solaris 10"),
        ),
        parameter(
            "unmapping and mapping a window",
            old.map,
            "µs",
            fitted("large- less small-in-memory, Solaris 8"),
        ),
        parameter("input", old.input, "µs", fitted("large-non-cached less large-in-memory, Solaris 8")),
        parameter(
            "wait for each other processor",
            CROSS_CALL,
            "µs",
            Standing::Assumed { why: "an interrupt's way there and back" },
        ),
        parameter(
            "interrupt on each other processor",
            INTERRUPTED,
            "µs",
            Standing::Assumed { why: "trap, flush, return" },
        ),
        parameter(
            "processors of the test",
            f64::from(PROCESSORS),
            "",
            Standing::Assumed { why: "not published" },
        ),
        parameter(
            "segmap",
            64.0,
            "MB",
            Standing::Documented { source: "SEGMAPDEFAULT of x64; 12 % of free memory on SPARC" },
        ),
        parameter(
            "the large file, the uncached one",
            10.0,
            "× memory",
            Standing::Assumed { why: "three quarters and ten times memory, so that few reads hit by chance" },
        ),
        parameter("lotsfree", 64.0, "th part of memory", Standing::Documented { source }),
        parameter(
            "cachefree, with priority paging",
            2.0,
            "× lotsfree",
            Standing::Documented {
                source: "INFODOC 17946; that it takes lotsfree's place in the rate is assumed",
            },
        ),
        parameter("fastscan before sampling", 64.0, "MB/s", Standing::Documented { source }),
        parameter(
            "memory zeroed",
            1.0,
            "GB/s",
            Standing::Assumed { why: "one processor's block stores of the time" },
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_differences_of_cells() {
        let cells = published().unwrap();
        let (old, new) = (costs(&cells, 0), costs(&cells, 1));
        assert_eq!((old, new), (Costs::SOLARIS_8, Costs::SOLARIS_10));
        let missed = Shares { window: 0.0, cached: 0.0 };
        assert_eq!(old.read(Path::Segmap, &missed, PROCESSORS).own, 236.0);
        assert_eq!(new.read(Path::Kpm, &missed, PROCESSORS).own, 153.0);
    }
}
