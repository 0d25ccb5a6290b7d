//! The grammar of the command line, and its messages.

use super::*;
use pagelab_experiment::Setting;
use pagelab_testing::fuzz;

/// Every word of the grammar: commands, options, possible values.
fn words(command: &clap::Command, list: &mut Vec<Vec<u8>>) {
    list.push(command.get_name().into());
    for argument in command.get_arguments() {
        let long = argument.get_long().map(|long| format!("--{long}").into_bytes());
        list.extend(long);
        list.extend(argument.get_possible_values().iter().map(|value| value.get_name().into()));
    }
    command.get_subcommands().for_each(|command| words(command, list));
}

#[test]
fn no_words_make_the_grammar_panic() {
    let mut command = Cli::command();
    command.build();
    let mut grammar = Vec::new();
    words(&command, &mut grammar);
    for value in [
        "host,memory=64M,swap=zram",
        "kernel:/x,append=\"a b\"",
        "model:2q:kin=0.5,frames=10",
        "/proc/sys/vm/swappiness=1",
        "10%,64M,400p",
        "1M..4M:3",
        "zipf:0.9",
        "trace:x",
        "vmstat:0:vm:/^pg/",
        "18446744073709551616",
        "-0",
        "1e999",
        "@1",
        "--",
    ] {
        grammar.push(value.into());
    }
    // Some words make a line, an input; what is spoiled is the line.
    let lines: Vec<Vec<u8>> = (0..grammar.len() * 4)
        .map(|n| {
            let word = |k: usize| &grammar[(n * 31 + k * k * 17) % grammar.len()][..];
            let name = command.get_subcommands().nth(n % 29).map_or("run", |command| command.get_name());
            let mut line = name.as_bytes().to_vec();
            (1..=n % 6).for_each(|k| line.extend([b"\n", word(k)].concat()));
            line
        })
        .collect();
    fuzz::fuzz("arguments", &lines, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let _ = Cli::try_parse_from(std::iter::once("pagelab").chain(text.split('\n')));
    });
}

/// The words of a line for a shell, up to what is the shell's own; `None` where that comes
/// among them.
fn shell_words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            (letter, Some(open)) if letter == open => quote = None,
            ('\'' | '"', None) => quote = Some(letter),
            ('|' | '>' | '&' | ';' | '#', None) if word.is_empty() => break,
            ('>', None) if word == "2" => {
                word.clear();
                break;
            }
            (';', None) if letters.peek().is_none_or(|next| *next == ' ') => break,
            ('$' | '`' | '…' | '[', None) => return None,
            (' ', None) => words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty())),
            (letter, _) => word.push(letter),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    Some(words)
}

/// What README, documents and helps tell readers to type, the grammar takes.
#[test]
fn every_example_is_of_this_grammar() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut texts = vec![format!("{root}/README.md")];
    let mut folders = vec![format!("{root}/docs/src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.to_str().unwrap().to_owned();
            if path.is_dir() {
                folders.push(name);
            } else if name.ends_with(".md") {
                texts.push(name);
            }
        }
    }
    let mut texts: Vec<(String, String)> =
        texts.into_iter().map(|file| (file.clone(), std::fs::read_to_string(&file).unwrap())).collect();
    fn helps(command: &mut clap::Command, texts: &mut Vec<(String, String)>) {
        texts.push((command.get_name().to_owned(), command.render_long_help().to_string()));
        command.get_subcommands_mut().for_each(|command| helps(command, texts));
    }
    helps(&mut grammar(), &mut texts);
    let (mut seen, mut wrong) = (0, Vec::new());
    for (name, text) in texts {
        let mut parts = text.split("\\\n");
        let mut whole = parts.next().unwrap_or_default().to_owned();
        parts.for_each(|part| whole.extend([" ", part.trim_start()]));
        for line in whole.lines() {
            let Some(line) = line
                .trim_start()
                .strip_prefix("$ pagelab ")
                .or_else(|| line.strip_prefix("    pagelab ").or_else(|| line.strip_prefix("  pagelab ")))
            else {
                continue;
            };
            // What it is for stands apart.
            let line = line.split("   ").next().unwrap_or_default();
            let Some(words) = shell_words(line) else { continue };
            let words = std::iter::once("pagelab".to_owned()).chain(words);
            seen += 1;
            if let Err(error) = Cli::try_parse_from(words)
                && error.use_stderr()
            {
                wrong.push(format!("{name}: pagelab {line}: {}", error.to_string().lines().next().unwrap()));
            }
        }
    }
    assert!(wrong.is_empty() && seen > 150, "{} of {seen}: {wrong:#?}", wrong.len());
}

#[test]
fn the_grammar_of_a_view_takes_what_the_whole_grammar_takes() {
    let split = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
    for line in [
        "pagelab vmstat 1 20",
        "pagelab vmstat -S --json 1 --root x",
        "pagelab prstat -mL -n 3 -p 1,2 0.1 1 --quiet",
        "pagelab iostat -q --notebook x.db 1",
        "pagelab memstat --color never",
    ] {
        let words = split(line);
        let whole = Cli::try_parse_from(&words).unwrap();
        assert_eq!(format!("{:?}", parse_view(&words).unwrap()), format!("{whole:?}"), "{line}");
    }
    for line in [
        "pagelab",
        "pagelab list",
        "pagelab -q vmstat",
        "pagelab vmstat --help",
        "pagelab vmstat -V",
        "pagelab vmstat --no",
        "pagelab prstat x",
    ] {
        assert!(parse_view(&split(line)).is_none(), "{line}");
    }
}

#[test]
fn every_command_is_in_one_group() {
    let command = Cli::command();
    let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
    let mut names: Vec<&str> = visible.map(clap::Command::get_name).collect();
    let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    names.sort_unstable();
    grouped.sort_unstable();
    assert_eq!(names, grouped);
}

#[test]
fn examples_are_at_most_five_and_fit_76_columns() {
    fn check(command: &clap::Command, wrong: &mut Vec<String>) {
        let examples = command.get_before_help().map(ToString::to_string).unwrap_or_default();
        let lines: Vec<&str> =
            examples.lines().skip(1).map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
        let commands = lines.iter().filter(|line| line.starts_with("pagelab ")).count();
        if commands > 5 || lines.iter().any(|line| line.chars().count() > 76) {
            wrong.push(format!("{}: {lines:#?}", command.get_name()));
        }
        command.get_subcommands().for_each(|command| check(command, wrong));
    }
    let mut wrong = Vec::new();
    check(&Cli::command(), &mut wrong);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// clap wraps at the terminal's width: a break within a paragraph would leave a word alone.
#[test]
fn notes_of_a_help_have_no_breaks_within_a_paragraph() {
    fn check(command: &clap::Command, wrong: &mut Vec<String>) {
        let notes = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines: Vec<&str> = notes.lines().collect();
        let text = |line: &str| !line.is_empty() && !line.starts_with(' ');
        let broken = lines.windows(2).filter(|pair| text(pair[0]) && text(pair[1]));
        wrong.extend(broken.map(|pair| format!("{}: {}", command.get_name(), pair[0])));
        command.get_subcommands().for_each(|command| check(command, wrong));
    }
    let mut wrong = Vec::new();
    check(&Cli::command(), &mut wrong);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_help_of_an_experiment_has_the_conditions_that_a_target_takes_and_no_others() {
    let mut grammar = grammar();
    grammar.build();
    let (mut seen, mut wrong) = (0, Vec::new());
    for experiment in targets::experiments() {
        let name = experiment.name();
        let run = grammar.find_subcommand("run").unwrap();
        let Some(command) = run.find_subcommand(name) else { continue };
        let refused = |setting: &Setting| {
            targets::kinds().iter().all(|kind| {
                let kind = if kind == "host" { targets::ANY_HOST } else { kind };
                targets::refusal(kind, &experiment, setting).is_some()
            })
        };
        for (condition, setting) in targets::single_conditions() {
            seen += 1;
            let shown =
                command.get_arguments().any(|own| own.get_long() == Some(condition) && !own.is_hide_set());
            if shown == refused(&setting) {
                wrong.push(format!("{name} --{condition}"));
            }
        }
    }
    assert!(wrong.is_empty() && seen > 150, "{} of {seen}: {wrong:?}", wrong.len());
}

#[test]
fn a_usage_error_is_a_problem_and_one_hint() {
    let of = |text: &str| in_words(text, "pagelab run mapanon");
    let see = "\nhint: see 'pagelab run mapanon --help'";
    assert_eq!(of("error: a\n\nb is not in 3 words\n"), format!("a\nb is not in 3 words{see}"));
    assert_eq!(of("error: b: 0 is not in 1..=1000\n"), format!("b: must be between 1 and 1000{see}"));
    let tip = |tip: &str| {
        format!("error: invalid value 'wrote'\n\n  tip: {tip}\n\nFor more information, try '--help'.\n")
    };
    let invalid = "invalid value 'wrote'\nhint: ";
    assert_eq!(of(&tip("a similar value exists: 'write'")), format!("{invalid}did you mean 'write'?"));
    assert_eq!(of(&tip("a similar value exists: 'other'")), format!("invalid value 'wrote'{see}"));
    assert_eq!(of(&tip("use '-- -1'")), format!("{invalid}use '-- -1'"));
    let unknown = "error: unrecognized subcommand 'sho'\n\nUsage: pagelab run\n";
    assert_eq!(
        in_words(unknown, "pagelab run"),
        "unknown experiment 'sho'\nhint: 'pagelab experiments' lists all"
    );
}
