//! What is said when pagelab itself fails: where, in the middle of what, and what is kept.

use std::io::{self, Write};
use std::panic::{self, PanicHookInfo};
use std::sync::Mutex;

use pagelab_counters::visible::visible;

/// What is being performed just now.
static UNDER_WAY: Mutex<Option<String>> = Mutex::new(None);

/// Says from now on what was under way when a panic ends the program.
pub fn install() {
    panic::set_hook(Box::new(|info| {
        // Standard error may be closed or full; nothing more can be said then.
        let _ = io::stderr().lock().write_all(message(info).as_bytes());
    }));
}

/// From now on `what` is under way: a repetition of a run, and the notebook that keeps it.
pub fn under_way(what: String) {
    if let Ok(mut now) = UNDER_WAY.lock() {
        *now = Some(what);
    }
}

/// Nothing is under way any more.
pub fn done() {
    if let Ok(mut now) = UNDER_WAY.lock() {
        *now = None;
    }
}

fn message(info: &PanicHookInfo<'_>) -> String {
    let place = info.location().map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
    let what = info.payload_as_str().unwrap_or("no words");
    let mut text = format!("pagelab: a bug in pagelab{place}: {}\n", visible(what));
    if let Ok(now) = UNDER_WAY.try_lock()
        && let Some(now) = now.as_ref()
    {
        text += &format!(
            "pagelab: it was running {}; earlier repetitions are stored, this one is marked as torn\n",
            visible(now)
        );
    }
    text += "pagelab: its changes to this machine are undone now, or by the next start of pagelab; please \
        report this with the lines above and 'pagelab --version'\n";
    if std::env::var_os("RUST_BACKTRACE").is_some_and(|v| v != "0") {
        text += &format!("{}\n", std::backtrace::Backtrace::force_capture());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_names_its_place_the_run_and_what_is_kept() {
        static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
        let usual = panic::take_hook();
        panic::set_hook(Box::new(|info| SAID.lock().unwrap().push(message(info))));
        under_way("repetition 3 of 'before' in pagelab.db".to_owned());
        let first = panic::catch_unwind(|| panic!("the figures are \u{1b}[2J"));
        done();
        let second = panic::catch_unwind(|| panic!("{}", 7));
        panic::set_hook(usual);
        assert!(first.is_err() && second.is_err());
        let said = SAID.lock().unwrap();
        let of = |words: &str| said.iter().find(|text| text.contains(words)).unwrap();
        let text = of("the figures are \\u001b[2J");
        for part in ["src/bug.rs:", "repetition 3 of 'before' in pagelab.db", "torn", "undone"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!of(": 7\n").contains("repetition"));
    }
}
