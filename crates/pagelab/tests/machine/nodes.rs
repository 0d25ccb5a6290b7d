//! Machines of other kinds: nodes of memory, other processors, more words for QEMU. What the kernel
//! says of them on its console and in its counters is what counts.

use crate::common::{Lab, metric};
use pagelab_testing::{KERNELS, Test, tests};

pub fn tests() -> Vec<Test> {
    tests! {
        a_kernel_sees_the_machine_that_was_asked_for: KERNELS;
        nodes_of_one_tier_take_no_more_than_two_hot_sets: KERNELS;
    }
}

/// Two nodes, of which one has memory alone, 40 apart; another processor than the usual; a name
/// that QEMU tells the kernel. The second repetition is of a machine that boots again.
fn a_kernel_sees_the_machine_that_was_asked_for() {
    let lab = Lab::new();
    let line = "run mapanon --pages 100 --references 200 --memory none --html none --name n";
    let machine = "numa=384M+128M,distance=40,cpu=max,append=loglevel=8";
    let words = "qemu=\"-smbios type=1,product=PLNODES\"";
    let image = pagelab_testing::kernels()[1].display().to_string();
    let mut command = lab.command(&format!("{line} --on"));
    let output = command.arg(format!("kernel:{image},accel=tcg,{machine},{words}")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let export = lab.json("export n --format json");
    let conditions = export["runs"][0]["conditions"].as_array().unwrap();
    for (name, value) in [("numa", "384M+128M"), ("distance", "40"), ("cpu", "max"), ("ram", "512M")] {
        let found = conditions.iter().find(|condition| condition["name"] == name);
        assert_eq!(found.map(|found| &found["value"]), Some(&value.into()), "{name}: {conditions:?}");
    }
    let console = export["runs"][0]["repetitions"][0]["observations"]["logs"].to_string();
    assert!(console.contains("PLNODES"), "QEMU's words: {console}");
    let nodes = console.matches("Initmem setup node").count();
    assert_eq!(nodes, 2, "{console}");
    let model = export["runs"][0]["repetitions"][0]["observations"]["environment"]["cpu.model"].to_string();
    assert!(model.contains("TCG CPU"), "{model}");
}

/// No firmware table calls one of them slow. An eighth more than one node has free would be refused.
fn nodes_of_one_tier_take_no_more_than_two_hot_sets() {
    let lab = Lab::new();
    let tier = "run tier --hot 512 --positions 1 --seconds 0.05 --html none --json";
    let result = lab.json(&format!("{tier} --on kernel:NEW,accel=tcg,numa=2x384M"));
    let run = &result["result"]["runs"][0];
    assert_eq!(metric(&result, "tier.hot.off"), Some(0.0), "it begins on the slow node: {run}");
}
