//! What is printed and kept of a replay of objects of different sizes.

use std::io::Write;

use anyhow::Result;

use pagelab_experiment::Experiment;
use pagelab_experiment::experiments::Curve;
use pagelab_model::sized::{Counts, SizedKind};
use pagelab_report::{TextTable, text};
use pagelab_simulation::sized::{self, SizedMisses};
use serde_json::json;

use crate::computed::{self, Computed};
use crate::context::Context;
use crate::output::SCHEMA_VERSION;
use crate::stream::{Memory, StreamArguments, described};
use crate::watching::Watching;

/// What the policies made of the trace.
pub struct Found(SizedMisses);

/// Replays every policy at every size.
///
/// # Errors
/// When the trace cannot be read or knows no sizes, there is too little memory, or the user interrupts.
pub fn replay(
    arguments: &StreamArguments,
    policies: &[SizedKind],
    memory: &[Memory],
    context: &Context,
) -> Result<Found> {
    let page_size = arguments.page_size();
    let amount = |memory: &Memory| match *memory {
        Memory::Size(size) => sized::Memory::Bytes(size.bytes(page_size)),
        Memory::Percent(percent) => sized::Memory::Percent(percent),
    };
    let memory: Vec<sized::Memory> = memory.iter().map(amount).collect();
    let watching = Watching::new("reading the trace", context.quiet)?;
    Ok(Found(sized::replay(&arguments.source()?, policies, &memory, &watching)?))
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl Found {
    /// How the trace was read.
    pub fn described(&self) -> String {
        described(&self.0.reading)
    }

    /// What was asked for.
    pub fn sentence(&self) -> String {
        let counts = self.0.rows.first().map(|row| row.2).unwrap_or_default();
        format!(
            "{} requests to {} objects; {} requested, objects of {}",
            text::count(counts.requests as f64),
            text::count(f64::from(self.0.objects)),
            text::bytes(counts.bytes as f64),
            text::bytes(self.0.bytes as f64)
        )
    }

    /// A row for each policy and size.
    pub fn table(&self) -> TextTable {
        let headings =
            ["model", "memory", "misses", "miss ratio", "bytes missed", "byte miss ratio", "not admitted"];
        let row = |(policy, memory, counts): &(SizedKind, u64, Counts)| {
            vec![
                policy.to_string(),
                text::bytes(*memory as f64),
                text::count(counts.misses as f64),
                format!("{:.4}", share(counts.misses, counts.requests)),
                text::bytes(counts.byte_misses as f64),
                format!("{:.4}", share(counts.byte_misses, counts.bytes)),
                text::count(counts.not_admitted as f64),
            ]
        };
        TextTable::new("Misses at each size", headings, self.0.rows.iter().map(row))
    }

    /// One object a line for each policy and size.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn print_json(&self, stream: &str) -> Result<()> {
        let mut out = crate::output::stdout();
        for (policy, memory, counts) in &self.0.rows {
            let object = json!({
                "schema_version": SCHEMA_VERSION,
                "stream": stream,
                "model": policy.to_string(),
                "memory_bytes": memory,
                "requests": counts.requests,
                "misses": counts.misses,
                "miss_ratio": share(counts.misses, counts.requests),
                "bytes": counts.bytes,
                "byte_misses": counts.byte_misses,
                "byte_miss_ratio": share(counts.byte_misses, counts.bytes),
                "not_admitted": counts.not_admitted,
            });
            writeln!(out, "{object}")?;
        }
        Ok(())
    }

    /// The curve of each policy, to be kept and drawn.
    ///
    /// # Errors
    /// When a policy cannot be named as a target.
    pub fn computed(&self, arguments: &StreamArguments) -> Result<Vec<Computed>> {
        let page_size = arguments.page_size();
        let mut policies: Vec<SizedKind> = self.0.rows.iter().map(|row| row.0).collect();
        policies.dedup();
        let curve = |policy: SizedKind| {
            let rows = self.0.rows.iter().filter(|row| row.0 == policy);
            let point = |(_, memory, counts): &(SizedKind, u64, Counts)| computed::Point {
                frames: u32::try_from(memory / page_size).unwrap_or(u32::MAX),
                misses: Some(counts.misses),
                ratio: Some(share(counts.misses, counts.requests)),
                error: None,
                mean_resident: None,
                write_backs: None,
                byte_ratio: Some(share(counts.byte_misses, counts.bytes)),
                read_ahead: None,
            };
            let points: Vec<computed::Point> = rows.map(point).collect();
            let curve = Curve {
                stream: format!("{} --sizes bytes", arguments.words()),
                page_size,
                references: self.0.rows.first().map_or(0, |row| row.2.requests),
                pages: u64::from(self.0.objects),
                ..Curve::default()
            };
            Ok(Computed::curve(
                Experiment::Replay(curve),
                computed::model(&policy.to_string())?,
                page_size,
                &points,
            ))
        };
        policies.into_iter().map(curve).collect()
    }
}
