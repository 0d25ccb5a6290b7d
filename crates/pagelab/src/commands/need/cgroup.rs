//! How much memory a running cgroup needs: has the kernel reclaim a little of it at a time.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use pagelab_analysis::probe::{Action, Need, Probe, State};
use pagelab_experiment::build::Sheet;
use pagelab_experiment::{metrics, tables};
use pagelab_kernel::cgroup::Group;
use pagelab_kernel::hierarchy::{self, Version};
use pagelab_kernel::region::page_size;
use pagelab_report::need::{self, Held};
use serde_json::json;

use super::running::{Output, Record, Running, restoring, wait};
use crate::context::Context;
use crate::failure::usage;
use crate::interrupt::Interrupt;
use crate::output::{SCHEMA_VERSION, print_json, say, sentences};
use crate::page;

/// The length of an interval.
const INTERVAL: Duration = Duration::from_secs(1);
/// The parts of an interval: the memory in use is read in each, and a part of the step reclaimed.
const SAMPLES: u32 = 5;
/// The most folders that a search for a cgroup reads.
const MAX_FOLDERS: usize = 100_000;

/// The folder of the cgroup `name`: a path, or the last part of one.
///
/// # Errors
/// When there is none, or several, or it has no memory controller.
pub fn find(name: &str) -> Result<PathBuf> {
    check(below(&unified()?, name)?)
}

/// The directory of the cgroup `name` below a mount point.
///
/// # Errors
/// If there is none, or several.
pub fn below(mount: &Path, name: &str) -> Result<PathBuf> {
    let path = Path::new(name);
    let below = path.strip_prefix(mount).unwrap_or(path);
    // As components, so that no slash ends it.
    let folder: PathBuf = mount.join(below.strip_prefix("/").unwrap_or(below)).components().collect();
    if folder.join("cgroup.procs").exists() {
        return Ok(folder);
    }
    let found = named(mount, name.trim_matches('/'));
    match &found[..] {
        [] => Err(usage(format!(
            "there is no cgroup '{name}'\nhint: systemd-cgls shows the names; a process is named by its number"
        ))),
        [only] => Ok(only.clone()),
        [first, second, ..] => Err(usage(format!(
            "{} cgroups are named '{name}', such as {} and {}\nhint: give the path",
            found.len(),
            first.display(),
            second.display()
        ))),
    }
}

/// The mount of version 2 with the memory controller.
fn unified() -> Result<PathBuf> {
    match hierarchy::hierarchy() {
        Some(found) if found.version == Version::Two => Ok(found.mount),
        Some(_) => Err(anyhow!(
            "the memory controller of this machine is of cgroup version 1, which does not reclaim in steps\n\
             hint: give a process: pagelab need PID"
        )),
        None => Err(anyhow!("this machine has no memory controller\nhint: give a process: pagelab need PID")),
    }
}

/// The folder, if it is a cgroup whose memory can be reclaimed.
fn check(folder: PathBuf) -> Result<PathBuf> {
    let name = folder.display();
    // The root has no parent to charge: it holds what no other cgroup does.
    if !folder.join("cgroup.events").exists() {
        return Err(usage(format!("{name} is the root of all cgroups\nhint: name a cgroup below it")));
    }
    if folder.join("memory.current").exists() {
        return Ok(folder);
    }
    Err(anyhow!(
        "{name} has no memory controller\nhint: enable it: echo +memory > {}/cgroup.subtree_control",
        folder.parent().unwrap_or(&folder).display()
    ))
}

/// The cgroups whose path ends in this name.
fn named(mount: &Path, name: &str) -> Vec<PathBuf> {
    let (mut found, mut todo, mut read) = (Vec::new(), vec![mount.to_owned()], 0);
    while let Some(folder) = todo.pop() {
        read += 1;
        if read > MAX_FOLDERS {
            break;
        }
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        for path in entries.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()) {
            if path.ends_with(name) {
                found.push(path.clone());
            }
            todo.push(path);
        }
    }
    found.sort();
    found
}

/// The cgroup of version 2 in which the process is alone, if it has the memory controller.
pub fn alone(pid: u32) -> Option<PathBuf> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let folder = check(unified().ok()?.join(path)).ok()?;
    let processes = std::fs::read_to_string(folder.join("cgroup.procs")).ok()?;
    (processes.split_ascii_whitespace().eq([pid.to_string()])).then_some(folder)
}

/// Measures and prints.
///
/// # Errors
/// When the cgroup is removed, this user may not reclaim its memory, or the user interrupts.
pub fn run(folder: &Path, running: Running, output: Output<'_>, context: &Context) -> Result<ExitCode> {
    let interrupt = Interrupt::listen().context("cannot install signal handlers")?;
    let name = folder.file_name().map_or_else(|| "/".into(), |name| name.to_string_lossy().into_owned());
    if !output.json && !context.quiet {
        crate::output::remark!(
            "measuring {name} for at most {} s; its tasks may stall for {} of the time",
            running.seconds,
            need::percent(running.max_stall)
        );
    }
    let mut record = None;
    let mut first: Option<u64> = None;
    loop {
        let need = measure(folder, running, interrupt, context.quiet)?;
        let held = held(folder);
        let record = match &mut record {
            Some(record) => record,
            None => record.insert(Record::begin(path(folder), running, output, context)?),
        };
        keep(record, &name, &need, &held)?;
        if first.is_none() || output.json {
            print(&name, &need, &held, running, output, context)?;
        } else {
            say!("{}", need::drift(need.needed, first.unwrap_or(need.needed)));
        }
        first = first.or(Some(need.needed));
        let Some(pause) = running.watch else { return Ok(ExitCode::SUCCESS) };
        wait(Instant::now() + Duration::from_secs(pause.into()), interrupt)?;
    }
}

/// Its path below the mount.
fn path(folder: &Path) -> String {
    let below = hierarchy::mount().and_then(|mount| Some(folder.strip_prefix(mount).ok()?.to_owned()));
    below.as_deref().unwrap_or(folder).display().to_string()
}

/// One search. Where the kernel does not reclaim on request, `memory.high` is in the journal.
fn measure(folder: &Path, running: Running, interrupt: Interrupt, quiet: bool) -> Result<Need> {
    let group = Group::new(folder);
    let file = folder.join(if group.can_reclaim() { Group::RECLAIM } else { Group::HIGH });
    let refused = |error: std::io::Error| match error.kind() {
        _ if !folder.exists() => removed(folder),
        std::io::ErrorKind::PermissionDenied => {
            anyhow!("cannot write {}\nhint: run as root or as the owner of the cgroup", file.display())
        }
        _ => anyhow!("cannot write {}: {error}", file.display()),
    };
    OpenOptions::new().write(true).open(&file).map_err(refused)?;
    if !is_populated(folder) {
        return Err(anyhow!(
            "the cgroup {} has no processes\nhint: start its tasks first; memory that ended tasks left is not needed",
            folder.display()
        ));
    }
    if group.can_reclaim() {
        return search(group, running, interrupt, &refused);
    }
    restoring(file.clone(), interrupt, quiet, || search(group, running, interrupt, &refused))
}

/// Whether a process runs in the cgroup or below it; of a kernel that does not say, yes.
fn is_populated(folder: &Path) -> bool {
    let events = std::fs::read_to_string(folder.join("cgroup.events"));
    !events.is_ok_and(|text| text.lines().any(|line| line == "populated 0"))
}

fn removed(folder: &Path) -> anyhow::Error {
    anyhow!("the cgroup {} was removed", folder.display())
}

/// The steps.
fn search(
    group: Group<'_>,
    running: Running,
    interrupt: Interrupt,
    refused: &dyn Fn(std::io::Error) -> anyhow::Error,
) -> Result<Need> {
    let removed = || removed(group.path());
    let interval = INTERVAL.as_secs_f64();
    let intervals = (f64::from(running.seconds) / interval) as usize;
    let mut probe = Probe::new(intervals, interval, running.max_stall, page_size() as u64);
    let stalled = || group.stalled().map(|ns| ns as f64 / 1e9);
    let (begun, mut reclaimed, mut number) = (Instant::now(), 0, 0u32);
    let mut most = (group.charged(), group.anonymous());
    loop {
        let state = State {
            second: begun.elapsed().as_secs_f64(),
            memory: most.0.ok_or_else(removed)?,
            anonymous: most.1,
            refaults: group.refaults().ok_or_else(removed)?,
            stalled: stalled(),
        };
        let step = match probe.next(state, reclaimed) {
            Action::End => return probe.need().ok_or_else(removed),
            Action::Wait => 0,
            Action::Reclaim(bytes) => bytes,
        };
        (reclaimed, most) = (0, (None, None));
        for _ in 0..SAMPLES {
            let since = stalled().zip(state.stalled).map_or(0.0, |(now, before)| now - before);
            if step > 0 && since <= probe.step_limit() {
                reclaimed += group.reclaim(step / u64::from(SAMPLES)).map_err(refused)?;
            }
            number += 1;
            wait(begun + INTERVAL / SAMPLES * number, interrupt)?;
            most = (most.0.max(group.charged()), most.1.max(group.anonymous()));
        }
    }
}

/// Keeps a measurement in the notebook.
fn keep(record: &mut Record<'_>, name: &str, need: &Need, held: &Held) -> Result<()> {
    let mut sheet = Sheet::without(tables::need::TABLE, &[tables::need::LOWER, tables::need::UPPER]);
    for one in &need.intervals {
        let bytes = [one.memory, one.reclaimed, one.returned].map(|bytes| Some(bytes as f64));
        sheet.row([Some(one.second * 1e9), bytes[0], bytes[1], bytes[2], Some(one.stall)]);
    }
    let figures = [
        (metrics::NEED_MEMORY, Some(need.needed as f64)),
        (metrics::NEED_LIMIT, held.limit.map(|limit| limit as f64)),
        (metrics::NEED_GROWTH, need.growth.map(|growth| growth * 60.0)),
        (metrics::NEED_STALL, Some(need.stall)),
    ];
    record.keep(&figures, sheet, need::answer(name, need, held))
}

/// What memory the cgroup holds, and what keeps the kernel from reclaiming it.
fn held(folder: &Path) -> Held {
    let group = Group::new(folder);
    let swap = std::fs::read_to_string("/proc/swaps").is_ok_and(|text| text.lines().count() > 1);
    Held {
        anonymous: group.stat("anon"),
        files: group.stat("file"),
        has_swap: swap && group.number("memory.swap.max") != Some(0),
        has_pressure: group.stalled().is_some(),
        limit: group.limit(),
    }
}

fn print(
    name: &str,
    need: &Need,
    held: &Held,
    running: Running,
    output: Output<'_>,
    context: &Context,
) -> Result<()> {
    if let Some(file) = output.html {
        page::write_document(
            &format!("Memory need of {name}"),
            None,
            &[need::section(name, need, held)],
            file,
        )?;
    }
    if output.json {
        if running.watch.is_some() {
            say!(
                "{}",
                json!({ "schema_version": SCHEMA_VERSION, "cgroup": name, "need": need, "held": held })
            );
        } else {
            print_json("need", json!({ "cgroup": name, "result": need, "held": held }))?;
        }
        return Ok(());
    }
    sentences(&need::answer(name, need, held), "", "  ", &context.style);
    say!("\n{}", need::table(need).terminal(&context.style));
    if let Some(file) = output.html {
        say!("Plots: {}", file.display());
    }
    Ok(())
}
