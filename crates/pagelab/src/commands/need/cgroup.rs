//! How much memory a running cgroup needs: has the kernel reclaim a little of it at a time.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use pagelab_analysis::probe::{Action, Need, Probe, State};
use pagelab_kernel::cgroup::Group;
use pagelab_kernel::hierarchy::{self, Version};
use pagelab_kernel::region::page_size;
use pagelab_report::need::{self, Held};
use serde_json::json;

use super::running::{Output, Running, wait};
use crate::context::Context;
use crate::failure::usage;
use crate::interrupt::Interrupt;
use crate::output::{SCHEMA_VERSION, print_json, say, sentences};
use crate::page;

/// The length of an interval.
const INTERVAL: Duration = Duration::from_secs(1);
/// The most folders that a search for a cgroup reads.
const MAX_FOLDERS: usize = 100_000;

/// The folder of the cgroup `name`: a path, or the last part of one.
///
/// # Errors
/// When there is none, or several, or its memory cannot be reclaimed on request.
pub fn find(name: &str) -> Result<PathBuf> {
    let mount = unified()?;
    let path = Path::new(name);
    let below = path.strip_prefix(&mount).unwrap_or(path);
    // As components, so that no slash ends it.
    let folder: PathBuf = mount.join(below.strip_prefix("/").unwrap_or(below)).components().collect();
    if folder.join("cgroup.procs").exists() {
        return check(folder);
    }
    let found = named(&mount, name.trim_matches('/'));
    match &found[..] {
        [] => Err(usage(format!(
            "there is no cgroup '{name}'\nhint: systemd-cgls shows the names; a process is named by its number"
        ))),
        [only] => check(only.clone()),
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
            "the memory controller of this machine is of cgroup version 1, which does not reclaim on request\n\
             hint: give a process: pagelab need PID"
        )),
        None => Err(anyhow!("this machine has no memory controller\nhint: give a process: pagelab need PID")),
    }
}

/// The folder, if it is a cgroup whose memory can be reclaimed on request.
fn check(folder: PathBuf) -> Result<PathBuf> {
    let name = folder.display();
    let [is_charged, is_reclaimed] =
        ["memory.current", Group::RECLAIM].map(|file| folder.join(file).exists());
    if is_charged && is_reclaimed {
        return Ok(folder);
    }
    // The root has no parent to charge: it holds what no other cgroup does.
    if !folder.join("cgroup.events").exists() {
        return Err(usage(format!("{name} is the root of all cgroups\nhint: name a cgroup below it")));
    }
    Err(if is_charged {
        anyhow!(
            "{name} has no memory.reclaim\nhint: use Linux 5.19 or later, or give a process: pagelab need PID"
        )
    } else {
        anyhow!(
            "{name} has no memory controller\nhint: enable it: echo +memory > {}/cgroup.subtree_control",
            folder.parent().unwrap_or(&folder).display()
        )
    })
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

/// The cgroup of version 2 in which the process is alone, if its memory can be reclaimed on
/// request.
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
    let mut first: Option<u64> = None;
    loop {
        let need = measure(folder, running, interrupt)?;
        let held = held(folder);
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

/// One search.
fn measure(folder: &Path, running: Running, interrupt: Interrupt) -> Result<Need> {
    let group = Group::new(folder);
    let removed = || anyhow!("the cgroup {} was removed", folder.display());
    let interval = INTERVAL.as_secs_f64();
    let intervals = (f64::from(running.seconds) / interval) as usize;
    let mut probe = Probe::new(intervals, interval, running.max_stall, page_size() as u64);
    let (begun, mut reclaimed, mut number) = (Instant::now(), 0, 0u32);
    loop {
        let state = State {
            second: begun.elapsed().as_secs_f64(),
            memory: group.charged().ok_or_else(removed)?,
            refaults: group.refaults().ok_or_else(removed)?,
            stalled: group.stalled().map(|ns| ns as f64 / 1e9),
        };
        reclaimed = match probe.next(state, reclaimed) {
            Action::End => return probe.need().ok_or_else(removed),
            Action::Wait => 0,
            Action::Reclaim(bytes) => group.reclaim(bytes).map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => removed(),
                std::io::ErrorKind::PermissionDenied => anyhow!(
                    "cannot write {}/{}\nhint: run as root or as the owner of the cgroup",
                    folder.display(),
                    Group::RECLAIM
                ),
                _ => anyhow!("cannot write {}/{}: {error}", folder.display(), Group::RECLAIM),
            })?,
        };
        number += 1;
        wait(begun + INTERVAL * number, interrupt)?;
    }
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
