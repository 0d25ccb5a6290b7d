//! The loads of the matrix: small runs with real reclaim, each the arguments of `pagelab run`.

use pagelab_experiment::{MetricId, metrics};

/// A load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The name.
    pub name: &'static str,
    /// The load in a few words.
    pub help: &'static str,
    /// The experiment and its conditions, as `pagelab run` takes them.
    pub line: &'static str,
    /// The metric that has its instructions.
    pub metric: MetricId,
    /// Divides the metric: 1 for a mean.
    pub per: u32,
    /// What the instructions are per.
    pub unit: &'static str,
}

const fn references(name: &'static str, help: &'static str, line: &'static str) -> Load {
    Load { name, help, line, metric: metrics::ACCESS_MEAN, per: 1, unit: "reference" }
}

/// The loads, in the order of the columns.
pub const LOADS: [Load; 10] = [
    references(
        "scan",
        "hot pages, with two scans of cold pages in between",
        "mapanon --pages 2048 --references 11472 \
         --pattern phases:zipf:0.9@0-30x2+linear@30-100+zipf:0.9@0-30x2+linear@30-100+zipf:0.9@0-30x2 \
         --touch word --memory 1024p",
    ),
    references(
        "loop",
        "a loop over more pages than memory",
        "mapanon --pages 2048 --references 6144 --pattern linear --touch word --memory 1536p",
    ),
    references(
        "zipf",
        "popular and unpopular pages",
        "mapanon --pages 2048 --references 8000 --pattern zipf:0.9 --touch word --memory 1024p",
    ),
    references(
        "phase",
        "a working set that changes at once, and changes back",
        "mapanon --pages 2048 --references 9000 --pattern phases:uniform@0-40+uniform@60-100+uniform@0-40 \
         --touch word --memory 1024p",
    ),
    references(
        "drift",
        "hot pages that move slowly through cold ones",
        "mapanon --pages 2048 --references 9000 --pattern drift --touch word --memory 768p",
    ),
    Load {
        metric: metrics::VICTIM_COST_NEIGHBOUR,
        ..references(
            "mix",
            "anonymous memory, next to a process that reads a file",
            "neighbour --pages 1024 --references 4000 --neighbour 4096 --task read-file --memory 1280p",
        )
    },
    references(
        "dirty",
        "the pages of zipf, all written",
        "mapanon --pages 2048 --references 8000 --pattern zipf:0.9 --touch write --memory 1024p",
    ),
    Load {
        metric: metrics::TIME_CPU,
        per: 80,
        unit: "fork",
        ..references(
            "fork",
            "forks, and copies of pages that the child writes",
            "forkstorm --copies 1 --forks 80 --pages 1024 --touch 256 --memory 1152p --profile 0",
        )
    },
    Load {
        metric: metrics::TIME_CPU,
        per: 4096,
        unit: "page",
        ..references(
            "write",
            "a file larger than memory, written once through a mapping",
            "mapfile --pages 4096 --references 4096 --pattern linear --touch write --memory 2048p",
        )
    },
    Load {
        metric: metrics::VICTIM_COST_LOW,
        ..references(
            "low",
            "memory under memory.low, next to a process that writes",
            "neighbour --pages 1024 --references 4000 --neighbour 2048 --memory 1536p",
        )
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_distinct() {
        for (n, load) in LOADS.iter().enumerate() {
            assert!(load.name.len() <= 5 && LOADS[..n].iter().all(|other| other.name != load.name));
            assert!(!load.line.contains("  "), "{}", load.line);
        }
    }
}
