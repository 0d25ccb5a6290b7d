//! Every experiment but those on one mapping from the command line to the notebook and back.

use std::io::Write;
use std::process::Stdio;

use crate::common::{Lab, joined};
use pagelab_testing::{CC, LIMITS, Test, tests};

pub fn tests() -> Vec<Test> {
    tests! {
        each_is_performed_kept_and_judged_in_a_sentence;
        parts_of_the_suite_that_are_compared_are_performed_often_enough: LIMITS;
        two_runs_of_one_experiment_compare;
        the_study_of_today_explains_each_figure;
        the_study_of_today_is_planned_to_take_half_a_minute: LIMITS;
        a_sweep_over_memory_finds_a_knee_that_a_person_would_agree_with: LIMITS;
        a_sweep_stops_at_a_limit_that_is_too_small: LIMITS, CC;
        a_sweep_over_a_failing_program_is_an_error: LIMITS;
        need_finds_the_memory_of_a_program_of_known_need: LIMITS, CC;
        need_of_a_program_that_fails_or_grows_without_end_is_an_error: LIMITS, CC;
        a_served_clock_is_a_reference;
    }
}

/// Standard output of a run, without a page of plots and progress.
fn run(lab: &Lab, arguments: &str) -> String {
    lab.ok(&format!("run --html none --quiet {arguments}"))
}

fn each_is_performed_kept_and_judged_in_a_sentence() {
    let lab = Lab::new();
    for (arguments, wanted) in [
        ("vmtest --sizes 16K..4M:1 --seconds 0.05 --name a", "a: mean read time"),
        ("forkstorm --forks 50 --name b", "b: fork rate"),
        ("faultscale --workers 1,2,3,4 --seconds 0.05 --name c", "c: best median throughput"),
        ("fileread --memory none --sizes 256K,1M,4M --reads 500 --name d", "d: mean CPU time of a read"),
        ("seqread --size 1M --transfers 4K,256K --name e", "e: best sequential bandwidth"),
        ("clock --steps 2 --step 50 --name f", "f: "),
        ("restore --pages 500 --references 300 --name h", "h: first answer after"),
        ("command --name g -- sort /etc/passwd", "g: sort took"),
    ] {
        let text = joined(&run(&lab, arguments));
        assert!(text.contains(wanted), "{arguments}: {text}");
        assert!(text.contains("Kept in"), "{text}");
    }
    // Each is in the notebook with its own table, and its command line is what was asked for.
    for (name, table) in [
        ("a", "vmtest"),
        ("c", "faultscale"),
        ("d", "fileread"),
        ("e", "seqread"),
        ("f", "clock"),
        ("h", "restore"),
        ("g", "command"),
    ] {
        let json = lab.ok(&format!("export {name} --format json"));
        assert!(
            json.contains(&format!("\"name\":\"{table}\""))
                || json.contains(&format!("\"name\": \"{table}\"")),
            "{name}"
        );
    }
    lab.shows("show c", &["faultscale --work anon --as threads --workers 1,2,3,4"]);
}

/// Of what is not about a condition: under none each of the four takes a moment.
fn the_study_of_today_explains_each_figure() {
    let lab = Lab::new();
    let text = joined(&run(&lab, "--study mm-today --memory none"));
    let explained = text.split("What the figures mean").nth(1).expect("an explanation");
    for (part, figure, meaning) in [
        ("populate", "populate.touch", "Populate: CPU time of the first write to each page"),
        ("unmap", "unmap.munmap", "Unmap: CPU time of munmap(2)"),
        ("faults", "throughput.first", "Faultscale: operations per second with the fewest workers"),
        ("forks", "fork.cost", "Forkstorm: mean CPU time of a fork"),
    ] {
        let line = explained.split(&format!("mm-today-{part}: {figure} ")).nth(1);
        let line = line.unwrap_or_else(|| panic!("{figure}: {explained}"));
        assert!(line.starts_with(|c: char| c.is_ascii_digit()), "a value: {line}");
        assert!(line.contains(meaning), "{figure}: {line}");
    }
    assert!(!explained.contains("mm-today-zram"), "it is about a limit: {explained}");
}

fn the_study_of_today_is_planned_to_take_half_a_minute() {
    let lab = Lab::new();
    let json = lab.json("run --study mm-today --dry-run --json");
    let plans = json["plans"].as_array().unwrap();
    let performed: Vec<&str> =
        plans.iter().map(|plan| plan["experiment"]["experiment"].as_str().unwrap()).collect();
    for part in ["populate", "unmap", "mapfile", "faultscale", "forkstorm"] {
        assert!(performed.contains(&part), "{part}: {performed:?}");
    }
    let seconds: f64 = plans.iter().filter_map(|plan| plan["needs"]["seconds"].as_f64()).sum();
    assert!(seconds < 30.0, "about {seconds} s");
    // A limit would bring swap of its own, and a guest another boot for each size of it.
    let limited = plans.iter().filter(|plan| {
        let conditions = plan["conditions"].as_array().unwrap();
        conditions.iter().any(|one| one["name"] == "memory" && one["value"] != "none")
    });
    let limited: Vec<&str> = limited.map(|plan| plan["experiment"]["experiment"].as_str().unwrap()).collect();
    assert_eq!(limited, ["mapanon", "mapfile"], "compressed swap, and dirty pages");
}

fn parts_of_the_suite_that_are_compared_are_performed_often_enough() {
    let lab = Lab::new();
    let often = |more: &str| -> Vec<u64> {
        let json = lab.json(&format!("run --dry-run --json{more}"));
        json["plans"].as_array().unwrap().iter().map(|p| p["repetitions"].as_u64().unwrap()).collect()
    };
    let usual = often("");
    assert_eq!(usual.iter().filter(|&&often| often == 4).count(), 2, "random and zram: {usual:?}");
    assert!(usual.iter().all(|often| [3, 4].contains(often)), "{usual:?}");
    assert!(often(" --repeat 2").iter().all(|&often| often == 2));
}

fn two_runs_of_one_experiment_compare() {
    let lab = Lab::new();
    run(&lab, "forkstorm --forks 60 --profile 0 --repeat 3 --name a");
    run(&lab, "forkstorm --forks 60 --profile 0 --repeat 3 --name b");
    lab.shows("compare a b", &["forks.rate", "fork.cost"]);
}

/// A file of numbers in no order.
fn numbers(lab: &Lab) {
    let mut file = std::io::BufWriter::new(std::fs::File::create(lab.path("numbers")).unwrap());
    let mut state = 1_u64;
    for _ in 0..250_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        writeln!(file, "{:020}", state >> 4).unwrap();
    }
}

fn a_sweep_over_memory_finds_a_knee_that_a_person_would_agree_with() {
    let lab = Lab::new();
    // Sorted in memory: sort needs the lines and its index, some 2.5 times the file.
    numbers(&lab);
    let sort = "-- sort --parallel=1 -S 256M numbers -o /dev/null";
    // The knee is asked for here, not the time that it takes: another test bounds that.
    let sweep = "command --sweep-memory 8M..256M --repeat 2 --budget 200 --name s";
    let text = joined(&run(&lab, &format!("{sweep} {sort}")));
    let sentence = text.split("for full speed").next().unwrap().rsplit("s: sort needs ").next().unwrap();
    let mebibytes: f64 = sentence.split(' ').next().unwrap().parse().unwrap_or_else(|_| panic!("{text}"));
    assert!((10.0..64.0).contains(&mebibytes), "sort holds about 20 to 30 MiB: {text}");
    assert!(text.contains("the knee is between"), "{text}");
    // A program that needs nothing is at full speed everywhere.
    let text =
        joined(&run(&lab, "command --sweep-memory 32M..64M --repeat 2 --budget 200 --name t -- sleep 0.2"));
    assert!(text.contains("sleep runs at full speed") && text.contains("even at 32 MiB"), "{text}");
}

fn need_finds_the_memory_of_a_program_of_known_need() {
    let lab = Lab::new();
    lab.compile("touch", TOUCH, &[]);
    let output = lab.output("need --html none --json --budget 200 -- ./touch");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let finding = &found["result"]["findings"][0];
    let figure = |name: &str| {
        let figures = finding["figures"].as_array().unwrap();
        let of = figures.iter().find(|figure| figure["name"] == name).unwrap_or_else(|| panic!("{found}"));
        of["value"].as_f64().unwrap() / f64::from(1 << 20)
    };
    // 24 MiB, touched by turns, and what the process itself needs.
    for name in ["memory.needed", "memory.enough", "memory.peak"] {
        assert!((23.0..27.0).contains(&figure(name)), "{name}: {finding}");
    }
    assert!(figure("memory.completes") <= figure("memory.enough"), "{finding}");
    assert_eq!(finding["inconclusive"], false, "{finding}");
    assert!(finding["limits"].as_array().unwrap().len() <= 20, "{finding}");
    // For people, on a terminal of 80 columns.
    let output = lab.command("need --html none -- ./touch").env("COLUMNS", "80").output().unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
    let lines = text.lines().flat_map(|line| line.split('\r'));
    let wide: Vec<&str> = lines.filter(|line| line.chars().count() > 80).collect();
    assert!(text.contains("touch needs") && wide.is_empty(), "{wide:#?}\n{text}");
}

/// Each page of 24 MiB in turn, 40 times.
const TOUCH: &str = "#include <stdlib.h>
int main(void) {
    volatile char *m = malloc(24 << 20);
    for (int n = 0; n < 40; n++)
        for (long at = 0; at < 24 << 20; at += 4096)
            m[at] += n;
    return 0;
}
";

fn need_of_a_program_that_fails_or_grows_without_end_is_an_error() {
    let lab = Lab::new();
    let error = lab.fails("need -q --html none -- false", 3);
    assert!(error.contains("false"), "{error}");
    lab.compile("leak", "#include <stdlib.h>\n#include <string.h>\nint main(void) {\n    for (;;) memset(malloc(1 << 20), 1, 1 << 20);\n}\n", &[]);
    let error = lab.fails("need -q --html none --max-memory 32M --on host,swap-size=32M -- ./leak", 3);
    assert!(error.contains("does not end by itself under the largest limit"), "{error}");
}

const READS: &str = "#include <fcntl.h>
#include <sys/mman.h>
int main(void) {
    int file = open(\"data\", O_RDONLY);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    char *m = mmap(0, 32 << 20, PROT_READ, MAP_SHARED, file, 0);
    unsigned x = 1, sum = 0;
    for (long i = 0; i < 3000000; i++) {
        x = x * 1664525 + 1013904223;
        sum += m[x >> 7];
    }
    return sum == 1;
}
";

/// The program reads 32 MiB of a file at random: a limit that is too small makes a second minutes,
/// and is stopped.
fn a_sweep_stops_at_a_limit_that_is_too_small() {
    let lab = Lab::new();
    lab.compile("reads", READS, &[]);
    // Its pages are the program's to charge once they are clean and dropped.
    let mut data = std::fs::File::create(lab.path("data")).unwrap();
    data.write_all(&vec![0; 32 << 20]).unwrap();
    data.sync_all().unwrap();
    let output = lab.output("run --html none command --sweep-memory 4M..256M --name s -- ./reads");
    let text = joined(&String::from_utf8(output.stdout).unwrap());
    let said = joined(&String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success() && said.contains("the search takes at most"), "{said}");
    assert!(text.contains("knee") && text.contains("over ") && text.contains("--give-up"), "{text}");
    assert!(!text.contains("does not count"), "{text}");
}

fn a_sweep_over_a_failing_program_is_an_error() {
    let lab = Lab::new();
    let error = lab.fails("run -q --html none command --sweep-memory 32M..64M --name s -- false", 3);
    assert!(error.contains("--sweep-memory") || error.contains("false"), "{error}");
    let output = lab.output("run -q --html none command --sweep-memory 32M..64M -- false");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("full speed"), "no size for what fails");
}

fn a_served_clock_is_a_reference() {
    let lab = Lab::new();
    let mut server = lab.command("clock serve 127.0.0.1:0").stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut output = std::io::BufReader::new(server.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut output, &mut said).unwrap();
    let address = said.trim().rsplit(' ').next().unwrap().to_owned();
    let text = run(&lab, &format!("clock --steps 2 --step 100 --reference {address}"));
    let _ = server.kill();
    let _ = server.wait();
    assert!(text.contains("clock.reference.drift"), "{text}");
}
