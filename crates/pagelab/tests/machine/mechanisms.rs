//! `mechanisms`: a matrix of switches and loads on a guest, its page, and what a kernel lacks.

use crate::common::Lab;
use pagelab_testing::{KERNELS, Test, tests};

pub fn tests() -> Vec<Test> {
    tests! {
        huge_pages_change_a_loop_and_what_a_kernel_lacks_is_left_out: KERNELS;
    }
}

/// Linux 6.12 swaps in 16 pages with one fault. No kernel of Debian has the switch `workingset`.
fn huge_pages_change_a_loop_and_what_a_kernel_lacks_is_left_out() {
    let lab = Lab::new();
    let line = "mechanisms --on kernel:NEW --loads loop --switches thp=64k,workingset --repeat 2";
    let found = lab.json(&format!("{line} --html page.html --json"))["mechanisms"].clone();
    assert!(found["largest"][0].as_str().unwrap().starts_with("thp=64k under loop: "), "{found}");
    let page = lab.text("page.html");
    assert!(page.contains("<table class=\"heat\">") && page.contains("thp=64k under loop"));
    assert!(page.contains("workingset left out: "), "what the kernel lacks");
    assert!(!lab.path("pagelab.db").exists(), "the runs of cells are not kept");
    let [huge, lacking] = found["cells"].as_array().unwrap().as_slice() else { panic!("{found}") };
    let number = |of: &serde_json::Value| of.as_f64().unwrap();
    assert!(huge["instructions"]["differs"] == true && huge["regret"]["differs"] == true, "{huge}");
    assert!(number(&huge["regret"]["change"]) < -0.3, "{huge}");
    let interval = huge["instructions"]["interval"].as_array().unwrap();
    let change = number(&huge["instructions"]["change"]);
    assert!(number(&interval[0]) <= change && change <= number(&interval[1]), "{huge}");
    assert!(lacking["instructions"].is_null() && lacking["missing"]["unsupported"].is_string(), "{lacking}");
    let of_loop = &found["loads"][0];
    assert!(number(&of_loop["opt"]) >= 100.0 && number(&of_loop["regret"]["n"]) == 8.0, "{of_loop}");
    assert!(number(&of_loop["regret"]["median"]) > 0.9, "{of_loop}");
    lab.nothing_is_left("after a matrix");
}
