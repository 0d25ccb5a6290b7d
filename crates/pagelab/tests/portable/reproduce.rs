//! The published figures beside the models, through the binary.

use crate::common::{Lab, joined};

#[test]
fn every_study_prints_claims_with_verdicts() {
    let lab = Lab::new();
    let all =
        String::from_utf8(lab.command("reproduce").env("COLUMNS", "80").output().unwrap().stdout).unwrap();
    let long = |line: &&str| line.chars().count() > 80 && line.trim().contains(' ');
    assert_eq!(all.lines().find(long), None);
    assert!(
        all.contains("gorman-2002")
            && all.contains("Reproduced: held out ")
            && joined(&all).contains("distinct predictions (")
            && joined(&all).contains("median distance ")
            && joined(&all).contains("Not counted: ")
            && joined(&all).contains("survive ±10%"),
        "{all}"
    );
    let one = lab.ok("reproduce gorman-2002 --html studies.html");
    assert!(one.contains("Parameters") && one.contains("assumed:"), "{one}");
    let page = std::fs::read_to_string(lab.path("studies.html")).unwrap();
    assert!(page.contains("2.4.19-rmap14a") && page.matches("class=\"plot\"").count() >= 4);
    assert!(page.contains("Reproduced: held out "));
    let one = joined(&lab.ok("reproduce mcdougall-2005"));
    // Every fitted constant has its column, and every word its paragraph.
    assert!(one.contains("Survive ±10%: ") && one.contains(" of 8 fitted to small-in-memory"), "{one}");
    for word in ["marginal", "distinct prediction", "sensitivity", "degrees of freedom", "ablation"] {
        assert!(lab.ok(&format!("explain {word}")).starts_with(&format!("{word}: ")), "{word}");
    }
    lab.shows("reproduce mcdougall-2007 --without one-node", &["Ablations (--without)"]);
}

/// The study's own experiment on the running kernel: its figures are shown at once, and later
/// without it.
#[test]
fn the_running_kernel_is_laid_beside_the_study() {
    let lab = Lab::new();
    lab.shows(
        "reproduce mcdougall-2007",
        &["nothing measured yet; pagelab reproduce mcdougall-2007 --on host"],
    );
    let at_once = lab.ok("reproduce mcdougall-2007 --on host --repeat 2");
    assert!(joined(&at_once).contains("medians of up to 2 repetitions"), "{at_once}");
    let here = |said: &str| said.lines().find(|line| line.starts_with("here ")).unwrap().to_owned();
    assert!(!here(&at_once).contains('—'), "{at_once}");
    let later = lab.json("reproduce mcdougall-2007 --json");
    let table = &later["studies"][0]["here"];
    assert!(table["title"].as_str().unwrap().contains("clock-1 on host"), "{table}");
    let rows = table["rows"].as_array().unwrap();
    // Five sleeps of a second: none was much shorter.
    assert!(rows.last().unwrap()[1][0].as_f64().unwrap() > 0.99, "{table}");
}

/// Each published system performs the experiment of its study, with the live experiment's figures.
#[test]
fn the_published_systems_are_targets() {
    let lab = Lab::new();
    let runs = [
        "vmtest --on model:sun4c-sunos403 --sizes 2M,32M --mapping shared --passes 200 --seconds 3600",
        "forkstorm --on model:linux-2.5.27-rmap --script any --copies 2 --forks 10",
        "vmtest --on model:tlb --sizes 128K,8M --process-size 8M --seconds 0.05",
        "forkstorm --on model:linux-6-folio --forks 10",
        "fileread --on model:solaris10-segkpm --sizes 4M,32M,128M",
        "faultscale --on model:dragonfly-2011-token --workers 1,8,48",
        "faultscale --work build --on model:dragonfly-2011-queues --workers 4,48",
        "fileread --on model:solaris8-segmap --access pread --sizes 4M,32M,128M",
        "clock --on model:guest-clock-core --steps 3",
    ];
    for run in runs {
        lab.shows(&format!("run {run}"), &["on model:"]);
    }
    lab.shows("targets", &["model:sun4c-sunos403", "model:solaris10-segkpm"]);
}

/// A model lists its parameters, and takes each as an option of the target; the record names what
/// was changed.
#[test]
fn a_published_system_takes_its_parameters() {
    let lab = Lab::new();
    lab.shows(
        "targets sun4c-sunos403",
        &["pmegs", "32 to 8192", "documented: NetBSD", "--on model:sun4c-sunos403,pmegs="],
    );
    let listed = lab.json("targets model:sun4c-sunos403 --json");
    let parameters = listed["target"]["parameters"].as_array().unwrap();
    assert_eq!(parameters[0]["name"], "pmegs");
    assert_eq!((&parameters[0]["default"], &parameters[0]["range"][0]), (&"128".into(), &32.0.into()));
    lab.shows("targets lru", &["seek", "pagelab policies"]);
    lab.refuses("targets sun4c", 2, &["pagelab targets"]);
    let run = |name: &str, options: &str| {
        let target = format!("model:sun4c-sunos403{options}");
        let vmtest = "--sizes 2M,16M --mapping shared --passes 100 --seconds 3600";
        lab.ok(&format!("run vmtest --name {name} --on {target} {vmtest}"));
        let shown = lab.json(&format!("show {name} --json"));
        shown["result"].to_string()
    };
    let half = run("half", ",pmegs=64");
    assert!(half.contains("model:sun4c-sunos403,pmegs=64"), "{half}");
    let usual = run("usual", ",pmegs=128,seed=1");
    assert!(usual.contains("model:sun4c-sunos403\"") && !usual.contains("pmegs=128"), "{usual}");
    let refused = "run vmtest --on model:sun4c-sunos403";
    lab.refuses(&format!("{refused},pmeg=64"), 2, &["has no parameter 'pmeg'", "did you mean pmegs?"]);
    lab.refuses(&format!("{refused},pmegs=9"), 2, &["pmegs=9: must be a whole number from 32 to 8192"]);
}

/// Another value of a parameter turns verdicts, and says that the conditions are not the published
/// ones.
#[test]
fn a_study_is_judged_with_other_values_of_its_parameters() {
    let lab = Lab::new();
    let said = joined(&lab.ok("reproduce dillon-2011 --set processors=12"));
    assert!(said.contains("Not the published conditions: processors is 12 instead of 48."), "{said}");
    assert!(said.contains("reproduced → ") && said.contains("Published conditions: Reproduced: "), "{said}");
    let found = lab.json("reproduce dillon-2011 --set processors=12 --json");
    let found = &found["what_if"];
    assert_eq!((&found["set"][0]["value"], &found["set"][0]["published"]), (&12.0.into(), &48.0.into()));
    let turned =
        |claim: &&serde_json::Value| claim["verdict"]["as_set"] != claim["verdict"]["published_conditions"];
    assert!(found["claims"].as_array().unwrap().iter().filter(turned).count() > 0);
    lab.refuses(
        "reproduce dillon-2011 --set pmegs=64",
        2,
        &["no claim of dillon-2011 depends", "processors"],
    );
    lab.refuses("reproduce dillon-2011 --set processors=0", 2, &["from 1 to 1024"]);
    lab.refuses("reproduce --set processors=12", 2, &["STUDY"]);
}

/// A sweep has a row for each value, and a page with the verdicts against the parameter.
#[test]
fn a_study_is_judged_along_a_range() {
    let lab = Lab::new();
    let said = joined(&lab.ok("reproduce dillon-2011 --sweep processors=12..48/3 --html sweep.html"));
    assert!(said.contains("processors from 12 to 48 instead of 48"), "{said}");
    assert!(said.contains("Claims whose verdict differs at some value"), "{said}");
    let page = std::fs::read_to_string(lab.path("sweep.html")).unwrap();
    assert!(
        page.contains("Claims by verdict against processors") && page.matches("class=\"plot\"").count() > 2
    );
    let found = lab.json("reproduce dillon-2011 --sweep processors=12..48/3 --json");
    let points = found["sweep"]["points"].as_array().unwrap();
    let values: Vec<_> = points.iter().map(|point| point["value"].as_f64().unwrap()).collect();
    assert_eq!(values, [12.0, 24.0, 48.0]);
    lab.refuses("reproduce dillon-2011 --sweep processors=12", 2, &["NAME=A..B"]);
}
