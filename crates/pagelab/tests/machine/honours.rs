//! The contract, cell by cell: every target either performs an experiment under a condition, and
//! its record shows the condition in force, or refuses before anything is set up and leaves no run.
//! There is no third outcome.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use crate::common::Lab;
use pagelab_testing::{ALONE, KERNELS, LIMITS, QEMU, THP, Test, USERFAULT, tests};
use serde_json::Value;

pub fn tests() -> Vec<Test> {
    tests! {
        the_table_has_a_cell_for_everything;
        a_dry_run_does_nothing;
        every_model_keeps_its_word;
        a_pager_keeps_its_word: USERFAULT;
        the_host_keeps_its_word: LIMITS, THP, ALONE;
        a_guest_keeps_its_word: QEMU, KERNELS;
    }
}

/// Each experiment in a form that takes a moment.
const SHORT: [(&str, &str); 21] = [
    ("mapanon", "mapanon --pages 10000 --references 2000"),
    ("mapfile", "mapfile --pages 500 --references 500"),
    ("vmtest", "vmtest --sizes 64K,1M --seconds 0.02 --mapping shared"),
    ("forkstorm", "forkstorm --copies 1 --forks 30"),
    ("faultscale", "faultscale --workers 1 --seconds 0.02"),
    ("fileread", "fileread --sizes 256K,512K,1M --reads 100 --seconds 0.1 --access pread"),
    ("seqread", "seqread --size 512K --transfers 64K --seconds 0.1"),
    ("restore", "restore --pages 500 --references 300"),
    ("latency", "latency --sizes 16K,1M --loads 1000 --faults 100"),
    ("unmap", "unmap --pages 64 --rounds 2"),
    ("mremap", "mremap --pages 64 --rounds 2"),
    ("populate", "populate --pages 64 --rounds 2"),
    ("neighbour", "neighbour --pages 300 --references 300 --neighbour 600"),
    ("bandwidth", "bandwidth --sizes 256K,1M --threads 1 --rounds 1"),
    ("ksm", "ksm --pages 256 --sleep 1"),
    ("tier", "tier --pages 200 --hot 100 --seconds 0.01"),
    ("oom", "oom --held 256,1024 --grow 40000"),
    ("reclaim", "reclaim --hot 256 --cold 768 --ask 256 --steps 2"),
    ("fragment", "fragment --huge 4"),
    ("clock", "clock --steps 2 --step 1000"),
    ("command", "command"),
];

/// The words that ask for a condition, with what it needs beside it.
const ASKED: [(&str, &str); 8] = [
    ("memory", "--memory 32M"),
    ("swap", "--memory 32M --swap file"),
    ("swap-size", "--memory 32M --swap file --swap-size 96M"),
    ("thp", "--thp always"),
    ("swappiness", "--swappiness 37"),
    ("functions", "--functions"),
    ("profile", "--profile 99"),
    ("set", "--set /proc/sys/vm/page-cluster=2"),
];

fn of<'a>(list: &[(&str, &'a str)], name: &str) -> &'a str {
    list.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no case for {name}")).1
}

fn line(experiment: &str, target: &str, condition: &str, name: &str) -> String {
    let short = of(&SHORT, experiment)
        .replace("--step 1000", if target == "host" { "--step 20" } else { "--step 1000" });
    let program = if experiment == "command" { " -- true" } else { "" };
    format!("run --html none --quiet --on {target} --name {name} {condition} {short}{program}")
}

struct Cell {
    target: String,
    experiment: String,
    condition: String,
    honoured: bool,
}

fn table(lab: &Lab) -> Vec<Cell> {
    let json = lab.json("targets --honours --json");
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let rows = json["honours"].as_array().unwrap().iter().map(|row| Cell {
        target: text(row, "target"),
        experiment: text(row, "experiment"),
        condition: text(row, "condition"),
        honoured: row["honoured"].as_bool().unwrap(),
    });
    rows.collect()
}

fn the_table_has_a_cell_for_everything() {
    let lab = Lab::new();
    let cells = table(&lab);
    let targets: std::collections::BTreeSet<&str> = cells.iter().map(|cell| cell.target.as_str()).collect();
    assert!(targets.len() > 20 && targets.contains("host") && targets.contains("kernel:PATH"), "{targets:?}");
    assert_eq!(cells.len(), targets.len() * SHORT.len() * ASKED.len());
    for cell in &cells {
        let row = (of(&SHORT, &cell.experiment), of(&ASKED, &cell.condition));
        assert!(!row.0.is_empty() && !row.1.is_empty());
    }
}

/// The cell is refused, says by whom and why, and leaves no run.
fn refused(lab: &Lab, cell: &Cell, target: &str) {
    let arguments = line(&cell.experiment, target, of(&ASKED, &cell.condition), "refused");
    lab.refuses(&arguments, 2, &["does not"]);
    assert!(!lab.path("pagelab.db").exists() || !lab.ok("list").contains("refused"), "{arguments}");
}

/// The run's record names the condition as asked for, and something that was seen shows it in force.
fn in_force(lab: &Lab, run: &str, condition: &str, arguments: &str) {
    let json = lab.json(&format!("export {run} --format json"));
    let run = &json["runs"][0];
    let conditions = run["conditions"].as_array().unwrap_or_else(|| panic!("{arguments}: {json}"));
    let name = if condition == "set" { "set /proc/sys/vm/page-cluster" } else { condition };
    let found = conditions.iter().find(|c| c["name"] == name);
    let found = found.unwrap_or_else(|| panic!("{arguments}: no {name} in {conditions:?}"));
    assert_eq!(found["origin"], "asked", "{arguments}");
    let seen = &run["repetitions"][0]["observations"];
    let environment = |name: &str| seen["environment"][name].as_str().map(str::to_owned);
    let model = environment("model.name").is_some();
    let shown = match condition {
        // A model's frames are the limit; where it has none, its hit ratio follows from it.
        "memory" if environment("pager.frames").is_some() => {
            environment("pager.frames").as_deref() == Some("8192")
        }
        "memory" if model => environment("model.frames").is_none_or(|frames| frames == "8192"),
        "memory" => environment("memory.limit") == Some((32 << 20).to_string()),
        "swap" => environment("swap.kind").as_deref() == Some("file"),
        "swap-size" => environment("swap.size") == Some((96 << 20).to_string()),
        "thp" => environment("thp.enabled").as_deref() == Some("always"),
        "swappiness" => environment("vm.swappiness").as_deref() == Some("37"),
        "functions" => rows(seen, "operations").iter().any(|(_, function)| !function.is_empty()),
        "profile" => seen["metrics"].as_array().unwrap().iter().any(|m| m["name"] == "profile.samples"),
        "set" => environment("set /proc/sys/vm/page-cluster").as_deref() == Some("2"),
        other => panic!("no proof of {other}"),
    };
    assert!(shown, "{arguments}: nothing that was seen shows {condition}: {}", seen["environment"]);
}

/// The two first columns of texts of a table.
fn rows(seen: &Value, table: &str) -> Vec<(String, String)> {
    let tables = seen["tables"].as_array().cloned().unwrap_or_default();
    let Some(table) = tables.iter().find(|t| t["name"] == table) else { return Vec::new() };
    let texts = |name: &str| -> Vec<String> {
        let columns = table["columns"].as_array().unwrap();
        let column = columns.iter().find(|c| c["name"] == name);
        let values = column.and_then(|c| c["values"]["text"].as_array()).cloned().unwrap_or_default();
        values.iter().map(|v| v.as_str().unwrap_or_default().to_owned()).collect()
    };
    texts("operation").into_iter().zip(texts("function")).collect()
}

fn a_dry_run_does_nothing() {
    let lab = Lab::new();
    let json = lab.json("run mapanon --dry-run --json --memory none --on host --on model:lru,frames=100");
    let plans = json["plans"].as_array().unwrap();
    assert_eq!(plans.len(), 2);
    assert_eq!(plans[0]["deterministic"], false);
    assert_eq!(plans[1]["deterministic"], true);
    assert_eq!(plans[1]["frames"], 100);
    let text = lab.ok("run --dry-run");
    for word in
        ["origin", "default", "memory at once", "tasks at once", "1 process, 1 thread", "Nothing was done"]
    {
        assert!(text.contains(word), "{text}");
    }
    assert!(!lab.path("pagelab.db").exists() && !lab.path("report.html").exists());
}

fn every_model_keeps_its_word() {
    let lab = Lab::new();
    let (mut performed, mut tried) = (0, 0);
    for (n, cell) in table(&lab).iter().filter(|cell| cell.target.starts_with("model:")).enumerate() {
        if !cell.honoured {
            // Thousands: every experiment and every condition of every target, and not each with each.
            if (n + n / ASKED.len()).is_multiple_of(ASKED.len()) {
                refused(&lab, cell, &cell.target);
                tried += 1;
            }
            continue;
        }
        let arguments = line(&cell.experiment, &cell.target, of(&ASKED, &cell.condition), &format!("m{n}"));
        lab.ok(&arguments);
        in_force(&lab, &format!("m{n}"), &cell.condition, &arguments);
        performed += 1;
    }
    assert!(performed > 20 && tried > 500, "{performed} performed, {tried} refused");
}

fn a_pager_keeps_its_word() {
    let lab = Lab::new();
    for (n, cell) in table(&lab).iter().filter(|cell| cell.target == "pager:POLICY").enumerate() {
        if !cell.honoured {
            refused(&lab, cell, "pager:sieve");
            continue;
        }
        let arguments = line(&cell.experiment, "pager:sieve", of(&ASKED, &cell.condition), &format!("p{n}"));
        lab.ok(&arguments);
        in_force(&lab, &format!("p{n}"), &cell.condition, &arguments);
    }
    for (arguments, wanted) in [
        ("run mapanon --on pager:ws:1000", "use model:ws"),
        ("run mapanon --on pager:lru,hidden=2", "from 0 to 1"),
        ("run mapanon --on pager:opt,hidden=0.5", "must see every reference"),
        ("run mapanon --on pager:lru,frames=100 --memory 1M", "stands for the memory limit"),
        ("run mapanon --on pager:lrux", "did you mean 'lru'?"),
        ("run mapfile --on pager:lru", "use mapanon"),
    ] {
        lab.refuses(arguments, 2, &[wanted]);
    }
}

fn the_host_keeps_its_word() {
    let lab = Lab::new();
    let cells = of_target(&lab, "host");
    SHORT.iter().for_each(|(experiment, _)| keeps_its_word(&lab, &cells, experiment, "host"));
}

/// Two guests at a time: an emulated one keeps one CPU busy, and the other tests end long before.
fn a_guest_keeps_its_word() {
    let lab = Lab::new();
    let cells = of_target(&lab, "kernel:PATH");
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let lab = Lab::new();
                while let Some((experiment, _)) = SHORT.get(next.fetch_add(1, Relaxed)) {
                    let nodes = if *experiment == "tier" { ",numa=256M+256M@slow" } else { "" };
                    keeps_its_word(&lab, &cells, experiment, &format!("kernel:OLD{nodes}"));
                }
            });
        }
    });
}

fn of_target(lab: &Lab, target: &str) -> Vec<Cell> {
    table(lab).into_iter().filter(|cell| cell.target == target).collect()
}

/// Runs the experiment once, under all the conditions that the target honours for it. Each of the
/// others is refused.
fn keeps_its_word(lab: &Lab, cells: &[Cell], experiment: &str, target: &str) {
    let of_it = || cells.iter().filter(|cell| cell.experiment == experiment);
    of_it().filter(|cell| !cell.honoured).for_each(|cell| refused(lab, cell, target));
    let honoured: Vec<&str> =
        of_it().filter(|cell| cell.honoured).map(|cell| cell.condition.as_str()).collect();
    if honoured.is_empty() {
        return;
    }
    let asked: Vec<&str> =
        honoured.iter().map(|name| of(&ASKED, name).rsplit("--").next().unwrap().trim()).collect();
    let asked: Vec<String> = asked.iter().map(|words| format!("--{words}")).collect();
    let arguments = line(experiment, target, &asked.join(" "), experiment);
    lab.ok(&arguments);
    for condition in honoured {
        in_force(lab, experiment, condition, &arguments);
    }
}
