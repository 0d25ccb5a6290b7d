//! Whether the machine is fit to measure on: what spoils figures, and the command that mends it.

use serde::Serialize;

use super::Level;
use crate::tree::{Snapshot, of_group};

/// One thing looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// What.
    pub what: &'static str,
    /// What was found.
    pub found: String,
    /// Whether it is as it should be.
    pub fit: bool,
    /// Why it matters and the command that mends it; empty where fit.
    pub remedy: String,
}

/// A hypervisor that takes more than this percentage of the time shows in medians.
const STEAL: f64 = 1.0;
/// Other load above this many tasks per CPU competes for caches and memory bandwidth.
const LOAD: f64 = 0.25;
/// Less memory available than this share leaves no room for an experiment without reclaim.
const AVAILABLE: f64 = 0.2;

/// Every check that the counters allow; no remedy takes memory away while some is short.
pub fn checks(before: &Snapshot, now: &Snapshot, level: Level, page_size: u64) -> Vec<Check> {
    let setting = |area: &str, name: &str| now.find("settings", 0, area, name).map(|s| s.value.to_string());
    let mut checks = Vec::new();
    let mut add = |what, found: String, fit: bool, remedy: &str| {
        checks.push(Check { what, found, fit, remedy: if fit { String::new() } else { remedy.to_owned() } });
    };
    if let Some(source) = setting("clock", "source") {
        let fast = matches!(
            source.as_str(),
            "tsc" | "kvm-clock" | "arch_sys_counter" | "hyperv_clocksource_tsc_page"
        );
        add(
            "clock",
            source,
            fast,
            "reading it is a system call: echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",
        );
    }
    if let Some(stolen) = steal(before, now) {
        add(
            "time stolen",
            format!("{stolen:.1}%"),
            stolen < STEAL,
            "the host is busy: measure on a quiet or dedicated host",
        );
    }
    match setting("cpu", "governor") {
        Some(governor) => add(
            "frequency governor",
            governor.clone(),
            governor == "performance",
            "the clock rate follows the load: cpupower frequency-set -g performance",
        ),
        None => add("frequency governor", "none: the host decides".to_owned(), true, ""),
    }
    if let Some(load) = now.number("system", 0, "load", "load1") {
        let cpus = now.groups("stat").filter(|(_, name, _)| &***name == "cpu").count().max(1) as f64;
        let remedy = "other programs run: wait, or end those at the top of 'pagelab prstat 1'";
        add("load", format!("{load:.2} on {cpus} CPUs"), load / cpus < LOAD, remedy);
    }
    if let Some(thp) = setting("thp", "enabled") {
        let remedy =
            "sizes of pages vary from run to run: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
        add("transparent huge pages", thp.clone(), thp != "always", remedy);
    }
    if let Some(ksm) = setting("ksm", "run") {
        add(
            "page merging",
            if ksm == "0" { "off" } else { "on" }.to_owned(),
            ksm == "0",
            "it scans and unshares: echo 0 > /sys/kernel/mm/ksm/run",
        );
    }
    let mem = |statistic: &str| now.number("meminfo", 0, "mem", statistic);
    if let Some((available, total)) = mem("MemAvailable").zip(mem("MemTotal")) {
        let share = available / total;
        let remedy = "experiments would reclaim others' pages: end what 'pagelab memstat --by process' shows";
        add("memory available", format!("{:.0}%", 100.0 * share), share >= AVAILABLE, remedy);
    }
    if let Some(bytes) = crate::views::memstat::free_elsewhere(now, page_size) {
        let found = format!("{:.1} GiB of what is called free", bytes / 1_073_741_824.0);
        add(
            "memory at the host",
            found,
            false,
            "a first touch may wait for the host: touch the memory once before measuring",
        );
    }
    if let Some(total) = mem("SwapTotal") {
        let used = total - mem("SwapFree").unwrap_or(total);
        let found =
            if total > 0.0 { format!("{:.0} MiB used", used / 1_048_576.0) } else { "none".to_owned() };
        add(
            "swap of the machine",
            found,
            used < total / 10.0 || total == 0.0,
            match level {
                Level::Fine => "old pages return in the middle of a run: swapoff -a && swapon -a",
                _ => {
                    "old pages return in the middle of a run: relieve the shortage first; it has nowhere else to go"
                }
            },
        );
    }
    let controlled = now
        .module("cgroup")
        .iter()
        .any(|s| s.statistic == "current" || s.statistic == "max_failures" || s.statistic == "anon");
    let found = if controlled { "memory controller present" } else { "no memory controller" };
    add(
        "cgroups",
        found.to_owned(),
        controlled,
        "no experiment can be bounded: boot with cgroup_enable=memory, or mount -t cgroup2 none /sys/fs/cgroup",
    );
    let own = now.instance("process", std::process::id().into());
    if let Some(uid) = of_group(own, "uid") {
        let found = if uid == 0.0 { "root".to_owned() } else { format!("user {uid}") };
        add(
            "permissions",
            found,
            uid == 0.0,
            "limits, swap, exact counts and delays need root: run with sudo",
        );
    }
    let psi = now.find("pressure", 0, "memory", "some_total").is_some();
    add(
        "pressure information",
        if psi { "on" } else { "off" }.to_owned(),
        psi,
        "waiting for memory is not counted: boot with psi=1",
    );
    if let Some(accounting) = setting("kernel", "task_delayacct") {
        let on = accounting != "0";
        add(
            "delay accounting",
            if on { "on" } else { "off" }.to_owned(),
            on,
            "waiting tasks are unknown: sysctl kernel.task_delayacct=1 before the programs start",
        );
    }
    checks
}

/// Percent of all CPUs' time that the hypervisor took in the interval.
fn steal(before: &Snapshot, now: &Snapshot) -> Option<f64> {
    const TIMES: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
    let sums = |snapshot: &Snapshot| {
        let (_, _, group) = snapshot.groups("stat").find(|(_, name, _)| &***name == "all")?;
        let all: f64 = TIMES.iter().filter_map(|t| of_group(group, t)).sum();
        Some((of_group(group, "steal")?, all))
    };
    let ((steal, all), (steal_before, all_before)) = (sums(now)?, sums(before)?);
    (all > all_before).then(|| 100.0 * (steal - steal_before) / (all - all_before))
}
