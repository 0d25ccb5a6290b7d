//! The command line: help, catalogues, usage errors, completions, manual pages.

mod common;

use common::Lab;

#[test]
fn the_catalogues_are_stable() {
    let lab = Lab::new();
    insta::assert_snapshot!("experiments", lab.ok("experiments"));
    insta::assert_snapshot!("patterns", lab.ok("patterns"));
    insta::assert_snapshot!("targets", lab.ok("targets"));
    insta::assert_snapshot!("patterns_json", lab.ok("patterns --json"));
}

#[test]
fn every_command_has_help() {
    let lab = Lab::new();
    let help = lab.ok("--help");
    for command in ["run", "list", "show", "compare", "report", "export", "import", "experiments"] {
        assert!(help.contains(command), "{command}");
        assert!(lab.ok(&format!("{command} --help")).contains("Usage:"), "{command}");
    }
    assert!(lab.ok("run mapanon --help").contains("--pattern"));
}

#[test]
fn wrong_usage_is_status_2_and_says_what_to_do() {
    let lab = Lab::new();
    for (arguments, wanted) in [
        ("run mapanon --pattern sine", "smooth-sin"),
        ("run mapanon --memory 64X", "powers of 1024"),
        ("run mapanon --on hots", "kernel:PATH"),
        ("run mapanon --pattern smooth-sn", "did you mean 'smooth-sin'?"),
        ("run mapanon --on model:linux-mglr", "did you mean linux-mglru?"),
        ("run mapanon --on model:lruu", "did you mean 'lru'?"),
        ("run mapanon --on host,memry=1M", "did you mean memory?"),
        ("run mapanom", "mapanon"),
        ("run mapanon --on host,colour=red", "no option 'colour'"),
        ("run mapanon --on host,swappiness=300", "0..=200"),
        ("run mapanon --on model:nonsense", "pagelab targets"),
        ("run mapanon --on model:lru,colour=red", "colour"),
        ("run mapanon --set /etc/passwd=x", "/sys/FILE=VALUE"),
        ("run mapanon --pages 0", "--pages"),
        ("frobnicate", "frobnicate"),
    ] {
        let error = lab.fails(arguments, 2);
        assert!(error.contains(wanted), "{arguments}: {error}");
    }
    assert!(!lab.path("pagelab.db").exists(), "wrong usage must not make a notebook");
}

#[test]
fn the_experiments_have_the_parameters_that_the_catalogue_names() {
    let lab = Lab::new();
    for experiment in pagelab_experiment::Experiment::catalogue() {
        let name = &experiment.name;
        // Long lines are wrapped.
        let help = lab.ok(&format!("run {name} --help"));
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for parameter in experiment.parameters.iter().filter(|p| p.name != "program") {
            assert!(help.contains(&format!("--{}", parameter.name)), "{name} {}", parameter.name);
            if let Some(default) = &parameter.default {
                assert!(help.contains(&format!("[default: {default}]")), "{name} {}", parameter.name);
            }
            for word in &parameter.words {
                assert!(help.contains(word), "{name} {} {word}", parameter.name);
            }
        }
    }
}

#[test]
fn a_shell_completes_words_targets_patterns_and_runs() {
    let lab = Lab::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(lab.ok(&format!("completions {shell}")).contains("PAGELAB_COMPLETE"), "{shell}");
    }
    lab.ok("run --report none --quiet --name first-of-all mapanon --pages 10 --references 10 --on model:lru --memory none");
    let completed = |line: &str| {
        let mut command = lab.command("");
        command.env("PAGELAB_COMPLETE", "fish").arg("--").args(line.split(' '));
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    for (line, wanted) in [
        ("pagelab ru", "run"),
        ("pagelab run mapano", "mapanon"),
        ("pagelab run mapanon --touch ", "write"),
        ("pagelab run mapanon --pattern smo", "smooth-sin"),
        ("pagelab run mapanon --on model:linux-m", "model:linux-mglru"),
        ("pagelab run --swap z", "zram"),
        ("pagelab run vmtest --pages-of ", "hugetlb"),
        ("pagelab show fir", "first-of-all"),
        ("pagelab compare fir", "first-of-all"),
        ("pagelab mrc --policy lir", "lirs"),
    ] {
        let offered = completed(line);
        assert!(offered.contains(wanted), "{line}: {offered}");
    }
}

#[test]
fn manual_pages_come_from_the_grammar() {
    let lab = Lab::new();
    lab.ok("man pages");
    assert!(std::fs::read_to_string(lab.path("pages/pagelab-run-mapanon.1")).unwrap().contains("pattern"));
}

#[test]
fn the_documented_parameters_are_the_declared_ones() {
    let lab = Lab::new();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/experiments/parameters.md");
    let documented = std::fs::read_to_string(file).unwrap();
    assert_eq!(documented, lab.ok("experiments --markdown"), "pagelab experiments --markdown > {file}");
}

#[test]
fn a_broken_pipe_is_no_failure() {
    let lab = Lab::new();
    let script = format!("{} patterns | head -c 1", env!("CARGO_BIN_EXE_pagelab"));
    let output = std::process::Command::new("bash").args(["-o", "pipefail", "-c", &script]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    drop(lab);
}
