//! The kernel's settings during a run: what is asked for is in force and read back, all that was
//! changed is put back, and what cannot be put back is refused, or told once and kept.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::common::{Lab, eventually, joined};
use pagelab_testing::{ALONE, LIMITS, ROOT, Test, tests};

pub fn tests() -> Vec<Test> {
    tests! {
        both_of_a_pair_are_put_back: LIMITS, ALONE;
        a_kill_puts_both_of_a_pair_back: LIMITS, ALONE;
        runs_with_different_state_directories_take_turns: LIMITS, ALONE;
        a_setting_that_another_program_changes_is_in_the_record: LIMITS, ALONE;
        two_settings_of_one_pair_are_refused: LIMITS, ALONE;
        a_value_that_is_there_already_is_in_no_journal: LIMITS, ALONE;
        a_value_that_the_kernel_does_not_take_changes_nothing: LIMITS, ALONE;
        a_value_that_the_kernel_takes_otherwise_is_refused: LIMITS, ALONE;
        irreversible_settings_are_refused: LIMITS, ALONE;
        failed_undo_is_reported_once_and_kept: ROOT, ALONE;
    }
}

const BYTES: &str = "/proc/sys/vm/dirty_bytes";
const RATIO: &str = "/proc/sys/vm/dirty_ratio";
const SHORT: &str = "run mapanon --pages 512 --references 2000 --memory 32M --html none -q";

fn held(path: &str) -> String {
    fs::read_to_string(path).unwrap().trim().to_owned()
}

/// The pairs of which one is 0.
fn pairs() -> Vec<[String; 2]> {
    let names = [
        ["dirty_bytes", "dirty_ratio"],
        ["dirty_background_bytes", "dirty_background_ratio"],
        ["overcommit_kbytes", "overcommit_ratio"],
    ];
    names.iter().map(|pair| pair.map(|name| held(&format!("/proc/sys/vm/{name}")))).collect()
}

/// No journal, and nothing kept of one.
fn nothing_noted(lab: &Lab, when: &str) {
    let names =
        fs::read_dir(lab.path("state")).unwrap().flatten().map(|e| e.file_name().into_string().unwrap());
    let names: Vec<String> = names.filter(|name| !name.ends_with(".lock")).collect();
    assert!(names.is_empty(), "{when}: {names:?}");
    assert!(lab.leftovers().is_empty(), "{when}: {:?}", lab.leftovers());
}

/// A run that was refused before it measured is not in the notebook.
fn no_run_is_kept(lab: &Lab, when: &str) {
    let list = lab.json("list --json");
    assert_eq!(list["runs"].as_array().map(Vec::len), Some(0), "{when}: {list}");
}

fn both_of_a_pair_are_put_back() {
    let before = pairs();
    let lab = Lab::new();
    for (file, value) in [
        (BYTES, "268435456"),
        (RATIO, "17"),
        ("/proc/sys/vm/dirty_background_bytes", "134217728"),
        ("/proc/sys/vm/dirty_background_ratio", "7"),
        ("/proc/sys/vm/overcommit_kbytes", "1000000"),
        ("/proc/sys/vm/overcommit_ratio", "49"),
    ] {
        let result = lab.json(&format!("{SHORT} --json --set {file}={value}"));
        let environment = &result["result"]["runs"][0]["repetitions"][0]["environment"];
        assert_eq!(environment[format!("set {file}")], value, "it was in force");
        assert_eq!(pairs(), before, "after {file}");
        nothing_noted(&lab, file);
    }
}

fn a_kill_puts_both_of_a_pair_back() {
    let before = pairs();
    let lab = Lab::new();
    let line = "run mapanon --pages 512 --references 30000000 --memory 32M --html none -q";
    let mut child = lab.begin(&format!("{line} --set {BYTES}=268435456"), Stdio::null());
    wait_until_set("268435456");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_ne!(pairs(), before);
    let output = lab.output("patterns");
    assert_eq!(pairs(), before, "{output:?}");
    nothing_noted(&lab, "after the next start");
}

fn wait_until_set(value: &str) {
    eventually("it is set", || held(BYTES) == value);
}

/// The notes of the only run's first repetition.
fn notes(result: &serde_json::Value) -> String {
    result["result"]["runs"][0]["repetitions"][0]["notes"].to_string()
}

fn runs_with_different_state_directories_take_turns() {
    let before = pairs();
    let (first, second) = (Lab::new(), Lab::new());
    let line = "run mapanon --pages 512 --references 3000000 --memory 32M --swap none --html none -q";
    let mut child = first.begin(&format!("{line} --set {BYTES}=268435456"), Stdio::null());
    wait_until_set("268435456");
    let result = second.json(&format!("{SHORT} --swap none --json --set {BYTES}=134217728"));
    assert!(child.try_wait().unwrap().is_some_and(|status| status.success()), "the first run has ended");
    let environment = &result["result"]["runs"][0]["repetitions"][0]["environment"];
    assert_eq!(environment[format!("set {BYTES}")], "134217728");
    assert!(notes(&result).contains("waited for another run that changes settings"), "{}", notes(&result));
    assert_eq!(pairs(), before);
    nothing_noted(&first, "after both runs");
    nothing_noted(&second, "after both runs");
}

fn a_setting_that_another_program_changes_is_in_the_record() {
    let before = pairs();
    let lab = Lab::new();
    let line = "run mapanon --pages 512 --references 3000000 --memory 32M --html none --name x -q";
    let mut child = lab.begin(&format!("{line} --set {BYTES}=268435456"), Stdio::null());
    wait_until_set("268435456");
    eventually("it has a worker", || !lab.workers().is_empty());
    fs::write(BYTES, "134217728").unwrap();
    assert!(child.wait().unwrap().success());
    let result = lab.json("show x --json");
    let changed = "changed /proc/sys/vm/dirty_bytes from 268435456 to 134217728 during this run";
    assert!(result.to_string().contains(changed), "{result}");
    assert_eq!(pairs(), before);
}

fn two_settings_of_one_pair_are_refused() {
    let before = pairs();
    let lab = Lab::new();
    lab.refuses(
        &format!("{SHORT} --set {BYTES}=268435456 --set {RATIO}=17"),
        3,
        &["another of the settings has changed it"],
    );
    assert_eq!(pairs(), before);
    nothing_noted(&lab, "after a refusal");
    no_run_is_kept(&lab, "after a refusal");
}

fn a_value_that_is_there_already_is_in_no_journal() {
    let (lab, ratio) = (Lab::new(), "/proc/sys/vm/overcommit_ratio");
    let line = "run mapanon --pages 512 --references 30000000 --memory 32M --html none -q";
    let mut child = lab.begin(&format!("{line} --set {ratio}={}", held(ratio)), Stdio::null());
    // What has a worker is set up wholly.
    eventually("it has a worker", || !lab.workers().is_empty());
    let journals = fs::read_dir(lab.path("state")).unwrap().flatten();
    let journals = journals.filter(|entry| entry.path().extension().is_some_and(|end| end == "journal"));
    let noted: String = journals.map(|entry| fs::read_to_string(entry.path()).unwrap()).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    lab.ok("patterns");
    assert!(noted.contains("remove-cgroup") && !noted.contains(ratio), "{noted}");
    nothing_noted(&lab, "after the next start");
}

fn a_value_that_the_kernel_does_not_take_changes_nothing() {
    let before = pairs();
    let lab = Lab::new();
    for wrong in [format!("{RATIO}=999"), format!("{RATIO}=x"), format!("{BYTES}=1")] {
        lab.refuses(&format!("{SHORT} --set {wrong}"), 3, &["cannot be set to"]);
        assert_eq!(pairs(), before, "{wrong}");
        nothing_noted(&lab, &wrong);
        no_run_is_kept(&lab, &wrong);
    }
}

fn a_value_that_the_kernel_takes_otherwise_is_refused() {
    // Counted in pages: the kernel rounds down to whole ones.
    let file = "/sys/block/loop0/queue/read_ahead_kb";
    if !fs::exists(file).unwrap() {
        return;
    }
    let before = held(file);
    let lab = Lab::new();
    lab.refuses(&format!("{SHORT} --set {file}=130"), 3, &["was set to 130 and holds 128"]);
    assert_eq!(held(file), before);
    nothing_noted(&lab, "after a refusal");
}

fn irreversible_settings_are_refused() {
    let tainted = held("/proc/sys/kernel/tainted");
    let lab = Lab::new();
    for one_way in [
        "/proc/sys/kernel/tainted=512",
        "/proc/sys/kernel/modules_disabled=1",
        "/proc/sys/vm/drop_caches=1",
        "/sys/class/zram-control/hot_add=1",
        "/sys/power/state=disk",
    ] {
        lab.refuses(&format!("{SHORT} --set {one_way}"), 2, &["cannot restore"]);
    }
    assert_eq!(held("/proc/sys/kernel/tainted"), tainted);
}

fn failed_undo_is_reported_once_and_kept() {
    let lab = Lab::new();
    let state = lab.path("state");
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
    let boot = held("/proc/sys/kernel/random/boot_id");
    let line = format!(
        "{{\"boot\":\"{boot}\",\"undo\":\"restore\",\"path\":\"/proc/sys/kernel/ostype\",\"value\":\"a b\"}}\n"
    );
    fs::write(state.join("pagelab-1-0.journal"), line).unwrap();
    let said = joined(&String::from_utf8(lab.output("patterns").stderr).unwrap());
    assert!(said.contains("cannot undo") && said.contains("doctor --leftovers"), "{said}");
    for _ in 0..3 {
        let output = lab.output("patterns");
        assert!(output.stderr.is_empty(), "{output:?}");
    }
    let listed = lab.ok("doctor --leftovers");
    assert!(listed.contains("\n  echo 'a b' > /proc/sys/kernel/ostype\n"), "{listed}");
    assert_eq!(lab.leftovers().len(), 1);
    // What was undone by hand, here by a reboot, is not listed again.
    let kept = state.join("pagelab-1-0.leftover");
    let text = fs::read_to_string(&kept).unwrap();
    fs::write(&kept, text.replace(&boot, "another")).unwrap();
    assert!(lab.leftovers().is_empty() && !kept.exists());
}
