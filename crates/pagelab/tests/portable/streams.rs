//! Recorded and generated streams through the binary: replay, mrc, wss.

use crate::common::Lab;
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
    lab.shows("replay loop.txt --memory 3p", &["miss ratio"]);
}

#[test]
fn curves_agree_with_replays_and_samples_come_close() {
    let lab = Lab::new();
    let stream = "zipf:0.9 --pages 20000 --references 200000 --memory 1000p,25%";
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
fn the_memory_that_suffices_follows_from_what_misses_cost() {
    let lab = Lab::new();
    // A loop over 1,000 pages: LRU misses always with fewer, and never again with all of them.
    let stream = "linear --pages 1000 --references 100000 --memory 500p,900p,1000p,2000p --no-keep";
    let sufficient = |more: &str| -> Vec<bool> {
        let rows = lines(&lab.ok(&format!("mrc {stream} --json {more}")));
        rows.iter().map(|row| row["sufficient"].as_bool().unwrap()).collect()
    };
    assert_eq!(sufficient(""), [false, false, true, true]);
    // 99,000 misses of 1 ns in a second are bearable.
    assert_eq!(sufficient("--miss-cost 1 --program-time 1"), [true; 4]);
    let text = lab.ok(&format!("mrc {stream} --miss-cost 80000 --program-time 2"));
    // Lines are wrapped between words.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Needs 3.91 MiB (lru)") && !words.contains("assumed"), "{text}");
    assert!(lab.ok(&format!("mrc {stream}")).contains("assumed"));
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
    // The runs are drawn as the command drew them.
    let plot = |file: &str| {
        let page = std::fs::read_to_string(lab.path(file)).unwrap();
        let data = page.split("<script type=\"application/json\">").nth(1).expect("a plot");
        data.split("</script>").next().unwrap().to_owned()
    };
    for (command, stream) in [("mrc", "--policy lru --policy arc"), ("replay", "--on lru --on opt")] {
        let stream = format!("zipf:0.9 --pages 2000 --references 20000 --memory 10p,100p,1000p {stream}");
        lab.ok(&format!("{command} {stream} --name by-{command} --html {command}.html"));
        lab.ok(&format!("report by-{command}-1 by-{command}-2 -o page.html"));
        assert!(plot("page.html").contains("\"name\":\"lru\""), "{}", plot("page.html"));
        assert_eq!(plot("page.html"), plot(&format!("{command}.html")));
    }
}

#[test]
fn lrus_curve_is_drawn_beside_the_working_sets() {
    let lab = Lab::new();
    // Independent references are what the check is exact for; a loop is what it is not.
    let numbers: String = (0..9000).map(|n| format!("{}\n", n * n % 997)).collect();
    std::fs::write(lab.path("pages.txt"), numbers).unwrap();
    for (stream, difference) in [("zipf:0.9 --pages 2000 --references 50000", "0.0"), ("pages.txt", "0.2")] {
        lab.ok(&format!("mrc {stream} --no-keep --html lru.html"));
        let page = std::fs::read_to_string(lab.path("lru.html")).unwrap();
        assert!(page.contains("LRU and the working set"));
        let check = |page: &str| {
            let from = page.find("differs from it by at most").expect("the page has the check");
            page[from..].split('<').next().unwrap().to_owned()
        };
        let checked = check(&page);
        assert!(
            checked.starts_with(&format!("differs from it by at most {difference}")),
            "{stream}: {checked}"
        );
        assert!(checked.ends_with(" pages."), "{stream}: {checked}");
        // It is of the whole curves, whichever sizes are drawn.
        lab.ok(&format!("mrc {stream} --memory 10p --no-keep --html few.html"));
        assert_eq!(check(&std::fs::read_to_string(lab.path("few.html")).unwrap()), checked);
        lab.ok(&format!("mrc {stream} --policy arc --no-keep --html arc.html"));
        let page = std::fs::read_to_string(lab.path("arc.html")).unwrap();
        assert!(!page.contains("working set"));
    }
}

#[test]
fn any_policy_is_sampled_in_miniature() {
    let lab = Lab::new();
    let stream = "zipf:0.8 --pages 50000 --references 400000 --policy lru --policy sieve --policy opt --memory 1p,10000p,30000p \
                  --json";
    let exact = lines(&lab.ok(&format!("mrc {stream}")));
    let sampled = lines(&lab.ok(&format!("mrc {stream} --sample 0.1")));
    assert_eq!(sampled.len(), 9);
    for (sample, exact) in sampled.iter().zip(&exact) {
        assert_eq!((&sample["policy"], &sample["frames"]), (&exact["policy"], &exact["frames"]));
        if sample["frames"] == 1 {
            assert!(sample["miss_ratio"].is_null());
            continue;
        }
        let (a, b) = (sample["miss_ratio"].as_f64().unwrap(), exact["miss_ratio"].as_f64().unwrap());
        assert!(a != b && (a - b).abs() < 0.05, "{a} against {b}");
        assert!(sample["standard_error"].as_f64().unwrap() > 0.0);
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
    lab.refuses("wss 4000000000", 3, &["cannot read process"]);
    // As prstat has it, and whatever files there are.
    std::fs::write(lab.path(&this.to_string()), LOOP).unwrap();
    let seen = lines(&lab.ok(&format!("wss -p {this} --interval 0.05 --count 1 --json")));
    assert!(seen[0]["resident_bytes"].as_u64().unwrap() > 0);
    lab.refuses("wss -p 4000000000", 3, &["cannot read process"]);
}

#[test]
fn torn_and_foreign_traces_are_refused_with_the_place() {
    let lab = Lab::new();
    std::fs::write(lab.path("torn.bin"), [1u8; 37]).unwrap();
    lab.refuses("replay torn.bin --format oracle-general --memory 4p", 3, &["torn.bin"]);
    std::fs::write(lab.path("bad.txt"), "1\n2\nx\n").unwrap();
    lab.refuses("replay bad.txt --format text --memory 4p", 3, &["3"]);
    lab.fails("replay missing.txt --memory 4p", 3);
    let none = "mrc zipf:1 --pages 100 --sample 0.0000002";
    lab.refuses(none, 3, &["none of the stream's pages"]);
}

#[test]
fn a_sample_of_so_many_pages_comes_close() {
    let lab = Lab::new();
    let stream = "zipf:0.8 --pages 50000 --references 400000 --memory 10000p,30000p --json";
    let exact = lines(&lab.ok(&format!("mrc {stream}")));
    let sampled = lines(&lab.ok(&format!("mrc {stream} --sample-pages 4000")));
    for (sample, exact) in sampled.iter().zip(&exact) {
        let (a, b) = (sample["miss_ratio"].as_f64().unwrap(), exact["miss_ratio"].as_f64().unwrap());
        assert!(a != b && (a - b).abs() < 0.05, "{a} against {b}");
        assert!(sample["standard_error"].as_f64().unwrap() > 0.0);
    }
    // Where all pages have room in the sample it is exact.
    let all = lines(&lab.ok(&format!("mrc {stream} --sample-pages 60000")));
    let (a, b) = (all[0]["miss_ratio"].as_f64().unwrap(), exact[0]["miss_ratio"].as_f64().unwrap());
    assert!((a - b).abs() < 0.001, "{a} against {b}");
}

#[test]
fn the_policies_are_laid_beside_an_authority() {
    let lab = Lab::new();
    let table = lab.ok("policies --conformance");
    assert!(table.starts_with("13 of 13 policies have the authority's misses"), "{table}");
    assert!(table.contains("104 of 104") && table.contains("64 of 64"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let json = lab.json("policies --conformance --json");
    assert_eq!(json["conformance"][0]["equal"], json["conformance"][0]["points"]);
}

/// Two frames; page 1 is written, goes and comes back, page 3 is written last: by hand, LRU writes
/// both.
#[test]
fn write_backs_and_counters_are_printed() {
    let lab = Lab::new();
    let lines_of = |list: &[(char, u64)]| -> String {
        list.iter().map(|(op, page)| format!("{op} 0x{:x} 1\n", page * 4096)).collect()
    };
    let trace = lines_of(&[('s', 1), ('l', 2), ('l', 3), ('l', 1), ('s', 3), ('l', 4), ('l', 3)]);
    std::fs::write(lab.path("t.txt"), trace).unwrap();
    let rows = lines(&lab.ok("replay t.txt --on lru --on car --on cflru --memory 2p --write-backs --json"));
    assert_eq!((rows[0]["misses"].as_u64(), rows[0]["write_backs"].as_u64()), (Some(5), Some(2)));
    assert!(rows[1]["counters"]["ghost hits"].is_u64(), "{rows:?}");
    lab.shows(
        "replay t.txt --on lru --on car --memory 2p --write-backs --counters",
        &["write-backs", "ghost hits"],
    );
}

/// Requests as libCacheSim writes them: an object, its bytes.
fn oracle_general(requests: &[(u64, u32)]) -> Vec<u8> {
    let record = |(n, (object, bytes)): (usize, &(u64, u32))| {
        let next = requests[n + 1..].iter().position(|one| one.0 == *object);
        let next = next.map_or(-1, |next| (n + 2 + next) as i64);
        [&(n as u32).to_le_bytes()[..], &object.to_le_bytes(), &bytes.to_le_bytes(), &next.to_le_bytes()]
            .concat()
    };
    requests.iter().enumerate().flat_map(record).collect()
}

#[test]
fn sizes_count_as_one_page_as_pages_or_as_bytes() {
    let lab = Lab::new();
    let trace = [(7, 8192), (8, 4096), (7, 8192), (9, 50_000), (7, 8192), (8, 4096)];
    std::fs::write(lab.path("t.bin"), oracle_general(&trace)).unwrap();
    let misses = |options: &str| {
        let rows = lines(&lab.ok(&format!("replay t.bin --format oracle-general {options} --json")));
        (rows[0]["references"].clone(), rows[0]["misses"].as_u64().unwrap())
    };
    // By hand: two frames of one page each; three pages; 12,288 bytes, in which 50,000 have no room.
    assert_eq!(misses("--on lru --memory 2p"), (6.into(), 4));
    assert_eq!(misses("--on lru --memory 3p --sizes pages"), ((2 + 1 + 2 + 13 + 2 + 1).into(), 3 + 13 + 3));
    let rows =
        lines(&lab.ok("replay t.bin --format oracle-general --on lru --memory 12K --sizes bytes --json"));
    assert_eq!((rows[0]["misses"].as_u64(), rows[0]["not_admitted"].as_u64()), (Some(3), Some(1)));
    assert_eq!(rows[0]["byte_misses"].as_u64(), Some(8192 + 4096 + 50_000));
    // As the trace is read, and from memory: of a percentage it must be known whole.
    let counts = |memory: &str| {
        let models = "--on lru --on gdsf --on lhd";
        let rows = lab.ok(&format!(
            "replay t.bin --format oracle-general {models} --memory {memory} --sizes bytes --json"
        ));
        let counts = ["memory_bytes", "requests", "misses", "byte_misses"];
        lines(&rows).iter().map(|row| counts.map(|name| row[name].clone())).collect::<Vec<_>>()
    };
    assert_eq!(counts("50%"), counts(&((8192 + 4096 + 50_000) / 2).to_string()));
    let table =
        lab.ok("replay t.bin --format oracle-general --on lru --on gdsf --memory 12K,50% --sizes bytes");
    assert!(table.contains("byte miss ratio") && table.contains("not admitted"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    lab.refuses(
        "replay t.bin --format oracle-general --on arc --memory 12K --sizes bytes",
        2,
        &["must be one of fifo, lru, clock, sieve, gdsf, lhd"],
    );
}

#[test]
fn several_streams_stand_in_one_table() {
    let lab = Lab::new();
    std::fs::write(lab.path("one.txt"), "1\n2\n1\n3\n").unwrap();
    std::fs::write(lab.path("a-long-name-of-a-trace.txt"), "1\n1\n1\n").unwrap();
    let streams = "one.txt a-long-name-of-a-trace.txt";
    let mut narrow = lab.command(&format!("replay {streams} --on lru --on opt --memory 2p,100% --counters"));
    let table = String::from_utf8(narrow.env("COLUMNS", "80").output().unwrap().stdout).unwrap();
    assert!(table.contains("a-long-name-of-a-tr…") && table.contains("one.txt: lru: "), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let rows = lines(&lab.ok(&format!("replay {streams} --on lru --memory 2p --json --no-keep")));
    let of = |row: usize| (rows[row]["stream"].as_str().unwrap().to_owned(), rows[row]["misses"].as_u64());
    assert_eq!((rows.len(), of(0)), (2, ("one.txt".to_owned(), Some(3))));
    assert_eq!(of(1), ("a-long-name-of-a-trace.txt".to_owned(), Some(1)));
    let rows = lines(&lab.ok(&format!("mrc {streams} --memory 2p --json --no-keep")));
    assert_eq!(rows.iter().map(|row| row["misses"].as_u64().unwrap()).collect::<Vec<_>>(), [3, 1]);
    lab.shows(&format!("mrc {streams} --html both.html"), &["stream"]);
    let page = std::fs::read_to_string(lab.path("both.html")).unwrap();
    assert!(page.contains("one.txt") && page.contains("a-long-name-of-a-trace.txt"));
}

#[test]
fn converted_traces_read_back() {
    let lab = Lab::new();
    let stream = "zipf:0.9 --pages 500 --references 5000";
    let misses = |stream: &str| {
        let rows = lines(&lab.ok(&format!("replay {stream} --on lru --on opt --memory 50p --json")));
        rows.iter().map(|row| (row["references"].clone(), row["misses"].clone())).collect::<Vec<_>>()
    };
    for to in ["oracle-general", "pagelab", "text", "u64", "u32"] {
        lab.ok(&format!("convert {stream} --to {to} -o t.{to}"));
        assert_eq!(misses(&format!("t.{to}")), misses(stream), "{to}");
        lab.shows(&format!("replay t.{to} --memory 50p"), &[&format!("format {to} (")]);
    }
    assert_eq!(lab.ok("convert t.text --to text -o -").lines().count(), 5000);
    // A pattern need not reference every page of its region.
    let sparse = "zipf:0.9 --pages 300 --references 600";
    for to in ["oracle-general", "text"] {
        let said = lab.ok(&format!("convert {sparse} --to {to} -o s.{to}"));
        let pages = said.split("references to ").nth(1).unwrap().split(" in ").next().unwrap().to_owned();
        assert_ne!(pages, "300 pages", "{said}");
        assert!(
            lab.ok(&format!("mrc s.{to} --no-keep")).contains(&format!("references to {pages}\n")),
            "{said}"
        );
    }
    std::fs::write(lab.path("writes.csv"), "1,1,0x1000,r\n2,1,0x2000,w\n3,1,0x1000,w\n").unwrap();
    lab.ok("convert writes.csv --to pagelab -o writes.trace");
    let rows = lines(&lab.ok("replay writes.trace --on lru --memory 1p --write-backs --json"));
    assert_eq!((rows[0]["misses"].as_u64(), rows[0]["write_backs"].as_u64()), (Some(3), Some(2)));
}

#[test]
fn a_csv_is_read_by_the_names_of_its_columns() {
    let lab = Lab::new();
    std::fs::write(lab.path("t.csv"), "5;7;w\n6;8;r\n7;7;r\n").unwrap();
    let rows =
        lines(&lab.ok("replay t.csv --columns time,page,rw --on lru --memory 2p --write-backs --json"));
    assert_eq!((rows[0]["misses"].as_u64(), rows[0]["write_backs"].as_u64()), (Some(2), Some(1)));
}

#[test]
fn every_policy_is_listed_with_its_source() {
    let lab = Lab::new();
    let table = lab.ok("policies");
    let json = lab.json("policies --json");
    let list = json["policies"].as_array().unwrap();
    assert!(list.len() >= 20, "{table}");
    for one in list {
        let (name, source) = (one["name"].as_str().unwrap(), one["source"].as_str().unwrap());
        assert!(table.contains(name) && source.contains(|c: char| c.is_ascii_digit()), "{name}: {source}");
    }
}

#[test]
fn trace_format_is_always_printed() {
    let lab = Lab::new();
    let pages: Vec<u8> = (0..500u32).flat_map(|n| (n * 7 % 100).to_le_bytes()).collect();
    std::fs::write(lab.path("pages.bin"), pages).unwrap();
    lab.shows(
        "replay pages.bin --memory 10%",
        &["500 references to 100 pages", "format u32 (", "first pages 0, 7, 14"],
    );
    lab.shows("mrc pages.bin", &["format u32"]);
    lab.shows("mrc pages.bin --sample 1", &["format u32"]);
    lab.shows("wss pages.bin", &["format u32"]);
    let json = lab.output("replay pages.bin --memory 10p --json");
    assert!(String::from_utf8_lossy(&json.stderr).contains("format u32"));
}

#[test]
fn a_run_is_suggested_where_its_name_is_near() {
    let lab = Lab::new();
    lab.ok("run mapanon --on model:lru --pages 8 --references 20 --memory 4p --html none");
    assert!(lab.fails("show mapanom-1", 3).contains("did you mean mapanon-1?"));
    for far in ["a", "1-mapanon", "suite"] {
        let error = lab.fails(&format!("show {far}"), 3);
        assert!(error.contains(&format!("no run '{far}'")) && !error.contains("did you mean"), "{error}");
    }
}

#[test]
fn a_build_of_a_model_is_counted_in_builds() {
    let lab = Lab::new();
    let line = "run faultscale --work build --workers 1,2 --on model:dragonfly-2011-token --html none";
    let said = lab.ok(line);
    assert!(said.contains("of builds with 2 threads") && !said.contains("compilation"), "{said}");
}

#[test]
fn both_spellings_of_a_policy_and_near_misses() {
    let lab = Lab::new();
    let stream = "zipf:0.9 --pages 200 --references 2000";
    let plain = lab.ok(&format!("replay {stream} --on lru --on 2q:kin=0.3,kout=0.6 --memory 50% --json"));
    let prefixed = lab
        .ok(&format!("replay {stream} --on model:lru --on model:2q:kin=0.3,kout=0.6 --memory 100p --json"));
    assert_eq!(plain, prefixed);
    let curve = |policy: &str| lab.ok(&format!("mrc {stream} --policy {policy} --memory 50p --json"));
    assert_eq!(curve("arc"), curve("model:arc"));
    for (wrong, meant) in [("lrux", "lru"), ("s3fifo", "s3-fifo"), ("belady", "opt")] {
        lab.refuses(
            &format!("replay {stream} --on {wrong} --memory 50p"),
            2,
            &[&format!("did you mean '{meant}'?")],
        );
        lab.refuses(&format!("mrc {stream} --policy {wrong}"), 2, &[meant]);
    }
}

#[test]
fn no_policy_and_no_system_beats_opt_in_the_table() {
    let lab = Lab::new();
    let models = "--on opt --on linux-lru --on linux-mglru --on solaris8-cyclic --on lru";
    let rows = lines(
        &lab.ok(&format!("replay linear --pages 3000 --references 20000 {models} --memory 2000p --json")),
    );
    let misses: Vec<u64> = rows.iter().map(|row| row["misses"].as_u64().unwrap()).collect();
    assert!(misses.iter().all(|&m| m >= misses[0]), "{misses:?}");
    // What read-ahead saves stands in columns of its own.
    assert!(rows[1]["read_ahead_waits"].as_u64().unwrap() < misses[0]);
    assert!(rows[0]["read_ahead_waits"].is_null());
    let table = lab.ok(&format!("replay linear --pages 3000 --references 20000 {models} --memory 2000p"));
    let flowing = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flowing.contains("waits with read-ahead") && flowing.contains("pages read"), "{table}");
    let row =
        |model: &str| table.lines().find(|line| line.starts_with(&format!("{model} "))).unwrap().to_owned();
    let waits = rows[1]["read_ahead_waits"].as_u64().unwrap();
    let waits = format!("{},{:03}", waits / 1000, waits % 1000);
    assert!(row("linux-lru").contains(&format!(" {waits} ")), "{waits}: {table}");
    assert!(row("opt").ends_with("—") && row("opt").contains("+0.0%"), "{table}");
    assert!(
        !table.lines().any(|line| line.contains(" -") && line.ends_with('%')),
        "none is below OPT: {table}"
    );
}

/// The kernel of a system needs some frames for itself; the other cells are printed.
#[test]
fn an_impossible_cell_is_a_dash_with_its_reason() {
    let lab = Lab::new();
    let line =
        "replay zipf:1 --pages 1000 --references 20000 --on lru --on svr4-two-handed --memory 16p,500p";
    let output = lab.output(line);
    let (table, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(3), "{table}{error}");
    let rows: Vec<&str> =
        table.lines().filter(|row| row.starts_with("lru ") || row.starts_with("svr4-two-handed ")).collect();
    assert_eq!(rows.len(), 4, "{table}");
    assert!(rows[2].contains(" 16 ") && rows[2].contains('—') && !rows[3].contains("— "), "{table}");
    let said = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains(
            "svr4-two-handed: the modelled system ran out of memory: nothing can be freed in 16 frames"
        ),
        "{table}"
    );
    let output = lab.output(&format!("{line} --json --no-keep"));
    let rows = lines(&String::from_utf8_lossy(&output.stdout));
    let impossible: Vec<bool> = rows.iter().map(|row| row["misses"].is_null()).collect();
    assert_eq!((output.status.code(), &impossible[..]), (Some(3), &[false, false, true, false][..]));
    assert!(rows[2]["impossible"].as_str().unwrap().contains("16 frames") && rows[3]["impossible"].is_null());
}

#[test]
fn a_small_stack_suffices() {
    let lab = Lab::new();
    for command in ["--version", "mrc zipf:1 --pages 100 --references 1000", "list", "policies"] {
        let script = format!("ulimit -s 64; exec '{}' {command}", env!("CARGO_BIN_EXE_pagelab"));
        let output = std::process::Command::new("sh")
            .args(["-c", &script])
            .current_dir(lab.folder.path())
            .env("PAGELAB_STATE_DIR", lab.path("state"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_trace_comes_from_standard_input() {
    use std::io::Write;
    let lab = Lab::new();
    let mut child = lab.command("replay - --on lru --memory 3p --json");
    let mut child =
        child.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(LOOP.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(lines(&String::from_utf8(output.stdout).unwrap())[0]["misses"], 12);
}

/// A trace is replayed as it is read where nothing must be known of it before, else from memory.
#[test]
fn a_trace_gives_the_same_as_it_is_read_and_from_memory() {
    let lab = Lab::new();
    // More than a few pieces, with pages that come late.
    let list: Vec<u64> = (0..700_000).map(|n| (n * n + (n ^ n >> 3) % 7) % (1000 + n / 50)).collect();
    let pages = list.iter().collect::<std::collections::BTreeSet<_>>().len() as f64;
    let bytes: Vec<u8> = list.iter().flat_map(|page| page.to_le_bytes()).collect();
    std::fs::write(lab.path("trace.bin"), bytes).unwrap();
    let models = "--on lru --on fifo --on clock-pro --on lirs --on lfu --on arc --on random --on ws:900";
    let replay =
        |memory: &str| lines(&lab.ok(&format!("replay trace.bin {models} --memory {memory} --json")));
    let read = replay("500p,4000p");
    let [small, large] = [500.0, 4000.0].map(|frames| 100.0 * frames / pages);
    let kept = replay(&format!("{small}%,{large}%"));
    assert_eq!(read[0]["frames"], 500);
    assert_eq!(read, kept);
    let curve = lines(&lab.ok("mrc trace.bin --policy lru --policy sieve --memory 500p,4000p --json"));
    for (curve, replayed) in curve.iter().zip(&read[..2]) {
        assert_eq!(curve["misses"], replayed["misses"]);
    }
}

#[test]
fn a_trace_that_ends_badly_gives_no_figures() {
    let lab = Lab::new();
    let mut text: String = (0..400_000).map(|n| format!("{}\n", n % 1000)).collect();
    text += "x\n";
    std::fs::write(lab.path("bad.txt"), text).unwrap();
    for command in ["replay bad.txt --memory 10p", "replay bad.txt --on lru --memory 10p", "mrc bad.txt"] {
        let error = lab.fails(command, 3);
        assert!(error.contains("400001") || error.contains("400,001"), "{error}");
    }
}

#[test]
fn an_interrupted_replay_names_no_notebook() {
    let lab = Lab::new();
    let arguments = "replay zipf:0.8 --pages 200000 --references 4000000 --memory 5%,10%,20%,30%,40%,50%,60%,70%,80%,90% --on random --on lfu --on lirs --on arc --on 2q";
    let child = lab.begin(arguments, std::process::Stdio::null());
    // The signal must find the handler installed, which is when the replay begins.
    let caught = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim().to_owned();
        u64::from_str_radix(&mask, 16).unwrap() >> 1 & 1 == 1
    };
    while !caught() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(error.contains("interrupted") && !error.contains("notebook"), "{error}");
}

#[test]
fn curves_and_working_sets_are_runs_like_any_other() {
    let lab = Lab::new();
    let stream = "zipf:0.8 --pages 300 --references 3000";
    lab.ok(&format!("replay {stream} --on lru --on opt --memory 10p,100p --name r"));
    lab.ok(&format!("mrc {stream} --policy lru --memory 10p,100p --name m --json"));
    lab.ok(&format!("wss {stream} --window 500 --name w"));
    let list = lab.ok("list");
    for name in ["r-1", "r-2", "m", "w"] {
        assert!(list.contains(name), "{list}");
    }
    lab.shows("show r-1", &["miss ratio"]);
    // The same figures, whichever command computed them; differences of what is computed are exact.
    let curve = |run: &str| {
        let json = lab.json(&format!("export {run} --format json"));
        json["runs"][0]["repetitions"][0]["observations"]["tables"].clone()
    };
    assert_eq!(curve("r-1"), curve("m"));
    let compared = lab.ok("compare r-1 r-2");
    assert!(compared.contains("miss.ratio.mean") || compared.contains("miss ratio"), "{compared}");
    assert!(!compared.contains("--repeat"), "{compared}");
    lab.ok("report r-1 r-2 m w -o page.html");
    let page = std::fs::read_to_string(lab.path("page.html")).unwrap();
    assert!(page.contains("<h3>Working set over time</h3>"), "{page}");
    lab.ok("export w --format csv");
    lab.ok(&format!("mrc {stream} --policy lru --memory 10p --no-keep --name never"));
    assert!(!lab.ok("list").contains("never"));
}

#[test]
fn a_reduced_trace_misses_alike_above_its_bound_and_is_refused_below() {
    let lab = Lab::new();
    let stream = "zipf:0.9 --pages 2000 --references 100000";
    let misses = |text: &str| -> Vec<(u64, u64, f64)> {
        let of = |row: &Value| {
            let ratio = row["miss_ratio"].as_f64().unwrap();
            (row["frames"].as_u64().unwrap(), row["misses"].as_u64().unwrap(), ratio)
        };
        lines(text).iter().map(of).collect()
    };
    let whole =
        misses(&lab.ok(&format!("replay {stream} --memory 200p,500p,1500p --on lru --on opt --json")));
    for (method, policies) in [("sad", "--on lru --on opt"), ("olr", "--on lru")] {
        lab.shows(
            &format!("reduce {stream} --memory 200p --method {method} -o {method}.trace"),
            &["of 100,000 references", "from 200 pages"],
        );
        let rows = lab.ok(&format!("replay {method}.trace --memory 200p,500p,1500p {policies} --json"));
        assert_eq!(misses(&rows), whole[..if method == "sad" { 6 } else { 3 }], "{method}");
        lab.refuses(&format!("replay {method}.trace --memory 199p --on lru"), 2, &["for 200 pages and more"]);
        let curve = misses(&lab.ok(&format!("mrc {method}.trace --json")));
        assert!(curve.iter().all(|(pages, ..)| *pages >= 200) && curve.len() > 5, "{curve:?}");
    }
    lab.refuses("replay sad.trace --memory 500p --on fifo", 2, &["not for fifo"]);
    lab.refuses("replay olr.trace --memory 500p --on opt", 2, &["not for opt"]);
    for command in ["wss sad.trace", "mrc sad.trace --sample 0.1", "run mapanon --pattern trace:sad.trace"] {
        lab.refuses(command, 3, &["it was reduced"]);
    }
}

#[test]
fn a_running_process_has_a_map_of_its_mappings() {
    let lab = Lab::new();
    let process = std::process::id();
    let rows = lines(&lab.ok(&format!("wss {process} --interval 0.1 --count 3 --map --json")));
    assert_eq!(rows.len(), 3);
    for row in &rows {
        let mappings = row["mappings"].as_array().unwrap();
        let sum = |key: &str| mappings.iter().map(|mapping| mapping[key].as_u64().unwrap()).sum::<u64>();
        assert_eq!(sum("referenced_bytes"), row["referenced_bytes"].as_u64().unwrap());
        assert_eq!(sum("shared_referenced_bytes"), row["shared_referenced_bytes"].as_u64().unwrap());
        assert_eq!(sum("resident_bytes"), row["resident_bytes"].as_u64().unwrap());
        assert!(mappings.iter().any(|mapping| mapping["name"] == "[stack]"), "{row}");
    }
    let drawn = lab.ok(&format!("wss {process} --interval 0.1 --count 3 --map"));
    let row = drawn.lines().find(|line| line.contains("[stack]")).unwrap();
    assert_eq!(row.chars().filter(|letter| "·░▒▓█".contains(*letter)).count(), 3, "{drawn}");
    assert!(drawn.lines().all(|line| line.chars().count() <= 80), "{drawn}");
    lab.ok(&format!("wss {process} --interval 0.1 --count 3 --html map.html"));
    let page = std::fs::read_to_string(lab.path("map.html")).unwrap();
    for part in ["Mappings in space and time", "[stack]", "upper bound", &format!("({process})")] {
        assert!(page.contains(part), "{part}");
    }
}
