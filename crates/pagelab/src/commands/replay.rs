//! `pagelab replay STREAM --on model:… --memory SIZE…`: what models make of a recorded stream.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use pagelab_experiment::declaration::Refusal;
use pagelab_experiment::experiments::Curve;
use pagelab_experiment::target::TargetKind;
use pagelab_experiment::{Experiment, TargetSpec};
use pagelab_model::policy::PolicyKind;
use pagelab_model::sized::SizedKind;
use pagelab_model::systems::{ReadAhead, SystemKind};
use pagelab_report::{Section, TextTable, curves, text};
use pagelab_simulation::{Wanted, records};
use serde_json::{Value, json};

use crate::computed::{self, Computed, Keeping};
use crate::context::Context;
use crate::failure::usage;
use crate::output::{SCHEMA_VERSION, aside, say, sentences};
use crate::page::Drawing;
use crate::sized;
use crate::stream::{Memory, StreamArguments, described, sizes};
use crate::watching::Watching;

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(before_help = "Examples:
  pagelab replay trace.zst --on lru --on s3-fifo --memory 64M 256M 1G
  valgrind --tool=lackey --trace-mem=yes --log-file=trace.txt sort words
  pagelab replay trace.txt --on opt --on clock --memory 10%,20%,400p --json
  pagelab replay morning.zst evening.zst --memory 10% --plot
")]
pub struct Arguments {
    #[command(flatten)]
    stream: StreamArguments,
    /// More traces or patterns, for one table of all
    #[arg(value_name = "STREAM")]
    more: Vec<String>,
    /// The models, with or without 'model:'
    #[arg(long, value_name = "MODEL", value_parser = model_target, default_values = ["model:lru", "model:opt"])]
    on: Vec<TargetSpec>,
    /// The memory sizes: bytes with K, M, G, pages with p, or a percentage of the stream's pages
    #[arg(long, value_name = "SIZE", num_args = 1.., value_delimiter = ',', required = true)]
    memory: Vec<Memory>,
    /// The unit of a request: one page, the pages that it lies in, or the bytes of an object
    #[arg(long, value_enum, value_name = "UNIT", default_value_t = Sizes::One)]
    sizes: Sizes,
    /// Count how often a dirty page has to be written, of a trace that knows writes
    #[arg(long)]
    write_backs: bool,
    /// Print what each policy counts of its own work: ghost hits, pages that its hand spares, …
    #[arg(long)]
    counters: bool,
    #[command(flatten)]
    drawing: Drawing,
    /// Print one JSON object per line for each model and size
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    keeping: Keeping,
}

/// What a request of a trace that knows sizes counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Sizes {
    /// One page, whatever its size
    One,
    /// Every page that it lies in
    Pages,
    /// An object of its bytes, which is resident as a whole or not at all
    Bytes,
}

/// A model that can be replayed to.
pub enum Replayable {
    Policy(PolicyKind),
    System(&'static SystemKind),
}

/// What a model made of the stream at one size.
#[derive(Default)]
struct Row {
    model: String,
    frames: u32,
    /// Of a policy of variable space, which has no fixed number of frames.
    mean_resident: Option<f64>,
    /// `None` where it is impossible.
    misses: Option<u64>,
    /// Why the model cannot have so few frames.
    impossible: Option<String>,
    write_backs: Option<u64>,
    counters: Vec<(&'static str, u64)>,
    read_ahead: Option<ReadAhead>,
}

/// `lru` is `model:lru`.
pub fn model_target(text: &str) -> Result<TargetSpec, Refusal> {
    let kinds = ["host", "kernel:", "model:"];
    let text = if kinds.iter().any(|kind| text.starts_with(kind)) {
        text.to_owned()
    } else {
        format!("model:{text}")
    };
    text.parse().map_err(|e| Refusal::new(format!("{e}")))
}

/// What was made of a stream.
struct Done {
    stream: StreamArguments,
    replay: Replay,
    results: Vec<Computed>,
}

/// Replays and prints.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let streams = arguments.stream.and(&arguments.more);
    if arguments.sizes == Sizes::Bytes {
        return objects(arguments, &streams, context);
    }
    let models = arguments.on.iter().map(model).collect::<Result<Vec<_>>>()?;
    let mut list = Vec::new();
    for stream in streams {
        let replay = replay(arguments, &stream, &models, context)?;
        let results = computed(&stream, &replay)?;
        if !arguments.json {
            say!("{}: {}", stream.stream, replay.sentence());
        }
        if let Some(described) = &replay.described {
            aside(described, arguments.json);
        }
        list.push(Done { stream, replay, results });
    }
    if arguments.json {
        let mut out = crate::output::stdout();
        for Done { stream, replay, .. } in &list {
            replay.rows.iter().try_for_each(|row| writeln!(out, "{}", replay.object(row, &stream.stream)))?;
        }
    } else {
        print(arguments, &list, context);
    }
    let section = |Done { stream, replay, results }: &Done| {
        let drawn = Computed::drawn(results);
        Section {
            heading: stream.words(),
            answer: curves::answer(&drawn),
            paragraphs: vec![format!("{}.", replay.sentence())],
            plots: Computed::plots(results),
            tables: vec![curves::rows(&drawn)],
            ..Section::default()
        }
    };
    if arguments.drawing.wanted() {
        let sections: Vec<Section> = list.iter().map(section).collect();
        arguments.drawing.draw("Replay", &sections, arguments.json)?;
    }
    let impossible = list.iter().flat_map(|done| &done.replay.rows).any(|row| row.impossible.is_some());
    let results = list.into_iter().flat_map(|done| done.results).collect();
    arguments.keeping.keep(results, arguments.json, context)?;
    Ok(if impossible { ExitCode::from(3) } else { ExitCode::SUCCESS })
}

/// One table for all streams, and what there is to say of it.
fn print(arguments: &Arguments, list: &[Done], context: &Context) {
    let drawn = |done: &Done| curves::rows(&Computed::drawn(&done.results));
    let table = one_table(&labels(list), list.iter().map(drawn).collect());
    say!("{}", text::table(&table.headings, &table.rows, &context.style));
    for (done, label) in list.iter().zip(labels(list)) {
        let answer = curves::answer(&Computed::drawn(&done.results));
        if !answer.is_empty() {
            let answer = if list.len() > 1 { format!("{label}: {answer}") } else { answer };
            sentences(&answer, "", "  ", &context.style);
        }
    }
    for row in list.iter().flat_map(|done| &done.replay.rows) {
        if let Some(why) = &row.impossible {
            sentences(&format!("{}: {why}", row.model), "", "  ", &context.style);
        }
    }
    if arguments.counters {
        print_counters(list, context);
    }
    if arguments.write_backs {
        let meaning =
            "write-backs: times that a dirty page had to be written, when it was evicted or at the end";
        sentences(meaning, "", "  ", &context.style);
    }
    if list.iter().flat_map(|done| &done.replay.rows).any(|row| row.read_ahead.is_some()) {
        sentences(
            "misses: pages read on demand only, comparable with opt; waits with read-ahead: references that still wait where pages \
             are read ahead, which reads more of them (pages read)",
            "",
            "  ",
            &context.style,
        );
    }
}

fn labels(list: &[Done]) -> Vec<String> {
    list.iter().map(|done| done.stream.label()).collect()
}

/// The table of the only stream, or all with a column that names them.
fn one_table(labels: &[String], mut tables: Vec<TextTable>) -> TextTable {
    if tables.len() == 1 { tables.remove(0) } else { curves::joined(labels, tables) }
}

/// Replays objects of their own sizes.
fn objects(arguments: &Arguments, streams: &[StreamArguments], context: &Context) -> Result<ExitCode> {
    if arguments.write_backs || arguments.counters {
        return Err(usage("--sizes bytes counts misses and their bytes, no write-backs and no counters"));
    }
    let policy = |target: &TargetSpec| -> Result<SizedKind> {
        let name = target.to_string();
        name.parse().map_err(|e| usage(format!("--on {target} --sizes bytes: {e}")))
    };
    let policies = arguments.on.iter().map(policy).collect::<Result<Vec<_>>>()?;
    let (mut sections, mut results, mut tables) = (Vec::new(), Vec::new(), Vec::new());
    for stream in streams {
        let found = sized::replay(stream, &policies, &arguments.memory, context)?;
        let of_it = found.computed(stream)?;
        if arguments.json {
            found.print_json(&stream.stream)?;
        } else {
            say!("{}: {}", stream.stream, found.sentence());
        }
        aside(&found.described(), arguments.json);
        sections.push(Section {
            heading: stream.words(),
            paragraphs: vec![found.sentence()],
            plots: Computed::plots(&of_it),
            tables: vec![found.table()],
            ..Section::default()
        });
        tables.push(found.table());
        results.extend(of_it);
    }
    if !arguments.json {
        let labels: Vec<String> = streams.iter().map(StreamArguments::label).collect();
        let table = one_table(&labels, tables);
        say!("{}", text::table(&table.headings, &table.rows, &context.style));
    }
    arguments.drawing.draw("Replay", &sections, arguments.json)?;
    arguments.keeping.keep(results, arguments.json, context)?;
    Ok(ExitCode::SUCCESS)
}

/// What the policies counted of their own work.
fn print_counters(list: &[Done], context: &Context) {
    let of_row = |row: &Row| -> Vec<Vec<String>> {
        let name = |what: &str| vec![row.model.clone(), text::count(f64::from(row.frames)), what.to_owned()];
        let one = |(what, count): &(&str, u64)| [name(what), vec![text::count(*count as f64)]].concat();
        row.counters.iter().map(one).collect()
    };
    let headings = ["model", "pages", "counter", "count"].map(str::to_owned).to_vec();
    let table = |done: &Done| TextTable {
        headings: headings.clone(),
        rows: done.replay.rows.iter().flat_map(of_row).collect(),
        ..TextTable::default()
    };
    let table = one_table(&labels(list), list.iter().map(table).collect());
    if table.rows.is_empty() {
        say!("None of these models has counters of its own.");
    } else {
        say!("{}", text::table(&table.headings, &table.rows, &context.style));
    }
}

/// The curve of each model.
fn computed(stream: &StreamArguments, replay: &Replay) -> Result<Vec<Computed>> {
    let &Replay { ref rows, references, pages, through_window, .. } = replay;
    let page_size = stream.page_size();
    let mut models: Vec<&str> = rows.iter().map(|row| row.model.as_str()).collect();
    models.dedup();
    let computed = |model: &str| -> Result<Computed> {
        let points: Vec<computed::Point> = rows
            .iter()
            .filter(|row| row.model == model)
            .map(|row| computed::Point {
                frames: row.frames,
                misses: row.misses,
                ratio: row.misses.map(|misses| misses as f64 / references as f64),
                error: None,
                mean_resident: row.mean_resident,
                write_backs: row.write_backs,
                byte_ratio: None,
                read_ahead: row.read_ahead.map(|ahead| (ahead.waits, ahead.pages_read)),
            })
            .collect();
        let stream = stream.words();
        let pages = u64::from(pages);
        let curve = Curve { stream, page_size, references, pages, through_window, ..Curve::default() };
        Ok(Computed::curve(Experiment::Replay(curve), computed::model(model)?, page_size, &points))
    };
    models.into_iter().map(computed).collect()
}

/// The policy or system of a target.
///
/// # Errors
/// If the target is no model with a page-replacement policy.
pub fn model(target: &TargetSpec) -> Result<(String, Replayable)> {
    let TargetKind::Model(name) = &target.kind else {
        return Err(usage(format!(
            "--on {target}: a recorded stream can be replayed on models only\nhint: 'pagelab targets' lists them"
        )));
    };
    if let (Some(system), true) = (SystemKind::named(name), target.options.is_empty()) {
        return Ok((system.name.to_owned(), Replayable::System(system)));
    }
    let mut text = name.clone();
    for (n, (key, value)) in target.options.iter().enumerate() {
        text += if n == 0 && !name.contains(':') { ":" } else { "," };
        text += &format!("{key}={value}");
    }
    let kind: PolicyKind =
        text.parse().map_err(|e| usage(format!("--on {target}: {e}\nhint: 'pagelab policies' lists all")))?;
    Ok((kind.to_string(), Replayable::Policy(kind)))
}

/// What the models made of the stream.
struct Replay {
    rows: Vec<Row>,
    references: u64,
    pages: u32,
    described: Option<String>,
    /// Whether the recording was made through a window.
    through_window: bool,
}

impl Replay {
    fn sentence(&self) -> String {
        let [references, pages] = [self.references as f64, f64::from(self.pages)].map(text::count);
        format!("{references} references to {pages} pages")
    }

    fn object(&self, row: &Row, stream: &str) -> Value {
        json!({
            "schema_version": SCHEMA_VERSION,
            "stream": stream,
            "model": row.model,
            "frames": row.frames,
            "references": self.references,
            "misses": row.misses,
            "miss_ratio": row.misses.map(|misses| misses as f64 / self.references as f64),
            "impossible": row.impossible,
            "mean_resident": row.mean_resident,
            "write_backs": row.write_backs,
            "counters": row.counters.iter().copied().collect::<BTreeMap<_, _>>(),
            "read_ahead_waits": row.read_ahead.map(|r| r.waits),
            "read_ahead_pages_read": row.read_ahead.map(|r| r.pages_read),
        })
    }
}

/// Every model at every size, in the order given.
fn replay(
    arguments: &Arguments,
    stream: &StreamArguments,
    models: &[(String, Replayable)],
    context: &Context,
) -> Result<Replay> {
    let (mut policies, mut systems) = (Vec::new(), Vec::new());
    for (_, model) in models {
        match model {
            Replayable::Policy(kind) => policies.push(kind.clone()),
            Replayable::System(system) => systems.push(*system),
        }
    }
    let split = arguments.sizes == Sizes::Pages;
    let records = records::Wanted { writes: arguments.write_backs, split, bytes: false };
    let wanted = Wanted {
        policies: &policies,
        systems: &systems,
        records: (arguments.write_backs || split).then_some(records),
        ..Wanted::at(sizes(&arguments.memory, stream.page_size(), 0)?)
    };
    pagelab_kernel::allocator::ask_for_huge_pages();
    let watching = Watching::new("reading the trace", context.quiet)?;
    let simulated = pagelab_simulation::replay(&stream.source()?, &wanted, &watching)?;
    let (mut policies, mut systems) = (simulated.policies.into_iter(), simulated.systems.into_iter());
    let mut rows = Vec::new();
    for (name, model) in models {
        for &frames in &simulated.frames {
            let mut row = Row { model: name.clone(), frames, ..Row::default() };
            match model {
                Replayable::Policy(_) => {
                    let one = policies.next().expect("one result for each policy and size");
                    (row.misses, row.mean_resident) = (Some(one.misses), one.mean_resident);
                    (row.write_backs, row.counters) = (one.write_backs, one.counters);
                }
                Replayable::System(_) => match systems.next().expect("one result for each system and size") {
                    Ok(one) => (row.misses, row.read_ahead) = (Some(one.misses), one.read_ahead),
                    Err(error) => row.impossible = Some(error.to_string()),
                },
            }
            rows.push(row);
        }
    }
    let described = simulated.reading.as_ref().map(described);
    Ok(Replay {
        rows,
        references: simulated.references,
        pages: simulated.pages,
        described,
        through_window: simulated.through_window,
    })
}
