//! Real kernels in real machines: `scripts/kernels` fetches them, QEMU boots them.

use std::path::PathBuf;
use std::process::Command;

use crate::common::{Lab, eventually};
use pagelab_testing::{ARM64, CC, KERNELS, Need, TMPFS, Test, tests};
use serde_json::{Map, Value};

pub fn tests() -> Vec<Test> {
    tests! {
        two_kernels_page_under_a_limit: KERNELS;
        instructions_are_the_same_every_time_and_tell_kernels_apart: KERNELS;
        words_that_do_nothing_raise_no_alarm: KERNELS;
        every_instruction_of_a_load_is_of_a_function: KERNELS;
        misses_are_of_functions_and_the_same_every_time: KERNELS;
        a_full_disk_ends_a_recording_and_not_the_guest: KERNELS, TMPFS;
        a_file_is_mapped_from_a_scratch_disk: KERNELS;
        an_arm64_kernel_pages_under_a_limit: ARM64;
        a_guest_that_is_brought_back_counts_the_same_and_what_instructions_cannot_say_is_a_dash: KERNELS;
        a_kernel_that_panics_is_a_clear_error: KERNELS;
        what_cannot_be_brought_or_built_is_refused_before_booting: KERNELS, CC;
        a_silent_guest_is_ended_in_time_and_a_killed_pagelab_leaves_no_machine: KERNELS;
        a_load_that_outgrows_the_guests_limit_is_reported: KERNELS;
        a_kernel_is_judged_for_git_bisect: KERNELS;
        git_bisects_a_regression_to_its_commit: GIT;
    }
}

/// Two images.
fn kernels() -> (PathBuf, PathBuf) {
    let found = pagelab_testing::kernels();
    (found[0].clone(), found[1].clone())
}

/// The metrics of a repetition by their names.
type Metrics = Map<String, Value>;

const SMALL: &str = "run mapanon --pages 4000 --references 8000 --pattern uniform --html none";

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
    let lab = Lab::new();
    let result = lab.json(&format!(
        "{SMALL} --memory 12M --json --on kernel:OLD,accel=tcg,swap=zram --on kernel:NEW,accel=tcg"
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
    let small = "run mapanon --pages 1000 --references 2000 --memory none --html none --json";
    // Counting and sampling are done in loads of their own, and change no figure.
    let same = "kernel:OLD,accel=icount";
    let watched = format!("{same},functions=on,profile=20000");
    let result = lab.json(&format!("{small} --repeat 2 --name x --on {same} --on {watched} --on {watched}"));
    let another = lab.json(&format!("{small} --name y --on kernel:NEW,accel=icount,functions=on"));
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
    let kept = ["x-2", "x-3", "y"].map(|run| lab.kept(run));
    // The two kernels have different functions for the same: one call for each of 1,000 pages.
    let what = "reverse map: new anonymous page";
    for (kept, name) in [(&kept[0], "page_add_new_anon_rmap"), (&kept[2], "folio_add_new_anon_rmap")] {
        if a.to_string_lossy().contains("6.1.") && b.to_string_lossy().contains("6.12.") {
            let row = kept.texts("operations", "operation").iter().position(|text| text == what);
            assert_eq!(kept.texts("operations", "function")[row.unwrap()], name);
        }
        let count = kept.cell("operations", what, "count");
        assert!((1000.0..1010.0).contains(&count), "{count} calls of {name}");
    }
    // Samples are equally many instructions apart, and fall on the same ones in the same repetition
    // of another run.
    assert_eq!(kept[0].table("profile"), kept[1].table("profile"));
    assert_eq!(kept[0].unit("profile", "time"), "instructions");
    let samples: f64 = kept[0].numbers("profile", "samples").iter().sum();
    // 1,000 faults of 2,000 to 20,000 instructions, a sample every 50,000.
    assert!((40.0..400.0).contains(&samples), "{samples} samples");
    lab.shows("show x-2", &[what]);
    lab.shows("compare x-2 y --metric fault.anonymous", &["operations: count"]);
}

/// A word more moves the whole load against the kernel's ticks; repetitions begin at moments of
/// their own all the same. Four pairs; `scripts/words` has twenty. In another boot a thread of the
/// kernel's own may wake once more or less in the load: 7,139 instructions were seen, half a
/// percent of the processor time of 600 references, and a tenth of that of these.
fn words_that_do_nothing_raise_no_alarm() {
    let (_, kernel) = kernels();
    let lab = Lab::new();
    let small = "run mapanon --pages 1000 --references 6000 --memory none --html none -q";
    let plain = "kernel:NEW,accel=icount";
    // The image by a longer path, with its modules beside it.
    let package = kernel.parent().and_then(std::path::Path::parent).unwrap();
    std::os::unix::fs::symlink(package, lab.path("a-link-that-makes-the-path-longer")).unwrap();
    let longer = format!(
        "kernel:a-link-that-makes-the-path-longer/boot/{},accel=icount",
        kernel.file_name().unwrap().to_string_lossy()
    );
    let result = lab.json(&format!(
        "{small} --json --name word --on {plain} --on {plain},append=foo=1 --on {plain},append=a-much-longer-word-than-that \
         --on kernel:NEW,timeout=299,ram=1G,accel=icount --on {longer}"
    ));
    let runs = result["result"]["runs"].as_array().unwrap();
    for name in ["fault.anonymous", "time.elapsed", "access.mean", "time.cpu"] {
        let of = |run: usize| metric(&runs[run], 0, name);
        for other in [1, 2, 3, 4] {
            let apart = (of(other) / of(0) - 1.0).abs();
            println!("{name}: {} and {}: {:.4}%", of(0), of(other), apart * 100.0);
            assert!(apart < 0.005, "{name}: {} and {}", of(0), of(other));
        }
    }
}

/// The machine's own count beside its clock, which counts instructions too.
fn every_instruction_of_a_load_is_of_a_function() {
    let lab = Lab::new();
    let result = lab.json(
        "run mapanon --pages 500 --references 1000 --memory none --html none --json -q --name traced \
         --on kernel:NEW,accel=icount,trace=functions --on kernel:NEW,accel=icount,trace=functions",
    );
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
    let kept = lab.kept("traced-1");
    assert_eq!(kept.numbers("instructions", "instructions").iter().sum::<f64>(), user + kernel);
    // Each page is cleared in a loop of 8 bytes at least and 64 at most.
    assert!(kept.cell("instructions", "clear_page_orig", "instructions") > 500.0 * 64.0);
    lab.shows("show traced-1", &["clear_page_orig"]);
}

/// What instructions cannot see, of a load whose pages are known: beyond the reach of the
/// translation buffers (1,536 pages) and of the caches (1 MiB), and within the former.
fn misses_are_of_functions_and_the_same_every_time() {
    let lab = Lab::new();
    let run = |name: &str, pages: u64, sides: &[&str]| {
        let sides: String = sides.iter().map(|side| format!(" --on kernel:NEW,accel=icount{side}")).collect();
        let line = "--pattern linear --memory none --html none --json -q";
        let line = format!("run mapanon --pages {pages} --references {pages} {line} --name {name}{sides}");
        lab.json(&line)["result"]["runs"].clone()
    };
    let runs = run("missed", 2000, &["", ",trace=cache", ",trace=cache"]);
    let metrics = |run: usize| runs[run]["repetitions"][0]["metrics"].as_object().unwrap().clone();
    let (without, with) = (metrics(0), metrics(1));
    assert!(without.len() > 10 && without.contains_key("fault.anonymous"));
    same_but_for_the_boot(&without, &with);
    assert_eq!(with, metrics(2), "of two runs");
    let begun = |run: usize| runs[run]["repetitions"][0]["environment"]["guest.begun"].clone();
    // Only the first boots, whatever the others count.
    assert_eq!([0, 1, 2].map(begun), ["booted", "restored", "restored"].map(Value::from));
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
    about("walks.user", 2.0 * 2000.0);
    about("misses.l1d.user", 64.0 * 2000.0);
    assert!(figure("references.user") > 512.0 * 2000.0);
    assert!(figure("misses.l1d.kernel") > 64.0 * 2000.0, "pages are cleared by lines");
    for mode in ["user", "kernel"] {
        let of = |name: &str| figure(&format!("{name}.{mode}"));
        assert!(of("walks") <= of("misses.tlb") && of("misses.l1d") <= of("references"), "{mode}");
        assert!(of("misses.l2") <= of("misses.l1d") + of("misses.l1i"), "{mode}");
    }
    let recorded = run("trace", 2000, &[",trace=on,to=a.trace", ",trace=on,to=b.trace"]);
    references_are_a_trace(&lab, &recorded, &without, &with);
    // Within the reach of the second level the second pass finds all translations.
    let few = run("few", 500, &[",trace=cache"]);
    let (missed, walks) = (of(&few, 0, "misses.tlb.user"), of(&few, 0, "walks.user"));
    assert!((1000.0..1300.0).contains(&missed) && (500.0..700.0).contains(&walks), "{missed}, {walks}");
    // The table is the sums by function, and compare finds nothing between two that are alike.
    let kept = lab.kept("missed-2");
    let walks = kept.numbers("cache-misses", "walks").iter().sum::<f64>();
    assert_eq!(walks, figure("walks.user") + figure("walks.kernel"));
    let cleared = kept.cell("cache-misses", "clear_page_orig", "l1d");
    assert!((64.0 * 2000.0..64.0 * 2200.0).contains(&cleared), "{cleared} lines cleared for 2,000 pages");
    lab.shows("show missed-2", &["cache-misses", "clear_page_orig"]);
    let compared = lab.ok("compare missed-2 missed-3");
    assert!(!compared.contains("cache-misses"), "{compared}");
    lab.shows("compare missed-2 few", &["cache-misses: walks"]);
}

/// The references of the machine while it performs the load, read as any trace, of two runs.
/// `counted`: the figures of one that counted them, of which those that `without` has are the guest's own.
fn references_are_a_trace(lab: &Lab, runs: &Value, without: &Metrics, counted: &Metrics) {
    let metrics = |run: usize| runs[run]["repetitions"][0]["metrics"].clone();
    for recorded in [0, 1] {
        same_but_for_the_boot(without, metrics(recorded).as_object().unwrap());
    }
    let bytes = |name: &str| std::fs::read(lab.path(name)).unwrap();
    let replayed =
        |name: &str| lab.rows(&format!("replay {name} --memory 1300p,100000p --on model:lru --json"));
    let of = |rows: &[Value], row: usize, key: &str| rows[row][key].as_u64().unwrap() as f64;
    let (a, b) = (replayed("a.trace"), replayed("b.trace"));
    // A tick of the timer that falls into one of them adds some 3,100 references to 30 million, in
    // code that the other one did not reach.
    for (row, key, share) in [(0, "references", 1e-3), (0, "misses", 1e-2), (1, "misses", 1e-2)] {
        let (one, two) = (of(&a, row, key), of(&b, row, key));
        assert!((one / two - 1.0).abs() < share, "two recordings of one load: {key} {one} and {two}");
    }
    let known = ["instructions.user", "instructions.kernel", "references.user", "references.kernel"];
    let known: f64 = known.iter().map(|name| counted[*name]["value"].as_f64().unwrap()).sum();
    let apart = (of(&a, 0, "references") / known - 1.0).abs();
    assert!(apart < 5e-3, "{a:?}: all fetches, loads and stores that were counted, {known}, by another boot");
    // 2,000 pages at the program's addresses and as many at the kernel's, which clears them; the
    // second pass over 2,000 pages finds none of them in 1,300.
    let (few, all) = (of(&a, 0, "misses"), of(&a, 1, "misses"));
    assert!((4000.0..5500.0).contains(&all) && few >= all + 1930.0, "{few} and {all}");
    lab.ok("mrc a.trace");
    lab.ok("wss a.trace");
    lab.ok("report a.trace -o a.html");
    let page = String::from_utf8(bytes("a.html")).unwrap();
    for area in ["kernel: direct map", "kernel: text and data"] {
        assert!(page.contains(area), "{area}");
    }
}

/// The load fills several buffers of the ring: a machine that waited for room in the ring would be
/// silent until it is ended.
fn a_full_disk_ends_a_recording_and_not_the_guest() {
    let lab = Lab::new();
    let disk = lab.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let mount = ["-t", "tmpfs", "-o", "size=64k", "none", disk.to_str().unwrap()];
    assert!(Command::new("mount").args(mount).status().unwrap().success());
    let output = lab.output(
        "run mapanon --pages 3000 --references 3000 --pattern linear --memory none --html none -q \
         --on kernel:NEW,accel=icount,trace=on,to=disk/full.trace",
    );
    let left = std::fs::read_dir(&disk).unwrap().count();
    assert!(Command::new("umount").arg(&disk).status().unwrap().success());
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(error.contains("writing the trace") && error.contains("No space left"), "{error}");
    assert_eq!(left, 0, "what is not whole is removed");
}

/// The guest's own figures are the same with and without the tracer, but for what boots of one
/// kernel are seen apart by.
fn same_but_for_the_boot(without: &Metrics, with: &Metrics) {
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
                // fall between the same references: boots of 3,000 references were 0.27% apart.
                let share = if metric["unit"] == "instructions" { 5e-3 } else { 1e-3 };
                let woken = if name.starts_with("switches.") { 2.0 } else { 0.0 };
                let allowed = share * one.abs() + woken;
                assert!((one - two).abs() <= allowed, "{name}: {one} and {two}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

/// One command boots a machine once: the second side, whose target is the same, begins where the
/// first had come to rest. Waiting takes no instructions, what is sampled at ticks is not exact, and
/// processors that count on one clock do nothing at once.
fn a_guest_that_is_brought_back_counts_the_same_and_what_instructions_cannot_say_is_a_dash() {
    let lab = Lab::new();
    let result = lab.json(
        "run mapanon --pages 3000 --references 3000 --pattern uniform --memory 8M --html none --json -q \
         --on kernel:NEW,accel=icount --on kernel:NEW,accel=icount --on kernel:NEW,accel=icount,swap=file",
    );
    let runs = result["result"]["runs"].as_array().unwrap();
    let environment = |run: usize, name: &str| &runs[run]["repetitions"][0]["environment"][name];
    assert_eq!([0, 1].map(|run| environment(run, "guest.begun")), ["booted", "restored"]);
    assert_eq!(runs[0]["repetitions"][0]["metrics"], runs[1]["repetitions"][0]["metrics"]);
    // What nobody asked for is swap in memory.
    assert_eq!(environment(0, "swap.kind"), "zram");
    let value = |run: usize, name: &str| {
        let metrics = &runs[run]["repetitions"][0]["metrics"];
        assert!(metrics.get(name).is_some(), "no {name}: {metrics}");
        metrics[name]["value"].as_f64()
    };
    assert!(value(0, "time.elapsed").is_some() && value(0, "access.major.mean").is_some());
    for name in ["time.elapsed", "time.wall", "access.mean", "access.major.mean"] {
        assert_eq!(value(2, name), None, "{name}");
    }
    for run in [0, 2] {
        assert_eq!((value(run, "time.user"), value(run, "time.system")), (None, None));
        assert!(value(run, "time.cpu").unwrap() > 1e6);
        assert!(value(run, "faults.major").unwrap() > 100.0);
    }
}

fn a_file_is_mapped_from_a_scratch_disk() {
    let lab = Lab::new();
    let line = "run mapfile --pages 4000 --references 8000 --memory 12M --html none --json";
    let result = lab.json(&format!("{line} --on kernel:OLD,accel=tcg"));
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

fn a_kernel_that_panics_is_a_clear_error() {
    let lab = Lab::new();
    let line = format!("{SMALL} --memory none --on kernel:OLD,accel=tcg,append=rdinit=/nothing");
    lab.refuses(&line, 3, &["panicked", "console"]);
    let log = &lab.kept("@1").0["logs"][0];
    assert!(log[1].as_str().unwrap().contains("Kernel panic"), "the console is kept");
}

/// What an image, an option or a program lacks is known before anything boots.
fn what_cannot_be_brought_or_built_is_refused_before_booting() {
    let lab = Lab::new();
    lab.compile("here", "int main(void) { return 0; }", &[]);
    for folder in ["root", "empty"] {
        std::fs::create_dir(lab.path(folder)).unwrap();
    }
    // It has no bytes but its length.
    std::fs::File::create(lab.path("root/large")).unwrap().set_len(400 << 20).unwrap();
    for (line, wanted) in [
        ("mapanon --on kernel:NEW,colour=red", "colour"),
        ("mapanon --on kernel:NEW,numa=512M", "numa is NxSIZE or SIZE+SIZE"),
        ("mapanon --on kernel:NEW,numa=2x512M,ram=2G", "leave ram out"),
        ("mapanon --on kernel:NEW,numa=2x32M", "a guest needs at least 128M"),
        ("mapanon --on kernel:NEW,distance=40", "give numa=2x512M too"),
        ("mapanon --on kernel:NEW,numa=2x512M,distance=9", "distance is a number from 11 to 254"),
        ("mapanon --on kernel:NEW,cpu=max:S", "is not a CPU of QEMU"),
        ("mapanon --on kernel:NEW,accel=tcg,trace=cache", "accel=icount"),
        ("mapanon --on kernel:NEW,accel=tcg,trace=on,to=a.trace", "accel=icount"),
        ("mapanon --on kernel:NEW,accel=icount,thp=always,trace=cache", "base pages"),
        ("mapanon --on kernel:NEW --content file:/etc/passwd", "has only its own files"),
        (
            "mapanon --on kernel:NEW --set /sys/module/zswap/parameters/enabled=Y",
            "built without CONFIG_ZSWAP",
        ),
        ("faultscale --on kernel:NEW,accel=icount,cpus=2", "one clock"),
        ("bandwidth --on kernel:NEW,accel=icount", "counts instructions, and no time of memory"),
        ("tier --on kernel:NEW", "numa=256M+512M@slow"),
        ("ksm --pages 100 --on kernel:NEW", "fewer than two equal pages for each content"),
        ("ksm --on kernel:NEW,numa=256M@slow+256M@slow", "of which some but not all may be slow"),
        ("faultscale --work build --on kernel:NEW,accel=tcg", "root=DIR"),
        ("faultscale --work build --on kernel:NEW,accel=tcg,root=empty", "finds no program 'cc'"),
        ("command --on kernel:NEW,accel=tcg -- /does/not/exist", "finds no program"),
        ("command --on kernel:NEW,accel=tcg,root=empty -- sort", "finds no program 'sort' in empty"),
        ("command --on kernel:NEW,accel=tcg,root=root -- sort", "give it ram=1200M or more"),
        ("command --on kernel:NEW,accel=tcg,root=root -- ./here", "ram=1"),
        ("command --on kernel:NEW,accel=tcg,root=nowhere -- ./here", "no such folder"),
        ("command --on kernel:NEW,accel=tcg,file=nowhere -- ./here", "no such file"),
        ("command --on kernel:NEW,accel=tcg,root=empty,file=here -- ./here", "put them into the root"),
        ("--shell mapanon --on kernel:NEW", "runs no experiment"),
        ("--shell --on kernel:NEW,memory=8M", "leave out memory"),
    ] {
        lab.refuses(&format!("run --html none --memory none {line}"), 2, &[wanted]);
    }
    lab.refuses("run --shell --on kernel:NEW,root=empty", 3, &["finds no program '/bin/sh' in empty"]);
    if !Command::new("busybox").arg("true").status().is_ok_and(|status| status.success()) {
        lab.refuses("run --shell --on kernel:NEW", 3, &["root=DIR"]);
    }
    assert!(!lab.path("pagelab.db").exists());
}

fn a_silent_guest_is_ended_in_time_and_a_killed_pagelab_leaves_no_machine() {
    let lab = Lab::new();
    // A second is too short for any kernel to boot translated.
    let error = lab.fails(&format!("{SMALL} --memory none --on kernel:OLD,accel=tcg,timeout=1"), 3);
    assert!(error.contains("did not boot") || error.contains("silent"), "{error}");
    let line = format!("{SMALL} --memory none --on kernel:OLD,accel=tcg,append=PL-TEST");
    lab.killed(&line, "the machine starts", || machines() == 1);
    eventually("the machine is gone", || machines() == 0);
}

fn a_load_that_outgrows_the_guests_limit_is_reported() {
    let line = format!("{SMALL} --memory 8M --swap none --on kernel:OLD,accel=tcg");
    Lab::new().refuses(&line, 3, &["out of memory"]);
}

/// Git takes every status below 128 but 0 and 125 for a bad commit: what is no verdict has none of
/// them, and says why.
fn a_kernel_is_judged_for_git_bisect() {
    let (a, b) = kernels();
    let lab = Lab::new();
    let small = "run mapanon --pages 500 --references 500 --memory none --html none -q";
    lab.ok(&format!("{small} --name good --on kernel:OLD,accel=icount"));
    let ends = |line: &str| {
        let line = line.replace("OLD", &a.display().to_string()).replace("NEW", &b.display().to_string());
        let ended = lab.output(&line);
        let said = String::from_utf8([ended.stdout, ended.stderr].concat()).unwrap();
        assert!(!said.is_empty(), "{line}");
        (ended.status.code().unwrap(), said)
    };
    let fault = "bisect-run --metric fault.anonymous --worse-than good --kernel";
    // One of the two is the slower one: it is bad, and the other is good.
    let (other, _) = ends(&format!("{fault} NEW --option accel=icount"));
    lab.ok(&format!("{small} --name good2 --on kernel:NEW,accel=icount"));
    // The newest run that was not made to bisect is good2.
    let back =
        "bisect-run mapanon --metric fault.anonymous --worse-than 1% --kernel OLD --option accel=icount";
    let (back, said) = ends(back);
    assert!(said.contains(" of good2: "), "{said}");
    assert_eq!(other + back, 1, "{said}");
    for (line, status) in [
        (&*format!("{fault} OLD --option timeout=1"), 125),
        (&*format!("{fault} OLD --option append=rdinit=/nothing"), 125),
        (&*format!("{fault} /does/not/exist"), 255),
        (&*format!("{fault} OLD --option accel"), 255),
        (&*format!("{fault} OLD --option acel=icount"), 255),
        (&*format!("{fault} OLD --repeat 0"), 255),
        (&*format!("--notebook none.db {fault} OLD"), 255),
        ("bisect-run --metrik fault.anonymous --worse-than good --kernel OLD", 255),
        ("-q --notebook pagelab.db bisect-run --repeat none --kernel OLD", 255),
        ("bisect-run", 255),
        ("bisect-run --metric nothing --worse-than good --kernel OLD", 255),
        ("bisect-run --metric pages.present --worse-than good --kernel OLD", 255),
        ("bisect-run --metric fault.anonymous --worse-than 1% --kernel OLD", 255),
        ("bisect-run forkstorm --metric fault.anonymous --worse-than good --kernel OLD", 255),
        ("bisect-run forkstorm --metric fault.anonymous --worse-than 1% --kernel OLD", 255),
        ("bisect-run mapanon --metric fault.anonymous --worse-than 1% --by 2 --kernel OLD", 255),
        ("bisect-run mapanon --metric fault.anonymous --worse-than x% --kernel OLD", 255),
        ("bisect-run --help", 0),
    ] {
        let (ended, said) = ends(line);
        assert_eq!(ended, status, "{line}: {said}");
    }
    let (status, said) = ends("bisect-run --metric fault.anonymus --worse-than good --kernel OLD");
    assert!(status == 255 && said.contains("did you mean fault.anonymous?"), "{said}");
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
        "run mapanon --pages 200 --references 200 --memory none --html none -q --name good --on kernel:{kernel},accel=icount,append={}",
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
    assert!(said.contains("%, from 3 boots"), "{said}");
    // What is less than boots differ by is no threshold, and no verdict.
    let fine = lab.output(&format!(
        "bisect-run mapanon --metric fault.anonymous --worse-than good --by 0 --kernel {kernel} --option append={}",
        lines[0]
    ));
    let words = format!("{}{}", String::from_utf8_lossy(&fine.stdout), String::from_utf8_lossy(&fine.stderr));
    let exact = said.contains("smallest detectable change 0%");
    assert_eq!(fine.status.code(), Some(if exact { 0 } else { 255 }), "{words}");
}
