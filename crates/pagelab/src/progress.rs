//! The progress bar: how far the whole command is, and an estimate of what is left. On standard
//! error, and only where that is a terminal.

use std::fmt;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Steps of the bar for one repetition, without what goes before it.
const STEPS: u64 = 1000;
/// Those of a boot: of a short repetition in a guest it is nine tenths or more
/// (docs/src/explanation/guests.md).
const BOOT_STEPS: u64 = 9 * STEPS;
/// What a boot is taken for, where the notebook has none of that target yet.
const BOOT_TIME: Duration = Duration::from_secs(12);

/// A bar over the repetitions of a command.
pub struct Progress {
    bar: ProgressBar,
    /// What the repetitions that are behind us took.
    finished: u64,
    current: Part,
    /// Nanoseconds of a step, while a boot tells them; else 0, and the bar's own pace does.
    pace: Arc<AtomicU64>,
}

/// The repetition that is performed.
#[derive(Clone, Debug, Default)]
struct Part {
    name: String,
    /// How long its boot is expected to take, where it begins with one.
    boot: Option<Duration>,
}

impl Part {
    fn boot_steps(&self) -> u64 {
        if self.boot.is_some() { BOOT_STEPS } else { 0 }
    }

    fn steps(&self) -> u64 {
        self.boot_steps() + STEPS
    }

    /// How many of its steps are behind us, `done` of `total` steps into a phase. A boot that takes longer than was
    /// expected waits just before its end.
    fn position(&self, phase: &str, done: u64, total: u64) -> u64 {
        match (phase, self.boot) {
            (pagelab_guest::BOOT, Some(expected)) => {
                let share = done as f64 / (expected.as_millis() as f64).max(1.0);
                (BOOT_STEPS as f64 * share.min(0.98)) as u64
            }
            (pagelab_guest::BOOT, None) => 0,
            _ => self.boot_steps() + (done.min(total) * STEPS).checked_div(total).unwrap_or(0),
        }
    }
}

impl Progress {
    /// A bar for `repetitions` repetitions, of which `boots` begin with a guest's boot; it shows nothing where `quiet` or off
    /// a terminal.
    pub fn new(repetitions: u64, boots: u64, quiet: bool) -> Self {
        let hidden = quiet || !std::io::stderr().is_terminal();
        let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(repetitions * STEPS + boots * BOOT_STEPS), target);
        let template = "{msg:40!} {wide_bar} {percent:>3}% · {elapsed} gone, {left} left";
        let pace = Arc::new(AtomicU64::new(0));
        let of_boot = Arc::clone(&pace);
        let left = move |state: &ProgressState, to: &mut dyn fmt::Write| {
            let pace = of_boot.load(Ordering::Relaxed);
            let left = match state.len().map(|steps| steps - state.pos().min(steps)) {
                Some(steps) if pace > 0 => Some(Duration::from_nanos(steps * pace)),
                _ => (state.pos() > 0).then(|| state.eta()),
            };
            let _ = match left {
                Some(left) => write!(to, "about {:#}", HumanDuration(left)),
                None => write!(to, "–"),
            };
        };
        let style = ProgressStyle::with_template(template).expect("the template is fixed");
        bar.set_style(style.progress_chars("━╸─").with_key("left", left));
        // indicatif's own thread panics where there can be none; without this one the bar moves with the work alone.
        let shown = bar.downgrade();
        let tick = move || {
            while let Some(bar) = shown.upgrade().filter(|bar| !bar.is_finished()) {
                bar.tick();
                drop(bar);
                std::thread::sleep(Duration::from_millis(200));
            }
        };
        if !hidden {
            let _ = std::thread::Builder::new().spawn(tick);
        }
        Self { bar, finished: 0, current: Part::default(), pace }
    }

    /// A repetition begins; `name` tells which. Where it begins with a boot, `boot` is what the last one took, if that is known.
    pub fn begin(&mut self, name: &str, boot: Option<Option<Duration>>) {
        self.current = Part { name: name.to_owned(), boot: boot.map(|known| known.unwrap_or(BOOT_TIME)) };
        self.bar.set_message(name.to_owned());
    }

    /// The current repetition is `done` of `total` far in its phase. The bar never goes back.
    pub fn advance(&self, phase: &str, done: u64, total: u64) {
        let boots = phase == pagelab_guest::BOOT;
        let before = if boots { "boots: " } else { "" };
        let pace = self.current.boot.filter(|_| boots).map_or(0, |boot| boot.as_nanos() as u64 / BOOT_STEPS);
        self.pace.store(pace, Ordering::Relaxed);
        self.bar.set_message(format!("{before}{}", self.current.name));
        let position = self.finished + self.current.position(phase, done, total);
        if position > self.bar.position() {
            self.bar.set_position(position);
        }
    }

    /// The current repetition is over.
    pub fn finish_one(&mut self) {
        self.finished += std::mem::take(&mut self.current).steps();
        self.bar.set_position(self.finished);
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// A bar for work that is not a repetition: reading a trace, replaying it. It appears only when the
/// work is not done within two seconds.
pub struct Work {
    bar: ProgressBar,
    started: std::time::Instant,
    message: &'static str,
    hidden: bool,
}

impl Work {
    /// A bar with a name, not visible yet.
    pub fn new(message: &'static str, quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::hidden());
        let hidden = quiet || !std::io::stderr().is_terminal();
        Self { bar, started: std::time::Instant::now(), message, hidden }
    }

    /// The work is this far, from 0 to 1.
    pub fn at(&self, fraction: f64) {
        let late = self.started.elapsed() > Duration::from_secs(1);
        if !self.hidden && late && self.bar.is_hidden() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            let template = "{msg} {wide_bar} {percent:>3}% · about {eta} left";
            let style = ProgressStyle::with_template(template).expect("the template is fixed");
            self.bar.set_style(style.progress_chars("━╸─"));
            self.bar.set_message(self.message);
        }
        self.bar.set_position((fraction.clamp(0.0, 1.0) * STEPS as f64) as u64);
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_guest::BOOT;

    #[test]
    fn a_boot_goes_on_with_its_time_and_the_load_after_it() {
        let part = Part { name: String::new(), boot: Some(Duration::from_secs(10)) };
        assert_eq!(part.position(BOOT, 5000, 0), BOOT_STEPS / 2);
        assert!((BOOT_STEPS * 9 / 10..BOOT_STEPS).contains(&part.position(BOOT, 60_000, 0)), "a late one");
        assert_eq!(part.position("references", 0, 10), BOOT_STEPS);
        assert_eq!(part.position("references", 10, 10), part.steps());
        let restored = Part::default();
        assert_eq!((restored.position("restore", 100, 0), restored.steps()), (0, STEPS));
    }
}
