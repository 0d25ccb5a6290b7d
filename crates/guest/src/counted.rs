//! What a guest whose clock counts instructions can say: its nanoseconds are instructions, but for what is none.
//!
//! Waiting takes no instructions, yet the clock runs on while every processor waits; and how processor time is parted
//! into user mode and kernel is sampled at the kernel's ticks, millions of instructions apart. Such a figure is a dash.

use pagelab_experiment::build::SHARED_CACHE;
use pagelab_experiment::metrics;
use pagelab_experiment::observation::{Unit, Values};
use pagelab_experiment::tables::{ColumnId, TableId, merging, profile, tiers};
use pagelab_experiment::{MetricId, Observation};

/// Figures of time that are sampled at ticks.
const SAMPLED: [MetricId; 2] = [metrics::TIME_USER, metrics::TIME_SYSTEM];

/// Figures of time in which others sleep, whatever disks there are; and the columns of such times.
const SLEPT: [MetricId; 1] = [metrics::KSM_TIME];
const SLEPT_COLUMNS: [(TableId, ColumnId); 1] = [(merging::TABLE, merging::ELAPSED)];

/// Figures of where data are, which take as many instructions to load from one cache as from another or from memory.
const UNSEEN: [MetricId; 5] = [
    metrics::LATENCY_L1,
    metrics::LATENCY_L2,
    metrics::LATENCY_L3,
    metrics::LATENCY_DRAM,
    metrics::LATENCY_TLB_MISS,
];

/// Figures of time that a model makes of the machine's tables: they stay nanoseconds. And the columns of such times.
const MODELLED: &str = "tier.latency.";
const MODELLED_COLUMNS: [(TableId, ColumnId); 1] = [(tiers::TABLE, tiers::LATENCY)];

/// Figures of time in which nothing waits for a disk: of the processor, of what finds its page in memory, and of what
/// is measured before a limit is in force.
const WITHOUT_WAITS: [MetricId; 15] = [
    metrics::TIME_CPU,
    metrics::ACCESS_HIT_MEAN,
    metrics::ACCESS_HIT_UNINTERRUPTED,
    metrics::ACCESS_HIT_P50,
    metrics::FAULT_ANONYMOUS,
    metrics::POLLS_CPU,
    metrics::FORK_COST,
    metrics::FORK_SYSTEM,
    metrics::READ_CPU_SMALL,
    metrics::READ_CPU_LARGE,
    metrics::READ_CPU_BEYOND,
    metrics::VICTIM_COST_ALONE,
    metrics::VICTIM_COST_NEIGHBOUR,
    metrics::VICTIM_COST_LOW,
    metrics::VICTIM_COST_MIN,
];

/// The same in instructions; `waits`: whether the guest has disks, for which tasks wait.
pub fn counted(mut observation: Observation, waits: bool) -> Option<Observation> {
    let time = |unit: Unit| matches!(unit, Unit::Nanoseconds | Unit::PerSecond | Unit::BytesPerSecond);
    match &mut observation {
        Observation::Note(note) if note.text == SHARED_CACHE => return None,
        Observation::Metric(metric) if metric.name.starts_with(MODELLED) => {}
        Observation::Metric(metric) => {
            let known = |list: &[MetricId]| list.iter().any(|known| *known == *metric.name);
            let unseen = known(&SAMPLED) || known(&SLEPT) || known(&UNSEEN);
            if unseen || waits && time(metric.unit) && !known(&WITHOUT_WAITS) {
                metric.value = None;
            }
            let (unit, factor) = metric.unit.counted();
            (metric.unit, metric.value) = (unit, metric.value.map(|value| value * factor));
        }
        Observation::Histogram(histogram) if waits && time(histogram.unit) => return None,
        Observation::Histogram(histogram) if histogram.unit == Unit::Nanoseconds => {
            histogram.unit = Unit::Instructions;
        }
        Observation::Table(table) => {
            for column in &mut table.columns {
                let Some(unit) = &mut column.unit else { continue };
                // A profile's time is that of its samples, which are taken of what runs.
                let is = |list: &[(TableId, ColumnId)]| {
                    list.iter().any(|(of, known)| *of == *table.name && known.name == column.name)
                };
                if is(&MODELLED_COLUMNS) {
                    continue;
                }
                let slept = is(&SLEPT_COLUMNS);
                let unseen = slept || waits && time(*unit) && profile::TABLE != *table.name;
                let (counted, factor) = unit.counted();
                *unit = counted;
                if let Values::Number(numbers) = &mut column.values {
                    for number in numbers {
                        *number = number.filter(|_| !unseen).map(|number| number * factor);
                    }
                }
            }
        }
        _ => {}
    }
    Some(observation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_experiment::observation::{Level, Note, Table};
    use pagelab_experiment::tables::{faultscale, windows};

    fn figure(name: MetricId, waits: bool) -> (Option<f64>, Unit) {
        match counted(Observation::Metric(name.figure(Some(7.0))), waits) {
            Some(Observation::Metric(metric)) => (metric.value, metric.unit),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn times_are_instructions_and_samples_at_ticks_are_none() {
        assert_eq!(figure(metrics::TIME_ELAPSED, false), (Some(7.0), Unit::Instructions));
        assert_eq!(figure(metrics::TIME_CPU, false), (Some(7.0), Unit::Instructions));
        assert_eq!(figure(metrics::TIME_SYSTEM, false), (None, Unit::Instructions));
        assert_eq!(figure(metrics::FAULTS_MAJOR, false), (Some(7.0), Unit::Count));
        assert_eq!(figure(metrics::LATENCY_DRAM, false), (None, Unit::Instructions));
        assert_eq!(figure(metrics::LATENCY_MINOR_FAULT, false), (Some(7.0), Unit::Instructions));
    }

    #[test]
    fn a_shared_cache_is_no_reason_where_instructions_are_counted() {
        let note = |text: &str| Observation::Note(Note { level: Level::Info, text: text.into() });
        assert_eq!(counted(note(SHARED_CACHE), false), None);
        assert_eq!(counted(note("another"), false), Some(note("another")));
    }

    #[test]
    fn rates_are_per_million_instructions() {
        let rate = |name: MetricId, value| match counted(Observation::Metric(name.figure(Some(value))), false)
        {
            Some(Observation::Metric(metric)) => (metric.value, metric.unit),
            other => panic!("{other:?}"),
        };
        assert_eq!(rate(metrics::FORKS_RATE, 2500.0), (Some(2.5), Unit::PerMillionInstructions));
        let bytes = rate(metrics::BANDWIDTH_BUFFERED, 2_048_000.0);
        assert_eq!(bytes, (Some(2048.0), Unit::BytesPerMillionInstructions));
        let columns = [faultscale::WORKERS.of(vec![Some(1.0)]), faultscale::THROUGHPUT.of(vec![Some(4e5)])];
        let table = Table { name: faultscale::TABLE.name.into(), columns: columns.into() };
        let Some(Observation::Table(table)) = counted(Observation::Table(table), false) else { panic!() };
        assert_eq!(table.numbers(faultscale::WORKERS).unwrap(), [Some(1.0)]);
        assert_eq!(table.numbers(faultscale::THROUGHPUT).unwrap(), [Some(400.0)]);
        assert_eq!(table.columns[1].unit, Some(Unit::PerMillionInstructions));
    }

    #[test]
    fn what_a_model_makes_stays_nanoseconds_and_what_sleeps_is_none() {
        assert_eq!(figure(metrics::TIER_LATENCY_ON, true), (Some(7.0), Unit::Nanoseconds));
        assert_eq!(figure(metrics::TIER_COST_ON, false), (Some(7.0), Unit::Instructions));
        assert_eq!(figure(metrics::KSM_TIME, false), (None, Unit::Instructions));
    }

    #[test]
    fn what_waits_for_a_disk_is_a_dash() {
        for name in
            [metrics::TIME_ELAPSED, metrics::ACCESS_MEAN, metrics::ACCESS_MAJOR_MEAN, metrics::TIME_STALLED]
        {
            assert_eq!(figure(name, true), (None, Unit::Instructions), "{name}");
        }
        assert_eq!(figure(metrics::SPEED_LAST, true).0, None, "a rate, too");
        for name in
            [metrics::TIME_CPU, metrics::FAULT_ANONYMOUS, metrics::ACCESS_HIT_MEAN, metrics::FAULTS_MAJOR]
        {
            assert_eq!(figure(name, true).0, Some(7.0), "{name}");
        }
        let columns = [windows::ACCESS_MEAN, windows::FAULTS_MAJOR].map(|column| column.of(vec![Some(1.0)]));
        let table = Table { name: windows::TABLE.name.into(), columns: columns.into() };
        let Some(Observation::Table(table)) = counted(Observation::Table(table), true) else { panic!() };
        assert_eq!(table.numbers(windows::ACCESS_MEAN).unwrap(), [None]);
        assert_eq!(table.numbers(windows::FAULTS_MAJOR).unwrap(), [Some(1.0)]);
    }
}
