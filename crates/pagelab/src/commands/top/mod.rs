//! `pagelab top`: memory by kind over time, reclaim, pressure, and who waits most, on one screen.

pub mod draw;
mod state;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use pagelab_counters::Root;
use pagelab_counters::views::doctor;
use pagelab_kernel::waiting;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::prstat::users;
use super::watcher::{Watcher, accounting};
use crate::context::Context;
use crate::failure::usage;
use crate::interrupt::Interrupt;
use crate::ticker::Interval;
use state::{Sort, State};

/// How often keys and signals are looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:\n  pagelab top\n  pagelab top 0.5\n",
    after_help = "Keys, as in htop:
  q F10         end                        W  sort by waiting for memory (also F6)
  arrows PgUp PgDn Home End   scroll       P  sort by CPU
  space         hold the screen            M  sort by memory
  H             threads or processes       +  -  longer or shorter interval

The columns are those of prstat (pagelab explain DFL). DFL needs root, and sysctl kernel.task_delayacct=1 \
before the task starts: --enable-accounting sets it meanwhile."
)]
pub struct Arguments {
    /// Seconds between two samples
    #[arg(value_name = "INTERVAL", default_value = "1", value_parser = clap::value_parser!(Interval))]
    interval: Interval,
    /// Enable delay accounting meanwhile, for processes that start from then on
    #[arg(long)]
    enable_accounting: bool,
}

/// Shows the screen until the user ends it.
pub fn run(arguments: &Arguments, _context: &Context) -> Result<ExitCode> {
    if !std::io::stdout().is_terminal() {
        return Err(usage(
            "top needs a terminal\nhint: use 'pagelab vmstat 1' or 'pagelab prstat -m 1' in a pipe",
        ));
    }
    let interrupt = Interrupt::listen()?;
    let _accounting = accounting(arguments.enable_accounting)?;
    let mut state = State::new(users(&Root::live()), arguments.interval.0);
    // Also puts the terminal back when something panics.
    let mut terminal = ratatui::init();
    let result = screen(&mut terminal, &mut state, &interrupt);
    ratatui::restore();
    result.map(|()| ExitCode::SUCCESS)
}

fn screen(terminal: &mut ratatui::DefaultTerminal, state: &mut State, interrupt: &Interrupt) -> Result<()> {
    let mut watcher = watch(state.threads);
    state.update(watcher.sample(), watcher.why_no_delays());
    let mut next = Instant::now() + state.interval.min(Duration::from_millis(500));
    draw(terminal, state, &watcher)?;
    while !interrupt.requested() {
        let left = next.saturating_duration_since(Instant::now());
        if !waiting::for_input(left.min(POLL_INTERVAL)) {
            return Ok(());
        }
        while event::poll(Duration::ZERO)? {
            let threads = state.threads;
            match event::read()? {
                Event::Key(key) if key.kind == KeyEventKind::Press && !apply(key, state) => return Ok(()),
                Event::Key(_) | Event::Resize(..) => {}
                _ => continue,
            }
            if state.threads != threads {
                watcher = watch(state.threads);
                state.forget();
                next = Instant::now();
            }
            draw(terminal, state, &watcher)?;
        }
        if Instant::now() >= next {
            next = Instant::now() + state.interval;
            state.update(watcher.sample(), watcher.why_no_delays());
            draw(terminal, state, &watcher)?;
        }
    }
    Ok(())
}

fn watch(threads: bool) -> Watcher {
    match threads {
        true => Watcher::live(doctor::selection(), true),
        false => Watcher::processes(doctor::selection(), doctor::processes()),
    }
}

/// Draws the rows that there is room for, read to the end.
fn draw(terminal: &mut ratatui::DefaultTerminal, state: &mut State, watcher: &Watcher) -> Result<()> {
    let room = terminal.size()?.height.into();
    watcher.describe(state.within(room), true);
    terminal.draw(|frame| draw::screen(frame, state))?;
    Ok(())
}

/// Does what the key means; false to end.
fn apply(key: KeyEvent, state: &mut State) -> bool {
    const PAGE: usize = 10;
    match key.code {
        KeyCode::Char('q') | KeyCode::F(10) => return false,
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return false,
        KeyCode::Down => state.scroll(1, true),
        KeyCode::Up => state.scroll(1, false),
        KeyCode::PageDown => state.scroll(PAGE, true),
        KeyCode::PageUp => state.scroll(PAGE, false),
        KeyCode::Home => state.scroll(usize::MAX, false),
        KeyCode::End => state.scroll(usize::MAX, true),
        KeyCode::Char('W') | KeyCode::F(6) => state.sort_by(Sort::Waiting),
        KeyCode::Char('P') => state.sort_by(Sort::Processor),
        KeyCode::Char('M') => state.sort_by(Sort::Memory),
        KeyCode::Char('H') => state.threads = !state.threads,
        KeyCode::Char(' ') => state.held = !state.held,
        KeyCode::Char('+') => state.slower(),
        KeyCode::Char('-') => state.faster(),
        _ => {}
    }
    true
}
