//! Real kernels in real machines: `scripts/kernels` fetches them, QEMU boots them.

use std::path::PathBuf;
use std::process::Command;

use crate::common::{Lab, eventually};
use pagelab_testing::{ARM64, KERNELS, Need, TMPFS, Test, tests};
use serde_json::{Map, Value};

pub fn tests() -> Vec<Test> {
    tests! {
        two_kernels_page_under_a_limit: KERNELS;
        instructions_are_the_same_every_time_and_tell_kernels_apart: KERNELS;
        words_that_do_nothing_raise_no_alarm: KERNELS;
        a_guest_that_is_brought_back_counts_what_one_that_boots_does: KERNELS;
        every_instruction_of_a_load_is_of_a_function: KERNELS;
        misses_are_of_functions_and_the_same_every_time: KERNELS;
        a_full_disk_ends_a_recording_and_not_the_guest: KERNELS, TMPFS;
        a_file_is_mapped_from_a_scratch_disk: KERNELS;
        an_arm64_kernel_pages_under_a_limit: ARM64;
        what_instructions_cannot_say_is_a_dash_or_refused: KERNELS;
        a_kernel_that_panics_or_is_none_is_a_clear_error: KERNELS;
        a_silent_guest_is_ended_in_time_and_a_killed_pagelab_leaves_no_machine: KERNELS;
        a_load_that_outgrows_the_guests_limit_is_reported: KERNELS;
        a_kernel_is_judged_for_git_bisect: KERNELS;
        git_bisects_a_regression_to_its_commit: GIT;
        what_is_no_verdict_never_looks_like_one: KERNELS;
    }
}

/// Two images.
fn kernels() -> (PathBuf, PathBuf) {
    let found = pagelab_testing::kernels();
    (found[0].clone(), found[1].clone())
}

const SMALL: &str = "run mapanon --pages 4000 --references 8000 --pattern uniform --report none";

fn metric(run: &Value, repetition: usize, name: &str) -> f64 {
    run["repetitions"][repetition]["metrics"][name]["value"]
        .as_f64()
        .unwrap_or_else(|| panic!("no {name} in {run}"))
}

fn machines() -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        line.starts_with("qemu-system") && line.contains("PL-TEST")
    })
    .count()
}

fn two_kernels_page_under_a_limit() {
    let (a, b) = kernels();
    let lab = Lab::new();
    let result = lab.json(&format!(
        "{SMALL} --memory 12M --json --on kernel:{},accel=tcg,swap=zram --on kernel:{},accel=tcg",
        a.display(),
        b.display()
    ));
    let runs = result["result"]["runs"].as_array().unwrap();
    let release =
        |run: &Value| run["repetitions"][0]["environment"]["kernel.release"].as_str().unwrap().to_owned();
    assert_ne!(release(&runs[0]), release(&runs[1]));
    for run in runs {
        assert!(metric(run, 0, "faults.major") > 100.0);
        // 12 MiB hold 3,072 pages; the cgroup also pays for page tables.
        assert!((1500.0..3073.0).contains(&metric(run, 0, "pages.present")));
        let environment = &run["repetitions"][0]["environment"];
        assert_eq!(
            (&environment["guest.accel"], &environment["memory.limit"]),
            (&"tcg".into(), &"12582912".into())
        );
    }
}

fn instructions_are_the_same_every_time_and_tell_kernels_apart() {
    let (a, b) = kernels();
    let lab = Lab::new();
    let same = format!("kernel:{},accel=icount", a.display());
    let other = format!("kernel:{},accel=icount", b.display());
    let small = "run mapanon --pages 1000 --references 2000 --memory none --report none --json";
    // Counting and sampling are done in loads of their own, and change no figure.
    let watched = format!("{same},functions=on,profile=20000");
    let other = format!("{other},functions=on");
    let result = lab.json(&format!("{small} --repeat 2 --name x --on {same} --on {watched} --on {watched}"));
    let another = lab.json(&format!("{small} --name y --on {other}"));
    let runs = result["result"]["runs"].as_array().unwrap();
    let cost = |run: usize, repetition: usize| metric(&runs[run], repetition, "fault.anonymous");
    assert_eq!(runs[0]["repetitions"][0]["metrics"]["fault.anonymous"]["unit"], "instructions");
    let apart = |one: f64, two: f64| (one / two - 1.0).abs();
    for run in [0, 1] {
        let (one, two) = (cost(run, 0), cost(run, 1));
        assert!(apart(one, two) < 1e-4, "{one} and {two} instructions");
    }
    // What is asked for shifts the moments at which the guest's clock interrupts: once more or less.
    let (one, two) = (cost(0, 0), cost(1, 0));
    assert!(apart(one, two) < 5e-4, "{one} and {two} instructions");
    let other = metric(&another["result"]["runs"][0], 0, "fault.anonymous");
    assert!((other / cost(0, 0) - 1.0).abs() > 1e-3, "another kernel costs the same");
    // What a kernel still does for itself after booting is not in the figures: measured at once,
    // 6.12 seemed to take twice as long as 6.1 for a fault, while it tested its ciphers on the same
    // processor.
    assert!((0.8..1.25).contains(&(other / cost(0, 0))), "{other} instructions beside {}", cost(0, 0));
    let environment = &another["result"]["runs"][0]["repetitions"][0]["environment"];
    assert!(environment["guest.quiet"].as_str().unwrap().starts_with("at rest after "), "{environment}");
    assert_eq!(environment["thp.enabled"], "always", "a guest has the memory for huge pages");
    // The same kernel against itself shows no difference.
    let compared = lab.json("compare x-1 x-2 --metric fault.anonymous --json");
    assert_eq!(compared["comparisons"][0]["metrics"][0]["verdict"], "no significant difference");
    let kept: Value = serde_json::from_str(&lab.ok("export x-2 x-3 y")).unwrap();
    let table = |run: usize, repetition: usize, name: &str| {
        let tables = &kept["runs"][run]["repetitions"][repetition]["observations"]["tables"];
        tables.as_array().unwrap().iter().find(|table| table["name"] == name).unwrap().clone()
    };
    let column = |table: &Value, name: &str| {
        let columns = table["columns"].as_array().unwrap().clone();
        columns.into_iter().find(|column| column["name"] == name).unwrap()
    };
    // The two kernels have different functions for the same: one call for each of 1,000 pages.
    let what = "reverse map: new anonymous page";
    for (run, name) in [(0, "page_add_new_anon_rmap"), (2, "folio_add_new_anon_rmap")] {
        let operations = table(run, 0, "operations");
        let rows = column(&operations, "operation")["values"]["text"].as_array().unwrap().clone();
        let row = rows.iter().position(|text| text == what).unwrap();
        let function = column(&operations, "function")["values"]["text"][row].clone();
        if a.to_string_lossy().contains("6.1.") && b.to_string_lossy().contains("6.12.") {
            assert_eq!(function, name);
        }
        let count = column(&operations, "count")["values"]["number"][row].as_f64().unwrap();
        assert!((1000.0..1010.0).contains(&count), "{count} calls of {function}");
    }
    // Samples are equally many instructions apart, and fall on the same ones in the same repetition
    // of another run.
    let profile = table(0, 0, "profile");
    assert_eq!(column(&profile, "time")["unit"], "instructions");
    assert_eq!(profile, table(1, 0, "profile"));
    let samples = column(&profile, "samples")["values"]["number"].clone();
    let samples: f64 = samples.as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).sum();
    // 1,000 faults of 2,000 to 20,000 instructions, a sample every 50,000.
    assert!((40.0..400.0).contains(&samples), "{samples} samples");
    assert!(lab.ok("show x-2").contains(what));
    assert!(lab.ok("compare x-2 y --metric fault.anonymous").contains("operations: count"));
}

/// A word more moves the whole load against the kernel's ticks; repetitions begin at moments of
/// their own all the same. Four pairs; `scripts/words` has twenty. In another boot a thread of the
/// kernel's own may wake once more or less in the load: 7,139 instructions were seen, half a
/// percent of the processor time of 600 references, and a tenth of that of these.
fn words_that_do_nothing_raise_no_alarm() {
    let (_, kernel) = kernels();
    let lab = Lab::new();
    let small = "run mapanon --pages 1000 --references 6000 --memory none --report none -q";
    let plain = format!("kernel:{},accel=icount", kernel.display());
    // The image by a longer path, with its modules beside it.
    let package = kernel.parent().and_then(std::path::Path::parent).unwrap();
    std::os::unix::fs::symlink(package, lab.path("a-link-that-makes-the-path-longer")).unwrap();
    let longer = format!(
        "kernel:a-link-that-makes-the-path-longer/boot/{},accel=icount",
        kernel.file_name().unwrap().to_string_lossy()
    );
    let other_order = format!("kernel:{},timeout=299,ram=1G,accel=icount", kernel.display());
    let result = lab.json(&format!(
        "{small} --json --name word --on {plain} --on {plain},append=foo=1 --on {plain},append=a-much-longer-word-than-that \
         --on {other_order} --on {longer}"
    ));
    let runs = result["result"]["runs"].as_array().unwrap();
    for name in ["fault.anonymous", "time.elapsed", "access.mean", "time.cpu"] {
        let of = |run: usize| metric(&runs[run], 0, name);
        for other in [1, 2, 3, 4] {
            let apart = (of(other) / of(0) - 1.0).abs();
            println!("{name}: {} and {}: {:.4} %", of(0), of(other), apart * 100.0);
            assert!(apart < 0.005, "{name}: {} and {}", of(0), of(other));
        }
    }
}

/// One command boots once: the second side, whose target is the same, begins where the first had
/// come to rest.
fn a_guest_that_is_brought_back_counts_what_one_that_boots_does() {
    let (_, kernel) = kernels();
    let lab = Lab::new();
    let kernel = kernel.display();
    let result = lab.json(&format!(
        "run mapanon --pages 2500 --references 2500 --pattern uniform --memory 8M --report none --json -q \
         --on kernel:{kernel},accel=icount --on kernel:{kernel},accel=icount"
    ));
    let runs = result["result"]["runs"].as_array().unwrap();
    let begun = |run: usize| runs[run]["repetitions"][0]["environment"]["guest.begun"].clone();
    assert_eq!((begun(0), begun(1)), ("booted".into(), "restored".into()));
    let metrics = |run: usize| runs[run]["repetitions"][0]["metrics"].as_object().unwrap().clone();
    let (booted, restored) = (metrics(0), metrics(1));
    assert!(booted["faults.major"]["value"].as_f64().unwrap() > 100.0);
    for (name, metric) in &booted {
        assert_eq!(metric, &restored[name], "{name}");
    }
}

/// The machine's own count beside its clock, which counts instructions too.
fn every_instruction_of_a_load_is_of_a_function() {
    let (_, kernel) = kernels();
    let lab = Lab::new();
    let result = lab.json(&format!(
        "run mapanon --pages 500 --references 1000 --memory none --report none --json -q --name traced \
         --on kernel:{0},accel=icount,trace=functions --on kernel:{0},accel=icount,trace=functions",
        kernel.display()
    ));
    let (run, again) = (&result["result"]["runs"][0], &result["result"]["runs"][1]);
    let (user, kernel) = (metric(run, 0, "instructions.user"), metric(run, 0, "instructions.kernel"));
    assert_eq!(user, metric(again, 0, "instructions.user"), "of two runs");
    assert_eq!(kernel, metric(again, 0, "instructions.kernel"), "of two runs");
    // 500 first touches and their giving back; reading 1,000 pages of 512 words.
    let fault = metric(run, 0, "fault.anonymous");
    println!("user {user}, kernel {kernel}, 500 faults of {fault}");
    assert!(
        (0.8..1.5).contains(&(kernel / (500.0 * fault))),
        "{kernel} instructions for 500 faults of {fault}"
    );
    assert!((500_000.0..5_000_000.0).contains(&user), "{user}");
    let kept: Value = serde_json::from_str(&lab.ok("export traced-1")).unwrap();
    let tables = kept["runs"][0]["repetitions"][0]["observations"]["tables"].clone();
    let table =
        tables.as_array().unwrap().iter().find(|table| table["name"] == "instructions").unwrap().clone();
    let names = table["columns"][0]["values"]["text"].as_array().unwrap().clone();
    let counts = table["columns"][2]["values"]["number"].as_array().unwrap().clone();
    let count = |name: &str| {
        let row =
            names.iter().position(|row| row == name).unwrap_or_else(|| panic!("no {name} in {names:?}"));
        counts[row].as_f64().unwrap()
    };
    let sum: f64 = counts.iter().map(|count| count.as_f64().unwrap()).sum();
    assert_eq!(sum, user + kernel);
    // Each page is cleared in a loop of 8 bytes at least and 64 at most.
    assert!(count("clear_page_orig") > 500.0 * 64.0);
    assert!(lab.ok("show traced-1").contains("clear_page_orig"));
}

/// What instructions cannot see, of a load whose pages are known: beyond the reach of the
/// translation buffers (1,536 pages) and of the caches (1 MiB), and within the former.
fn misses_are_of_functions_and_the_same_every_time() {
    let (_, kernel) = kernels();
    let lab = Lab::new();
    let run = |name: &str, pages: u64, sides: &[&str]| {
        let sides = sides.iter().map(|side| format!(" --on kernel:{},accel=icount{side}", kernel.display()));
        let result = lab.json(&format!(
            "run mapanon --pages {pages} --references {pages} --pattern linear --memory none --report none --json -q \
             --name {name}{}",
            sides.collect::<String>()
        ));
        result["result"]["runs"].clone()
    };
    let runs = run("missed", 3000, &["", ",trace=cache", ",trace=cache"]);
    let metrics = |run: usize| runs[run]["repetitions"][0]["metrics"].as_object().unwrap().clone();
    let (without, with) = (metrics(0), metrics(1));
    assert!(without.len() > 10 && without.contains_key("fault.anonymous"));
    same_but_for_the_boot(&without, &with);
    assert_eq!(with, metrics(2), "of two runs");
    let begun = |run: usize| runs[run]["repetitions"][0]["environment"]["guest.begun"].clone();
    assert_eq!((begun(1), begun(2)), ("booted".into(), "restored".into()));
    let of = |runs: &Value, run: usize, name: &str| metric(&runs[run], 0, name);
    let figure = |name: &str| of(&runs, 1, name);
    for (name, metric) in &with {
        if !without.contains_key(name) {
            println!("{name}: {}", metric["value"]);
        }
    }
    // Each page is written once when it is mapped, and read once in the same order, its 64 lines by
    // 512 words; beside it there are the stream and the stack.
    let about = |name: &str, known: f64| {
        let seen = figure(name);
        assert!((known..known * 1.05 + 500.0).contains(&seen), "{name}: {seen}, where {known} are known");
    };
    about("walks.user", 2.0 * 3000.0);
    about("misses.l1d.user", 64.0 * 3000.0);
    assert!(figure("references.user") > 512.0 * 3000.0);
    assert!(figure("misses.l1d.kernel") > 64.0 * 3000.0, "pages are cleared by lines");
    for mode in ["user", "kernel"] {
        let of = |name: &str| figure(&format!("{name}.{mode}"));
        assert!(of("walks") <= of("misses.tlb") && of("misses.l1d") <= of("references"), "{mode}");
        assert!(of("misses.l2") <= of("misses.l1d") + of("misses.l1i"), "{mode}");
    }
    let recorded = format!(
        "run mapanon --pages 3000 --references 3000 --pattern linear --memory none --report none --json -q --name trace \
         --on kernel:{},accel=icount",
        kernel.display()
    );
    references_are_a_trace(&lab, &recorded, &without, &with);
    // Within the reach of the second level the second pass finds all translations.
    let few = run("few", 500, &[",trace=cache"]);
    let (missed, walks) = (of(&few, 0, "misses.tlb.user"), of(&few, 0, "walks.user"));
    assert!((1000.0..1300.0).contains(&missed) && (500.0..700.0).contains(&walks), "{missed}, {walks}");
    // The table is the sums by function, and compare finds nothing between two that are alike.
    let kept: Value = serde_json::from_str(&lab.ok("export missed-2")).unwrap();
    let tables = kept["runs"][0]["repetitions"][0]["observations"]["tables"].as_array().unwrap().clone();
    let table = tables.iter().find(|table| table["name"] == "cache-misses").unwrap();
    let column = |name: &str| {
        let columns = table["columns"].as_array().unwrap();
        columns.iter().find(|column| column["name"] == name).unwrap()["values"].clone()
    };
    let numbers = |name: &str| -> Vec<f64> {
        column(name)["number"].as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).collect()
    };
    assert_eq!(numbers("walks").iter().sum::<f64>(), figure("walks.user") + figure("walks.kernel"));
    let names = column("function")["text"].as_array().unwrap().clone();
    let clear = names.iter().position(|name| name == "clear_page_orig").unwrap();
    let cleared = numbers("l1d")[clear];
    assert!((64.0 * 3000.0..64.0 * 3300.0).contains(&cleared), "{cleared} lines cleared for 3,000 pages");
    let shown = lab.ok("show missed-2");
    assert!(shown.contains("cache-misses") && shown.contains("clear_page_orig"), "{shown}");
    let compared = lab.ok("compare missed-2 missed-3");
    assert!(!compared.contains("cache-misses"), "{compared}");
    let other = lab.ok("compare missed-2 few");
    assert!(other.contains("cache-misses: walks"), "{other}");
    for (options, remedy) in [("accel=tcg", "accel=icount"), ("accel=icount,thp=always", "base pages")] {
        let wrong = format!("kernel:{},{options},trace=cache", kernel.display());
        let error = lab.fails(&format!("run mapanon --report none --on {wrong}"), 2);
        assert!(error.contains(remedy), "{error}");
    }
}

/// The references of the machine while it performs the load, read as any trace. `counted`: the
/// figures of a run that counted them, of which those that `without` has are the guest's own.
fn references_are_a_trace(lab: &Lab, run: &str, without: &Map<String, Value>, counted: &Map<String, Value>) {
    let result = lab.json(&format!("{run},trace=on,to=a.trace {},trace=on,to=b.trace", on(run)));
    let metrics = |run: usize| result["result"]["runs"][run]["repetitions"][0]["metrics"].clone();
    for recorded in [0, 1] {
        same_but_for_the_boot(without, metrics(recorded).as_object().unwrap());
    }
    let bytes = |name: &str| std::fs::read(lab.path(name)).unwrap();
    let length = |name: &str| bytes(name).len() as f64;
    assert!((length("a.trace") / length("b.trace") - 1.0).abs() < 0.01, "two recordings of one load");
    let rows = lab.ok("replay a.trace --memory 2000p,100000p --on model:lru --json");
    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |row: usize, key: &str| rows[row][key].as_u64().unwrap() as f64;
    let known = ["instructions.user", "instructions.kernel", "references.user", "references.kernel"];
    let known: f64 = known.iter().map(|name| counted[*name]["value"].as_f64().unwrap()).sum();
    let apart = (of(0, "references") / known - 1.0).abs();
    assert!(
        apart < 5e-3,
        "{rows:?}: all fetches, loads and stores that were counted, {known}, by another boot"
    );
    // 3,000 pages at the program's addresses and as many at the kernel's, which clears them; the
    // second pass over 3,000 pages finds none of them in 2,000.
    let (few, all) = (of(0, "misses"), of(1, "misses"));
    assert!((6000.0..7500.0).contains(&all) && few >= all + 2900.0, "{few} and {all}");
    lab.ok("mrc a.trace");
    lab.ok("wss a.trace");
    lab.ok("report a.trace -o a.html");
    let page = String::from_utf8(bytes("a.html")).unwrap();
    for area in ["kernel: direct map", "kernel: text and data"] {
        assert!(page.contains(area), "{area}");
    }
    let error = lab.fails(&format!("{},trace=on", run.replace("icount", "tcg")), 2);
    assert!(error.contains("accel=icount"), "{error}");
}

/// The load fills several buffers of the ring: a machine that waited for room in the ring would be
/// silent until it is ended.
fn a_full_disk_ends_a_recording_and_not_the_guest() {
    let (_, kernel) = kernels();
    let lab = Lab::new();
    let disk = lab.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let mount = ["-t", "tmpfs", "-o", "size=64k", "none", disk.to_str().unwrap()];
    assert!(Command::new("mount").args(mount).status().unwrap().success());
    let run = format!(
        "run mapanon --pages 3000 --references 3000 --pattern linear --memory none --report none -q \
         --on kernel:{},accel=icount,trace=on,to=disk/full.trace",
        kernel.display()
    );
    let output = lab.output(&run);
    let left = std::fs::read_dir(&disk).unwrap().count();
    assert!(Command::new("umount").arg(&disk).status().unwrap().success());
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(error.contains("writing the trace") && error.contains("No space left"), "{error}");
    assert_eq!(left, 0, "what is not whole is removed");
}

/// The guest's own figures are the same with and without the tracer, but for what boots of one
/// kernel are seen apart by.
fn same_but_for_the_boot(without: &Map<String, Value>, with: &Map<String, Value>) {
    // The longest reference of a boot holds a tick of the timer or none.
    for (name, metric) in without.iter().filter(|(name, _)| *name != "access.max") {
        let value = |metric: &Value| metric["value"].as_f64();
        if metric != &with[name] {
            println!("{name}: {metric} and {}", with[name]);
        }
        match (value(metric), value(&with[name])) {
            (None, None) => {}
            (Some(one), Some(two)) => {
                // A boot's own threads wake at other moments: each of them may take the processor
                // once. A tick of the timer takes some 5,600 instructions, and more or fewer ticks
                // fall between the same references: boots of 3,000 references were 0.27 % apart.
                let share = if metric["unit"] == "instructions" { 5e-3 } else { 1e-3 };
                let woken = if name.starts_with("switches.") { 2.0 } else { 0.0 };
                let allowed = share * one.abs() + woken;
                assert!((one - two).abs() <= allowed, "{name}: {one} and {two}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

/// The target of a command line that ends with it, as a further one.
fn on(run: &str) -> &str {
    &run[run.find("--on").unwrap()..]
}

/// Waiting takes no instructions, what is sampled at ticks is not exact, and processors that count
/// on one clock do nothing at once.
fn what_instructions_cannot_say_is_a_dash_or_refused() {
    let (_, kernel) = kernels();
    let lab = Lab::new();
    let kernel = kernel.display();
    let run = "run mapanon --pages 3000 --references 3000 --pattern uniform --memory 8M --report none --json";
    let result = lab.json(&format!(
        "{run} --on kernel:{kernel},accel=icount --on kernel:{kernel},accel=icount,swap=file"
    ));
    let runs = result["result"]["runs"].as_array().unwrap();
    let value = |run: usize, name: &str| {
        let metrics = &runs[run]["repetitions"][0]["metrics"];
        assert!(metrics.get(name).is_some(), "no {name}: {metrics}");
        metrics[name]["value"].as_f64()
    };
    // What nobody asked for is swap in memory.
    assert_eq!(runs[0]["repetitions"][0]["environment"]["swap.kind"], "zram");
    assert!(value(0, "time.elapsed").is_some() && value(0, "access.major.mean").is_some());
    for name in ["time.elapsed", "time.wall", "access.mean", "access.major.mean"] {
        assert_eq!(value(1, name), None, "{name}");
    }
    for run in [0, 1] {
        assert_eq!((value(run, "time.user"), value(run, "time.system")), (None, None));
        assert!(value(run, "time.cpu").unwrap() > 1e6);
        assert!(value(run, "faults.major").unwrap() > 100.0);
    }
    let error =
        lab.fails(&format!("run faultscale --report none --on kernel:{kernel},accel=icount,cpus=2"), 2);
    assert!(error.contains("cpus") && error.contains("one clock"), "{error}");
}

fn a_file_is_mapped_from_a_scratch_disk() {
    let (a, _) = kernels();
    let lab = Lab::new();
    let result = lab.json(&format!(
        "run mapfile --pages 4000 --references 8000 --memory 12M --report none --json --on kernel:{},accel=tcg",
        a.display()
    ));
    let run = &result["result"]["runs"][0];
    assert!(metric(run, 0, "faults.major") > 10.0);
    // 4,000 pages were on the disk alone, and the references reach nearly all.
    assert!(metric(run, 0, "io.read") > 3000.0 * 4096.0);
    assert!((1000.0..3073.0).contains(&metric(run, 0, "pages.present")));
}

/// With the pagelab for its processor that stands beside this one: nothing but the image is named.
fn an_arm64_kernel_pages_under_a_limit() {
    let images = pagelab_testing::arm64();
    let lab = Lab::new();
    let image = images[0].display();
    let result = lab.json(&format!("{SMALL} --memory 12M --json --on kernel:{image},accel=icount,swap=zram"));
    let run = &result["result"]["runs"][0];
    let environment = &run["repetitions"][0]["environment"];
    assert_eq!(
        (&environment["machine.arch"], &environment["guest.begun"]),
        (&"aarch64".into(), &"booted".into())
    );
    assert!(metric(run, 0, "faults.major") > 100.0);
    assert!((1500.0..3073.0).contains(&metric(run, 0, "pages.present")));
    // Clearing a page alone takes an instruction for each of its 64 lines.
    assert!(metric(run, 0, "fault.anonymous") > 64.0);
    let took = environment["guest.begun.after"].as_str().unwrap();
    assert!(took.strip_suffix(" s").unwrap().parse::<f64>().unwrap() > 0.0, "{took}");
}

fn a_kernel_that_panics_or_is_none_is_a_clear_error() {
    let (a, _) = kernels();
    let lab = Lab::new();
    let error = lab.fails(
        &format!("{SMALL} --memory none --on kernel:{},accel=tcg,append=rdinit=/nothing", a.display()),
        3,
    );
    assert!(error.contains("panicked") && error.contains("console"), "{error}");
    let exported: Value = serde_json::from_str(&lab.ok("export @1")).unwrap();
    let log = &exported["runs"][0]["repetitions"][0]["observations"]["logs"][0];
    assert!(log[1].as_str().unwrap().contains("Kernel panic"), "the console is kept");
    let error = lab.fails(&format!("{SMALL} --on kernel:/etc/hostname"), 2);
    assert!(error.contains("no kernel image"), "{error}");
    let error = lab.fails(&format!("{SMALL} --on kernel:{},colour=red", a.display()), 2);
    assert!(error.contains("colour"), "{error}");
}

fn a_silent_guest_is_ended_in_time_and_a_killed_pagelab_leaves_no_machine() {
    let (a, _) = kernels();
    let lab = Lab::new();
    // A second is too short for any kernel to boot translated.
    let error =
        lab.fails(&format!("{SMALL} --memory none --on kernel:{},accel=tcg,timeout=1", a.display()), 3);
    assert!(error.contains("did not boot") || error.contains("silent"), "{error}");
    let mut child = lab
        .command(&format!("{SMALL} --memory none --on kernel:{},accel=tcg,append=PL-TEST", a.display()))
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    eventually("the machine starts", || machines() == 1);
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the machine is gone", || machines() == 0);
}

fn a_load_that_outgrows_the_guests_limit_is_reported() {
    let (a, _) = kernels();
    let lab = Lab::new();
    let error =
        lab.fails(&format!("{SMALL} --memory 8M --swap none --on kernel:{},accel=tcg", a.display()), 3);
    assert!(error.contains("out of memory"), "{error}");
}

fn a_kernel_is_judged_for_git_bisect() {
    let (a, b) = kernels();
    let lab = Lab::new();
    let (a, b) = (a.display(), b.display());
    let small = "run mapanon --pages 500 --references 500 --memory none --report none -q";
    lab.ok(&format!("{small} --name good --on kernel:{a},accel=icount"));
    let judge = |kernel: &str, more: &str| {
        let line = format!(
            "bisect-run --metric fault.anonymous --worse-than good --kernel {kernel} --option accel=icount {more}"
        );
        lab.output(&line).status.code()
    };
    // One of the two is the slower one: it is bad, and the other is good.
    let other = judge(&b.to_string(), "");
    lab.ok(&format!("{small} --name good2 --on kernel:{b},accel=icount"));
    // The newest run that was not made to bisect is good2.
    let back = lab.output(&format!(
        "bisect-run mapanon --metric fault.anonymous --worse-than 1% --kernel {a} --option accel=icount"
    ));
    assert!(String::from_utf8_lossy(&back.stdout).contains(" of good2: "), "{back:?}");
    let mut both = [other, back.status.code()];
    both.sort_unstable();
    assert_eq!(both, [Some(0), Some(1)]);
    assert_eq!(judge(&a.to_string(), "--option timeout=1"), Some(125));
    for wrong in [
        "--metric nothing --worse-than good",
        "forkstorm --metric fault.anonymous --worse-than good",
        "forkstorm --metric fault.anonymous --worse-than 1%",
        "--metric fault.anonymous --worse-than 1%",
        "mapanon --metric fault.anonymous --worse-than 1% --by 2",
        "mapanon --metric fault.anonymous --worse-than x%",
    ] {
        let ended = lab.output(&format!("bisect-run {wrong} --kernel {a}"));
        assert_eq!(ended.status.code(), Some(255), "{wrong}: {ended:?}");
    }
}

/// The least that git has to do it with.
const GIT: Need = Need {
    name: "git",
    on: &[&KERNELS],
    met: || match Command::new("git").arg("--version").output() {
        Ok(said) if said.status.success() => Ok(()),
        _ => Err("no git".into()),
    },
};

/// Eight commits choose the kernel's command line; the sixth takes away what switches the memory
/// controller off, which every fault then pays.
fn git_bisects_a_regression_to_its_commit() {
    let (kernel, _) = kernels();
    let lab = Lab::new();
    let tree = lab.path("tree");
    std::fs::create_dir(&tree).unwrap();
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        let identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=m"];
        let output = git.current_dir(&tree).args(identity).args(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "git {words:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
        said
    };
    git(&["init", "-q"]);
    let lines = [
        "cgroup_disable=memory",
        "cgroup_disable=memory foo=1",
        "cgroup_disable=memory foo=2 bar",
        "foo=2 bar cgroup_disable=memory",
        "cgroup_disable=memory foo=a-much-longer-word-than-before",
        "foo=a-much-longer-word-than-before",
        "foo=3",
        "foo=3 bar=4",
    ];
    for (n, line) in (1..).zip(lines) {
        std::fs::write(tree.join("cmdline"), line).unwrap();
        git(&["add", "cmdline"]);
        git(&["commit", "-q", "-m", &format!("commit {n}")]);
    }
    let kernel = kernel.display();
    let good = format!(
        "run mapanon --pages 200 --references 200 --memory none --report none -q --name good --on kernel:{kernel},accel=icount,append={}",
        lines[0]
    );
    lab.ok(&good);
    git(&["bisect", "start", "HEAD", "HEAD~7"]);
    let pagelab = env!("CARGO_BIN_EXE_pagelab");
    let script = format!(
        "{pagelab} -q --notebook {} bisect-run mapanon --metric fault.anonymous --worse-than 3% --kernel {kernel} \
         --option \"append=$(cat cmdline)\"",
        lab.path("pagelab.db").display()
    );
    let output = Command::new("git")
        .current_dir(&tree)
        .args(["bisect", "run", "sh", "-c", &script])
        .env("PAGELAB_STATE_DIR", lab.path("state"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let found = git(&["show", "-s", "--format=%s", "refs/bisect/bad"]);
    assert_eq!(found.trim(), "commit 6", "{said}");
    assert!(said.contains("can be told, from 3 boots"), "{said}");
    // What is less than boots differ by is no threshold, and no verdict.
    let fine = lab.output(&format!(
        "bisect-run mapanon --metric fault.anonymous --worse-than good --by 0 --kernel {kernel} --option append={}",
        lines[0]
    ));
    let words = format!("{}{}", String::from_utf8_lossy(&fine.stdout), String::from_utf8_lossy(&fine.stderr));
    let exact = said.contains("; 0 % can be told");
    assert_eq!(fine.status.code(), Some(if exact { 0 } else { 255 }), "{words}");
}

/// Git takes every status below 128 but 0 and 125 for a bad commit.
fn what_is_no_verdict_never_looks_like_one() {
    let (kernel, _) = kernels();
    let lab = Lab::new();
    let kernel = kernel.display().to_string();
    let boot = "--memory none --report none -q --on";
    lab.ok(&format!(
        "run mapanon --pages 100 --references 100 {boot} kernel:{kernel},accel=icount --name good"
    ));
    let judge = "bisect-run --metric fault.anonymous --worse-than good --kernel";
    for (words, status) in [
        (format!("bisect-run --metrik fault.anonymous --worse-than good --kernel {kernel}"), 255),
        (format!("-q --notebook pagelab.db bisect-run --repeat none --kernel {kernel}"), 255),
        ("bisect-run".to_owned(), 255),
        (format!("{judge} /does/not/exist"), 255),
        (format!("{judge} {kernel} --option accel"), 255),
        (format!("{judge} {kernel} --option acel=icount"), 255),
        (format!("{judge} {kernel} --repeat 0"), 255),
        (format!("--notebook none.db {judge} {kernel}"), 255),
        (format!("bisect-run --metric fault.anonymus --worse-than good --kernel {kernel}"), 255),
        (format!("bisect-run --metric pages.present --worse-than good --kernel {kernel}"), 255),
        (format!("{judge} {kernel} --option append=rdinit=/nothing"), 125),
        ("bisect-run --help".to_owned(), 0),
    ] {
        let ended = lab.output(&words);
        let said =
            format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        assert_eq!(ended.status.code(), Some(status), "{words}: {said}");
        assert!(!said.is_empty(), "{words}");
    }
    let said = lab.output(&format!("bisect-run --metric fault.anonymus --worse-than good --kernel {kernel}"));
    assert!(String::from_utf8_lossy(&said.stderr).contains("did you mean fault.anonymous?"), "{said:?}");
}
