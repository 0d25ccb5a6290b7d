//! The book's code blocks that are marked as runnable are run, page by page, in one shell.
//!
//! A block ```` ```bash,runnable ```` must succeed. A block ```` ```text,exact ```` after it holds
//! lines of its output; in ```` ```text,like ```` the numbers and units may differ, for they were
//! measured. A line `…` stands for others.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::common::Lab;
use pagelab_testing::{KERNELS, LIMITS, QEMU_USER, Test, tests};

pub fn tests() -> Vec<Test> {
    tests! {
        a_machine_is_measured: LIMITS;
        two_kernels_are_compared: KERNELS;
        a_program_is_sized: QEMU_USER, LIMITS;
        the_guides_run;
        every_runnable_block_is_on_a_page_that_is_run;
    }
}

const PAGES: [&str; 4] =
    ["tutorials/measure.md", "tutorials/compare.md", "tutorials/size.md", "how-to/prometheus.md"];

fn a_machine_is_measured() {
    follow(PAGES[0]);
}

fn two_kernels_are_compared() {
    follow(PAGES[1]);
}

fn a_program_is_sized() {
    follow(PAGES[2]);
}

fn the_guides_run() {
    follow(PAGES[3]);
}

fn every_runnable_block_is_on_a_page_that_is_run() {
    let mut folders = vec![book()];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let name = path.strip_prefix(book()).unwrap().to_str().unwrap();
                let runnable = std::fs::read_to_string(&path).unwrap().contains("```bash,runnable");
                assert_eq!(runnable, PAGES.contains(&name), "{name}");
            }
        }
    }
}

fn book() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src")
}

/// The fenced blocks of a page: the word behind the fence, and the text.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(word) = line.strip_prefix("```") {
            let text: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
            found.push((word.to_owned(), text.join("\n")));
        }
    }
    found
}

/// Runs the page in a folder of its own and compares what it shows with what was printed.
fn follow(name: &str) {
    const MARK: &str = "--- end of block ";
    let page = std::fs::read_to_string(book().join(name)).unwrap();
    let blocks = blocks(&page);
    let mut script = String::from("set -e\nexec 2>&1\n");
    for (number, (word, text)) in blocks.iter().enumerate() {
        if word == "bash,runnable" {
            script += &format!("{text}\necho '{MARK}{number}'\n");
        }
    }
    let lab = Lab::new();
    symlink(book().join("../../target/kernels"), lab.path("kernels")).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_pagelab")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    // The lab's environment: a state folder and a notebook of its own.
    let prepared = lab.command("");
    let environment = prepared.get_envs().filter_map(|(name, value)| value.map(|value| (name, value)));
    let output = Command::new("bash")
        .args(["-c", &script])
        .current_dir(lab.folder.path())
        .envs(environment)
        .env("PATH", path)
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{name}: {}\n{printed}", output.status);
    let mut outputs = printed.split(MARK);
    let mut last = "";
    for (word, text) in &blocks {
        match word.as_str() {
            "bash,runnable" => last = outputs.next().unwrap(),
            "text,exact" => shows(name, text, last, str::to_owned),
            "text,like" => shows(name, text, last, without_numbers),
            _ => (),
        }
    }
}

/// Every line of `text` is in `printed`, however either is wrapped.
fn shows(page: &str, text: &str, printed: &str, form: fn(&str) -> String) {
    let joined = |text: &str| form(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    let whole = joined(printed);
    for line in text.lines().filter(|line| !line.trim().is_empty() && line.trim() != "…") {
        let line = joined(line);
        assert!(whole.contains(&line), "{page} shows '{line}', which was not printed:\n{printed}");
    }
}

/// `#` for each word with a digit, and for a unit or a dash by itself.
fn without_numbers(text: &str) -> String {
    const UNITS: [&str; 12] = ["ns", "µs", "ms", "s", "B", "KiB", "MiB", "GiB", "%", "instr", "—", "-"];
    let mut words: Vec<&str> = Vec::new();
    for word in text.split(' ') {
        let bare = word.trim_matches(|c: char| "(),;:.".contains(c));
        let number = bare.chars().any(|c| c.is_ascii_digit()) || UNITS.contains(&bare);
        match (number, words.last()) {
            (true, Some(&"#")) => (),
            (true, _) => words.push("#"),
            (false, _) => words.push(word),
        }
    }
    words.join(" ")
}
