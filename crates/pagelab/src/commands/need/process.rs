//! How much memory a running process needs at least: the private pages that it references, by age.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use pagelab_experiment::build::Sheet;
use pagelab_experiment::metrics;
use pagelab_experiment::tables;
use pagelab_kernel::cgroup::Group;
use pagelab_kernel::damon;
use pagelab_kernel::working_set::Process;
use pagelab_kernel::{geometry, hierarchy};
use pagelab_report::need::{self, Age, Method};
use serde_json::json;

use super::running::{Output, Record, Running, wait};
use super::sampled;
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
        let (ages, method) = measure(&process, pid, running, interrupt, context.quiet)?;
        let Some(last) = ages.last().copied() else { return Ok(ExitCode::SUCCESS) };
        keep(&mut record, &name, pid, &ages, &method)?;
        if first.is_none() || output.json {
            print(&name, &ages, &method, running, output, context)?;
        } else {
            say!("{}", need::drift(last.size, first.unwrap_or(last.size)));
        }
        first = first.or(Some(last.size));
        let Some(pause) = running.watch else { return Ok(ExitCode::SUCCESS) };
        wait(Instant::now() + Duration::from_secs(pause.into()), interrupt)?;
    }
}

/// The ages at which all accessed bits are read: 1, 2, 4, … seconds up to `seconds`.
fn ends(seconds: u32) -> impl Iterator<Item = u32> + Clone {
    let doubling = std::iter::successors(Some(1u32), |second| second.checked_mul(2));
    doubling.take_while(move |&second| second < seconds).chain([seconds])
}

/// One measurement: by all accessed bits, and where that takes more of the time than the tasks may
/// stall, by DAMON, if this machine has it.
fn measure(
    process: &Process,
    pid: u32,
    running: Running,
    interrupt: Interrupt,
    quiet: bool,
) -> Result<(Vec<Age>, Method)> {
    // One walk clears the bits.
    let walks = ends(running.seconds).count() as u32 + 1;
    let walk_share = (process.walk() * walks).as_secs_f64() / f64::from(running.seconds);
    let mut without_damon = None;
    if walk_share > running.max_stall {
        let sampled = match damon::available() {
            Ok(()) => sampled::measure(process, pid, running.seconds, interrupt, quiet)?,
            Err((why, _)) => Err(why),
        };
        match sampled {
            Ok((ages, samples)) => return Ok((ages, Method::Damon { walk_share, samples })),
            Err(why) => without_damon = Some(why),
        }
    }
    let ages = bits(process, pid, running.seconds, interrupt)?;
    Ok((ages, Method::AccessedBits { walk_share, without_damon }))
}

/// What was referenced within 1, 2, 4, … seconds up to `seconds`.
fn bits(process: &Process, pid: u32, seconds: u32, interrupt: Interrupt) -> Result<Vec<Age>> {
    let ended = || format!("the process {pid} ended");
    let tlb = geometry::tlb_entries();
    process.clear().with_context(ended)?;
    let begun = Instant::now();
    let mut ages = Vec::new();
    for second in ends(seconds) {
        wait(begun + Duration::from_secs(second.into()), interrupt)?;
        let (seen, bounds) = process.sample_with_bounds(tlb).with_context(ended)?;
        ages.push(Age {
            seconds: second,
            size: seen.referenced - seen.shared,
            lower: bounds.lower,
            upper: bounds.upper,
            shared: Some(seen.shared),
            resident: seen.resident,
            resident_private: seen.private,
        });
    }
    Ok(ages)
}

/// Keeps a measurement in the notebook.
fn keep(record: &mut Record<'_>, name: &str, pid: u32, ages: &[Age], method: &Method) -> Result<()> {
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
    record.keep(&figures, sheet, need::ages_answer(name, ages, method))
}

fn print(
    name: &str,
    ages: &[Age],
    method: &Method,
    running: Running,
    output: Output<'_>,
    context: &Context,
) -> Result<()> {
    if let Some(file) = output.html {
        page::write_document(
            &format!("Memory need of {name}"),
            None,
            &[need::ages_section(name, ages, method)],
            file,
        )?;
    }
    if output.json {
        let found = json!({
            "process": name, "method": method, "ages": ages, "histogram": need::histogram(ages),
        });
        if running.watch.is_some() {
            let mut line = json!({ "schema_version": SCHEMA_VERSION });
            if let (Some(line), Some(found)) = (line.as_object_mut(), found.as_object()) {
                line.extend(found.clone());
            }
            say!("{line}");
        } else {
            print_json("need", found)?;
        }
        return Ok(());
    }
    sentences(&need::ages_answer(name, ages, method), "", "  ", &context.style);
    for table in [need::histogram_table(ages), need::ages_table(ages)] {
        say!("\n{}", table.terminal(&context.style).trim_end());
    }
    if let Some(file) = output.html {
        say!("Plots: {}", file.display());
    }
    Ok(())
}
