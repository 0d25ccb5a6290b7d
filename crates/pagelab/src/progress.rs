//! The progress bar: how far the whole command is, and an estimate of what is left. On standard
//! error, and only where that is a terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Steps of the bar for one repetition.
const STEPS: u64 = 1000;

/// A bar over the repetitions of a command.
pub struct Progress {
    bar: ProgressBar,
    /// How many repetitions are behind us.
    finished: u64,
}

impl Progress {
    /// A bar for `repetitions` repetitions; it shows nothing where `quiet` or off a terminal.
    pub fn new(repetitions: u64, quiet: bool) -> Self {
        let hidden = quiet || !std::io::stderr().is_terminal();
        let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(repetitions * STEPS), target);
        let template = "{msg:40!} {wide_bar} {percent:>3} % · {elapsed} gone, about {eta} left";
        bar.set_style(
            ProgressStyle::with_template(template).expect("the template is fixed").progress_chars("━╸─"),
        );
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, finished: 0 }
    }

    /// A repetition begins; `what` names it.
    pub fn begin(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    /// The current repetition is `done` of `total` far. The bar never goes back.
    pub fn advance(&self, done: u64, total: u64) {
        let within = (done.min(total) * STEPS).checked_div(total).unwrap_or(0);
        let position = self.finished * STEPS + within;
        if position > self.bar.position() {
            self.bar.set_position(position);
        }
    }

    /// The current repetition is over.
    pub fn finish_one(&mut self) {
        self.finished += 1;
        self.bar.set_position(self.finished * STEPS);
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
            let template = "{msg} {wide_bar} {percent:>3} % · about {eta} left";
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
