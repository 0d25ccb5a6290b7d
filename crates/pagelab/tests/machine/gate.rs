//! A program's exact counts against a baseline in a file.

use crate::common::{Lab, joined, said};
use pagelab_testing::{CC, KERNELS, Test, tests};
use serde_json::Value;

pub fn tests() -> Vec<Test> {
    tests! {
        counts_of_a_program_are_exact_and_a_change_of_each_is_found: KERNELS, CC;
        what_is_no_baseline_and_no_guest_is_refused;
    }
}

/// `calls N pages M`: N system calls that nothing else makes, and M pages written.
const SOURCE: &str = r#"
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words) {
  int calls = atoi(words[1]), pages = atoi(words[2]);
  for (int i = 0; i < calls; i++) syscall(SYS_getppid);
  char *bytes = mmap(0, (size_t)pages << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < pages; i++) bytes[(size_t)i << 12] = 1;
  return 0;
}
"#;

const GATE: &str = "gate --name counted --on kernel:NEW --json -q";

fn count(result: &Value, name: &str) -> u64 {
    result["gate"]["counts"][name]["least"].as_u64().unwrap_or_else(|| panic!("no {name} in {result}"))
}

/// Runs it, expects that a count got worse, gives standard output.
fn worse(lab: &Lab, line: &str) -> String {
    let output = lab.output(line);
    assert_eq!(output.status.code(), Some(1), "pagelab {line}: {}", said(&output));
    joined(&String::from_utf8_lossy(&output.stdout))
}

fn counts_of_a_program_are_exact_and_a_change_of_each_is_found() {
    let lab = Lab::new();
    lab.compile("counted", SOURCE, &["-static"]);
    let first = lab.json(&format!("{GATE} --bless -- ./counted 1000 300"));
    let gate = &first["gate"];
    assert_eq!(gate["system_calls"]["getppid"], 1000, "{gate}");
    assert_eq!(gate["system_calls"]["execve"], 1, "{gate}");
    // Two repetitions do the same: one booted, one restored.
    for name in ["instructions.user", "system-calls", "faults.minor", "pages.touched"] {
        assert_eq!(gate["counts"][name]["spread"], 0, "{name}: {gate}");
    }
    // The program's own text, data and stack are some ninety pages.
    assert!((301..500).contains(&count(&first, "pages.touched")), "{gate}");
    // More than a loop of a thousand calls, and less than a hundred instructions for each.
    assert!((3_000..150_000).contains(&count(&first, "instructions.user")), "{gate}");
    // A first touch takes the kernel about a thousand instructions.
    assert!(count(&first, "instructions.kernel") > 300_000, "{gate}");

    lab.ok("gate --name counted --on kernel:NEW -q --repeat 1 --junit same.xml -- ./counted 1000 300");
    assert!(lab.text("same.xml").contains("tests=\"7\" failures=\"0\""), "{}", lab.text("same.xml"));

    let line = "gate --name counted --on kernel:NEW -q --repeat 1 --junit gate.xml --summary summary.md";
    let shown = worse(&lab, &format!("{line} -- ./counted 1100 350"));
    assert!(shown.contains("getppid 1000 → 1100"), "{shown}");
    let junit = lab.text("gate.xml");
    for name in ["instructions.user", "system-calls", "pages.touched", "faults.minor"] {
        let case = junit.split("<testcase ").find(|case| case.contains(&format!("name=\"{name}\"")));
        assert!(case.is_some_and(|case| case.contains("<failure ")), "{name}: {junit}");
    }
    let summary = lab.text("summary.md");
    assert!(summary.starts_with("### pagelab gate\n") && summary.contains("| system-calls |"), "{summary}");
    // Higher by 10% at the most, but for the pages.
    let shown = worse(&lab, &format!("{line} --fail-on 12 -- ./counted 1100 350"));
    assert!(shown.contains("pages.touched (") && !shown.contains("system-calls ("), "{shown}");
    assert_eq!(lab.text("summary.md").matches("### pagelab gate\n").count(), 2, "appended");

    // Another kernel has other counts.
    let other = line.replace("NEW", "OLD");
    lab.refuses(&format!("{other} -- ./counted 1000 300"), 2, &["the baseline of 'counted' is of Linux"]);
}

fn what_is_no_baseline_and_no_guest_is_refused() {
    let lab = Lab::new();
    lab.refuses("gate --on kernel:NO -- true", 2, &["has no baseline of 'true'", "--bless"]);
    lab.refuses("gate --bless --on host -- true", 2, &["counts in a guest"]);
    lab.refuses("gate --bless --on kernel:NO,accel=kvm -- true", 2, &["accel=icount"]);
    std::fs::write(lab.path("pagelab-gate.json"), "{\"programs\": []}").unwrap();
    lab.refuses("gate --on kernel:NO -- true", 2, &["it is no baseline of pagelab gate"]);
    assert_eq!(lab.text("pagelab-gate.json"), "{\"programs\": []}", "left as it was");
}
