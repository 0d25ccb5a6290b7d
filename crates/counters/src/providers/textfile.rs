//! `extra:0:FILE:METRIC` and `extra:0:LABELS:METRIC`: counters that a user adds, files of a folder in Prometheus' text
//! form (`NAME.prom`, as its node exporter's textfile collector reads them).
//!
//! A metric with labels is called by them (`device=sda,queue=0`), one without by its file. What the file calls a
//! counter, or whose name ends with `_total`, only grows. Names that end with a base unit (`_bytes`, `_seconds`,
//! `_pages`, `_ratio`) have that unit, and are kept as all others: seconds in nanoseconds, ratios in percent. Lines that
//! are no sample are left out, and so is a value that is no number.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::Provider;
use crate::sink::Sink;
use crate::value::{Kind, Unit, Value};

/// The most bytes of a file that are read.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The provider of the files of `folder`.
pub fn text_files(folder: impl Into<PathBuf>) -> Provider {
    let folder = folder.into();
    Provider::new("extra", "misc", "the *.prom files of --extra FOLDER", move |_, sink| read(&folder, sink))
}

/// The files, by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "prom") && path.is_file());
    files.sort();
    files
}

fn read(folder: &Path, sink: &mut Sink<'_>) {
    for path in files(folder) {
        let Some(text) = text(&path) else { continue };
        let file = path.file_stem().unwrap_or_default().to_string_lossy();
        let mut kinds = HashMap::new();
        for line in text.lines().map(str::trim) {
            if let Some(comment) = line.strip_prefix('#') {
                let mut words = comment.split_whitespace();
                if words.next() == Some("TYPE")
                    && let (Some(name), Some(kind)) = (words.next(), words.next())
                {
                    kinds.insert(name, kind == "counter");
                }
                continue;
            }
            let Some(found) = sample(line) else { continue };
            let name = if found.labels.is_empty() { file.to_string() } else { found.labels };
            let known = kinds.get(found.metric).copied();
            let grows = known.unwrap_or_else(|| found.metric.ends_with("_total"));
            let kind = if grows { Kind::Counter } else { Kind::Gauge };
            let (unit, scale) = unit(found.metric);
            if let Some(mut group) = sink.group(0, &name) {
                group.add(found.metric.to_owned(), figure(found.value * scale), unit, kind);
            }
        }
    }
}

/// A file's text, as far as it is read.
fn text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_FILE_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A line's sample.
#[derive(Debug, PartialEq)]
struct Sample<'a> {
    metric: &'a str,
    /// `key=value,…`; empty for none.
    labels: String,
    value: f64,
}

/// `name{key="value",…} number [timestamp]`.
fn sample(line: &str) -> Option<Sample<'_>> {
    let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'))?;
    let (metric, rest) = line.split_at(end);
    if metric.is_empty() || metric.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (labels, rest) = match rest.trim_start().strip_prefix('{') {
        Some(inside) => labels(inside)?,
        None => (String::new(), rest),
    };
    let value: f64 = rest.split_whitespace().next()?.parse().ok()?;
    value.is_finite().then_some(Sample { metric, labels, value })
}

/// What is between the braces as `key=value,…`, and what comes behind them.
fn labels(text: &str) -> Option<(String, &str)> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while !rest.starts_with('}') {
        let (key, behind) = rest.split_once('=')?;
        let quoted = behind.trim_start().strip_prefix('"')?;
        let mut value = String::new();
        let mut letters = quoted.char_indices();
        let end = loop {
            match letters.next()? {
                (_, '\\') => match letters.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (at, '"') => break at,
                (_, letter) => value.push(letter),
            }
        };
        found.push(format!("{}={value}", key.trim()));
        rest = quoted[end + 1..].trim_start().trim_start_matches(',').trim_start();
    }
    Some((found.join(","), &rest[1..]))
}

/// The unit that a metric's name ends with, and how many of ours one of it is.
fn unit(metric: &str) -> (Unit, f64) {
    match metric.trim_end_matches("_total").rsplit('_').next() {
        Some("bytes") => (Unit::Bytes, 1.0),
        Some("seconds") => (Unit::Nanoseconds, 1e9),
        Some("pages") => (Unit::Pages, 1.0),
        Some("ratio") => (Unit::Percent, 100.0),
        _ => (Unit::Count, 1.0),
    }
}

/// Whole numbers stay whole.
fn figure(value: f64) -> Value {
    if value >= 0.0 && value.fract() == 0.0 && value < 9e15 { Value::U64(value as u64) } else { value.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Root;
    use crate::{Selection, Tree};

    #[test]
    fn a_line_is_a_name_labels_and_a_number() {
        let found = |metric, labels: &str, value| Some(Sample { metric, labels: labels.into(), value });
        assert_eq!(sample("jobs 3"), found("jobs", "", 3.0));
        assert_eq!(
            sample(r#"x_total{ a="1", b="say \"no\"," } 2.5 1700000000000"#),
            found("x_total", "a=1,b=say \"no\",", 2.5)
        );
        for no in ["", "jobs", "jobs three", "9jobs 3", "jobs{a=1} 3", "jobs{a=\"1\" 3", "jobs NaN", "{} 1"] {
            assert_eq!(sample(no), None, "{no}");
        }
    }

    #[test]
    fn the_files_of_a_folder_are_a_module() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write(
            "queue.prom",
            "# HELP jobs_done Jobs.\n# TYPE jobs_done counter\njobs_done 12\n# a word\nwait_seconds 0.5\nno sample\n",
        );
        write("disk.prom", "cache_hit_ratio{device=\"sda\"} 0.25\nread_bytes_total{device=\"sda\"} 4096\n");
        write("other.txt", "ignored 1\n");
        let tree = Tree::new(Root::new(folder.path())).with(text_files(folder.path()));
        let snapshot = tree.read(&Selection::parse(["extra"]).unwrap());
        let lines: Vec<String> = snapshot
            .samples()
            .iter()
            .map(|s| format!("{}:{} {} {:?} {:?}", s.name, s.statistic, s.value, s.unit, s.kind))
            .collect();
        assert_eq!(
            lines,
            [
                "device=sda:cache_hit_ratio 25 Percent Gauge",
                "device=sda:read_bytes_total 4096 Bytes Counter",
                "queue:jobs_done 12 Count Counter",
                "queue:wait_seconds 500000000 Nanoseconds Gauge",
            ]
        );
        let served = crate::openmetrics::render(snapshot.samples());
        assert!(served.contains("pagelab_extra_jobs_done_total{series=\"queue\"} 12\n"), "{served}");
        assert!(served.contains("pagelab_extra_wait_seconds{series=\"queue\"} 0.5\n"), "{served}");
    }
}
