//! What the running kernel will do of a request, before anything is set up: which conditions this machine and
//! this user can have, what the load needs, what is changed and undone.

use std::fs;
use std::path::Path;

use pagelab_experiment::experiments;
use pagelab_experiment::experiments::reclaim::By;
use pagelab_experiment::experiments::{Bandwidth, Footprint, Latency, Mapping, PagesOf, Reclaim};
use pagelab_experiment::plan::{Dishonoured, Settled};
use pagelab_experiment::setting::{Swap, Thp};
use pagelab_experiment::{
    Experiment, Failure, FailureKind, Origin, Plan, Request, Setting, Unsupported, What,
};
use pagelab_reference::Pattern;
use rustix::fs::{Access, access};

use crate::confine::{self, cgroup, guard, settings, sizes, swap, sysctl, zram};
use crate::content::Filler;
use crate::host::Host;
use crate::perf;
use crate::region::page_size;
use crate::{damon, ksm, tier};

/// The target's name.
const HOST: &str = "host";

/// What the harness of an experiment takes beside its load, where it is not counted one by one: buffers,
/// histograms, the program.
const HARNESS: u64 = 16 << 20;

/// Plans `request` on `host`.
///
/// # Errors
/// What is not honoured, by the kernel's experiments or on this machine.
pub fn plan(host: &Host, request: &Request) -> Result<Plan, Unsupported> {
    let page = page_size() as u64;
    // Whoever brought programs into a guest has looked for them.
    if host.root.is_none() {
        possible(&request.experiment)?;
    }
    let mut settled = Settled::new(request, HOST, page, |key, value| {
        honours(&request.experiment, key)?;
        here(key, value)
    })?;
    combined(&settled.setting)?;
    shared(&settled)?;
    merges(&settled.experiment)?;
    if host.repetition.is_none() {
        here_only(HOST, &settled.experiment)?;
    }
    choose_swap(&mut settled);
    beyond_the_caches(request, &mut settled.experiment);
    beyond_the_fast_node(&mut settled.experiment)?;
    let need = settled.experiment.footprint(page);
    if settled.setting.swap.is_none() && settled.setting.limit().is_some() && need.anonymous > 0 {
        match swap::permitted() {
            true => settled.choose("swap", &usual_swap(host).to_string()),
            false => settled.also("swap", "machine", Origin::Target),
        }
    }
    if settled.setting.swap_size.is_some() && !own_swap(&settled.setting) {
        let what = What::Condition("swap-size".to_owned());
        return Err(Unsupported::new(
            HOST,
            what,
            "makes no swap for this run",
            "give --swap file or zram too",
        ));
    }
    describe(&mut settled);
    let mut plan = Plan::new(settled, page, Box::new(host.clone()));
    let swap_bytes = swap_bytes(&plan.setting, need.anonymous, page);
    let zram = if confine::compresses(&plan.setting) { swap_bytes } else { 0 };
    let limit = plan.setting.limit().map(|size| size.bytes(page));
    let inside = limit.map_or(need.total(), |limit| limit.min(need.total()));
    let beside = buffers(&plan.experiment).saturating_add(zram);
    let file_swap = host.swap_device.is_none() && plan.setting.swap == Some(Swap::File);
    plan.needs.memory = inside.saturating_add(beside);
    plan.needs.disk = need.file.saturating_add(if file_swap { swap_bytes } else { 0 });
    plan.needs.seconds = seconds(&plan.experiment, limit, page);
    plan.needs.privileges = privileges(&plan.setting);
    plan.changes = changes(&plan.setting, swap_bytes, need, host.swap_device.as_deref());
    for path in settings::changed_by(&plan.experiment) {
        plan.needs.privileges.extend(["root: the kernel's settings".to_owned()]);
        plan.changes.push(format!("{} (now {})", path.display(), sysctl::read(path).unwrap_or_default()));
    }
    plan.needs.privileges.dedup();
    guard::memory(plan.needs.memory, limit.is_some(), crate::environment::memory_available())
        .map_err(machine)?;
    if plan.needs.disk > 0 {
        guard::disk(&confine::folder::scratch_path(), plan.needs.disk, room()).map_err(machine)?;
    }
    Ok(plan)
}

/// Refuses what may be done to a machine that is thrown away, and to no other.
///
/// # Errors
/// What it would do.
pub fn here_only(target: &str, experiment: &Experiment) -> Result<(), Unsupported> {
    match experiment {
        Experiment::Fragment(_) => Err(Unsupported::new(
            target,
            What::Experiment,
            "does not fill the memory of a machine that is in use",
            "perform it in a guest (--on kernel:IMAGE)",
        )),
        _ => Ok(()),
    }
}

/// The swap of what is to run out of memory: none unless it is asked for, and then as much as the limit unless the size is.
pub fn choose_swap(settled: &mut Settled) {
    let Some(limit) = settled.setting.memory.filter(|_| settled.setting.limit().is_some()) else { return };
    if !matches!(settled.experiment, Experiment::Oom(_)) {
        return;
    }
    if settled.setting.swap.is_none() {
        settled.choose("swap", &Swap::None.to_string());
    } else if own_swap(&settled.setting) && settled.setting.swap_size.is_none() {
        settled.choose("swap-size", &limit.to_string());
    }
}

/// Refuses what is done to cgroups where there is no limit, or where they cannot have it done to them.
fn shared(settled: &Settled) -> Result<(), Unsupported> {
    let (two, why) = match &settled.experiment {
        Experiment::Neighbour(_) => (true, "has nothing for two to share without a memory limit"),
        Experiment::Reclaim(_) => (true, "has no cgroup of the load's own without a memory limit"),
        Experiment::Oom(_) => (false, "kills nobody without a memory limit"),
        _ => return Ok(()),
    };
    if settled.setting.limit().is_none() {
        let what = What::Condition("memory=none".to_owned());
        return Err(Unsupported::new(HOST, what, why, "give --memory SIZE"));
    }
    // DAMON pages out what it watches, whatever cgroup that is in.
    let two = two && !matches!(&settled.experiment, Experiment::Reclaim(Reclaim { by: By::Damon, .. }));
    if !two || cgroup::version_two() {
        return Ok(());
    }
    Err(Unsupported::new(
        HOST,
        What::Experiment,
        "has its memory controller in cgroup version 1: memory.low, memory.min and memory.reclaim are of cgroup version 2",
        "perform it in a guest (--on kernel:IMAGE), or boot with systemd.unified_cgroup_hierarchy=1",
    ))
}

/// Refuses an experiment that writes settings which this user may not write, or which this kernel lacks.
fn merges(experiment: &Experiment) -> Result<(), Unsupported> {
    let no = |why: String, remedy: &str| Err(Unsupported::new(HOST, What::Machine, why, remedy));
    if matches!(experiment, Experiment::Ksm(_)) && !Path::new(ksm::FOLDER).exists() {
        let why = format!("has a kernel without KSM: there is no {}", ksm::FOLDER);
        return no(why, "take a kernel that is built with CONFIG_KSM");
    }
    if matches!(experiment, Experiment::Tier(_)) && tier::nodes::with_memory().len() < 2 {
        let why = "has all its memory in one node";
        return Err(Unsupported::new(HOST, What::Experiment, why, tier::REMEDY));
    }
    if matches!(experiment, Experiment::Reclaim(Reclaim { by: By::Damon, .. })) {
        damon::available().or_else(|(why, remedy)| no(why, &remedy))?;
    }
    for path in settings::changed_by(experiment) {
        writable(&path.display().to_string()).or_else(|(why, remedy)| {
            no(format!("{} is set by this experiment: {why}", path.display()), &remedy)
        })?;
    }
    Ok(())
}

/// A mapping whose size nobody asked for is larger than the fast node's free memory.
fn beyond_the_fast_node(settled: &mut Experiment) -> Result<(), Unsupported> {
    let Experiment::Tier(tier) = settled else { return Ok(()) };
    if tier.pages.is_none() {
        tier.pages = tier::beyond_the_fast_node();
    }
    match tier.pages {
        Some(pages) if pages >= tier.hot.saturating_mul(2) => Ok(()),
        Some(pages) => Err(Unsupported::new(
            HOST,
            What::Parameter("hot".to_owned()),
            format!("has no room for two hot sets in a mapping of {pages} pages"),
            "give at most half of --pages",
        )),
        None => Err(Unsupported::new(
            HOST,
            What::Machine,
            "does not say how much its nodes have free",
            tier::REMEDY,
        )),
    }
}

/// Working sets that nobody asked for reach beyond this machine's last-level cache.
fn beyond_the_caches(request: &Request, settled: &mut Experiment) {
    let last = || crate::geometry::machine().get("cache.l3").and_then(|bytes| bytes.parse().ok());
    let limit = request.asked.memory.or(request.usual.memory);
    let limit = Setting { memory: limit, ..Setting::default() }.limit();
    let limit = limit.map(|size| size.bytes(page_size() as u64));
    match (&request.experiment, settled) {
        (Experiment::Latency(asked), Experiment::Latency(latency)) if asked.sizes.is_none() => {
            latency.sizes = Some(Latency::sizes_for(limit, last()));
        }
        (Experiment::Bandwidth(asked), Experiment::Bandwidth(bandwidth)) if asked.sizes.is_none() => {
            bandwidth.sizes = Some(Bandwidth::sizes_for(limit, last()));
        }
        _ => {}
    }
}

/// What this machine refuses, as what a plan says.
fn machine(failure: Failure) -> Unsupported {
    let remedy = match &failure.kind {
        FailureKind::Refused { remedy } | FailureKind::Unsupported { remedy } => remedy.clone(),
        _ => String::new(),
    };
    let why = format!("refused: {}", failure.what);
    Unsupported::new(HOST, What::Machine, why, remedy)
}

/// What the disk of the scratch files has, also before their folder is made.
fn room() -> Option<guard::Room> {
    confine::folder::scratch_path().ancestors().find(|folder| folder.is_dir()).and_then(guard::Room::of)
}

/// Refuses an experiment whose parameters cannot be performed on any kernel, or name what is not there.
fn possible(experiment: &Experiment) -> Result<(), Unsupported> {
    let parameter = |name: &str, why: String, remedy: &str| {
        Err(Unsupported::new(HOST, What::Parameter(name.to_owned()), why, remedy))
    };
    match experiment {
        Experiment::Record(_)
        | Experiment::Trace(_)
        | Experiment::Replay(_)
        | Experiment::Mrc(_)
        | Experiment::Wss(_) => Err(Unsupported::new(
            HOST,
            What::Experiment,
            "has no load to perform for it",
            "use pagelab record, trace, replay, mrc or wss",
        )),
        Experiment::Mapanon(paging) | Experiment::Mapfile(paging) => {
            for (name, value) in [("pages", paging.pages), ("references", paging.references)] {
                if value > u64::from(u32::MAX) {
                    return parameter(name, format!("numbers at most {} of them", u32::MAX), "use fewer");
                }
            }
            if let Err(error) = Filler::new(&paging.content) {
                let why = format!("cannot take the content {} ({error})", paging.content);
                return parameter("content", why, "name another file");
            }
            match &paging.pattern {
                Pattern::Trace(file) if fs::File::open(file).is_err() => parameter(
                    "pattern",
                    format!("cannot read the trace {}", file.display()),
                    "name another file",
                ),
                _ => Ok(()),
            }
        }
        Experiment::Vmtest(vmtest)
            if vmtest.mapping == Mapping::Shared && vmtest.pages_of == PagesOf::Hugetlb =>
        {
            let why = "makes no shared segment of hugetlb pages".to_owned();
            parameter("pages-of", why, "use --mapping private")
        }
        Experiment::Forkstorm(storm) => match &storm.script {
            Some(file) if fs::File::open(file).is_err() => {
                parameter("script", format!("cannot read {}", file.display()), "name another file")
            }
            _ => Ok(()),
        },
        Experiment::Command(command) => match command.program.first() {
            None => parameter(
                "program",
                "has no program to run".into(),
                "write it after --: pagelab run command -- sort big.txt",
            ),
            Some(program) if !runs(program) => {
                parameter("program", format!("finds no program '{program}'"), "write its path, or install it")
            }
            Some(_) => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Whether `program` is one that can be started: a path, or a name that PATH has.
fn runs(program: &str) -> bool {
    let executable = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    if program.contains('/') {
        return executable(Path::new(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| executable(&folder.join(program)))
}

/// Whether the experiment honours the condition `key` on any Linux kernel.
///
/// # Errors
/// Why not, and what to do instead.
pub fn honours(experiment: &Experiment, key: &str) -> Result<(), Dishonoured> {
    let looked_into =
        matches!(experiment, Experiment::Mapanon(_) | Experiment::Mapfile(_) | Experiment::Forkstorm(_));
    match key {
        "memory" | "swap" | "swap-size" | "thp" if matches!(experiment, Experiment::Fragment(_)) => Err((
            "performs fragment on all of the machine's memory, and sets what huge pages it has itself"
                .to_owned(),
            "leave it out".to_owned(),
        )),
        "functions" | "profile" if !looked_into => Err((
            format!("performs {} without looking into the kernel", experiment.name()),
            "leave it out, or use mapanon, mapfile or forkstorm".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Whether this machine and this user can have the condition.
fn here(key: &str, value: &str) -> Result<(), Dishonoured> {
    let no = |why: String, remedy: &str| Err((why, remedy.to_owned()));
    match (key, value) {
        ("memory", "none") | ("profile", "0") => Ok(()),
        ("memory", _) => match cgroup::available() {
            Ok(_) => Ok(()),
            Err(why) => no(format!("cannot limit memory here: {why}"), "or use --memory none"),
        },
        ("swap", "file" | "zram") if !swap::permitted() => no(
            "cannot make swap for a run as this user".into(),
            "run as root (it needs the capability CAP_SYS_ADMIN)",
        ),
        ("swap", "zram") if !zram::available() => {
            no("has no zram".into(), "load it with: modprobe zram num_devices=0")
        }
        ("thp", sizes) if sizes.contains(':') => {
            let asked: Vec<_> = match sizes.parse() {
                Ok(Thp::Sizes(asked)) => asked,
                _ => Vec::new(),
            };
            let files = sizes::files(&asked)?;
            files.iter().try_for_each(|(path, _)| writable(&path.display().to_string()))
        }
        ("thp", _) => writable(settings::THP),
        ("swappiness", _) => writable(settings::SWAPPINESS),
        ("set", file) => {
            let (path, value) = file.split_once('=').unwrap_or((file, ""));
            settings::refusal(Path::new(path), value).map_or(Ok(()), Err)?;
            writable(path)
        }
        ("functions" | "profile", _) => looking(),
        _ => Ok(()),
    }
}

fn writable(path: &str) -> Result<(), Dishonoured> {
    if let Err(error) = sysctl::read(Path::new(path)) {
        return Err((format!("cannot set it: {}", error.what), "leave it out on this kernel".to_owned()));
    }
    match access(path, Access::WRITE_OK) {
        Ok(()) => Ok(()),
        Err(error) => Err((format!("cannot write {path} ({error})"), "run as root".to_owned())),
    }
}

fn looking() -> Result<(), Dishonoured> {
    perf::permitted()
        .map_err(|why| (format!("cannot look into the kernel here ({why})"), perf::REMEDY.to_owned()))
}

/// Refuses conditions that mean nothing beside each other.
fn combined(setting: &Setting) -> Result<(), Unsupported> {
    if setting.swap == Some(Swap::None) && setting.limit().is_none() {
        return Err(Unsupported::new(
            HOST,
            What::Condition("swap=none".to_owned()),
            "keeps a load from the machine's swap only inside a memory limit",
            "give --memory SIZE too",
        ));
    }
    Ok(())
}

/// The swap of a run that asks for none: a file, and zram where the disk of the scratch files takes no swap file.
fn usual_swap(host: &Host) -> Swap {
    let file = host.swap_device.is_some() || swap::takes_file(&confine::folder::scratch_path());
    if file || !zram::available() { Swap::File } else { Swap::Zram }
}

fn own_swap(setting: &Setting) -> bool {
    matches!(setting.swap, Some(Swap::File | Swap::Zram))
}

/// Bytes of the swap that is made for the run.
fn swap_bytes(setting: &Setting, anonymous: u64, page: u64) -> u64 {
    match (setting.swap, setting.swap_size) {
        (None | Some(Swap::None), _) => 0,
        (_, Some(size)) => size.bytes(page).next_multiple_of(page),
        (_, None) => anonymous.saturating_add(confine::SWAP_SLACK),
    }
}

/// Adds the conditions that hold because the machine has them so.
fn describe(settled: &mut Settled) {
    settled.also("memory", "none", Origin::Target);
    settled.also("swap", "machine", Origin::Target);
    let present = |path: &str| sysctl::read(Path::new(path)).ok();
    match &settled.experiment {
        // Base pages, whatever the machine has: the experiment advises against huge ones.
        Experiment::Mapanon(_) => settled.also("thp", "never", Origin::Default),
        _ => {
            if let Some(mode) = present(settings::THP) {
                settled.also("thp", mode, Origin::Target);
            }
        }
    }
    if let Some(swappiness) = present(settings::SWAPPINESS) {
        settled.also("swappiness", swappiness, Origin::Target);
    }
}

/// Bytes that pagelab takes beside the load: the harness, what makes the stream and a part of it, page maps and
/// counts in the worker, on their way and as they are kept.
fn buffers(experiment: &Experiment) -> u64 {
    match experiment {
        Experiment::Mapanon(paging) | Experiment::Mapfile(paging) => {
            /// Counts, their copy in a map, its sets and the map as it is packed, on both sides.
            const A_PAGE: u64 = 128;
            /// The maps of a run as the notebook gives them back, which it bounds.
            const MAPS: u64 = 16 * 16;
            const READ_BACK: u64 = 1 << 30;
            HARNESS
                .saturating_add(crate::paging::stream_bytes(paging))
                .saturating_add(Filler::bytes(&paging.content))
                .saturating_add(paging.pages.saturating_mul(A_PAGE))
                .saturating_add(paging.pages.saturating_mul(MAPS).min(READ_BACK))
        }
        // The order of the chain: four bytes for each cache line.
        Experiment::Latency(latency) => {
            HARNESS.saturating_add(latency.footprint(page_size() as u64).anonymous / 16)
        }
        _ => HARNESS,
    }
}

/// About how long a repetition takes. For references: what a hit and a fault cost on a machine of today.
fn seconds(experiment: &Experiment, limit: Option<u64>, page: u64) -> Option<f64> {
    const HIT: f64 = 200e-9;
    const FAULT: f64 = 50e-6;
    const LOAD: f64 = 100e-9;
    const TOUCH: f64 = 2e-6;
    match experiment {
        Experiment::Mapanon(paging) | Experiment::Mapfile(paging) => {
            let size = paging.pages as f64 * page as f64;
            let outside = limit.map_or(0.0, |limit| (1.0 - limit as f64 / size).max(0.0));
            Some(paging.references as f64 * (HIT + outside * FAULT) + size / 1e9)
        }
        Experiment::Vmtest(vmtest) => Some(vmtest.sweep().bytes(page).len() as f64 * vmtest.seconds),
        Experiment::Fileread(fileread) => {
            let cases = fileread.files().bytes(page).len() * fileread.access.len();
            Some(cases as f64 * fileread.seconds)
        }
        Experiment::Seqread(seqread) => Some(2.0 * seqread.transfers.bytes(1).len() as f64 * seqread.seconds),
        Experiment::Latency(latency) => {
            let sizes = latency.sweep().bytes(page);
            let written = 2 * sizes.last().copied().unwrap_or(0) / page;
            Some(2.0 * sizes.len() as f64 * latency.loads as f64 * LOAD + written as f64 * TOUCH)
        }
        Experiment::Unmap(addressing) | Experiment::Mremap(addressing) | Experiment::Populate(addressing) => {
            // Some six operations, without sharers and with them.
            Some(12.0 * f64::from(addressing.rounds) * addressing.pages as f64 * TOUCH)
        }
        // In four situations, of which three have somebody beside.
        Experiment::Neighbour(neighbour) => Some(
            neighbour.references as f64 * (4.0 * HIT + 3.0 * FAULT)
                + 4.0 * neighbour.neighbour as f64 * TOUCH,
        ),
        Experiment::Bandwidth(bandwidth) => {
            // Rounds of 32 MiB and of the working set, of four loops, and as many threads at once.
            let bytes = |size: u64| (size.max(32 << 20) * 4 * u64::from(bandwidth.rounds)) as f64;
            let all: f64 = bandwidth.sweep().bytes(page).into_iter().map(bytes).sum();
            Some(all * bandwidth.threads.len() as f64 / 8e9)
        }
        Experiment::Ksm(ksm) => {
            let scans = 3.0 * ksm.pages as f64;
            Some(scans / f64::from(ksm.scan) * f64::from(ksm.sleep) / 1e3 + scans * TOUCH)
        }
        Experiment::Tier(tier) => {
            let situations = experiments::tier::SITUATIONS.len() as f64;
            let pages = 2 * tier.pages.unwrap_or(0);
            Some(situations * f64::from(tier.positions) * tier.seconds + pages as f64 * TOUCH)
        }
        Experiment::Reclaim(reclaim) if reclaim.by == By::Damon => {
            let pages = reclaim.hot.saturating_add(reclaim.cold);
            Some(reclaim.lead() + f64::from(reclaim.steps) * reclaim.seconds + 2.0 * pages as f64 * TOUCH)
        }
        Experiment::Clock(clock) => Some(f64::from(clock.steps) * clock.step as f64 / 1e3),
        Experiment::Faultscale(scale) => match scale.work {
            pagelab_experiment::experiments::Work::Build => None,
            _ => Some(scale.workers.len() as f64 * scale.seconds),
        },
        Experiment::Forkstorm(_)
        | Experiment::Oom(_)
        | Experiment::Reclaim(_)
        | Experiment::Fragment(_)
        | Experiment::Command(_)
        | Experiment::Record(_)
        | Experiment::Trace(_)
        | Experiment::Replay(_)
        | Experiment::Mrc(_)
        | Experiment::Wss(_) => None,
    }
}

fn privileges(setting: &Setting) -> Vec<String> {
    let mut list = Vec::new();
    let mut need = |wanted: bool, text: &str| {
        if wanted {
            list.push(text.to_owned());
        }
    };
    need(
        setting.limit().is_some(),
        "a memory cgroup of this user's (root, or a delegated one): the memory limit",
    );
    need(own_swap(setting), "CAP_SYS_ADMIN (root): swap of the run's own");
    let writes = setting.thp.is_some() || setting.swappiness.is_some() || !setting.set.is_empty();
    need(writes, "root: the kernel's settings");
    let looks = setting.functions || setting.profile.is_some_and(|hertz| hertz > 0);
    need(looks, "root or a low kernel.perf_event_paranoid: functions and profile");
    list
}

fn changes(setting: &Setting, swap: u64, need: Footprint, device: Option<&Path>) -> Vec<String> {
    let mut list = Vec::new();
    if let Some(limit) = setting.limit() {
        let parent = cgroup::available().unwrap_or_default();
        list.push(format!("a cgroup below {} with a memory limit of {limit}", parent.display()));
    }
    let folder = confine::folder::scratch_path();
    match (setting.swap, device) {
        (Some(Swap::File), Some(device)) => list.push(format!("swap on {}", device.display())),
        (Some(Swap::File), None) => {
            list.push(format!("a swap file of {swap} bytes in {}, switched on", folder.display()));
        }
        (Some(Swap::Zram), ..) => list.push(format!("a zram device of {swap} bytes, swap switched on")),
        _ => {}
    }
    if own_swap(setting) {
        list.push("for that time other cgroups that reclaim may page into this swap too".to_owned());
    }
    if need.file > 0 {
        list.push(format!("a scratch file of {} bytes in {}", need.file, folder.display()));
    }
    let mut files = match &setting.thp {
        None => Vec::new(),
        Some(Thp::Mode(mode)) => vec![(settings::THP.to_owned(), mode.to_string())],
        Some(Thp::Sizes(asked)) => {
            let files = sizes::files(asked).unwrap_or_default();
            files.into_iter().map(|(path, mode)| (path.display().to_string(), mode)).collect()
        }
    };
    files.extend(setting.swappiness.map(|value| (settings::SWAPPINESS.to_owned(), value.to_string())));
    let others = setting.set.iter().map(|file| (file.path.clone(), file.value.clone()));
    for (path, value) in files.into_iter().chain(others) {
        let held = |path: &Path| sysctl::read(path).unwrap_or_default();
        let other = sysctl::counterpart(Path::new(&path)).map_or_else(String::new, |other| {
            format!("; {}, now {}, becomes 0", other.display(), held(&other))
        });
        list.push(format!("{path} = {value} (now {}{other})", held(Path::new(&path))));
    }
    list
}
