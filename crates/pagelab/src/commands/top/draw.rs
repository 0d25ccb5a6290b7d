//! The screen: ratatui writes only the cells that changed, so it does not flicker.

use pagelab_counters::views::Width;
use pagelab_counters::views::doctor::Level;
use pagelab_counters::views::prstat::{Row, size};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::state::{KINDS, Point, Sort, State};

/// Letter in the graph, word and colour of each kind of memory, from below.
const KIND: [(&str, &str, Color); KINDS] = [
    ("k", "kernel", Color::Magenta),
    ("a", "anon", Color::Red),
    ("s", "shared", Color::Yellow),
    ("m", "mapped", Color::Green),
    ("c", "cache", Color::Blue),
    (" ", "free", Color::Reset),
];
/// What a line shows of a look.
type Figure = fn(&Point) -> Option<f64>;

/// The least of a graph and of the table that is worth drawing.
const GRAPH: u16 = 5;
/// Before a line's graph: its name and figure.
const MARGIN: u16 = 26;
/// Title, legend, three lines, heading, keys.
const FIXED: u16 = 7;

/// Draws everything.
pub fn screen(frame: &mut Frame<'_>, state: &State) {
    let area = frame.area();
    let buffer = frame.buffer_mut();
    let mut y = area.y;
    let mut line = |buffer: &mut Buffer, text: &str, style: Style| {
        if y < area.bottom() {
            buffer.set_stringn(area.x, y, text, usize::from(area.width), style);
        }
        y += 1;
    };
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let color = match state.verdict.level {
        Level::Fine => Color::Reset,
        Level::Unknown | Level::Strained => Color::Yellow,
        Level::Short => Color::Red,
    };
    let held = if state.held { "  HELD" } else { "" };
    let title = format!(
        "pagelab top: {}; every {:.1} s{held}",
        state.verdict.headline(),
        state.interval.as_secs_f64()
    );
    line(buffer, &title, bold.fg(color));
    line(buffer, &legend(state.history.back()), Style::new());
    let graph = if area.height > FIXED + GRAPH + 3 { GRAPH } else { 0 };
    memory(buffer, Rect { y: area.y + 2, height: graph, ..area }, state);
    let mut y = area.y + 2 + graph;
    let curves: [(&str, Figure, f64); 3] = [
        ("scanned pages/s", |p| Some(p.scanned), 0.0),
        ("refaults pages/s", |p| Some(p.refaults), 0.0),
        ("memory pressure %", |p| p.some, 10.0),
    ];
    for (name, value, least) in curves {
        if y < area.bottom() {
            curve(buffer, Rect { y, height: 1, ..area }, name, state, value, least);
        }
        y += 1;
    }
    table(buffer, Rect { y: y.min(area.bottom()), height: area.bottom().saturating_sub(y), ..area }, state);
}

fn legend(point: Option<&Point>) -> String {
    let Some(point) = point else { return String::new() };
    // A word begins with its letter in the graph.
    let parts =
        KIND.iter().zip(point.kinds).map(|((_, word, _), share)| format!("{word} {:.0}%", 100.0 * share));
    parts.collect::<Vec<_>>().join("  ")
}

/// Memory by kind: a column a look, the newest at the right, stacked from below. Letters tell the
/// kinds where there are no colours.
fn memory(buffer: &mut Buffer, area: Rect, state: &State) {
    let points = state.history.iter().rev().take(usize::from(area.width));
    for (column, point) in (0..area.width).rev().zip(points) {
        for row in 0..area.height {
            let of = |row: u16| f64::from(row) / f64::from(area.height);
            let (from, to) = (of(area.height - 1 - row), of(area.height - row));
            let (letter, _, color) = KIND[most_between(&point.kinds, from, to)];
            buffer.set_string(area.x + column, area.y + row, letter, Style::new().fg(color));
        }
    }
}

/// The kind that has most of the part of memory between two shares, when they are stacked.
fn most_between(kinds: &[f64; KINDS], from: f64, to: f64) -> usize {
    let mut below = 0.0;
    let parts = kinds.map(|part| {
        let start = below;
        below += part;
        (below.min(to) - start.max(from)).max(0.0)
    });
    // What is left above them all is free.
    (0..KINDS).max_by(|&a, &b| parts[a].total_cmp(&parts[b])).filter(|&k| parts[k] > 0.0).unwrap_or(KINDS - 1)
}

/// One line: name, the newest figure, and its history as blocks; `least` is the lowest full scale.
fn curve(buffer: &mut Buffer, area: Rect, name: &str, state: &State, value: Figure, least: f64) {
    const BLOCKS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
    let figure = match state.history.back().and_then(value) {
        Some(v) if v < 100.0 => format!("{v:.1}"),
        Some(v) => format!("{v:.0}"),
        None => "-".to_owned(),
    };
    buffer.set_stringn(
        area.x,
        area.y,
        format!("{name:<17}{figure:>8}"),
        usize::from(area.width),
        Style::new(),
    );
    let width = area.width.saturating_sub(MARGIN);
    let shown: Vec<f64> =
        state.history.iter().rev().take(usize::from(width)).map(|p| value(p).unwrap_or(0.0)).collect();
    let top = shown.iter().copied().fold(least.max(f64::MIN_POSITIVE), f64::max);
    for (column, value) in (0..width).rev().zip(shown) {
        let block = (value / top * 8.0).ceil().clamp(0.0, 8.0) as usize;
        buffer.set_string(area.x + MARGIN + column, area.y, BLOCKS[block], Style::new().fg(Color::Cyan));
    }
}

fn table(buffer: &mut Buffer, area: Rect, state: &State) {
    let width = usize::from(area.width);
    if area.height < 2 {
        return;
    }
    let columns = Columns::of(width, state.threads);
    let heading = columns.heading(state.threads);
    let reversed = Style::new().add_modifier(Modifier::REVERSED);
    buffer.set_stringn(area.x, area.y, format!("{heading:<width$}"), width, reversed);
    let ended = state.ended.as_ref().filter(|_| area.height > 4);
    let body = usize::from(area.height - 2) - usize::from(ended.is_some());
    for (row, y) in state.rows.iter().skip(state.first).take(body).zip(area.y + 1..) {
        let user = row.uid.map(|uid| state.users.get(&uid).cloned().unwrap_or_else(|| uid.to_string()));
        let text = columns.task(row, user.as_deref().unwrap_or("-"));
        let waits = row.dfl.is_some_and(|dfl| dfl >= 1.0) || row.major_faults >= 100.0;
        let style = if waits { Style::new().fg(Color::Red) } else { Style::new() };
        buffer.set_stringn(area.x, y, text, width, style);
    }
    if let Some(ended) = ended {
        buffer.set_stringn(area.x, area.bottom() - 2, ended.line(), width, Style::new());
    }
    let sort = match state.sort {
        Sort::Waiting => "waiting",
        Sort::Processor => "CPU",
        Sort::Memory => "memory",
    };
    let why = state.why_no_delays.as_deref().map(|_| "; no DFL: --help").unwrap_or_default();
    let keys = format!("q end  W P M sort ({sort})  H threads  spc hold  + - interval{why}");
    buffer.set_stringn(area.x, area.bottom() - 1, format!("{keys:<width$}"), width, reversed);
}

/// The columns of the table: those that Linux has, and what the task holds.
struct Columns {
    /// Whether there is room for the time asleep.
    sleep: bool,
    /// Of the cgroup's path.
    cgroup: usize,
    /// Of the command's name.
    command: usize,
}

impl Columns {
    /// Those of a screen; the threads' numbers take room, too.
    fn of(width: usize, threads: bool) -> Self {
        const FIXED: usize = 61;
        let sleep = width >= 96;
        let room = width.saturating_sub(FIXED + if sleep { 6 } else { 0 });
        let number = if threads { 8 } else { 4 };
        let command = (room * 3 / 5).min(15 + number);
        Self { sleep, cgroup: room.saturating_sub(command + 1), command }
    }

    fn heading(&self, threads: bool) -> String {
        let last = if threads { "PROCESS/TID" } else { "PROCESS/NLWP" };
        let sleep = if self.sleep { "   SLP" } else { "" };
        format!(
            "    PID USER       RSS   SWAP MAJF/s   USR   SYS   DFL   LAT{sleep} {:<cgroup$} {last}",
            "CGROUP",
            cgroup = self.cgroup
        )
    }

    fn task(&self, row: &Row, user: &str) -> String {
        let dfl = row.dfl.map_or_else(|| "-".to_owned(), |dfl| format!("{dfl:.1}"));
        let sleep = if self.sleep { format!(" {:>5.1}", row.slp) } else { String::new() };
        let number = format!("/{}", row.tid.unwrap_or(row.threads));
        let cut = |name: &str, room: usize| Width::Columns(room).cut(name, 0);
        format!(
            "{:>7} {user:<8.8} {:>5} {:>6} {:>6.0} {:>5.1} {:>5.1} {dfl:>5} {:>5.1}{sleep} {:<cgroup$} {}{number}",
            row.pid,
            size(row.rss),
            size(row.swap),
            row.major_faults,
            row.usr,
            row.sys,
            row.lat,
            cut(row.cgroup.as_deref().unwrap_or("-"), self.cgroup),
            cut(&row.command, self.command.saturating_sub(number.len())),
            cgroup = self.cgroup
        )
    }
}

/// The heading of a wide screen.
#[cfg(test)]
pub fn heading(threads: bool) -> String {
    Columns::of(140, threads).heading(threads)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::time::Duration;

    use pagelab_counters::views::doctor::{Limited, Verdict};
    use pagelab_counters::views::prstat::Ended;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn state() -> State {
        let mut state = State::new(HashMap::from([(0, "root".to_owned())]), Duration::from_secs(1));
        state.verdict = Verdict {
            level: Level::Short,
            available: Some(25.0),
            limited: vec![Limited { path: "/db".to_owned(), level: Level::Short, ..Limited::default() }],
            ..Verdict::default()
        };
        state.ended =
            Some(Ended { tasks: 3, cpu: Some(5e7), names: vec![("sh".to_owned(), 3)], ..Ended::default() });
        for look in 0..40 {
            let grown = f64::from(look) / 200.0;
            state.history.push_back(Point {
                kinds: [0.1, 0.2 + grown, 0.05, 0.1, 0.3, 0.25 - grown],
                scanned: grown * 1000.0,
                refaults: grown * 500.0,
                some: Some(grown * 50.0),
                full: None,
            });
        }
        let row = |pid: u64, dfl| Row {
            pid,
            command: format!("task{pid}"),
            uid: Some(0),
            threads: 1,
            dfl,
            usr: 3.0,
            sys: 4.0,
            lat: 1.0,
            slp: 50.0,
            rss: Some(1e7),
            cgroup: Some("/user.slice/user-1000.slice/session-7.scope".to_owned()),
            ..Row::default()
        };
        state.rows = (1..20).map(|pid| row(pid, (pid > 1).then_some(40.0))).collect();
        state
    }

    fn drawn(width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen(frame, &state())).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn a_cell_shows_what_it_holds_most_of() {
        let kinds = [0.02, 0.08, 0.0, 0.01, 0.17, 0.72];
        assert_eq!(most_between(&kinds, 0.0, 0.2), 4, "cache, of 9%");
        assert_eq!(most_between(&kinds, 0.2, 0.4), KINDS - 1);
        assert_eq!(most_between(&[0.0; KINDS], 0.0, 1.0), KINDS - 1);
    }

    #[test]
    fn it_fits_80_by_24() {
        insta::assert_snapshot!(drawn(80, 24));
    }

    #[test]
    fn a_wide_screen_has_the_sleep_and_whole_cgroups() {
        let wide = drawn(140, 24);
        assert!(
            wide.contains("SLP CGROUP") && wide.contains(" /user.slice/user-1000.slice/session-7.scope "),
            "{wide}"
        );
        assert!(wide.contains("ended within the interval: 3 tasks"), "{wide}");
    }

    #[test]
    fn no_size_panics() {
        for width in [1, 10, 26, 27, 79, 200] {
            for height in [1, 2, 5, 7, 8, 12, 60] {
                drawn(width, height);
            }
        }
    }
}
