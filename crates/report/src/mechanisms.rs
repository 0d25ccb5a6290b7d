//! Words and tables for a matrix of switches and loads.

use pagelab_analysis::mechanisms::{Baseline, Cell, Effect, Figure, Load, Matrix, Reason, Sample, Switch};

use crate::table::TextTable;
use crate::text::{self, DASH, SAME, Style, count};

/// Maximum number of effects in words.
pub const LARGEST: usize = 5;

/// The largest effects, a sentence each.
pub fn largest(matrix: &Matrix) -> Vec<String> {
    matrix.largest(LARGEST).into_iter().map(|(switch, load, cell)| sentence(switch, load, cell)).collect()
}

fn sentence(switch: &Switch, load: &Load, cell: &Cell) -> String {
    let differs = |effect: &&Effect| effect.differs;
    let instructions = cell.instructions.as_ref().filter(differs).map(|effect| {
        let (before, after) = (count(effect.before.median.round()), count(effect.after.median.round()));
        let amount = amount(effect, "instructions");
        format!("{amount} per {} ({before} → {after}{})", load.unit, interval(effect))
    });
    let regret = cell.regret.as_ref().filter(differs).map(|effect| {
        let (before, after) = (times(effect.before.median), times(effect.after.median));
        format!("{} ({before} → {after} times OPT's{})", amount(effect, "major faults"), interval(effect))
    });
    let parts: Vec<String> = instructions.into_iter().chain(regret).collect();
    format!("{} under {}: {}.", switch.name, load.name, parts.join("; "))
}

/// A change in words: a share, or a factor from 3 on.
fn amount(effect: &Effect, what: &str) -> String {
    let share = text::digits(100.0 * effect.change.abs());
    match effect.change {
        change if change >= 2.0 => format!("{} as many {what}", text::ratio(1.0 + change)),
        change if change < 0.0 => format!("{share}% fewer {what}"),
        _ => format!("{share}% more {what}"),
    }
}

/// The 95% interval of a change, after a comma.
fn interval(effect: &Effect) -> String {
    match effect.interval {
        Some(_) if effect.before.is_same() && effect.after.is_same() => {
            "; all repetitions are equal".to_owned()
        }
        Some((low, high)) => format!("; 95% interval {} to {}", signed(low), signed(high)),
        None => "; too few repetitions for an interval".to_owned(),
    }
}

/// A change in percent with three digits and its sign.
pub(crate) fn signed(change: f64) -> String {
    let sign = if change < 0.0 { "−" } else { "+" };
    format!("{sign}{}%", text::digits(100.0 * change.abs()))
}

fn percent(change: f64) -> String {
    let size = 100.0 * change.abs();
    let text = match size {
        _ if size < 9.95 => format!("{size:.1}"),
        _ => count(size.round()),
    };
    format!("{}{text}", if change < 0.0 && text != "0.0" { "−" } else { "+" })
}

fn times(regret: f64) -> String {
    format!("{regret:.2}")
}

/// A cell of a table of changes.
pub(crate) fn change(cell: &Cell, figure: Figure) -> String {
    match cell.effect(figure) {
        None => DASH.to_owned(),
        Some(effect) if effect.differs => percent(effect.change),
        Some(_) => SAME.to_owned(),
    }
}

/// The heading of the changes of a figure.
pub fn heading(figure: Figure) -> &'static str {
    match figure {
        Figure::Instructions => "Change of instructions [%]",
        Figure::Regret => "Change of major faults [%]",
    }
}

/// The loads without a switch.
pub fn loads(matrix: &Matrix) -> TextTable {
    let row = |(load, of): (&Load, &Baseline)| {
        let instructions = |sample: &Sample| count(sample.median.round());
        let regret = |sample: &Sample| times(sample.median);
        vec![
            load.name.to_owned(),
            load.help.to_owned(),
            of.instructions.as_ref().map_or_else(|| DASH.to_owned(), instructions),
            format!("per {}", load.unit),
            of.instructions.as_ref().map_or_else(|| DASH.to_owned(), spread),
            of.regret.as_ref().map_or_else(|| DASH.to_owned(), regret),
        ]
    };
    let rows = matrix.loads.iter().zip(&matrix.baselines).map(row);
    TextTable::new(
        "Loads without a switch",
        ["load", "what it does", "instructions", "unit", "spread", "faults / OPT"],
        rows,
    )
}

/// The range of the repetitions as a share of their median.
fn spread(sample: &Sample) -> String {
    if sample.is_same() {
        return "none".to_owned();
    }
    format!("{}%", text::digits(100.0 * (sample.max - sample.min) / sample.median.abs()))
}

/// The changes of a figure: a row for each switch, a column for each load. If that is wider than
/// the terminal, the significant changes alone, one per row.
pub fn changes(matrix: &Matrix, figure: Figure, style: &Style) -> TextTable {
    let rows = matrix.switches.iter().zip(&matrix.cells).map(|(switch, row)| {
        let cells = row.iter().map(|cell| change(cell, figure));
        std::iter::once(switch.name.to_owned()).chain(cells).collect::<Vec<_>>()
    });
    let loads = matrix.loads.iter().map(|load| load.name);
    let table = TextTable::new(heading(figure), std::iter::once("switch").chain(loads), rows);
    if width(&table) <= style.width { table } else { list(matrix, figure) }
}

/// The width of a table whose columns are two spaces apart.
fn width(table: &TextTable) -> usize {
    let cells = |n: usize| table.rows.iter().filter_map(move |row| row.get(n)).chain(table.headings.get(n));
    let column = |n: usize| cells(n).map(|cell| cell.chars().count()).max().unwrap_or(0);
    (0..table.headings.len()).map(|n| column(n) + 2).sum::<usize>().saturating_sub(2)
}

/// The significant changes of a figure, one per row.
fn list(matrix: &Matrix, figure: Figure) -> TextTable {
    let row = |(switch, load, cell): (&Switch, &Load, &Cell)| {
        let effect = cell.effect(figure).filter(|effect| effect.differs)?;
        let interval = effect
            .interval
            .map_or_else(|| DASH.to_owned(), |(low, high)| format!("{} to {}", percent(low), percent(high)));
        Some(vec![switch.name.to_owned(), load.name.to_owned(), percent(effect.change), interval])
    };
    let rows: Vec<Vec<String>> = matrix.cells().filter_map(row).collect();
    TextTable::new(heading(figure), ["switch", "load", "change", "95% interval"], rows)
}

/// All effects of a figure with their intervals.
pub fn details(matrix: &Matrix, figure: Figure) -> TextTable {
    let show = |sample: &Sample| match figure {
        Figure::Instructions => text::digits(sample.median),
        Figure::Regret => times(sample.median),
    };
    let row = |(switch, load, cell): (&Switch, &Load, &Cell)| {
        let effect = cell.effect(figure)?;
        let interval = effect
            .interval
            .map_or_else(|| DASH.to_owned(), |(low, high)| format!("{} to {}", signed(low), signed(high)));
        Some(vec![
            switch.name.to_owned(),
            load.name.to_owned(),
            show(&effect.before),
            show(&effect.after),
            signed(effect.change),
            interval,
            format!("{}, {}", effect.before.n, effect.after.n),
            word(effect).to_owned(),
        ])
    };
    let rows: Vec<Vec<String>> = matrix.cells().filter_map(row).collect();
    let title = match figure {
        Figure::Instructions => "All cells: instructions",
        Figure::Regret => "All cells: major faults as multiples of OPT's",
    };
    let headings = ["switch", "load", "without", "with", "change", "95% interval", "repetitions", "verdict"];
    TextTable::new(title, headings, rows)
}

fn word(effect: &Effect) -> &'static str {
    match (effect.differs, effect.inconclusive) {
        (true, _) => "differs",
        (false, true) => "inconclusive",
        (false, false) => "no significant difference",
    }
}

/// The counts of cells that differ, and of those that chance explains.
pub fn summary(matrix: &Matrix) -> String {
    let counts = Figure::ALL.map(|figure| {
        let (mut all, mut differ) = (0, 0);
        for effect in matrix.effects(figure) {
            all += 1;
            differ += usize::from(effect.differs);
        }
        (all, differ)
    });
    let [(instructions, with_instructions), (regret, with_regret)] = counts;
    let mut text = format!(
        "{with_instructions} of {instructions} changes of instructions and {with_regret} of {regret} changes of major \
         faults are significant."
    );
    let by_chance = matrix.by_chance();
    if by_chance >= 0.5 {
        text += &format!(
            " If no switch had an effect, at most about {} would be, because each test is at the 5% level.",
            count(by_chance.ceil())
        );
    }
    let inconclusive = Figure::ALL.into_iter().flat_map(|figure| matrix.effects(figure));
    match inconclusive.filter(|effect| effect.inconclusive).count() {
        0 => text,
        n => format!("{text} {} have too few repetitions to tell: use a larger --repeat.", count(n as f64)),
    }
}

/// What was left out, a line each: switches that the kernel does not have, and runs that failed.
pub fn left_out(matrix: &Matrix) -> Vec<String> {
    let mut lines: Vec<(String, &str, Vec<&str>)> = Vec::new();
    for (switch, load, cell) in matrix.cells() {
        let (what, why) = match &cell.missing {
            None => continue,
            Some(Reason::Unsupported(why)) => ("left out: the guest", why),
            Some(Reason::Failed(why)) => ("failed:", why),
        };
        let text = format!("{what} {why}");
        match lines.iter_mut().find(|(known, name, _)| *known == text && *name == switch.name) {
            Some((.., loads)) => loads.push(load.name),
            None => lines.push((text, switch.name, vec![load.name])),
        }
    }
    let line = |(text, switch, loads): (String, &str, Vec<&str>)| {
        let all = loads.len() == matrix.loads.len();
        let under = if all { String::new() } else { format!(" under {}", loads.join(", ")) };
        format!("{switch}{under} {text}")
    };
    lines.into_iter().map(line).collect()
}

/// What the marks of a table of changes stand for.
pub fn key() -> String {
    format!(
        "{SAME} no significant difference from the load without a switch; {DASH} not measured, or OPT's faults are \
         not known."
    )
}

#[cfg(test)]
mod tests {
    use pagelab_analysis::mechanisms::{LOADS, switches};

    use super::*;

    fn sample(median: f64, n: usize) -> Sample {
        Sample { median, min: median * 0.99, max: median * 1.01, n }
    }

    fn effect(before: f64, after: f64, differs: bool) -> Effect {
        let change = after / before - 1.0;
        Effect {
            before: sample(before, 12),
            after: sample(after, 3),
            change,
            interval: Some((change - 0.01, change + 0.01)),
            differs,
            tested: true,
            inconclusive: false,
        }
    }

    fn matrix() -> Matrix {
        let cell = |instructions, regret| Cell { instructions, regret, missing: None };
        let unsupported =
            || Cell { missing: Some(Reason::Unsupported("has no such file".into())), ..Cell::default() };
        let baseline = Baseline {
            instructions: Some(sample(12_345.6, 12)),
            regret: Some(Sample { median: 1.5, min: 1.5, max: 1.5, n: 12 }),
            opt: Some(1000),
        };
        Matrix {
            loads: LOADS[..2].to_vec(),
            switches: switches().into_iter().take(3).collect(),
            baselines: vec![baseline, Baseline::default()],
            cells: vec![
                vec![
                    cell(Some(effect(1000.0, 620.0, true)), Some(effect(1.5, 0.5, true))),
                    cell(Some(effect(1000.0, 1001.0, false)), None),
                ],
                vec![cell(Some(effect(1000.0, 4200.0, true)), None), Cell::default()],
                vec![unsupported(), unsupported()],
            ],
        }
    }

    #[test]
    fn the_largest_effects_have_their_intervals() {
        let told = largest(&matrix());
        assert_eq!(
            told,
            [
                "lru_gen=1 under scan: 4.2× as many instructions per reference (1,000 → 4,200; 95% interval +319% to \
                 +321%).",
                "lru_gen=0 under scan: 38.0% fewer instructions per reference (1,000 → 620; 95% interval −39.0% to −37.0%); \
                 66.7% fewer major faults (1.50 → 0.50 times OPT's; 95% interval −67.7% to −65.7%).",
            ]
        );
    }

    #[test]
    fn a_table_marks_what_is_unknown_and_what_is_no_difference() {
        let style = Style { color: false, width: 80 };
        let table = changes(&matrix(), Figure::Instructions, &style);
        assert_eq!(table.headings, ["switch", "scan", "loop"]);
        assert_eq!(table.rows[0], ["lru_gen=0", "−38", SAME]);
        assert_eq!(table.rows[2], ["lru_gen=3", DASH, DASH]);
        let narrow = changes(&matrix(), Figure::Instructions, &Style { width: 12, ..style });
        assert_eq!(
            narrow.rows,
            [["lru_gen=0", "scan", "−38", "−39 to −37"], ["lru_gen=1", "scan", "+320", "+319 to +321"]]
        );
        let regret = changes(&matrix(), Figure::Regret, &style);
        assert_eq!(regret.rows[0], ["lru_gen=0", "−67", DASH]);
        assert_eq!(details(&matrix(), Figure::Regret).rows.len(), 1);
    }

    #[test]
    fn what_was_left_out_is_one_line_for_each_reason() {
        assert_eq!(left_out(&matrix()), ["lru_gen=3 left out: the guest has no such file"]);
        let told = summary(&matrix());
        assert!(
            told.starts_with("2 of 3 changes of instructions and 1 of 1 changes of major faults"),
            "{told}"
        );
        assert!(!told.contains("chance"), "{told}");
    }

    #[test]
    fn a_load_has_its_figures_and_their_spread() {
        let table = loads(&matrix());
        assert_eq!(table.rows[0][2..], ["12,346", "per reference", "2.00%", "1.50"]);
        assert_eq!(table.rows[1][2], DASH);
    }

    #[test]
    fn changes_are_short() {
        let of = |changes: &[f64]| changes.iter().map(|&change| percent(change)).collect::<Vec<_>>();
        assert_eq!(of(&[0.0123, -0.5, 1.5, -0.0001, 12.0]), ["+1.2", "−50", "+150", "+0.0", "+1,200"]);
    }
}
