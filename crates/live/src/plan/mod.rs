//! What a kernel will do of a request, before anything is set up: one planner for the running
//! kernel and for guests, each with its [`Capabilities`].

mod capabilities;
mod tasks;

use std::path::Path;

use pagelab_confine::settings::refusal;
use pagelab_confine::{self as confine, Problem, guard};
use pagelab_experiment::experiments::Dishonoured;
use pagelab_experiment::experiments::{Bounds, Load};
use pagelab_experiment::plan::Settled;
use pagelab_experiment::setting::{Swap, Value, names};
use pagelab_experiment::{Experiment, Origin, Plan, Request, Setting, Target, Unsupported, What};
use pagelab_kernel::settings;

pub use self::capabilities::{Capabilities, Lacking, script};
pub use self::tasks::{MAX_THREADS, Room};

use crate::experiments::paging::stream_bytes;
use crate::harness::content;
use crate::host::Host;
use crate::set_up::{failure, for_load, set_up};

/// What the harness of an experiment takes beside its load, where it is not counted one by one:
/// buffers, histograms, the program.
const HARNESS: u64 = 16 << 20;

/// Settles `request` on a kernel that has `capabilities`.
///
/// # Errors
/// What is not honoured, by the kernel's experiments or as far as is known by this kernel and
/// machine.
pub fn settle(request: &Request, capabilities: &Capabilities) -> Result<Settled, Unsupported> {
    let Capabilities { target, page_size, .. } = capabilities;
    let refuse = |(what, why, remedy): Lacking| Unsupported::new(target, what, why, remedy);
    let declared = request.experiment.declaration();
    if declared.load() == Load::None {
        let remedy = "use pagelab record, trace, replay, mrc or wss".to_owned();
        return Err(refuse((What::Experiment, "has no load to run for it".to_owned(), remedy)));
    }
    let bounds = Bounds {
        limit: None,
        last_cache: capabilities.last_cache,
        beyond_fast_node: capabilities.beyond_fast_node,
    };
    let mut settled = Settled::new(request, target, *page_size, bounds, |condition| {
        honours(&request.experiment, condition)?;
        (capabilities.condition)(condition)
    })?;
    let condition = |name: &str| What::Condition(name.to_owned());
    let limited = settled.setting.limit().is_some();
    if let (false, Some(why)) = (limited, declared.needs_limit()) {
        return Err(refuse((condition("memory=none"), why.to_owned(), "give --memory SIZE".to_owned())));
    }
    if settled.setting.swap == Some(Swap::None) && !limited {
        let why = "keeps a load from the machine's swap only inside a memory limit";
        return Err(refuse((condition("swap=none"), why.to_owned(), "give --memory SIZE too".to_owned())));
    }
    declared.requires().iter().try_for_each(|feature| (capabilities.feature)(feature)).map_err(refuse)?;
    choose_swap(&mut settled, capabilities);
    if settled.setting.swap_size.is_some() && !own_swap(&settled.setting) {
        let remedy = "give --swap file or zram too".to_owned();
        return Err(refuse((condition(names::SWAP_SIZE), "makes no swap for this run".to_owned(), remedy)));
    }
    let tasks = settled.experiment.declaration().tasks(*page_size);
    if tasks.threads > MAX_THREADS {
        let why = format!(
            "needs {} threads in {} processes at once, and at most {MAX_THREADS} threads are started",
            tasks.threads, tasks.processes
        );
        let remedy = "use fewer workers or copies, or larger processes".to_owned();
        return Err(refuse((What::Experiment, why, remedy)));
    }
    if let Some(why) = tasks::refusal(tasks, &capabilities.threads) {
        let remedy = "use fewer workers or copies, larger processes, or raise that limit".to_owned();
        return Err(refuse((What::Machine, why, remedy)));
    }
    if let Some(memory) = capabilities.memory {
        let wanted = memory_at_once(&settled, capabilities);
        guard::memory(wanted, limited, Some(memory)).map_err(|problem| machine(target, problem))?;
    }
    Ok(settled)
}

/// Whether the experiment honours the condition on any Linux kernel.
///
/// # Errors
/// Why not, and what to do instead.
pub fn honours(experiment: &Experiment, condition: &Value) -> Result<(), Dishonoured> {
    let declared = experiment.declaration();
    match condition {
        Value::Functions | Value::Profile(_) if !declared.profiles_kernel() => Err((
            format!("runs {} without looking into the kernel", experiment.name()),
            "leave it out; pagelab targets --honours lists the experiments that allow it".to_owned(),
        )),
        Value::Set(file) => refusal(Path::new(&file.path), &file.value).map_or(Ok(()), Err),
        _ => declared.honours(condition),
    }
}

/// Chooses the swap of a run with a memory limit: of one that is to run out of memory none unless
/// it is asked for, and then as much as the limit unless the size is; else what the target can
/// make, where the load has anonymous memory.
fn choose_swap(settled: &mut Settled, capabilities: &Capabilities) {
    let Some(limit) = settled.setting.limit() else { return };
    let runs_out = settled.experiment.declaration().runs_out_of_memory();
    let swaps = settled.experiment.footprint(capabilities.page_size).anonymous > 0;
    match (settled.setting.swap, capabilities.usual_swap) {
        (None, _) if runs_out => settled.choose(Value::Swap(Swap::None)),
        (None, Some(swap)) if swaps => settled.choose(Value::Swap(swap)),
        (None, None) if swaps => settled.also(names::SWAP, "machine", Origin::Target),
        (Some(Swap::File | Swap::Zram), _) if runs_out && settled.setting.swap_size.is_none() => {
            settled.choose(Value::SwapSize(limit));
        }
        _ => {}
    }
}

/// Bytes of memory that the load has at once inside its limit, with what pagelab and compressed
/// swap take beside it.
fn memory_at_once(settled: &Settled, capabilities: &Capabilities) -> u64 {
    let page = capabilities.page_size;
    let set_up = for_load(&settled.experiment, &settled.setting, page, None);
    set_up.memory(capabilities.zswap).saturating_add(buffers(&settled.experiment, page))
}

impl Target for Host {
    fn plan(&self, request: &Request) -> Result<Plan, Unsupported> {
        plan(self, request)
    }
}

/// Plans `request` on `host`.
///
/// # Errors
/// What is not honoured, by the kernel's experiments or on this machine.
pub fn plan(host: &Host, request: &Request) -> Result<Plan, Unsupported> {
    let capabilities = Capabilities::of(host);
    let (target, page) = (capabilities.target.as_str(), capabilities.page_size);
    let mut settled = settle(request, &capabilities)?;
    let memory = memory_at_once(&settled, &capabilities);
    describe(&mut settled);
    let mut plan = Plan::new(settled, page, Box::new(host.clone()));
    let set_up =
        set_up(&plan.experiment, &plan.setting, host.swap_device.as_deref()).map_err(|(why, remedy)| {
            Unsupported::new(target, What::Condition(names::THP.to_owned()), why, remedy)
        })?;
    for path in &set_up.saved {
        capabilities::writable(path).map_err(|(why, remedy)| {
            let why = format!("{} is set by this experiment: {why}", path.display());
            Unsupported::new(target, What::Machine, why, remedy)
        })?;
    }
    plan.needs.memory = memory;
    plan.needs.disk = set_up.disk();
    plan.needs.tasks = Some(plan.experiment.declaration().tasks(page));
    plan.needs.seconds = plan.experiment.declaration().seconds(set_up.limit, page);
    plan.needs.privileges = set_up.privileges();
    if plan.setting.functions || plan.setting.profile.is_some_and(|hertz| hertz > 0) {
        let looks = "root or a low kernel.perf_event_paranoid: functions and profile";
        plan.needs.privileges.push(looks.to_owned());
    }
    plan.changes = set_up.changes();
    disk(target, plan.needs.disk)?;
    Ok(plan)
}

/// Refuses files for which the disk of the scratch files has no room, also before their folder is
/// made.
///
/// # Errors
/// When they would leave too little.
pub fn disk(target: &str, bytes: u64) -> Result<(), Unsupported> {
    let folder = confine::folder::scratch_path();
    let room = || folder.ancestors().find(|folder| folder.is_dir()).and_then(guard::Room::of);
    match bytes {
        0 => Ok(()),
        _ => guard::disk(&folder, bytes, room()).map_err(|problem| machine(target, problem)),
    }
}

/// What this machine refuses, as what a plan says.
fn machine(target: &str, problem: Problem) -> Unsupported {
    let (what, remedy) = match problem {
        Problem::Refused(what, remedy) | Problem::Unavailable(what, remedy) => (what, remedy),
        other => (failure(other).full(), String::new()),
    };
    Unsupported::new(target, What::Machine, format!("refused: {what}"), remedy)
}

fn own_swap(setting: &Setting) -> bool {
    matches!(setting.swap, Some(Swap::File | Swap::Zram))
}

/// Adds the conditions that hold because the machine has them so.
fn describe(settled: &mut Settled) {
    settled.also(names::MEMORY, "none", Origin::Target);
    settled.also(names::SWAP, "machine", Origin::Target);
    let present = |path: &str| settings::read(Path::new(path)).ok();
    let own_huge_pages = settled.experiment.declaration().own_huge_pages();
    match own_huge_pages {
        Some(mode) => settled.also(names::THP, mode.to_string(), Origin::Default),
        None => {
            if let Some(mode) = present(settings::THP) {
                settled.also(names::THP, mode, Origin::Target);
            }
        }
    }
    if let Some(swappiness) = present(settings::SWAPPINESS) {
        settled.also(names::SWAPPINESS, swappiness, Origin::Target);
    }
}

/// Bytes that pagelab takes beside the load: the harness, what makes the stream and a part of it,
/// page maps and counts in the worker, on their way and as they are kept.
fn buffers(experiment: &Experiment, page: u64) -> u64 {
    let declared = experiment.declaration();
    let stream = match declared.load() {
        Load::References(paging, _) => stream_bytes(paging).saturating_add(content::bytes(&paging.content)),
        _ => 0,
    };
    HARNESS.saturating_add(stream).saturating_add(declared.buffers(page))
}
