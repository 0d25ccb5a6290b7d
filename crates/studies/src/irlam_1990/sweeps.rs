//! What the published table does not have: the family, other sizes and switching rates, the
//! remedies, other rules, and today's translation buffers.

use pagelab_analysis::figure::{Axis, Column, Plot, Series, Table};
use pagelab_model::sun4::{
    Contexts, Copies, FAMILY, Machine, Outcome, SPARCSTATION_1, Scheduler, Sun4, Victim, VmTest,
};
use pagelab_model::tlb::{Tlb, random};
use pagelab_simulation::spread::each;

use super::{KNEE, Row, drop_below, knee, mean, run_all, speeds};
use crate::study::{columns, log_rms, study_plot};

fn short(children: u32, bytes: u64) -> VmTest {
    VmTest { children, bytes, passes: 1000, ..VmTest::published(2) }
}

/// Speed relative to the best at each number of children, until it is below a fifth.
fn sweep(system: Sun4, bytes: u64, step: u32, seeds: &std::ops::Range<u64>) -> Vec<(u32, f64)> {
    let mut found: Vec<(u32, f64)> = Vec::new();
    let mut best = 0.0f64;
    for children in (1..).step_by(step as usize) {
        let outcomes: Vec<Outcome> =
            seeds.clone().map(|seed| system.run(&short(children, bytes), seed)).collect();
        let speed = f64::from(children) / mean(&outcomes).elapsed;
        best = best.max(speed);
        found.push((((u64::from(children) * bytes) >> 20) as u32, speed));
        if speed < 0.2 * best || children > 400 {
            break;
        }
    }
    found.into_iter().map(|(megabytes, speed)| (megabytes, speed / best)).collect()
}

fn line(name: impl Into<String>, speeds: &[(u32, f64)]) -> Series {
    Series::line(name, speeds.iter().map(|&(megabytes, speed)| (f64::from(megabytes), speed)))
}

/// Every machine of the family.
pub(super) fn family(seeds: &std::ops::Range<u64>) -> (Table, Plot) {
    let mut table = Table::new(
        "The family: 2 MB processes, 1,000 sweeps",
        "machine",
        columns! {
            "KiB" 0 "page";
            "" 0 "entries in a pmeg" "pmegs" "contexts";
            "MB" 0 "reach" "full speed up to" "lost a third at" "lost two thirds at";
        },
    );
    let found = each(FAMILY.len(), |place| {
        let machine = &FAMILY[place];
        let step = if machine.pmegs > 256 { 2 } else { 1 };
        (machine, sweep(Sun4::sunos403(*machine), 2 << 20, step, seeds))
    });
    for (machine, speeds) in &found {
        let at = |share, side: fn((u32, u32)) -> u32| drop_below(share, speeds).map(side).map(f64::from);
        table.row(
            machine.name,
            [
                Some(f64::from(machine.page / 1024)),
                Some(f64::from(machine.entries)),
                Some(f64::from(machine.pmegs)),
                Some(f64::from(machine.contexts)),
                Some((machine.reach() >> 20) as f64),
                at(0.95, |(last, _)| last),
                at(KNEE, |(_, next)| next),
                at(1.0 / 3.0, |(_, next)| next),
            ],
        );
    }
    let plot = study_plot(
        "The family under vmtest",
        Axis::log("active virtual memory (MB)", ""),
        Axis::linear("relative speed", ""),
        found.iter().map(|(machine, speeds)| line(machine.name, speeds)).collect(),
    );
    (table, plot)
}

/// Speeds of 4 MB processes with the published sweeps, to where they are slow.
pub(super) fn speeds_of_large(system: Sun4, seeds: &std::ops::Range<u64>) -> Vec<(u32, f64)> {
    let test = |children| VmTest { children, bytes: 4 << 20, ..VmTest::published(2) };
    let cases: Vec<(Sun4, VmTest)> = (1..=6).map(|children| (system, test(children))).collect();
    let model = run_all(&cases, seeds.clone(), 1);
    speeds(&cases, &model)
}

/// Processes of other sizes.
pub(super) fn sizes(seeds: &std::ops::Range<u64>) -> Table {
    let mut table = Table::new(
        "Processes of other sizes on a SPARCstation 1: speed relative to the best",
        "size of a process",
        [8, 12, 16, 20, 24, 28]
            .map(|megabytes| Column::new(format!("speed at {megabytes} MB"), "", 2))
            .into_iter()
            .chain([Column::new("lost a third at", "MB", 0)])
            .collect(),
    );
    for megabytes in [1u64, 2, 4] {
        let speeds = sweep(Sun4::sunos403(SPARCSTATION_1), megabytes << 20, 1, seeds);
        let at = |size: u32| speeds.iter().find(|&&(mb, _)| mb == size).map(|&(_, speed)| speed);
        let lost = knee(&speeds).map(|(_, next)| f64::from(next));
        table.row(format!("{megabytes} MB"), [8, 12, 16, 20, 24, 28].into_iter().map(at).chain([lost]));
    }
    table
}

/// A machine of half the pmegs with a third more memory than they map: what one pmeg more or fewer
/// is worth, and what else a model may leave out.
pub(super) fn half(seeds: &std::ops::Range<u64>) -> Table {
    let base = Sun4::sunos403(Machine { pmegs: 64, ..SPARCSTATION_1 });
    let fewer = |pmegs: u32| Sun4 { locked: base.locked + pmegs, ..base };
    let more = |pmegs: u32| Sun4 { locked: base.locked - pmegs, ..base };
    let variants = [
        ("31 pmegs for users", base, 5),
        ("30", fewer(1), 5),
        ("32", more(1), 5),
        ("33", more(2), 5),
        ("31, a poll every 60 ms", base, 6),
        ("31, victim: any pmeg", Sun4 { victim: Victim::Any, ..base }, 5),
    ];
    let mut table = Table::new(
        "64 pmegs and 8 MB: no figures were published",
        "variant",
        columns! { "s" 0 "elapsed"; "" 0 "faults"; "" 1 "faults for each steal"; },
    );
    let cases = variants.map(|(_, system, poll)| (system, VmTest { poll, ..VmTest::published(8) }));
    for ((name, ..), seen) in variants.iter().zip(run_all(&cases, seeds.clone(), 1)) {
        table.row(*name, [seen.elapsed, seen.faults, seen.faults / seen.steals].map(Some));
    }
    table
}

/// Other switching rates.
pub(super) fn rates(seeds: &std::ops::Range<u64>) -> Table {
    let polls = [3u64, 5, 10, 20, 100];
    let mut table = Table::new(
        "Other switching rates on a SPARCstation 1: speed relative to one process, 1,000 sweeps",
        "a poll every",
        [16, 18, 24, 32].map(|megabytes| Column::new(format!("{megabytes} MB"), "", 2)).to_vec(),
    );
    let system = Sun4::sunos403(SPARCSTATION_1);
    for poll in polls {
        let cases: Vec<(Sun4, VmTest)> =
            [1, 8, 9, 12, 16].map(|children| (system, VmTest { poll, ..short(children, 2 << 20) })).to_vec();
        let model = run_all(&cases, seeds.clone(), 1);
        let speeds = speeds(&cases, &model);
        table.row(format!("{} ms", poll * 10), speeds[1..].iter().map(|&(_, speed)| Some(speed)));
    }
    table
}

/// What each remedy would have been worth.
pub(super) fn remedies(seeds: &std::ops::Range<u64>) -> (Table, Plot) {
    let base = Sun4::sunos403(SPARCSTATION_1);
    let copies = |copies| Sun4 { copies, ..base };
    let remedies: Vec<(&str, Sun4, u64)> = vec![
        ("SunOS 4.0.3 as it was", base, 5),
        ("a copy of every pmeg, reloaded whole", copies(Copies::All), 5),
        ("a cache of 32 copies", copies(Copies::Some(32)), 5),
        ("a cache of 64 copies", copies(Copies::Some(64)), 5),
        ("pmegs shared between processes", Sun4 { shared: true, ..base }, 5),
        ("no eager swapping", Sun4 { eager_swapping: false, ..base }, 5),
        ("a switch every 0.5 s", base, 50),
        ("libraries that take pmegs (not static)", Sun4 { libraries: true, ..base }, 5),
        ("copies and sharing", Sun4 { copies: Copies::All, shared: true, ..base }, 5),
    ];
    let sizes = [16u32, 18, 20, 24, 28, 32];
    let mut table = Table::new(
        "What each remedy would have been worth: vmtest as published, one run each",
        "remedy",
        [16, 18, 24, 32]
            .map(|megabytes| Column::new(format!("elapsed at {megabytes} MB"), "s", 1))
            .into_iter()
            .chain([
                Column::new("times faster at 32 MB", "", 1),
                Column::new("faults at 32 MB", "", 0),
                Column::new("swap-ins at 32 MB", "", 0),
                Column::new("daemon's answer at 32 MB", "ms", 1),
            ])
            .collect(),
    );
    let cases: Vec<(Sun4, VmTest)> = remedies
        .iter()
        .flat_map(|&(_, system, poll)| {
            [2].into_iter().chain(sizes).map(move |mb| (system, VmTest { poll, ..VmTest::published(mb) }))
        })
        .collect();
    let model = run_all(&cases, seeds.clone(), 1);
    let each = sizes.len() + 1;
    let last = model[each - 1].elapsed;
    let mut series = Vec::new();
    for (index, (name, ..)) in remedies.iter().enumerate() {
        let of = &model[index * each..(index + 1) * each];
        let worst = &of[each - 1];
        let figures = [
            Some(of[1].elapsed),
            Some(of[2].elapsed),
            Some(of[4].elapsed),
            Some(worst.elapsed),
            Some(last / worst.elapsed),
            Some(worst.faults),
            Some(worst.swap_ins),
            worst.response_ms,
        ];
        table.row(*name, figures);
        series.push(line(*name, &speeds(&cases[index * each..(index + 1) * each], of)));
    }
    let plot = study_plot(
        "The remedies",
        Axis::linear("active virtual memory (MB)", ""),
        Axis::linear("relative speed", ""),
        series,
    );
    (table, plot)
}

/// The same table with other rules.
pub(super) fn rules(published: &[Row], seeds: &std::ops::Range<u64>) -> Table {
    let base = Sun4::sunos403(SPARCSTATION_1);
    let variants = [
        ("as chosen", base),
        ("4.3BSD's priorities", Sun4 { scheduler: Scheduler::Bsd, ..base }),
        ("victim: any pmeg", Sun4 { victim: Victim::Any, ..base }),
        ("victim: loaded longest ago", Sun4 { victim: Victim::Fifo, ..base }),
        ("victim: used longest ago", Sun4 { victim: Victim::Lru, ..base }),
        ("contexts: used longest ago", Sun4 { contexts: Contexts::Lru, ..base }),
        ("four pmegs fewer", Sun4 { locked: base.locked + 4, ..base }),
        ("four pmegs more", Sun4 { locked: base.locked - 4, ..base }),
    ];
    let mut table = Table::new(
        "Other rules with the same parameters: root mean square log error over all rows, one run each",
        "rule",
        vec![Column::new("elapsed", "", 2), Column::new("faults", "", 2)],
    );
    let cases: Vec<(Sun4, VmTest)> = variants
        .iter()
        .flat_map(|&(_, system)| published.iter().map(move |row| (system, VmTest::published(row.megabytes))))
        .collect();
    let model = run_all(&cases, seeds.clone(), 1);
    for (index, (name, _)) in variants.iter().enumerate() {
        let of = &model[index * published.len()..(index + 1) * published.len()];
        table.row(
            *name,
            [
                Some(log_rms(published.iter().zip(of).map(|(row, mean)| (row.elapsed, mean.elapsed)))),
                Some(log_rms(published.iter().zip(of).map(|(row, mean)| (row.faults, mean.faults)))),
            ],
        );
    }
    table
}

/// The same question with a translation buffer of today.
pub(super) fn today(seed: u64) -> (Table, Plot) {
    const REFERENCES: u64 = 100_000;
    let kinds = [("4 KiB pages", false), ("2 MiB pages", true)];
    let columns = kinds.iter().flat_map(|(name, _)| {
        [
            Column::new(format!("{name}: missed the first level"), "%", 1),
            Column::new(format!("{name}: walked the tables"), "%", 1),
            Column::new(format!("{name}: translation"), "cycles", 1),
        ]
    });
    let title = "Today: random references on a Skylake server, prediction without published figures";
    let mut table = Table::new(title, "region", columns.collect());
    let mut lines = [Vec::new(), Vec::new()];
    for shift in 17..=36 {
        let bytes = 1u64 << shift;
        let mut figures = Vec::new();
        for (&(_, large), line) in kinds.iter().zip(&mut lines) {
            let met = random(&Tlb::SKYLAKE, large, bytes, REFERENCES, seed);
            let share = |count: u64| count as f64 / REFERENCES as f64;
            let cycles = met.translation / REFERENCES as f64;
            figures.extend([100.0 * share(met.first_misses), 100.0 * share(met.walks), cycles].map(Some));
            line.push((bytes as f64 / f64::from(1 << 20), cycles));
        }
        let label = match shift {
            0..20 => format!("{} KB", bytes >> 10),
            20..30 => format!("{} MB", bytes >> 20),
            _ => format!("{} GB", bytes >> 30),
        };
        table.row(label, figures);
    }
    let series = kinds.iter().zip(lines).map(|((name, _), points)| Series::line(*name, points));
    let plot = study_plot(
        "Today: translation by region",
        Axis::log("region (MB)", ""),
        Axis::linear("cycles per reference", ""),
        series.collect(),
    );
    (table, plot)
}
