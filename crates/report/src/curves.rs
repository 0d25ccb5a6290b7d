//! Miss ratio curves as a sentence and as tables.

use pagelab_analysis::curves::{BEARABLE, Program, beyond, is_optimum, knees, short_names};

use pagelab_experiment::ColumnId;
use pagelab_experiment::experiments;
use pagelab_experiment::observation::Table;
use pagelab_experiment::tables::curve;

use crate::table::TextTable;
use crate::text::{self, DASH};

/// A curve to be printed and drawn.
#[derive(Clone, Debug)]
pub struct Curve<'a> {
    /// What made it.
    pub name: String,
    /// The number of its colour.
    pub color: usize,
    /// The table [`curve`].
    pub table: &'a Table,
}

/// More curves than these do not stand beside one another in 80 columns.
const MAX_COLUMNS: usize = 6;

/// The answer in a sentence: which is nearest to OPT, or has the fewest misses.
pub fn answer(list: &[Curve]) -> String {
    let names = names(list);
    let mut ranked: Vec<(f64, &str)> = Vec::new();
    let optimum = list.iter().find(|curve| is_optimum(&curve.name)).filter(|_| list.len() > 1);
    for (curve, name) in
        list.iter().zip(&names).filter(|(curve, _)| optimum.is_none_or(|opt| opt.name != curve.name))
    {
        let figures = match optimum {
            Some(opt) => beyond(curve.table, opt.table),
            None => curve.table.numbers(curve::RATIO).unwrap_or_default().to_vec(),
        };
        let known: Vec<f64> = figures.into_iter().flatten().collect();
        if !known.is_empty() {
            ranked.push((known.iter().sum::<f64>() / known.len() as f64, name));
        }
    }
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let percent = |share: f64| format!("{}%", text::digits(share * 100.0));
    let sizes = list.first().and_then(|curve| curve.table.numbers(curve::SIZE)).unwrap_or_default();
    let known: Vec<f64> = sizes.iter().copied().flatten().collect();
    let over = match known[..] {
        [] => "over the sizes".to_owned(),
        [only] => format!("with {}", text::bytes(only)),
        [first, .., last] => format!(
            "on average over {} sizes from {} to {}",
            known.len(),
            text::bytes(first.min(last)),
            text::bytes(first.max(last))
        ),
    };
    let others = |of: &dyn Fn(f64) -> String| {
        let rest: Vec<String> =
            ranked.iter().skip(1).map(|(mean, name)| format!("{name} {}", of(*mean))).collect();
        if rest.is_empty() { String::new() } else { format!("; {}", rest.join(", ")) }
    };
    let more = |share: f64| format!("{} more", percent(share));
    match (ranked.first(), optimum, list.len()) {
        (Some((mean, name)), Some(_), 2) => format!("{name}: {} misses than OPT {over}.", more(*mean)),
        (Some((mean, name)), Some(_), _) => {
            format!("Nearest to OPT: {name}, {} misses {over}{}.", more(*mean), others(&more))
        }
        (Some((mean, name)), None, 2..) => {
            format!("Fewest misses: {name}, miss ratio {} {over}{}.", percent(*mean), others(&percent))
        }
        _ => String::new(),
    }
}

/// The memory that each needs so that misses cost little, what that rests on, and the knees of the first one.
pub fn sizing(list: &[Curve], about: &experiments::Curve) -> String {
    let (names, program) = (names(list), Program::of(about));
    if about.references == 0 || list.is_empty() {
        return String::new();
    }
    let percent = |share: f64| format!("{}%", text::digits(share * 100.0));
    let needs = list.iter().zip(&names).map(|(curve, name)| match program.enough(curve.table) {
        Some(size) => format!("{} ({name})", text::bytes(size)),
        None => format!("more than the largest size ({name})"),
    });
    // Of a program that ends within a second the number is plainer than the rate.
    let (misses, per) = match program.time / 1e9 {
        seconds if seconds < 1.0 => (program.bearable() * seconds, ""),
        _ => (program.bearable(), " per second"),
    };
    let misses = match text::count(misses.floor()) {
        one if one == "1" => format!("1 miss{per}"),
        more => format!("{more} misses{per}"),
    };
    let assumed = |known: Option<f64>, how: &str| match known {
        Some(_) => String::new(),
        None => format!(" ({how})"),
    };
    let mut told = format!(
        "Needs {} for at most {misses} beyond first references: {}% of the program's time. \
         A miss costs {}{}; the program runs {}{}.",
        needs.collect::<Vec<_>>().join(", "),
        BEARABLE * 100.0,
        text::duration(program.miss),
        assumed(about.miss_cost, "assumed; --miss-cost"),
        text::duration(program.time),
        assumed(about.program_time, "assumed: 1 ns per reference; --program-time"),
    );
    for knee in knees(list[0].table, &program) {
        let (size, cost) = (text::bytes(knee.size), percent(knee.cost));
        told += &format!(" Knee of {} at {size}: misses take {cost} of the time.", names[0]);
    }
    told
}

/// A row for each curve and size: pages and bytes of memory, misses, their ratio, and how many more than OPT's.
pub fn rows(list: &[Curve]) -> TextTable {
    let optimum = list.iter().find(|curve| is_optimum(&curve.name));
    let has = |column: ColumnId| list.iter().any(|curve| curve.table.numbers(column).is_some());
    let (ahead, sampled) = (has(curve::READ_AHEAD_WAITS), has_error(list));
    let mut headings = vec!["model", "pages", "memory", "misses", "miss ratio"];
    let written = has(curve::WRITE_BACKS);
    headings.extend(sampled.then_some("standard error"));
    headings.extend(written.then_some("write-backs"));
    headings.extend(optimum.map(|_| "beyond OPT"));
    headings.extend(ahead.then_some(["waits with read-ahead", "pages read"]).into_iter().flatten());
    let mut rows = Vec::new();
    for (curve, name) in list.iter().zip(names(list)) {
        let gaps = optimum.map(|opt| beyond(curve.table, opt.table));
        for row in 0..curve.table.numbers(curve::FRAMES).map_or(0, <[_]>::len) {
            let number = |column: ColumnId| *curve.table.numbers(column)?.get(row)?;
            let count = |column: ColumnId| number(column).map_or_else(|| DASH.to_owned(), text::count);
            let pages = match number(curve::FRAMES_MEAN) {
                Some(mean) => format!("{} (mean)", text::count(mean.round())),
                None => count(curve::FRAMES),
            };
            let mut cells = vec![
                name.clone(),
                pages,
                size(number(curve::SIZE)),
                count(curve::MISSES),
                ratio(number(curve::RATIO)),
            ];
            cells.extend(sampled.then(|| ratio(number(curve::RATIO_ERROR))));
            cells.extend(written.then(|| count(curve::WRITE_BACKS)));
            cells.extend(gaps.as_ref().map(|gaps| gap(gaps.get(row).copied().flatten())));
            cells.extend(
                ahead
                    .then(|| [count(curve::READ_AHEAD_WAITS), count(curve::READ_AHEAD_PAGES)])
                    .into_iter()
                    .flatten(),
            );
            rows.push(cells);
        }
    }
    TextTable::new("Misses at each size", headings, rows)
}

/// A row for each size, the curves' miss ratios beside one another; a row for each curve and size where there are too
/// many, or where they are sampled.
pub fn beside(list: &[Curve]) -> TextTable {
    let sizes = |curve: &Curve| curve.table.numbers(curve::FRAMES).unwrap_or_default().to_vec();
    let Some(first) = list.first() else { return rows(list) };
    if list.len() > MAX_COLUMNS || has_error(list) || list.iter().any(|curve| sizes(curve) != sizes(first)) {
        return rows(list);
    }
    let bar = list.len() == 1;
    let mut headings = vec!["pages".to_owned(), "memory".to_owned()];
    headings.extend(names(list));
    headings.extend(bar.then(|| "miss ratio".to_owned()));
    let row = |(row, frames): (usize, &Option<f64>)| {
        let number = |curve: &Curve, column: ColumnId| *curve.table.numbers(column)?.get(row)?;
        let mut cells =
            vec![frames.map_or_else(|| DASH.to_owned(), text::count), size(number(first, curve::SIZE))];
        cells.extend(list.iter().map(|curve| ratio(number(curve, curve::RATIO))));
        cells.extend(
            bar.then(|| "█".repeat((number(first, curve::RATIO).unwrap_or(0.0) * BAR).round() as usize)),
        );
        cells
    };
    TextTable::new("Miss ratio at each size", headings, sizes(first).iter().enumerate().map(row))
}

/// The tables of several streams, which have the same columns, as one.
pub fn joined(labels: &[String], tables: Vec<TextTable>) -> TextTable {
    let mut headings = vec!["stream".to_owned()];
    let mut rows = Vec::new();
    headings.extend(tables.first().map(|table| table.headings.clone()).unwrap_or_default());
    for (label, one) in labels.iter().zip(tables) {
        rows.extend(one.rows.into_iter().map(|row| [vec![label.clone()], row].concat()));
    }
    TextTable::new("Misses at each size", headings, rows)
}

/// Columns of the longest bar.
const BAR: f64 = 30.0;

fn names(list: &[Curve]) -> Vec<String> {
    short_names(&list.iter().map(|curve| curve.name.as_str()).collect::<Vec<_>>())
}

/// Whether some figures are from a sample of the pages.
fn has_error(list: &[Curve]) -> bool {
    list.iter().any(|curve| {
        curve.table.numbers(curve::RATIO_ERROR).is_some_and(|errors| errors.iter().any(Option::is_some))
    })
}

fn size(bytes: Option<f64>) -> String {
    bytes.map_or_else(|| DASH.to_owned(), text::bytes)
}

fn ratio(ratio: Option<f64>) -> String {
    // A program's own references mostly hit: below a thousandth three digits are kept, wherever they are.
    let digits = |ratio: f64| match ratio {
        r if r > 0.0 && r < 0.001 => (2 - r.log10().floor() as i32).clamp(4, 12) as usize,
        _ => 4,
    };
    ratio.map_or_else(|| DASH.to_owned(), |ratio| format!("{ratio:.*}", digits(ratio)))
}

fn gap(gap: Option<f64>) -> String {
    gap.map_or_else(|| DASH.to_owned(), |gap| format!("{:+.1}%", gap * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 11 ms at 79.5 µs per miss bear one miss.
    #[test]
    fn a_single_miss_is_singular() {
        let table = Table { name: curve::TABLE.name.to_owned(), columns: Vec::new() };
        let list = [Curve { name: "lru".to_owned(), color: 0, table: &table }];
        let about = experiments::Curve { references: 11_000_000, ..experiments::Curve::default() };
        let told = sizing(&list, &about);
        assert!(told.contains("for at most 1 miss beyond first references: 1% of the"), "{told}");
    }

    #[test]
    fn a_small_ratio_keeps_its_digits() {
        let written = [0.25, 0.001, 0.000_246, 4.66e-6, 0.0].map(|share| ratio(Some(share)));
        assert_eq!(written, ["0.2500", "0.0010", "0.000246", "0.00000466", "0.0000"]);
        assert_eq!(ratio(None), DASH);
    }
}
