//! The judged evictions of a run as a sentence and as tables.

use pagelab_analysis::evictions::{ByTask, CLASSES, Completeness, Judgement, Similarity};
use pagelab_analysis::finding::{Finding, What};

use super::shown;
use crate::table::TextTable;
use crate::text::{DASH, count};

/// The evictions in one sentence.
pub(super) fn sentence(finding: &Finding, judgement: &Judgement) -> String {
    if judgement.evictions == 0 {
        return "no page was evicted".to_owned();
    }
    let evictions = count(judgement.evictions as f64);
    let mut parts = vec![format!(
        "{evictions} evictions; OPT (offline optimum) would have kept {} of these pages",
        shown(finding, "opt.kept")
    )];
    if let Some(references) = judgement.kept_for {
        parts[0] += &format!(", for a median of {} references", count(f64::from(references)));
    }
    parts.extend(likest(&judgement.similar));
    parts.push(format!(
        "the median evicted page was older than {:.0}% of the pages in memory",
        judgement.rank
    ));
    parts.extend(evictors(&judgement.by));
    if judgement.unused > 0 {
        let share = judgement.unused as f64 / judgement.evictions as f64 * 100.0;
        parts.push(format!("{share:.1}% of the evicted pages were read ahead and never referenced"));
    }
    if !judgement.completeness.is_whole() {
        parts.push(format!(
            "the log is full and covers the first {} references only",
            count(f64::from(judgement.references))
        ));
    }
    parts.join("; ")
}

/// Who freed the pages.
fn evictors(by: &[ByTask]) -> Option<String> {
    let all: u64 = by.iter().map(|one| one.evictions).sum();
    let first = by.first().filter(|one| !one.by.is_empty())?;
    let share = first.evictions as f64 / all as f64 * 100.0;
    Some(match first.by {
        "swap-cache" => format!("{share:.0}% of them came back from the swap cache before they were freed"),
        _ => format!("{} freed {share:.0}% of them", who(first.by)),
    })
}

/// The tasks of this name in the log.
fn who(name: &str) -> &'static str {
    match name {
        "kswapd" => "kswapd",
        "direct" => "direct reclaim",
        "cgroup" => "reclaim at the cgroup's limit",
        "task" => "tasks other than kswapd",
        "swap-cache" => "none: back from the swap cache",
        _ => "not freed before the end",
    }
}

/// The most similar model by the pages in memory and by the order of evictions; both if they
/// differ.
fn likest(similar: &[Similarity]) -> Option<String> {
    let first = similar.first()?;
    let pages = format!("Jaccard index {:.2}", first.jaccard);
    let tau = |one: &Similarity| one.tau.map(|tau| format!("Kendall's tau-b {tau:.2}"));
    Some(match Similarity::by_order(similar).and_then(|one| Some((one, tau(one)?))) {
        Some((order, tau)) if order.model == first.model => format!(
            "model:{} is most similar, by the pages in memory ({pages}) and by the order of evictions ({tau})",
            first.model
        ),
        Some((order, tau)) => format!(
            "the pages in memory are most similar to those of model:{} ({pages}), but the order of evictions \
             to that of model:{} ({tau})",
            first.model, order.model
        ),
        None => {
            format!("the pages in memory are most similar to those of model:{} ({pages})", first.model)
        }
    })
}

/// The tables of a finding on evictions: causes, ranks, models, completeness. Other findings have
/// none.
pub(super) fn tables(finding: &Finding) -> Vec<TextTable> {
    let What::Evictions { judgement } = &finding.what else { return Vec::new() };
    if judgement.evictions == 0 {
        return vec![completeness(judgement)];
    }
    let by = (!judgement.by.is_empty()).then(|| by_task(judgement));
    let first = [causes(judgement), ranks(judgement)].into_iter().chain(by);
    first.chain([models(judgement), completeness(judgement)]).collect()
}

fn by_task(judgement: &Judgement) -> TextTable {
    let share = |part: u64, all: u64| format!("{:.1}%", part as f64 / all as f64 * 100.0);
    let rows = judgement.by.iter().map(|one| {
        vec![
            who(one.by).to_owned(),
            count(one.evictions as f64),
            share(one.kept_by_opt, one.evictions),
            share(one.workingset, one.evictions),
            format!("{:.0}%", one.rank),
        ]
    });
    let headings = ["freed by", "evictions", "kept by OPT", "workingset", "age rank"];
    let mut table = TextTable::new("Evictions by the task that freed the page", headings, rows);
    table.remarks.push(
        "workingset: the kernel had flagged the page, because it was active or came back soon after an \
         earlier eviction. Age rank: median share of the pages in memory that were younger."
            .into(),
    );
    table
}

fn causes(judgement: &Judgement) -> TextTable {
    let regret = &judgement.regret;
    let named = [
        ("evicted from the younger half of memory", regret.young as f64),
        ("evicted from the older half after one reference", regret.once as f64),
        ("evicted from the older half after several references", regret.old as f64),
        ("not in memory before the first reference", regret.outside as f64),
        ("read ahead, and evicted before the first reference", regret.unused as f64),
        ("hits on pages that OPT had evicted", -(regret.saved as f64)),
        ("first hits on pages that were read ahead", -(regret.ahead as f64)),
        ("total", regret.total() as f64),
    ];
    let ahead = |row: &(&str, f64)| judgement.file || !row.0.contains("read ahead");
    let signed = |value: f64| if value < 0.0 { format!("-{}", count(-value)) } else { count(value) };
    let rows = named.into_iter().filter(ahead).map(|(cause, faults)| vec![cause.to_owned(), signed(faults)]);
    let mut table = TextTable::new("Faults beyond OPT by cause", ["cause", "faults"], rows);
    table.remarks.push(format!(
        "The run had {} faults, OPT with {} frames {}. References are counted from the fault that loaded the page.",
        count(judgement.faults as f64),
        count(f64::from(judgement.frames)),
        count(judgement.opt as f64)
    ));
    table
}

fn ranks(judgement: &Judgement) -> TextTable {
    let width = 100 / CLASSES;
    let share = |evictions: u64| evictions as f64 / judgement.evictions as f64 * 100.0;
    let row = |(n, &evictions): (usize, &u64)| {
        vec![
            format!("{}% to {}%", n * width, (n + 1) * width),
            count(evictions as f64),
            format!("{:.1}%", share(evictions)),
        ]
    };
    let rows = judgement.ranks.iter().enumerate().map(row);
    let title = "Age of evicted pages among the pages in memory";
    let mut table = TextTable::new(title, ["younger pages", "evictions", "share"], rows);
    table.remarks.push(
        "LRU evicts a page when all others are younger. A random choice evicts equally many pages per row."
            .into(),
    );
    table
}

fn models(judgement: &Judgement) -> TextTable {
    let rows = judgement.similar.iter().map(|one| {
        vec![
            format!("model:{}", one.model),
            format!("{:.3}", one.jaccard),
            format!("{:.1}%", one.agreed * 100.0),
            format!("{:.1}%", one.matched * 100.0),
            one.tau.map_or_else(|| DASH.to_owned(), |tau| format!("{tau:.3}")),
        ]
    });
    let headings = ["model", "Jaccard index", "evictions that agree", "matched", "tau-b"];
    let mut table = TextTable::new("Models, the most similar first", headings, rows);
    table.remarks.push(
        "Jaccard index: pages in memory in both the run and the model, divided by pages in either; mean of \
         60 samples. An eviction agrees if the model does not have the page in memory at that time. \
         model:random shows the agreement by chance."
            .into(),
    );
    table.remarks.push(
        "An eviction is matched if the model evicts the page after the same reference. Kendall's tau-b compares \
         the order of matched evictions within each sixtieth of the run: 1 is the same order, 0 no relation, \
         -1 the reverse."
            .into(),
    );
    table
}

fn completeness(judgement: &Judgement) -> TextTable {
    let complete = &judgement.completeness;
    let Completeness { evictions, returned, .. } = *complete;
    let pages = |value: u64| count(value as f64);
    let mut rows = vec![
        vec!["in memory before the first reference".to_owned(), pages(complete.resident_first)],
        vec![
            if judgement.file { "entered the page cache" } else { "came back to memory" }.to_owned(),
            pages(returned),
        ],
        vec!["evicted".to_owned(), pages(evictions)],
    ];
    let mut row = |name: &str, value: Option<u64>| {
        rows.extend(value.map(|value| vec![name.to_owned(), pages(value)]));
    };
    row("fetched for a reference", judgement.file.then_some(complete.fetched));
    row(
        "evicted and back between two reads of the page table",
        (!judgement.file).then_some(complete.between),
    );
    row("in memory after the last reference", complete.present_last);
    row(if judgement.file { "major faults counted" } else { "faults counted" }, complete.counted_faults);
    row("pages freed by the kernel (workingset_eviction)", complete.freed);
    row("pages reclaimed by kswapd (pgsteal_kswapd)", complete.stolen_by_kswapd);
    row("pages reclaimed by tasks (pgsteal_direct and others)", complete.stolen_by_tasks);
    row("pages written to swap (pswpout)", complete.swapped_out);
    row("evictions that are not in the log", Some(evictions.saturating_sub(complete.logged)));
    row("rows that contradict the stream", Some(complete.contradictions));
    let mut table = TextTable::new("Completeness of the eviction log", ["count", "pages"], rows);
    let signed = |value: i64| format!("{value:+}");
    if let Some(difference) = complete.difference() {
        let (first, last) = (complete.resident_first, complete.present_last.unwrap_or_default());
        table.remarks.push(format!(
            "{} in memory at the start + {} {} = {} evicted + {} in memory at the end; difference {}.",
            pages(first),
            pages(returned),
            if judgement.file { "entered" } else { "returned" },
            pages(evictions),
            pages(last),
            signed(difference)
        ));
    }
    let against = |name: &str, value: Option<u64>| {
        value.map(|value| format!("{name} {}", signed(value as i64 - evictions as i64)))
    };
    let parts = [
        complete.unseen().map(|unseen| {
            let of = if judgement.file { "major faults minus fetched pages" } else { "faults minus returns" };
            format!("{of} {}", signed(unseen))
        }),
        match (complete.stolen(), complete.freed) {
            (Some(stolen), Some(freed)) => {
                Some(format!("pgsteal minus freed pages {}", signed(stolen as i64 - freed as i64)))
            }
            (stolen, _) => against("pgsteal minus evictions", stolen),
        },
        against("pswpout minus evictions", complete.swapped_out.filter(|_| !judgement.file)),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if complete.stolen().is_some() {
        let mut remark =
            "Tasks reclaim in an allocation (direct reclaim) or at their cgroup's limit.".to_owned();
        if judgement.by.is_empty() {
            remark += " The page table does not show who evicted a page.";
        }
        table.remarks.push(remark);
    }
    if judgement.file && complete.unseen().is_some_and(|unseen| unseen > 0) {
        table.remarks.push(
            "A fault that waits for a page that read-ahead is still reading is a major fault too, but fetches \
             nothing."
                .into(),
        );
    }
    if !parts.is_empty() {
        table.remarks.push(format!("Differences: {}.", parts.join("; ")));
    }
    table
}
