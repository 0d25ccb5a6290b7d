//! Tables and plots of the study of reverse maps: forks on this machine, calls, kinds of reverse
//! map, the profile, the gain for reclaim, parameters.

use super::*;

pub(super) fn here(
    runs: &[Run],
    published: &Published,
    [with, without]: [[f64; 4]; 2],
    model: &Model,
) -> Table {
    let ten = &model.ten;
    let live = live();
    let columns = ["2.5.27 published", "with chains published", "with chains, model", "here"]
        .map(|name| Column::new(name, "", 2));
    let mut table = here::table(NAME, &live, runs, "the script, by its forks", columns.to_vec());
    let forks = ten.counts.forks as f64;
    let system = without[1] + model.chain_seconds();
    let metric = |metric| live[0].metric(runs, metric);
    // 200 iterations of five forks each.
    let made =
        metric(metrics::FORKS_RATE).zip(metric(metrics::TIME_ELAPSED)).map(|(rate, ns)| rate * ns / 1e9);
    let each = |of, scale: f64| metric(of).zip(made).map(|(sum, forks)| sum / forks / scale);
    let faults = published.calls.iter().filter(|(name, _)| name == "do_no_page" || name == "do_wp_page");
    let five = published.calls.iter().find(|(name, _)| name == "forks").map_or(f64::NAN, |(_, count)| *count);
    let faults = faults.map(|(_, count)| count).sum::<f64>() / five;
    let modelled = (ten.counts.do_no_page + ten.counts.do_wp_page) as f64 / forks;
    let ms = |seconds: f64| Some(seconds / forks * 1e3);
    table.row(
        "system time of a fork, ms",
        [ms(without[1]), ms(with[1]), ms(system), each(metrics::TIME_SYSTEM, 1e6)],
    );
    table.row("user time of a fork, ms", [ms(without[0]), ms(with[0]), None, each(metrics::TIME_USER, 1e6)]);
    table.row("faults per fork", [None, Some(faults), Some(modelled), each(metrics::FAULTS_MINOR, 1.0)]);
    table.row(
        "forks per second",
        [Some(forks / without[3]), Some(forks / with[3]), None, metric(metrics::FORKS_RATE)],
    );
    table
}

pub(super) fn counts_table(published: &Published, five: &Memory) -> Table {
    let mut table = Table::new(
        "Five copies of the script: calls",
        "counter",
        columns! {
            "" 0 "published" "model";
            "" 2 "model a fork";
            "%" 1 "distance";
        },
    );
    for (name, printed) in &published.calls {
        let model = count(five, name);
        table.row(
            name.as_str(),
            [
                Some(*printed),
                model,
                model.map(|m| m / five.counts.forks as f64),
                model.filter(|_| *printed > 0.0).map(|m| 100.0 * (m / printed - 1.0)),
            ],
        );
    }
    let chain = five.chains.counts();
    table
        .row("elements walked a removal", [None, Some(chain.walked as f64 / chain.walks as f64), None, None]);
    table
}

pub(super) fn kinds_table(published: &Published, model: &Model) -> Result<Table, StudyError> {
    let costs = &model.costs;
    let without = published.run(WITHOUT)?;
    let mut table = Table::new(
        "Ten copies of the script under each reverse map",
        "reverse map",
        columns! {
            "" 0 "operations" "atomics" "cache misses" "allocations and frees";
            "s" 2 "time";
            "s" 1 "system time";
            "%" 1 "more than without";
        },
    );
    for kind in KINDS {
        let work = if kind == Kind::Chain { model.chain_work() } else { model.ten.work(kind) };
        let time = if kind == Kind::Chain { model.chain_seconds() } else { costs.time(&work) / 1e9 };
        table.row(
            kind.name(),
            [
                Some(work.operations as f64),
                Some(work.atomics as f64),
                Some(work.misses as f64),
                Some(work.slab as f64),
                Some(time),
                Some(without[1] + time),
                Some(100.0 * time / without[1]),
            ],
        );
    }
    Ok(table)
}

/// Every row of the published profile, with the model's share.
pub(super) fn profile_table(published: &Published, model: &Model) -> Result<Table, StudyError> {
    let without = published.run(WITHOUT)?;
    let [add, remove, slab] = model.seconds();
    let system = without[1] + add + remove + slab;
    let mut table = Table::new(
        "Ten copies: every row of the profile; the kernel without chains is what the model adds to",
        "function",
        ["without chains, published", "with chains, published", "with chains, model"]
            .map(|name| Column::new(name, "%", 2))
            .to_vec(),
    );
    let mut names: Vec<&str> = published.profile.iter().map(|(_, function, ..)| function.as_str()).collect();
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    for function in names {
        let share = |kernel| published.share(kernel, function);
        let seconds = match function {
            "page_add_rmap" => Some(add),
            "page_remove_rmap" => Some(remove),
            _ => share(WITHOUT).map(|share| share * without[1]),
        };
        let percent = |share: f64| 100.0 * share;
        table.row(
            function,
            [share(WITHOUT).map(percent), share(WITH).map(percent), seconds.map(|s| 100.0 * s / system)],
        );
    }
    table.row("kmem_cache_alloc and _free for chains", [None, Some(2.85), Some(100.0 * slab / system)]);
    Ok(table)
}

/// The published profile and the model's, by function in the published order.
pub(super) fn profile_bars(published: &Published, profile: &Table) -> Bars {
    let claim = |name: &str| {
        let row = published.profile.iter().position(|(_, function, ..)| function == name);
        row.map_or_else(|| "slab-share".to_owned(), |row| format!("share/{}", row + 1))
    };
    let row = |(name, figures): &(String, Vec<Option<f64>>)| {
        let both = figures[1].filter(|_| figures[2].is_some());
        both.map(|printed| BarRow::new(name, Some(printed), figures[2]).of(claim(name)))
    };
    Bars {
        title: "The profile with chains, ten copies: published and model".into(),
        caption: "Each function's share of the kernel's time. What has nothing to do with the reverse map takes as \
                  long as without it; page_add_rmap, page_remove_rmap and the slab's part are the model's."
            .into(),
        unit: "%",
        decimals: 1,
        models: vec!["model"],
        rows: profile.rows.iter().filter_map(row).collect(),
    }
}

/// Where the time of the two functions is.
pub(super) fn parts_table(model: &Model) -> Table {
    let mut table = Table::new(
        "Ten copies on four processors: an operation of the reverse map",
        "function",
        columns! {
            "ns" 0 "lock" "walk" "unlock" "rest";
            "" 2 "lines missed" "of them behind the first element" "elements allocated or freed";
        },
    );
    let seen = &model.ten_at_once;
    for (name, parts) in [("page_add_rmap", &seen.adding), ("page_remove_rmap", &seen.removing)] {
        let calls = parts.operations as f64;
        let times = parts.time(&model.costs).map(|time| Some(time / calls));
        let counts = [parts.misses(), parts.beyond, parts.slab].map(|count| Some(count as f64 / calls));
        table.row(name, times.into_iter().chain(counts));
    }
    table
}

const SHARERS: [u64; 7] = [1, 2, 5, 10, 50, 200, 1000];

fn wanted(sharers: u64) -> Wanted {
    Wanted { sharers, others: 0, entries: 100_000, batch: 32 }
}

pub(super) fn reclaim(costs: &Costs) -> (Table, Plot) {
    let mut table = Table::new(
        "Reclaim: finding and clearing all mappings of a page (32 pages wanted, 100,000 entries in all page tables)",
        "reverse map",
        SHARERS.map(|sharers| Column::new(format!("{sharers} share"), "µs", 2)).to_vec(),
    );
    let mut series = Vec::new();
    for kind in KINDS {
        let times = SHARERS.map(|sharers| unmap_time(kind, &wanted(sharers), costs) / 1e3);
        table.row(kind.name(), times.map(Some));
        let points = SHARERS.iter().zip(times).map(|(&s, t)| (s as f64, t));
        series.push(Series::line(kind.name(), points));
    }
    // Children that copied the page since the fork are looked up through the object in vain.
    for kind in [Kind::Chain, Kind::Object, Kind::Folio] {
        let times = SHARERS.map(|all| {
            let wanted = Wanted { sharers: 1, others: all - 1, ..wanted(1) };
            Some(unmap_time(kind, &wanted, costs) / 1e3)
        });
        table.row(format!("{}, all but one have copied it", kind.name()), times);
    }
    let plot = study_plot(
        "Reclaim: finding all mappings of a page",
        Axis::log("processes that share it", ""),
        Axis::log("µs per page", ""),
        series,
    );
    (table, plot)
}

pub(super) fn trade(costs: &Costs) -> (Table, Plot) {
    let life = |kind, sharers| costs.time(&entry_life(kind, sharers, 16)) / 1e3;
    let mut table = Table::new(
        "The trade: time of an entry's life, and of its share in one reclaim of the page",
        "reverse map",
        columns! {
            "µs" 2 "fork to exit, 1 shares" "fork to exit, 10 share" "reclaim, 1 shares" "reclaim, 10 share";
            "" 2 "reclaims a 100 lives to repay, 10 share";
        },
    );
    for kind in KINDS {
        let of = |sharers: u64| unmap_time(kind, &wanted(sharers), costs) / 1e3 / sharers as f64;
        let saved = unmap_time(Kind::None, &wanted(10), costs) / 1e4 - of(10);
        let repay = (saved > 0.0).then(|| 100.0 * life(kind, 10) / saved);
        table.row(kind.name(), [Some(life(kind, 1)), Some(life(kind, 10)), Some(of(1)), Some(of(10)), repay]);
    }
    let reclaims = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0];
    let series = KINDS
        .iter()
        .map(|&kind| {
            Series::line(
                kind.name(),
                reclaims
                    .iter()
                    .map(|&r| (r, life(kind, 10) + r * unmap_time(kind, &wanted(10), costs) / 1e4)),
            )
        })
        .collect();
    let plot = study_plot(
        "The trade: ten processes share a page",
        Axis::log("reclaims for each life of an entry", ""),
        Axis::log("µs per entry, from fork to exit", ""),
        series,
    );
    (table, plot)
}

pub(super) fn parameter_list(declared: &[Declared], script: &Script) -> Vec<Parameter> {
    let facts = facts! {
        "copies", f64::from(script.instances), "", documented("Morton 2002");
        "iterations", f64::from(script.iterations), "", documented("Morton 2002");
        "forks per iteration", 5.0, "", derived("12,477 forks in 5 × 500 iterations");
        "mappings of the shell", SHELL.segments.len() as f64, "", derived("174,521 copied in 12,477 forks");
        "pages of the shell", 222.0, "", derived("2,774,954 copied in 12,477 forks");
        "elements a processor keeps", 252.0, "", documented("2.5's slab: 252 of small objects, 126 at once");
    };
    facts.into_iter().chain(Parameter::of(declared)).collect()
}
