//! Recorded and generated streams through the binary: replay, mrc, wss.

mod common;

use common::Lab;
use serde_json::Value;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// 1 2 3 4 1 2 3 4 …: LRU with three frames misses always, with four only at first; OPT in between.
const LOOP: &str = "1\n2\n3\n4\n1\n2\n3\n4\n1\n2\n3\n4\n";

#[test]
fn replay_counts_misses_for_each_model_and_size() {
    let lab = Lab::new();
    std::fs::write(lab.path("loop.txt"), LOOP).unwrap();
    let rows = lines(&lab.ok("replay loop.txt --on model:lru --on model:opt --memory 3p 16K --json"));
    let misses: Vec<u64> = rows.iter().map(|row| row["misses"].as_u64().unwrap()).collect();
    // OPT with three frames: 4 at first, then one for every third reference, by hand: 1 2 3 4 | 3→… 6.
    assert_eq!(misses, [12, 4, 6, 4]);
    for row in &rows {
        assert_eq!(row["references"], 12);
        let ratio = row["misses"].as_f64().unwrap() / 12.0;
        assert!((row["miss_ratio"].as_f64().unwrap() - ratio).abs() < 1e-9);
    }
    assert!(lab.ok("replay loop.txt --memory 3p").contains("miss ratio"));
}

#[test]
fn curves_agree_with_replays_and_samples_come_close() {
    let lab = Lab::new();
    let stream = "zipf:0.9 --pages 20000 --references 200000 --memory 1000p,5000p";
    let exact = lines(&lab.ok(&format!("mrc {stream} --json")));
    let replayed = lines(&lab.ok(&format!("replay {stream} --on model:lru --json")));
    for (curve, replay) in exact.iter().zip(&replayed) {
        assert_eq!(curve["misses"], replay["misses"]);
    }
    let sampled = lines(&lab.ok(&format!("mrc {stream} --sample 0.2 --json")));
    for (sample, exact) in sampled.iter().zip(&exact) {
        let (a, b) = (sample["miss_ratio"].as_f64().unwrap(), exact["miss_ratio"].as_f64().unwrap());
        assert!((a - b).abs() < 0.05, "{a} against {b}");
        assert!(sample["standard_error"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn curves_and_replays_are_drawn() {
    let lab = Lab::new();
    lab.ok("mrc zipf:0.9 --pages 2000 --references 20000 --policy lru --policy arc --html curve.html");
    lab.ok("replay linear --pages 200 --references 2000 --memory 10p,100p --html replay.html");
    for file in ["curve.html", "replay.html"] {
        let page = std::fs::read_to_string(lab.path(file)).unwrap();
        assert!(page.contains("miss ratio") && page.len() < 100_000, "{file}");
    }
}

#[test]
fn working_sets_of_streams_and_processes() {
    let lab = Lab::new();
    std::fs::write(lab.path("loop.txt"), LOOP).unwrap();
    let sizes = lines(&lab.ok("wss loop.txt --window 4 --json"));
    assert_eq!(sizes.last().unwrap()["pages"], 4);
    let this = std::process::id();
    let seen = lines(&lab.ok(&format!("wss {this} --interval 0.05 --count 2 --json")));
    assert_eq!(seen.len(), 2);
    assert!(seen[1]["resident_bytes"].as_u64().unwrap() > 0);
    let error = lab.fails("wss 4000000000", 3);
    assert!(error.contains("cannot be looked at"), "{error}");
}

#[test]
fn torn_and_foreign_traces_are_refused_with_the_place() {
    let lab = Lab::new();
    std::fs::write(lab.path("torn.bin"), [1u8; 37]).unwrap();
    let error = lab.fails("replay torn.bin --format oracle-general --memory 4p", 3);
    assert!(error.contains("torn.bin"), "{error}");
    std::fs::write(lab.path("bad.txt"), "1\n2\nx\n").unwrap();
    let error = lab.fails("replay bad.txt --format text --memory 4p", 3);
    assert!(error.contains('3'), "{error}");
    lab.fails("replay missing.txt --memory 4p", 3);
    lab.fails("replay linear --memory 0", 2);
}
