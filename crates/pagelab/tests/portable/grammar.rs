//! The command line: help, catalogues, usage errors, completions, manual pages.

use crate::common::Lab;

#[test]
fn the_catalogues_are_stable() {
    let lab = Lab::new();
    insta::assert_snapshot!("experiments", lab.ok("experiments"));
    insta::assert_snapshot!("patterns", lab.ok("patterns"));
    insta::assert_snapshot!("targets", lab.ok("targets"));
    insta::assert_snapshot!("mechanisms", lab.ok("mechanisms --list"));
    insta::assert_snapshot!("patterns_json", lab.ok("patterns --json"));
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
        lab.shows(&format!("completions {shell}"), &["PAGELAB_COMPLETE"]);
    }
    lab.ok("run --html none --quiet --name first-of-all mapanon --pages 10 --references 10 --on model:lru --memory none");
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
        ("pagelab mrc --on lir", "lirs"),
    ] {
        let offered = completed(line);
        assert!(offered.contains(wanted), "{line}: {offered}");
    }
}

/// Every page of the manual by its name, `pagelab-run-mapanon`.
fn manual(lab: &Lab) -> Vec<(String, String)> {
    lab.ok("man pages");
    let files = std::fs::read_dir(lab.path("pages")).unwrap().map(|file| file.unwrap().path());
    let page = |file: std::path::PathBuf| {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read_to_string(&file).unwrap())
    };
    let mut pages: Vec<_> = files.map(page).collect();
    pages.sort();
    pages
}

#[test]
fn every_command_has_a_manual_page_and_help_with_examples_and_its_own_options_apart() {
    let lab = Lab::new();
    let pages = manual(&lab);
    assert!(pages.len() >= 39, "{}", pages.len());
    for (name, page) in &pages {
        let title = page.lines().find_map(|line| line.strip_prefix(&format!(".TH {name} 1 "))).unwrap();
        assert_eq!(&title[10..], concat!(" \"pagelab ", env!("CARGO_PKG_VERSION"), "\" pagelab"), "{name}");
        assert!(title[..10].split('-').all(|part| part.parse::<u16>().is_ok()), "a date: {title}");
        let at =
            |section: &str| page.find(section).unwrap_or_else(|| panic!("{name} lacks {section}: {page}"));
        assert!(
            at(".SH SYNOPSIS") < at(".SH EXAMPLES") && at(".SH EXAMPLES") < at(".SH \"GLOBAL OPTIONS\""),
            "{name}"
        );
        assert!(
            at(".SH \"GLOBAL OPTIONS\"") < at(".SH \"EXIT STATUS\"")
                && at(".SH FILES") < at(".SH \"SEE ALSO\"")
        );
        // Two commands' names have a hyphen.
        let line = name.replace("bisect-run", "bisect_run").replace("fuzz-reclaim", "fuzz_reclaim");
        let line = line.replacen("pagelab", "", 1).replace('-', " ");
        let line = line.replace("bisect_run", "bisect-run").replace("fuzz_reclaim", "fuzz-reclaim");
        let help = lab.ok(&format!("{} --help", line.trim()));
        assert!(help.contains("Example"), "{name}: {help}");
        let narrow = lab.command(&format!("{} --help", line.trim())).env("COLUMNS", "80").output().unwrap();
        let narrow = String::from_utf8(narrow.stdout).unwrap();
        let long: Vec<&str> = narrow.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{name}: {long:#?}");
        let (own, global) = help.split_once("Global options:").unwrap_or_else(|| panic!("{name}: {help}"));
        assert!(global.contains("--notebook") && !own.contains("--notebook <FILE>"), "{name}: {help}");
    }
    let mapanon = &pages.iter().find(|(name, _)| name == "pagelab-run-mapanon").unwrap().1;
    assert!(mapanon.contains("pattern") && mapanon.contains("zipf:0.9"), "{mapanon}");
    // The examples are command lines of this grammar.
    for line in pages.iter().flat_map(|(_, page)| page.lines()).filter(|line| line.starts_with("pagelab ")) {
        let words = line.replace("\\-", "-");
        let command = words.split_whitespace().nth(1).unwrap();
        // The page's own name is followed by a dash and what it is for, an option by its value.
        assert!(
            command.starts_with('-') || lab.output(&format!("{command} --help")).status.success(),
            "{line}"
        );
    }
}

/// What a shell's own completion offers for `line`; `None` where the shell is not installed.
fn completed_by(shell: &str, lab: &Lab, line: &str) -> Option<String> {
    std::process::Command::new(shell).arg("--version").output().ok()?;
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_pagelab"));
    let folder = binary.parent().unwrap().display();
    std::fs::write(lab.path("script"), lab.ok(&format!("completions {shell}"))).unwrap();
    let words: Vec<String> = line.split(' ').map(|word| format!("'{word}'")).collect();
    let (words, last) = (words.join(" "), words.len() - 1);
    let program = match shell {
        "bash" => format!(
            "source ./script; COMP_WORDS=({words}); COMP_CWORD={last}; COMP_LINE='{line}'; COMP_POINT={}; COMP_TYPE=9; \
             f=$(complete -p pagelab | sed 's/.*-F \\([^ ]*\\).*/\\1/'); $f pagelab; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            line.len()
        ),
        "zsh" => format!(
            "compdef() {{ :; }}; _describe() {{ print -rl -- ${{(P)3}} ${{(P)2}} ${{(P)1}} 2>/dev/null; print -rl -- ${{(P)@[-1]}}; }}; \
             compadd() {{ print -rl -- \"$@\"; }}; source ./script; words=({words}); CURRENT={}; \
             PAGELAB_COMPLETE=zsh; $(functions | grep -o '^_clap[a-z_]*pagelab' | head -1)",
            last + 1
        ),
        _ => format!("source ./script; complete -C '{line}'"),
    };
    let mut command = std::process::Command::new(shell);
    match shell {
        "bash" => command.args(["--norc", "-c"]),
        "zsh" => command.args(["-f", "-c"]),
        _ => command.args(["--no-config", "-c"]),
    };
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let output = command.arg(program).env("PATH", path).current_dir(lab.path("")).output().unwrap();
    Some(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

#[test]
fn the_shells_themselves_complete_targets_patterns_policies_settings_and_runs() {
    let lab = Lab::new();
    lab.ok("run --html none --quiet --name first-of-all mapanon --pages 10 --references 10 --on model:lru --memory none");
    let mut tried = 0;
    for shell in ["bash", "zsh", "fish"] {
        for (line, wanted) in [
            ("pagelab run mapanon --pattern smo", "smooth-sin"),
            ("pagelab run mapanon --on model:linux-m", "linux-mglru"),
            ("pagelab mrc --on lir", "lirs"),
            ("pagelab run mapanon --set /proc/sys/vm/swapp", "/proc/sys/vm/swappiness="),
            ("pagelab show fir", "first-of-all"),
        ] {
            let Some(offered) = completed_by(shell, &lab, line) else { continue };
            assert!(offered.contains(wanted), "{shell}: {line}: {offered}");
            tried += 1;
        }
    }
    assert!(tried >= 5, "bash is there");
}
