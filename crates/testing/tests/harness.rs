//! The harness from outside: what is ignored, why, and when it fails instead.

use std::process::{Command, Output};

use pagelab_testing::REQUIRE;

/// Runs `src/bin/fixture.rs` with these needs required.
fn fixture(arguments: &[&str], required: &str) -> (Output, String) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_fixture"));
    let output = program.args(arguments).env(REQUIRE, required).output().unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    (output, text)
}

/// The line that a run closes with.
fn closing(text: &str) -> &str {
    text.lines().find(|line| line.starts_with("test result: ")).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn a_lacking_need_is_ignored_with_its_reason() {
    let (output, text) = fixture(&[], "fixture-there");
    assert!(output.status.success(), "{text}");
    assert!(text.contains("ignored (needs fixture-absent: nobody has it)"), "{text}");
    assert!(closing(&text).starts_with("test result: ok. 2 passed; 0 failed; 2 ignored;"), "{text}");
}

#[test]
fn a_lacking_need_that_is_required_is_a_failure() {
    let (output, text) = fixture(&[], "root, fixture-absent");
    assert!(!output.status.success());
    assert!(text.contains("needs fixture-absent: nobody has it"), "{text}");
    assert!(closing(&text).starts_with("test result: FAILED. 2 passed; 2 failed; 0 ignored;"), "{text}");
}

#[test]
fn a_need_that_does_not_exist_cannot_be_required() {
    let (output, _) = fixture(&[], "quemu");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && error.contains("unknown need 'quemu'"), "{error}");
}

#[test]
fn the_command_line_is_that_of_cargo_test() {
    let (_, text) = fixture(&["with_what"], "");
    assert!(closing(&text).contains(" 1 passed; 0 failed; 2 ignored; 0 measured; 1 filtered out;"), "{text}");
    let (_, text) = fixture(&["--exact", "plain", "--nocapture", "--test-threads", "2"], "");
    assert!(closing(&text).contains(" 1 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out;"), "{text}");
    // What was ignored and is asked for is performed, and fails by itself.
    let (output, text) = fixture(&["--ignored"], "");
    assert!(!output.status.success());
    assert!(closing(&text).contains(" 0 passed; 2 failed; 0 ignored; 0 measured; 2 filtered out;"), "{text}");
    let (_, text) = fixture(&["--include-ignored"], "");
    assert!(closing(&text).contains(" 2 passed; 2 failed;"), "{text}");
    let (_, text) = fixture(&["--list"], "");
    assert_eq!(text.lines().filter(|line| line.ends_with(": test")).count(), 5, "{text}");
}

#[test]
fn what_must_be_alone_runs_after_the_others() {
    let (output, text) = fixture(&["--test-threads", "4"], "");
    assert!(output.status.success() && text.contains("alone after 2 others"), "{text}");
}
