//! Tables that an experiment made besides its windows: a sweep over sizes, workers, steps. The first
//! column is the abscissa; columns of one unit share a plot.

use pagelab_experiment::catalogue::WINDOWS;
use pagelab_experiment::observation::{Column, Table, Unit, Values};

use super::Shown;
use super::plot::{Axis, Numbers, Plot, Series, unit_name};

/// The plots of every table whose first column is numbers.
pub fn plots(shown: &[Shown]) -> Vec<Plot> {
    let mut names: Vec<&str> = Vec::new();
    for table in shown.iter().flat_map(|s| &s.repetition.observations.tables) {
        if table.name != WINDOWS && !names.contains(&table.name.as_str()) {
            names.push(&table.name);
        }
    }
    names.into_iter().flat_map(|name| of_table(name, shown)).collect()
}

fn numbers(column: &Column) -> Option<&[Option<f64>]> {
    match &column.values {
        Values::Number(numbers) => Some(numbers),
        Values::Text(_) => None,
    }
}

fn of_table(name: &str, shown: &[Shown]) -> Vec<Plot> {
    let tables: Vec<(&Shown, &Table)> = shown
        .iter()
        .filter_map(|s| Some((s, s.repetition.observations.tables.iter().find(|t| t.name == name)?)))
        .collect();
    let Some((_, first)) = tables.first() else { return Vec::new() };
    let Some((abscissa, columns)) = first.columns.split_first() else { return Vec::new() };
    let Some(values) = numbers(abscissa) else { return Vec::new() };
    let spread = values.iter().flatten().copied().filter(|&v| v > 0.0);
    let (low, high) = spread.fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
    let axis = if high > 50.0 * low { Axis::log } else { Axis::linear };
    let mut plots: Vec<(Option<Unit>, Plot)> = Vec::new();
    for column in columns.iter().filter(|c| numbers(c).is_some_and(|n| n.iter().flatten().next().is_some())) {
        let known = plots.iter().position(|(of, _)| *of == column.unit);
        let at = known.unwrap_or_else(|| {
            let y = Axis::linear(column.name.clone(), unit_name(column.unit)).switchable();
            let x = axis(abscissa.name.clone(), unit_name(abscissa.unit));
            plots.push((
                column.unit,
                Plot::new(format!("{name}: {}", column.name), "One point for each row of the table.", x, y),
            ));
            plots.len() - 1
        });
        let plot = &mut plots[at].1;
        let quantity = plot.series.len() / tables.len().max(1);
        for (s, table) in &tables {
            let pair = table
                .columns
                .first()
                .and_then(numbers)
                .zip(table.columns.iter().find(|c| c.name == column.name).and_then(numbers));
            let Some((x, y)) = pair else { continue };
            let name =
                if tables.len() > 1 { format!("{} {}", s.name(), column.name) } else { column.name.clone() };
            let (color, dash) = if tables.len() > 1 { (s.color, quantity % 4) } else { (quantity, 0) };
            plot.series.push(Series {
                name,
                color,
                dash,
                step: false,
                dots: true,
                x: Numbers(x.to_vec()),
                y: Numbers(y.to_vec()),
            });
        }
    }
    plots
        .into_iter()
        .map(|(_, mut plot)| {
            if plot.series.len() > tables.len() {
                plot.title = name.to_owned();
            }
            plot
        })
        .collect()
}
