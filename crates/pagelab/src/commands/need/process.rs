//! How much memory a running process needs at least: the private pages that it references, by age.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use pagelab_experiment::build::Sheet;
use pagelab_experiment::metrics;
use pagelab_experiment::tables;
use pagelab_kernel::cgroup::Group;
use pagelab_kernel::working_set::Process;
use pagelab_kernel::{geometry, hierarchy};
use pagelab_report::need::{self, Age};
use serde_json::json;

use super::running::{Output, Record, Running, wait};
use crate::context::Context;
use crate::interrupt::Interrupt;
use crate::output::{SCHEMA_VERSION, print_json, say, sentences};
use crate::page;

/// Measures and prints.
///
/// # Errors
/// When the process ends, this user may not look at it, or the user interrupts.
pub fn run(pid: u32, running: Running, output: Output<'_>, context: &Context) -> Result<ExitCode> {
    let process = Process::open(pid).with_context(|| {
        format!(
            "cannot read process {pid}: check that it is running\nhint: run as root if it is another user's"
        )
    })?;
    let interrupt = Interrupt::listen().context("cannot install signal handlers")?;
    let name = process.name().map_or_else(|| format!("process {pid}"), |name| format!("{name} ({pid})"));
    if !output.json && !context.quiet {
        crate::output::remark!("watching {name} for {} s", running.seconds);
    }
    let mut record = Record::begin(pid.to_string(), running, output, context)?;
    let mut first: Option<u64> = None;
    loop {
        let ages = measure(&process, pid, running.seconds, interrupt)?;
        let Some(last) = ages.last().copied() else { return Ok(ExitCode::SUCCESS) };
        keep(&mut record, &name, pid, &ages)?;
        if first.is_none() || output.json {
            print(&name, &ages, running, output, context)?;
        } else {
            say!("{}", need::drift(last.size, first.unwrap_or(last.size)));
        }
        first = first.or(Some(last.size));
        let Some(pause) = running.watch else { return Ok(ExitCode::SUCCESS) };
        wait(Instant::now() + Duration::from_secs(pause.into()), interrupt)?;
    }
}

/// What was referenced within 1, 2, 4, … seconds up to `seconds`.
fn measure(process: &Process, pid: u32, seconds: u32, interrupt: Interrupt) -> Result<Vec<Age>> {
    let ended = || format!("the process {pid} ended");
    let tlb = geometry::tlb_entries();
    process.clear().with_context(ended)?;
    let begun = Instant::now();
    let doubling = std::iter::successors(Some(1u32), |second| second.checked_mul(2));
    let ends = doubling.take_while(|&second| second < seconds).chain([seconds]);
    let mut ages = Vec::new();
    for second in ends {
        wait(begun + Duration::from_secs(second.into()), interrupt)?;
        let (seen, bounds) = process.sample_with_bounds(tlb).with_context(ended)?;
        ages.push(Age {
            seconds: second,
            size: seen.referenced - seen.shared,
            lower: bounds.lower,
            upper: bounds.upper,
            shared: seen.shared,
            resident: seen.resident,
        });
    }
    Ok(ages)
}

/// Keeps a measurement in the notebook.
fn keep(record: &mut Record<'_>, name: &str, pid: u32, ages: &[Age]) -> Result<()> {
    let mut sheet = Sheet::without(
        tables::need::TABLE,
        &[tables::need::RECLAIMED, tables::need::RETURNED, tables::need::STALL],
    );
    for age in ages {
        let bytes = [age.size, age.lower, age.upper].map(|bytes| Some(bytes as f64));
        sheet.row([Some(f64::from(age.seconds) * 1e9), bytes[0], bytes[1], bytes[2]]);
    }
    let limit = hierarchy::memory_of(pid).and_then(|folder| Group::new(&folder).limit());
    let figures = [
        (metrics::NEED_MEMORY, ages.last().map(|age| age.size as f64)),
        (metrics::NEED_LIMIT, limit.map(|limit| limit as f64)),
    ];
    record.keep(&figures, sheet, need::ages_answer(name, ages))
}

fn print(name: &str, ages: &[Age], running: Running, output: Output<'_>, context: &Context) -> Result<()> {
    if let Some(file) = output.html {
        page::write_document(
            &format!("Memory need of {name}"),
            None,
            &[need::ages_section(name, ages)],
            file,
        )?;
    }
    if output.json {
        if running.watch.is_some() {
            say!("{}", json!({ "schema_version": SCHEMA_VERSION, "process": name, "ages": ages }));
        } else {
            print_json("need", json!({ "process": name, "ages": ages }))?;
        }
        return Ok(());
    }
    sentences(&need::ages_answer(name, ages), "", "  ", &context.style);
    say!("\n{}", need::ages_table(ages).terminal(&context.style));
    if let Some(file) = output.html {
        say!("Plots: {}", file.display());
    }
    Ok(())
}
