//! Tables and plots of the study of Solaris 8's page cache: reads on this machine, the start of a
//! large program, the server, transfers, processors, parameters.

use super::*;

/// The six published cells and the model's.
pub(super) fn cells_bars(cells: &[(String, [f64; 2])], reads: &[[f64; 3]; 2]) -> Bars {
    let mut rows = Vec::new();
    for (n, case) in CASES.into_iter().enumerate() {
        for (release, name, claim) in [(0, "Solaris 8", "read-s8"), (1, "Solaris 10", "read-s10")] {
            let printed = Some(cell(cells, case, release));
            let row = BarRow::new(format!("{case}, {name}"), printed, Some(reads[release][n]));
            rows.push(row.of(format!("{claim}/{}", n + 1)));
        }
    }
    Bars {
        title: "Processor time of a random read of 8 KiB".into(),
        caption:
            "Four of the six cells give the model its four costs. Solaris 10's smallest has the call of Solaris 8; its \
             largest is held out."
                .into(),
        unit: "µs",
        decimals: 0,
        models: vec!["model"],
        rows,
    }
}

/// The published cells and the model's, from the table of reads, and this machine's.
pub(super) fn here(runs: &[Run], reads: &Table) -> Table {
    let live = live();
    let seen = live[0].seen(runs).and_then(|seen| seen.table(tables::fileread::TABLE));
    let mut columns: Vec<Column> = reads.columns[2..].to_vec();
    columns.push(Column::new("here", "µs", 1));
    let mut table = here::table(NAME, &live, runs, "case, processor time of a read of 8 KiB", columns);
    for ((case, figures), size) in reads.rows.iter().zip(SIZES) {
        let here = seen
            .and_then(|seen| at(seen, tables::fileread::SIZE, size as f64, tables::fileread::CPU_EACH))
            .map(|ns| ns / 1e3);
        table.row(case.as_str(), figures[2..].iter().copied().chain([here]));
    }
    table
}

pub(super) fn start(machine: &Machine) -> (Table, Plot) {
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
        let by = |release| start_with(machine, release, gigabytes * GB / PAGE);
        let (scanner, cache) = (by(Release::Scanner), by(Release::Cyclic));
        before.push((gigabytes as f64, scanner));
        after.push((gigabytes as f64, cache));
        table.row(format!("{gigabytes} GB"), [Some(scanner / 60.0), Some(cache)]);
    }
    let series = |name: &str, points| Series::line(name, points);
    let printed = |name: &str, points| Series::published(format!("published, {name}"), points);
    let plot = study_plot(
        "Time to start with a large segment",
        Axis::linear("segment (GB)", ""),
        Axis::log("seconds", ""),
        vec![
            // 20 to 30 minutes, and under a minute.
            printed("before: by the scanner", vec![(50.0, 1200.0), (50.0, 1800.0)]),
            printed("after: from the cache list", vec![(50.0, 60.0)]),
            series("before: by the scanner", before),
            series("after: from the cache list", after),
        ],
    );
    (table, plot)
}

pub(super) fn server(found: &[Rates], load: &Load) -> (Table, Table) {
    let cases = [
        "2.6 and 7, file server",
        "7 with priority paging, file server",
        "8 and later, file server",
        "8 and later, applications larger than memory, 2 GB",
    ];
    let pages = |name: &'static str| Column::new(name, "/s", 0);
    let kb = |name: &'static str| Column::new(name, "KB/s", 0);
    let mut columns = Table::new(
        "vmstat -p: 512 MB, 2,000 reads of 8 KiB per second and applications of 172 MB",
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
        columns! {
            "/s" 1 "applications' pages taken" "applications' page-ins" "allocations that waited";
            "%" 1 "the server's hits";
        },
    );
    for ((name, r), load) in cases.into_iter().zip(found).zip([*load, *load, *load, SHORT]) {
        let each = kb_of_page(&load);
        let figures = [each * r.free, r.re, r.mf, each * r.fr, each * r.de, r.sr]
            .into_iter()
            .chain([r.epi, r.epo, r.epf, r.api, r.apo, r.apf, r.fpi, r.fpo, r.fpf].map(|pages| each * pages));
        // A deficit that the model does not have is a dash.
        columns.row(name, figures.map(|figure| Some(figure).filter(|figure| figure.is_finite())));
        apps.row(name, [r.epf + r.apf, r.epi + r.api, r.waits, 100.0 * r.hits].map(Some));
    }
    (columns, apps)
}

/// Reading the raw disk in order, by maxphys: the printed row has 1 MB a read.
pub(super) fn transfers(turn: f64) -> Result<(Table, Plot), StudyError> {
    let kb = raw_reads()?[1];
    let disks = [disk(turn, false)?, disk(turn, true)?];
    let mb = mb_per_second;
    let mut table = Table::new(
        "A disk read in order, by the size of a transfer (maxphys): derived from the printed row of 1 MB a read",
        "transfer",
        columns! {
            "MB/s" 1 "published" "the disk loses a turn between requests" "the disk reads ahead";
            "/s" 0 "requests with the turn lost";
        },
    );
    for (name, kb_each) in [("56 KB (x86)", 56.0), ("128 KB (SPARC)", 128.0), ("1 MB (sd with tags)", 1024.0)]
    {
        let published = (kb_each == 1024.0).then_some(kb / 1024.0);
        table.row(
            name,
            [
                published,
                Some(mb(&disks[0], kb_each)),
                Some(mb(&disks[1], kb_each)),
                Some(disks[0].requests(kb_each * 1024.0)),
            ],
        );
    }
    let sizes = [8.0, 16.0, 32.0, 56.0, 128.0, 256.0, 512.0, 1024.0];
    let line = |name: &str, disk: &Disk| Series::line(name, sizes.map(|size| (size, mb(disk, size))));
    let plot = study_plot(
        "Reading a disk in order",
        Axis::log("transfer (KB)", ""),
        Axis::linear("MB/s", ""),
        vec![
            Series::published("published", vec![(1024.0, kb / 1024.0)]),
            line("the disk loses a turn between requests", &disks[0]),
            line("the disk reads ahead", &disks[1]),
        ],
    );
    Ok((table, plot))
}

pub(super) fn processors(cells: &[(String, [f64; 2])], shares: &Shares) -> (Table, Plot) {
    let counts = [1u32, 2, 4, 8, 16, 32, 64];
    let mut table = Table::new(
        "Random reads of a file larger than segmap, by processors: all of them read",
        "processors",
        columns! {
            "" 1 "cross-calls per read, Solaris 8";
            "µs" 0 "own time of a read, Solaris 8" "with the others' time";
            "/s" 0 "reads per second, Solaris 8" "reads per second, Solaris 10";
        },
    );
    let mut lines = [Vec::new(), Vec::new()];
    for count in counts {
        let old = costs(cells).read(Path::Segmap, shares, count);
        let new = costs(cells).read(Path::Kpm, shares, count);
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
    let plot = study_plot(
        "Reads per second of a file larger than segmap",
        Axis::log("processors", ""),
        Axis::log("reads per second", ""),
        vec![Series::line("Solaris 8, segmap", old), Series::line("Solaris 10, segkpm", new)],
    );
    (table, plot)
}

pub(super) fn parameter_list(declared: &[Declared]) -> Vec<Parameter> {
    let source = "OpenSolaris vm_pageout.c";
    let facts = facts! {
        "interrupt on each other CPU", Costs::SOLARIS.interrupted, "µs", assumed("trap, flush, return");
        "the large file, the uncached one", 10.0, "× memory",
            assumed("three quarters and ten times memory, so that few reads hit by chance");
        "lotsfree", 64.0, "th part of memory", documented(source);
        "cachefree, with priority paging", 2.0, "× lotsfree",
            documented("INFODOC 17946; that it takes lotsfree's place in the rate is assumed");
    };
    Parameter::of(declared).into_iter().chain(facts).collect()
}
