//! The tree in OpenMetrics' text form, for Prometheus and its like.
//!
//! A family is `pagelab_MODULE_STATISTIC_UNIT`, in base units: bytes, seconds, pages, ratios.
//! Growing counters end in `_total`, texts are `_info` with the text as a label. Instance and name
//! become labels with the words of their module: `pid` and `command`, `node` and `zone`, `device`,
//! … (<https://prometheus.io/docs/specs/om/open_metrics_spec/>).

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use crate::providers;
use crate::value::{Kind, Sample, Unit, Value};

/// The media type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Counter,
    Gauge,
    Info,
}

struct Family<'s> {
    /// What it is, and from where.
    help: String,
    kind: Type,
    unit: &'static str,
    samples: Vec<&'s Sample>,
}

/// The text of these samples.
pub fn render(samples: &[Sample]) -> String {
    let mut families: BTreeMap<String, Family<'_>> = BTreeMap::new();
    let sources: HashMap<&str, &str> = providers::all().iter().map(|p| (p.module, p.source)).collect();
    for sample in samples {
        let kind = match (&sample.value, sample.kind) {
            (Value::Text(_), _) => Type::Info,
            (_, Kind::Counter) => Type::Counter,
            (_, Kind::Gauge) => Type::Gauge,
        };
        let unit = if kind == Type::Info { "" } else { unit_name(sample.unit) };
        let name = family_name(sample.module, &sample.statistic, unit);
        let family = families.entry(name).or_insert_with(|| {
            let source = sources.get(sample.module).copied().unwrap_or(match sample.module {
                "need" => "runs of pagelab need in the notebook",
                _ => "a file of --extra",
            });
            let help = format!("{} of module {}, from {source}", sample.statistic, sample.module);
            Family { help, kind, unit, samples: Vec::new() }
        });
        // A family has one type: a setting that is a word here and a number there keeps its first.
        if family.kind == kind {
            family.samples.push(sample);
        }
    }
    let mut out = String::new();
    for (name, family) in families {
        let kind = match family.kind {
            Type::Counter => "counter",
            Type::Gauge => "gauge",
            Type::Info => "info",
        };
        let _ = writeln!(out, "# HELP {name} {}", escape(&family.help));
        let _ = writeln!(out, "# TYPE {name} {kind}");
        if !family.unit.is_empty() {
            let _ = writeln!(out, "# UNIT {name} {}", family.unit);
        }
        for sample in family.samples {
            let suffix = match family.kind {
                Type::Counter => "_total",
                Type::Gauge => "",
                Type::Info => "_info",
            };
            let labels = labels(sample);
            let value = value(sample);
            let _ = writeln!(out, "{name}{suffix}{labels} {value}");
        }
    }
    out.push_str("# EOF\n");
    out
}

fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Count | Unit::None => "",
        Unit::Pages => "pages",
        Unit::Bytes => "bytes",
        Unit::Nanoseconds => "seconds",
        Unit::Percent => "ratio",
    }
}

/// Letters, digits and underscores; a unit once at the end.
fn family_name(module: &str, statistic: &str, unit: &str) -> String {
    let mut name = String::from("pagelab_");
    for c in module.chars().chain(['_']).chain(statistic.chars()) {
        let c = if c.is_ascii_alphanumeric() { c } else { '_' };
        if c != '_' || !name.ends_with('_') {
            name.push(c);
        }
    }
    let mut name = name.trim_end_matches('_').to_owned();
    // These endings mean something of their own: the first comes back behind the unit, the others
    // become another word.
    if let Some(stem) = name.strip_suffix("_total") {
        name = stem.to_owned();
    }
    for (reserved, other) in
        [("_info", "_information"), ("_created", "_creation"), ("_count", "_number"), ("_sum", "_all")]
    {
        if let Some(stem) = name.strip_suffix(reserved) {
            name = format!("{stem}{other}");
        }
    }
    if !unit.is_empty() && !name.ends_with(&format!("_{unit}")) {
        let _ = write!(name, "_{unit}");
    }
    name
}

/// What instance and name are called in each module; None where there is one only.
fn label_names(module: &str) -> (Option<&'static str>, Option<&'static str>) {
    match module {
        "process" | "smaps" => (Some("pid"), Some("command")),
        "thread" => (Some("tid"), Some("command")),
        "cgroup" => (Some("version"), Some("path")),
        "zoneinfo" | "buddyinfo" => (Some("node"), Some("zone")),
        "mglru" => (Some("node"), Some("cgroup")),
        "stat" => (Some("cpu"), Some("scope")),
        "schedstat" => (Some("cpu"), None),
        "interrupts" => (Some("cpu"), Some("kind")),
        "diskstats" => (None, Some("device")),
        "swaps" | "zram" => (None, Some("device")),
        "damon" => (Some("kdamond"), Some("scheme")),
        "slabinfo" => (None, Some("cache")),
        "pressure" => (None, Some("resource")),
        "settings" => (None, Some("area")),
        "extra" => (None, Some("series")),
        "need" => (None, Some("of")),
        "vmstat" | "meminfo" | "zswap" | "system" => (None, None),
        _ => (Some("number"), Some("name")),
    }
}

fn labels(sample: &Sample) -> String {
    let (instance, name) = label_names(sample.module);
    let mut labels = Vec::new();
    if let Some(label) = instance {
        labels.push(format!("{label}=\"{}\"", sample.instance));
    }
    if let Some(label) = name {
        labels.push(format!("{label}=\"{}\"", escape(&sample.name)));
    }
    if let Value::Text(text) = &sample.value {
        labels.push(format!("value=\"{}\"", escape(text)));
    }
    if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The value in its base unit.
fn value(sample: &Sample) -> String {
    let scaled = |by: f64| format!("{}", sample.value.number().unwrap_or(f64::NAN) / by);
    match (&sample.value, sample.unit) {
        (Value::Text(_), _) => "1".to_owned(),
        (_, Unit::Nanoseconds) => scaled(1e9),
        // The kernel gives hundredths with two decimals.
        (value, Unit::Percent) => format!("{}", (value.number().unwrap_or(f64::NAN) * 1e4).round() / 1e6),
        (value, _) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(module: &'static str, statistic: &'static str, value: Value, unit: Unit, kind: Kind) -> Sample {
        let name = "a\"b".into();
        Sample { module, instance: 3, name, statistic: statistic.into(), class: "vm", value, unit, kind }
    }

    #[test]
    fn names_units_and_labels_follow_the_conventions() {
        let samples = [
            sample("pressure", "some_total", Value::U64(2_500_000_000), Unit::Nanoseconds, Kind::Counter),
            sample("pressure", "some_avg10", Value::F64(12.5), Unit::Percent, Kind::Gauge),
            sample("meminfo", "Active(anon)", Value::U64(4096), Unit::Bytes, Kind::Gauge),
            sample("vmstat", "pgscan_anon", Value::U64(7), Unit::Pages, Kind::Counter),
            sample("process", "state", Value::from("S"), Unit::None, Kind::Gauge),
            sample("zram", "same_pages", Value::U64(1), Unit::Pages, Kind::Gauge),
        ];
        let text = render(&samples);
        for line in [
            "# HELP pagelab_vmstat_pgscan_anon_pages pgscan_anon of module vmstat, from /proc/vmstat",
            "# TYPE pagelab_pressure_some_seconds counter",
            "pagelab_pressure_some_seconds_total{resource=\"a\\\"b\"} 2.5",
            "pagelab_pressure_some_avg10_ratio{resource=\"a\\\"b\"} 0.125",
            "pagelab_meminfo_Active_anon_bytes 4096",
            "pagelab_vmstat_pgscan_anon_pages_total 7",
            "pagelab_process_state_info{pid=\"3\",command=\"a\\\"b\",value=\"S\"} 1",
            "# UNIT pagelab_zram_same_pages pages",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }
}
