//! What observations say: findings, comparisons, knees, scaling, regret. Everything here is data; `report`
//! puts it into words and pictures.

pub mod bisect;
pub mod comparison;
pub mod costs;
pub mod curves;
pub mod figure;
pub mod finding;
pub mod findings;
pub mod knee;
pub mod ladder;
pub mod least_memory;
mod linear;
pub mod portrait;
pub mod rank;
pub mod regret;
pub mod rows;
pub mod scaling;
pub mod signed_rank;
pub mod stats;
#[cfg(test)]
mod test_runs;
pub mod vmtest;

use pagelab_experiment::observation::Unit;
use pagelab_experiment::{Experiment, Run};

/// Whether a run's figures are the same every time, so that one repetition says all: as its target declared.
pub fn is_deterministic(run: &Run) -> bool {
    run.header.deterministic
}

/// Whether a run's times are instructions: its machine counted them.
pub fn counts_instructions(run: &Run) -> bool {
    run.done().flat_map(|r| &r.observations.metrics).any(|metric| metric.unit == Unit::Instructions)
}

/// The metric that says most of an experiment: the one that `compare --fail-on` judges.
pub fn primary_metric(experiment: &Experiment) -> Option<&'static str> {
    match experiment {
        Experiment::Mapanon(_) | Experiment::Mapfile(_) => Some("access.mean"),
        Experiment::Vmtest(_) => Some("speed.last"),
        Experiment::Forkstorm(_) => Some("forks.rate"),
        Experiment::Faultscale(_) => Some("throughput.best"),
        Experiment::Fileread(_) => Some("read.cpu.large"),
        Experiment::Seqread(_) => Some("bandwidth.buffered"),
        Experiment::Latency(_) => Some("latency.dram"),
        Experiment::Unmap(_) => Some("unmap.munmap"),
        Experiment::Mremap(_) => Some("mremap.move"),
        Experiment::Populate(_) => Some("populate.touch"),
        Experiment::Neighbour(_) => Some("victim.faults.beside"),
        Experiment::Bandwidth(_) => Some("bandwidth.triad"),
        Experiment::Ksm(_) => Some("ksm.processor"),
        Experiment::Tier(_) => Some("tier.cost.on"),
        Experiment::Oom(_) => Some("oom.stall.equal"),
        Experiment::Reclaim(_) => Some("reclaim.cold"),
        Experiment::Fragment(_) => Some("fragment.direct"),
        Experiment::Clock(_) => Some("clock.step.worst"),
        Experiment::Command(_) => Some("time.elapsed"),
        Experiment::Replay(_) | Experiment::Mrc(_) => Some("miss.ratio.mean"),
        Experiment::Wss(_) => Some("working-set.mean"),
        Experiment::Record(_) | Experiment::Trace(_) => None,
    }
}

/// The few metrics beside the primary one that a comparison is most likely made for: they share most of what the
/// others' p values are corrected for. Of processor time the sum, which the kernel counts exactly, and no part of it, which
/// it samples.
pub fn headline_metrics(experiment: &Experiment) -> &'static [&'static str] {
    match experiment {
        Experiment::Mapanon(_) | Experiment::Mapfile(_) => {
            &["access.hit.p50", "access.major.p50", "faults.major"]
        }
        Experiment::Vmtest(_) => &["speed.first", "time.processor", "faults.major"],
        Experiment::Forkstorm(_) => &["fork.cost", "exit.cost", "exec.cost"],
        Experiment::Faultscale(_) => &["throughput.first", "throughput.last", "time.processor"],
        Experiment::Fileread(_) => &["read.cpu.small", "read.cpu.beyond", "io.read"],
        Experiment::Seqread(_) => &["bandwidth.direct", "time.processor"],
        Experiment::Latency(_) => &["latency.l3", "latency.tlb-miss", "latency.minor-fault"],
        Experiment::Unmap(_) => &["unmap.munmap.shared", "unmap.mprotect", "unmap.dontneed"],
        Experiment::Mremap(_) => &["mremap.aligned", "mremap.move.shared"],
        Experiment::Populate(_) => &["populate.map", "populate.advise"],
        Experiment::Neighbour(_) => &["victim.cost.beside", "victim.faults.low", "victim.faults.min"],
        Experiment::Bandwidth(_) => &["bandwidth.copy", "bandwidth.triad.threads"],
        Experiment::Ksm(_) => &["ksm.sharing", "ksm.copy", "ksm.unmerge"],
        Experiment::Tier(_) => &["tier.hot.on", "tier.promoted", "tier.demoted"],
        Experiment::Oom(_) => &["oom.killed.equal", "oom.stall.adjusted"],
        Experiment::Reclaim(_) => &["reclaim.had", "reclaim.pages", "reclaim.mistakes", "reclaim.cost"],
        Experiment::Fragment(_) => &["fragment.pieces", "fragment.compacted", "fragment.cost.direct"],
        Experiment::Clock(_) => &["clock.drift.worst", "clock.skew.worst"],
        Experiment::Command(_) => &["time.processor", "memory.peak"],
        Experiment::Replay(_)
        | Experiment::Mrc(_)
        | Experiment::Wss(_)
        | Experiment::Record(_)
        | Experiment::Trace(_) => &[],
    }
}

/// The runs by experiment, in the order first seen.
pub fn groups<'a>(runs: &[&'a Run]) -> Vec<Vec<&'a Run>> {
    let mut groups: Vec<Vec<&Run>> = Vec::new();
    for run in runs {
        match groups.iter_mut().find(|group| group[0].header.experiment == run.header.experiment) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    groups
}
