//! The JSON document: everything that was seen; page arrays as plain numbers; what is no number
//! (never measured, not finite) is null.

use std::collections::BTreeMap;
use std::io::{self, Write};

use pagelab_experiment::observation::{Counter, Histogram, Metric, Note, PageSnapshot, Table};
use pagelab_experiment::{Outcome, Run, RunHeader};
use serde::{Serialize, Serializer};

/// Grows when a reader of the document would have to change.
const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    runs: Vec<RunPart<'a>>,
}

#[derive(Serialize)]
struct RunPart<'a> {
    id: i64,
    #[serde(flatten)]
    header: &'a RunHeader,
    repetitions: Vec<RepetitionPart<'a>>,
}

#[derive(Serialize)]
struct RepetitionPart<'a> {
    number: u32,
    started: &'a str,
    #[serde(flatten)]
    outcome: &'a Outcome,
    observations: ObservationsPart<'a>,
}

#[derive(Serialize)]
struct ObservationsPart<'a> {
    environment: &'a BTreeMap<String, String>,
    metrics: &'a [Metric],
    histograms: &'a [Histogram],
    tables: &'a [Table],
    #[serde(serialize_with = "pages")]
    pages: &'a [PageSnapshot],
    counters: &'a [Counter],
    notes: &'a [Note],
    logs: &'a [(String, String)],
}

#[derive(Serialize)]
struct PagesPart<'a> {
    reference: u64,
    pages: u32,
    present: &'a [u32],
    swapped: &'a [u32],
    count: &'a [u32],
    last: &'a [u32],
}

fn pages<S: Serializer>(pages: &&[PageSnapshot], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(pages.iter().map(|p| PagesPart {
        reference: p.reference,
        pages: p.pages,
        present: p.present.runs(),
        swapped: p.swapped.runs(),
        count: &p.count,
        last: &p.last,
    }))
}

pub(super) fn write(runs: &[Run], to: &mut impl Write) -> io::Result<()> {
    let runs = runs
        .iter()
        .map(|run| RunPart {
            id: run.id,
            header: &run.header,
            repetitions: run
                .repetitions
                .iter()
                .map(|r| RepetitionPart {
                    number: r.number,
                    started: &r.started,
                    outcome: &r.outcome,
                    observations: ObservationsPart {
                        environment: &r.observations.environment,
                        metrics: &r.observations.metrics,
                        histograms: &r.observations.histograms,
                        tables: &r.observations.tables,
                        pages: &r.observations.pages,
                        counters: &r.observations.counters,
                        notes: &r.observations.notes,
                        logs: &r.observations.logs,
                    },
                })
                .collect(),
        })
        .collect();
    serde_json::to_writer(&mut *to, &Document { schema_version: SCHEMA_VERSION, runs })?;
    writeln!(to)
}
