//! The notebook as a static site: an index of all runs, a page per run, a page that compares any
//! two runs, the history of each series, and the glossary. The site needs no server and loads
//! nothing from other sites.
//!
//! The caller adds one run at a time, newest first. [`Site`] keeps only the row and the figures of
//! each run, for the pages that cover all runs, and drops the rest.

mod data;
mod history;
mod index;
mod row;

use std::sync::LazyLock;

use maud::{Markup, html};
use pagelab_analysis::findings::assess;
use pagelab_experiment::{Observations, Repetition, Run};

use self::data::Data;
use self::row::Row;
use crate::page::shell::{self, Place, SCRIPT, STYLE, Shell, Sources};
use crate::page::{Drawn, Room, glossary_in, json, page_in};

/// The page that lists all runs and links to the other pages.
pub const INDEX: &str = "index.html";
/// The page that compares two runs.
const COMPARE: &str = "compare.html";
/// The page with the history of each series.
const HISTORY: &str = "history.html";
/// The page that explains metrics and terms.
const GLOSSARY: &str = "glossary.html";
/// The folder of the runs' pages.
pub const RUNS: &str = "runs";

/// The maximum number of characters of a run's name in the name of its page.
const MAX_NAME_CHARS: usize = 60;

/// The limit on the bytes of all runs' pages together, shared equally. A share is never below
/// [`MIN_PAGE_BYTES`].
pub const MAX_PAGES_BYTES: usize = 40_000_000;
/// The smallest limit on the bytes of a run's page, however many runs there are.
pub const MIN_PAGE_BYTES: usize = 40_000;
/// The approximate size of a run's page without its charts.
const WITHOUT_CHARTS_BYTES: usize = 14_000;

/// A file of the site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path relative to the site's folder.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// A site under construction.
pub struct Site {
    /// The limit on the bytes of a run's page; none: no limit.
    page_bytes: Option<usize>,
    rows: Vec<Row>,
    data: Data,
    /// The runs with their environment and metrics only, for the history.
    figures: Vec<Run>,
    limited: usize,
}

/// The page of a run.
#[derive(Debug)]
pub struct Page {
    text: String,
    /// Whether it lacks charts.
    limited: bool,
}

impl Site {
    /// A site of `runs` runs. With `full`, every page has all its charts, however large it becomes.
    pub fn new(runs: usize, full: bool) -> Self {
        let share = (MAX_PAGES_BYTES / runs.max(1)).max(MIN_PAGE_BYTES);
        Self {
            page_bytes: (!full).then_some(share),
            rows: Vec::new(),
            data: Data::default(),
            figures: Vec::new(),
            limited: 0,
        }
    }

    /// The name of a run's page, unique within a notebook.
    pub fn page_name(id: i64, name: &str) -> String {
        let kept = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
        let name: String = name.chars().map(kept).take(MAX_NAME_CHARS).collect();
        // Servers hide files whose names begin with a dot, and some site generators those that
        // begin with an underscore.
        let name = name.trim_start_matches(['.', '_', '-']);
        let hyphen = if name.is_empty() { "" } else { "-" };
        format!("{RUNS}/{name}{hyphen}{id}.html")
    }

    /// Draws the page of a run, for [`Self::add`]. Several threads may draw pages at once.
    pub fn draw(&self, run: &Run) -> Page {
        page(run, self.page_bytes)
    }

    /// Adds a run with its page. `running` is the number of repetitions that a live pagelab is still
    /// writing.
    pub fn add(&mut self, run: Run, running: usize, page: Page) -> File {
        let name = Self::page_name(run.id, &run.header.name);
        self.rows.push(Row::of(&run, running, &name));
        if run.done().next().is_some() {
            self.data.add(&run, &name);
        }
        self.limited += usize::from(page.limited);
        self.figures.push(figures_of(run));
        File { name, text: page.text }
    }

    /// Adds a run that cannot be read; `why` is the reason.
    pub fn add_unreadable(&mut self, id: i64, name: &str, experiment: &str, started: &str, why: &str) {
        self.rows.push(Row::unreadable(id, name, experiment, started, why));
    }

    /// The number of runs whose pages lack charts.
    pub fn limited(&self) -> usize {
        self.limited
    }

    /// The style sheet and the script that the pages load; write them before the pages.
    pub fn shared() -> [File; 2] {
        let [style, script] = shared_names();
        [(style, STYLE), (script, SCRIPT)]
            .map(|(name, text)| File { name: name.clone(), text: text.to_owned() })
    }

    /// The names of all files except the runs' pages, including those that a site may lack.
    pub fn names() -> Vec<String> {
        let pages = [INDEX, COMPARE, HISTORY, GLOSSARY].map(str::to_owned);
        pages.into_iter().chain(shared_names().iter().cloned()).collect()
    }

    /// The pages that cover all runs, the index last; none if `stopped`, which is polled between
    /// series, returned true.
    pub fn finish(mut self, stopped: impl Fn() -> bool) -> Option<Vec<File>> {
        // A series goes from the oldest run to the newest.
        self.figures.reverse();
        let series = history::series(&self.figures, &stopped)?;
        let mut files = Vec::new();
        let mut file = |name: &str, text: String| files.push(File { name: name.to_owned(), text });
        let about_history = history::sentence(&series, HISTORY);
        if !series.is_empty() {
            file(HISTORY, history::page(&series, &Place::Site(&place(""))));
        }
        file(GLOSSARY, glossary_in(&Place::Site(&place(""))));
        file(COMPARE, self.compare_page());
        file(
            INDEX,
            own_page(&index::title(&self.rows), INDEX_SCRIPT, &index::body(&self.rows, &about_history)),
        );
        Some(files)
    }

    fn compare_page(&self) -> String {
        let side = |side: &str| {
            html! {
                label for=(side) { (side) }
                select id=(side) {}
                p id={(side) "-run"} {}
            }
        };
        let body = html! {
            noscript { p { "This page needs JavaScript. " code { "pagelab compare BEFORE AFTER" } " prints the comparison." } }
            div.sides.needs-script { (side("before")) (side("after")) }
            p.needs-script { button.scale #swap type="button" { "swap before and after" } }
            p.answer #answer role="status" {}
            div #result hidden {
                div.scroll tabindex="0" role="region" aria-label="Comparison" { table.lines {
                    thead { tr {
                        th scope="col" { "metric" }
                        th scope="col" #before-head { "before" }
                        th scope="col" #after-head { "after" }
                        @for heading in ["change", "95% interval", "p", "verdict"] { th scope="col" { (heading) } }
                    } }
                    tbody #lines {}
                } }
                p.soft #needed {}
                ul.verdict.warning #warnings {}
                p.soft {
                    "Median, minimum … maximum, and the number of repetitions (n). Deciding metrics are bold. "
                    code #command {} " prints the same comparison, with minimum detectable changes and the table rows that differ."
                }
            }
            script #data type="application/json" { (json(&self.data.json())) }
        };
        own_page("Compare two runs", COMPARE_SCRIPT, &body)
    }
}

const INDEX_SCRIPT: &str = concat!(include_str!("common.js"), include_str!("index.js"));
const COMPARE_SCRIPT: &str = concat!(
    include_str!("common.js"),
    include_str!("text.js"),
    include_str!("statistics.js"),
    include_str!("compare.js")
);
const OWN_STYLE: &str = concat!(include_str!("../page/page.css"), include_str!("site.css"));

/// A self-contained page with its own script.
fn own_page(title: &str, script: &str, body: &Markup) -> String {
    let tools = html! {
        @if script != INDEX_SCRIPT { a.tool href=(INDEX) { "all runs" } }
        a.tool href=(GLOSSARY) { "glossary" }
    };
    let sources = Sources::Inline { style: OWN_STYLE, script };
    Shell { title, sources, tools, index: Markup::default() }.page(body)
}

/// The page of a run in at most about `most` bytes.
fn page(run: &Run, most: Option<usize>) -> Page {
    let place = place("../");
    let runs = [run];
    let assessment = assess(&runs);
    let whole = || Page { text: page_in(&assessment, &Place::Site(&place), None), limited: false };
    let Some(most) = most else { return whole() };
    let drawn = Drawn::default();
    let within =
        |bytes| page_in(&assessment, &Place::Site(&place), Some(Room { bytes, drawn: Drawn::clone(&drawn) }));
    // A page that is too large without the tables needs no drawing of them.
    if within(usize::MAX).len() <= most {
        let whole = whole();
        if whole.text.len() <= most {
            return whole;
        }
    }
    let room = most.saturating_sub(WITHOUT_CHARTS_BYTES);
    let page = within(room);
    // The rest of the page is larger than assumed: reduce the room for charts.
    let beyond = page.len().saturating_sub(most);
    let text = if beyond > 0 { within(room.saturating_sub(beyond)) } else { page };
    Page { text, limited: true }
}

/// The names of the style sheet and the script, each with a digest of its content.
fn shared_names() -> &'static [String; 2] {
    static NAMES: LazyLock<[String; 2]> = LazyLock::new(|| {
        [("style", "css", STYLE), ("script", "js", SCRIPT)]
            .map(|(name, end, text)| format!("{name}-{}.{end}", shell::fingerprint(text)))
    });
    &NAMES
}

/// The place of a page; `up` is the relative path from the page to the site's folder.
fn place(up: &str) -> shell::Site {
    let [style, script] = shared_names().each_ref().map(|name| format!("{up}{name}"));
    shell::Site { style, script, glossary: format!("{up}{GLOSSARY}"), runs: format!("{up}{INDEX}") }
}

/// The run with its environment and metrics only.
fn figures_of(run: Run) -> Run {
    let repetition = |repetition: Repetition| {
        let Observations { environment, metrics, .. } = repetition.observations;
        let observations = Observations { environment, metrics, ..Observations::default() };
        Repetition { observations, ..repetition }
    };
    Run { repetitions: run.repetitions.into_iter().map(repetition).collect(), ..run }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_harmless_name_of_its_own() {
        for (name, page) in [
            ("nightly-7", "runs/nightly-7-3.html"),
            ("../../etc/passwd", "runs/etc-passwd-3.html"),
            ("a b/<c>\"&\u{202e}", "runs/a-b--c-----3.html"),
            (".hidden", "runs/hidden-3.html"),
            ("_x", "runs/x-3.html"),
            ("", "runs/3.html"),
            ("\u{5185}\u{5b58}", "runs/3.html"),
        ] {
            assert_eq!(Site::page_name(3, name), page, "{name}");
        }
        assert!(Site::page_name(i64::MAX, &"x".repeat(500)).len() < 100);
    }
}
