//! Judged evictions as CSV: one row per eviction of the first repetition with a log.

use std::io::Write;

use pagelab_analysis::evictions::{Eviction, list};
use pagelab_experiment::Run;

use super::{ExchangeError, nothing};

/// The columns. An empty field is not known, or does not exist.
const HEADING: &str = "run,reference,page,last_reference,references,next_reference,age_rank,once,opt_kept,\
                       opt_kept_for,dirty,unused,by,workingset";

/// Runs without a log have no rows.
pub(super) fn write(runs: &[Run], to: &mut impl Write) -> Result<(), ExchangeError> {
    let judged: Vec<(&Run, Vec<Eviction>)> =
        runs.iter().filter_map(|run| Some((run, list(run).ok()??))).collect();
    if judged.is_empty() {
        return Err(nothing(runs, "there is no log of evictions", "run mapanon or mapfile with --evictions"));
    }
    writeln!(to, "{HEADING}")?;
    for (run, evictions) in judged {
        let name = quoted(&run.header.name);
        for one in evictions {
            row(&name, &one, to)?;
        }
    }
    Ok(())
}

fn row(name: &str, one: &Eviction, to: &mut impl Write) -> Result<(), ExchangeError> {
    fn field<T: ToString>(value: Option<T>) -> String {
        value.map_or_else(String::new, |value| value.to_string())
    }
    writeln!(
        to,
        "{name},{},{},{},{},{},{:.3},{},{},{},{},{},{},{}",
        one.reference,
        one.page,
        field(one.last()),
        one.count,
        field(one.next),
        one.rank,
        one.once,
        one.kept.is_some(),
        field(one.kept),
        field(one.dirty),
        one.unused,
        one.by.name(),
        field(one.workingset)
    )?;
    Ok(())
}

/// A text as a field (RFC 4180).
fn quoted(text: &str) -> String {
    let plain = !text.contains([',', '"', '\n', '\r']);
    if plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_experiment::build::Evictor;

    #[test]
    fn a_row_has_every_column_and_empty_fields_for_unknown_values() {
        let one = Eviction {
            reference: 50,
            page: 7,
            age: Some(60),
            count: 0,
            next: None,
            rank: 100.0 / 3.0,
            once: true,
            kept: None,
            dirty: None,
            unused: false,
            by: Evictor::Unknown,
            workingset: None,
        };
        let mut text = Vec::new();
        row(&quoted("a,\"b"), &one, &mut text).unwrap();
        let seen = Eviction {
            kept: Some(3),
            next: Some(54),
            dirty: Some(true),
            by: Evictor::Kswapd,
            workingset: Some(false),
            ..one
        };
        row("b", &seen, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(
            text,
            "\"a,\"\"b\",50,7,-10,0,,33.333,true,false,,,false,,\nb,50,7,-10,0,54,33.333,true,true,3,true,false,kswapd,false\n"
        );
        let fields = text.lines().next_back().unwrap().split(',').count();
        assert_eq!(fields, HEADING.split(',').count());
    }
}
