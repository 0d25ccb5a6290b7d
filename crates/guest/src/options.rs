//! The options of a kernel target.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use pagelab_experiment::declaration::Refusal;
use pagelab_experiment::{Origin, Size};
use strum::VariantNames;

use crate::numa::Nodes;

/// How the guest's processor is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Accel {
    /// The host's own processor where that boots the kernel, else translation.
    Auto,
    /// The host's own processor.
    Kvm,
    /// Translation.
    Tcg,
    /// Translation with a clock that counts instructions.
    Icount,
}

/// What the machine counts of a load that is made once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Trace {
    /// Its instructions by function.
    Functions,
    /// The same, and what they miss in the caches and translation buffers of a modelled core.
    Cache,
    /// Nothing: its references are written into a file.
    On,
    /// Nothing: the machine is saved and restored, and the pages that it touches afterwards are
    /// written to a file.
    Restored,
}

impl Trace {
    /// Whether the load is repeated under QEMU's tracer.
    pub fn repeats(self) -> bool {
        self != Self::Restored
    }
}

/// When a machine is saved and restored, and for how long pages are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restore {
    /// Time from the start of the load until the machine is saved.
    pub after: Duration,
    /// Time after the restore in which pages are recorded.
    pub first: Duration,
}

/// The options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Processors.
    pub cpus: u32,
    /// Memory of the machine, bytes; the experiment's own limit is a cgroup's inside it.
    pub ram: u64,
    /// More words for the kernel's command line.
    pub append: String,
    /// How the processor is made.
    pub accel: Accel,
    /// What the machine counts.
    pub trace: Option<Trace>,
    /// The times of `trace=restored`.
    pub restore: Restore,
    /// The nodes of its memory, where there are several.
    pub numa: Option<Nodes>,
    /// How far two nodes are from each other, a node from itself being 10; QEMU's default is 20.
    pub distance: Option<u8>,
    /// QEMU's model of the processor, where not the usual.
    pub cpu: Option<String>,
    /// More words for QEMU.
    pub qemu: String,
    /// The file for references, where not the usual.
    pub to: Option<PathBuf>,
    /// QEMU's machine, where not the usual.
    pub machine: Option<String>,
    /// Where the modules are, where not beside the image or in /lib/modules.
    pub modules: Option<PathBuf>,
    /// The static pagelab that is the guest's first process; else the running one.
    pub init: Option<PathBuf>,
    /// The folder that is the root of the user's programs; else they are brought with their libraries.
    pub root: Option<PathBuf>,
    /// Files and folders that are brought with a program.
    pub files: Vec<PathBuf>,
    /// How long the guest may be silent.
    pub timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cpus: 1,
            ram: 1 << 30,
            append: String::new(),
            accel: Accel::Auto,
            trace: None,
            restore: Restore { after: Duration::ZERO, first: Duration::from_secs(2) },
            numa: None,
            distance: None,
            cpu: None,
            qemu: String::new(),
            to: None,
            machine: None,
            modules: None,
            init: None,
            root: None,
            files: Vec::new(),
            timeout: Duration::from_secs(300),
        }
    }
}

/// Names and one line each, for `pagelab targets`.
pub const OPTIONS: &[(&str, &str)] = &[
    ("cpus", "processors, default 1"),
    ("ram", "memory of the machine, default 1G (memory= is the experiment's limit inside it)"),
    ("append", "words added to the kernel's command line, in double quotes"),
    ("accel", "kvm, tcg or icount; default: kvm where it boots the kernel, else tcg"),
    (
        "trace",
        "repeat the load (mapanon, mapfile): functions, to count instructions by function (also of command); cache, with \
         accel=icount, also misses of the caches and TLBs of a modelled core; on, with accel=icount, to record the \
         references of user and kernel in a trace; restored, with accel=tcg (any experiment): save the machine, \
         restore it page by page, and record the pages that it touches",
    ),
    ("to", "the file for trace=on and trace=restored, default EXPERIMENT-IMAGE.trace"),
    (
        "after",
        "with trace=restored: seconds from the start of the load until the machine is saved, default 0",
    ),
    ("first", "with trace=restored: seconds after the restore that are recorded, default 2"),
    ("machine", "QEMU's machine"),
    (
        "numa",
        "memory in nodes instead of ram, such as 2x512M or 768M+256M; CPUs go to them in turn; \
        256M+512M@slow: a node without CPUs that the machine's tables call slow",
    ),
    ("distance", "how far two nodes are apart, 11 to 254, default 20 (a node from itself: 10)"),
    ("cpu", "QEMU's model of the processor, such as max; with features in double quotes"),
    ("qemu", "words added to QEMU's command line, in double quotes; such a guest boots for each repetition"),
    ("modules", "the folder of the kernel's modules, default: next to the image, else /lib/modules/RELEASE"),
    (
        "init",
        "a static pagelab for the kernel's architecture, default: the running one, or pagelab-ARCHITECTURE \
        next to it",
    ),
    ("root", "the folder that your programs see as / (command, faultscale --work build, forkstorm --script)"),
    ("file", "without root: a file or folder to bring with the program and its libraries; may be repeated"),
    ("timeout", "seconds without output from the guest until pagelab ends it, default 300"),
];

impl Options {
    /// What they make of the machine, as conditions of a run: (name, value, where it came from).
    pub fn conditions(&self) -> Vec<(&'static str, String, Origin)> {
        let usual = Self::default();
        let from = |same: bool| if same { Origin::Default } else { Origin::Asked };
        let mut list = vec![
            ("cpus", self.cpus.to_string(), from(self.cpus == usual.cpus)),
            ("ram", Size::Bytes(self.ram).to_string(), from(self.ram == usual.ram)),
            ("accel", self.accel.to_string(), from(self.accel == usual.accel)),
        ];
        list.extend(self.trace.map(|trace| ("trace", trace.to_string(), Origin::Asked)));
        if self.trace == Some(Trace::Restored) {
            let seconds = |time: Duration| format!("{} s", time.as_secs_f64());
            let Restore { after, first } = self.restore;
            list.push(("after", seconds(after), from(after == usual.restore.after)));
            list.push(("first", seconds(first), from(first == usual.restore.first)));
        }
        list.extend(self.numa.as_ref().map(|nodes| ("numa", nodes.to_string(), Origin::Asked)));
        list.extend(self.distance.map(|distance| ("distance", distance.to_string(), Origin::Asked)));
        list.extend(self.cpu.clone().map(|cpu| ("cpu", cpu, Origin::Asked)));
        for (name, words) in [("append", &self.append), ("qemu", &self.qemu)] {
            if !words.is_empty() {
                list.push((name, words.clone(), Origin::Asked));
            }
        }
        list
    }

    /// From `key=value` pairs.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn parse(pairs: &[(String, String)]) -> Result<Self, Refusal> {
        let mut options = Self::default();
        for (key, value) in pairs {
            match key.as_str() {
                "cpus" => options.cpus = number(key, value, 1..=64)?,
                "ram" => {
                    options.ram = match value.parse().map_err(|e| format!("ram: {e}"))? {
                        Size::Bytes(bytes) => bytes,
                        Size::Pages(_) => {
                            return Err(format!("ram={value}: write bytes, such as 512M").into());
                        }
                    };
                    if options.ram < 128 << 20 {
                        return Err(format!("ram={value}: a guest needs at least 128M").into());
                    }
                }
                "append" => options.append.clone_from(value),
                "accel" => options.accel = word(key, value)?,
                "trace" => options.trace = Some(word(key, value)?),
                "to" => options.to = Some(value.into()),
                "after" => options.restore.after = seconds(key, value, 0.0)?,
                "first" => options.restore.first = seconds(key, value, 0.001)?,
                "machine" if value.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) => {
                    options.machine = Some(value.clone());
                }
                "machine" => return Err(format!("'{value}' is not a machine of QEMU").into()),
                "numa" => options.numa = Some(value.parse::<Nodes>()?),
                "distance" => options.distance = Some(number(key, value, 11..=254)?),
                "cpu" if value.chars().all(|c| c.is_ascii_alphanumeric() || "-_.,+=".contains(c)) => {
                    options.cpu = Some(value.clone());
                }
                "cpu" => return Err(format!("'{value}' is not a CPU of QEMU").into()),
                "qemu" => options.qemu.clone_from(value),
                "init" => options.init = Some(value.into()),
                "root" if Path::new(value).is_dir() => options.root = Some(value.into()),
                "root" => return Err(format!("root={value}: there is no such folder").into()),
                "file" if Path::new(value).exists() => options.files.push(value.into()),
                "file" => return Err(format!("file={value}: there is no such file").into()),
                "modules" => options.modules = Some(value.into()),
                "timeout" => {
                    let seconds = value.parse().ok().filter(|&s| s > 0);
                    options.timeout = Duration::from_secs(
                        seconds.ok_or_else(|| format!("timeout is a number of seconds, not '{value}'"))?,
                    );
                }
                _ => {
                    let known: Vec<&str> = OPTIONS.iter().map(|(name, _)| *name).collect();
                    return Err(
                        format!("a kernel has no option '{key}': it is one of {}", known.join(", ")).into()
                    );
                }
            }
        }
        if options.root.is_some() && !options.files.is_empty() {
            let why = "file= adds files only without root=; put them into the root";
            return Err(Refusal::new(why));
        }
        let restore = pairs.iter().find(|(key, _)| ["after", "first"].contains(&key.as_str()));
        if let (Some((key, _)), true) = (restore, options.trace != Some(Trace::Restored)) {
            return Err(format!("{key} needs trace=restored").into());
        }
        options.settle(pairs.iter().any(|(key, _)| key == "ram"))?;
        Ok(options)
    }

    /// What follows from nodes; `ram`: whether its size was asked for.
    fn settle(&mut self, ram: bool) -> Result<(), Refusal> {
        match &self.numa {
            Some(nodes) if ram && nodes.bytes() != self.ram => {
                let both = (Size::Bytes(nodes.bytes()), Size::Bytes(self.ram));
                Err(format!("numa has {} in all and ram {}: leave ram out", both.0, both.1).into())
            }
            Some(nodes) if nodes.bytes() < 128 << 20 => {
                Err(format!("numa={nodes}: a guest needs at least 128M").into())
            }
            Some(nodes) => {
                self.ram = nodes.bytes();
                Ok(())
            }
            None if self.distance.is_some() => {
                Err("distance is of nodes: give numa=2x512M too".to_owned().into())
            }
            None => Ok(()),
        }
    }
}

/// A number of this range.
fn number<T: FromStr + PartialOrd + Display>(
    key: &str,
    value: &str,
    range: RangeInclusive<T>,
) -> Result<T, Refusal> {
    let number = value.parse().ok().filter(|number| range.contains(number));
    let (from, to) = (range.start(), range.end());
    number.ok_or_else(|| format!("{key} is a number from {from} to {to}, not '{value}'").into())
}

/// Seconds, from `least` to an hour.
fn seconds(key: &str, value: &str, least: f64) -> Result<Duration, Refusal> {
    number(key, value, least..=3600.0).map(Duration::from_secs_f64)
}

/// One of some words.
fn word<T: FromStr + VariantNames>(key: &str, value: &str) -> Result<T, Refusal> {
    value.parse().map_err(|_| format!("{key} is one of {}, not '{value}'", T::VARIANTS.join(", ")).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_as_people_write_them() {
        let pairs = |list: &[(&str, &str)]| {
            list.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<Vec<_>>()
        };
        let options =
            Options::parse(&pairs(&[("cpus", "2"), ("ram", "1G"), ("accel", "icount"), ("append", "a b")]))
                .unwrap();
        assert_eq!((options.cpus, options.ram, options.accel), (2, 1 << 30, Accel::Icount));
        let nodes =
            Options::parse(&pairs(&[("numa", "2x512M"), ("distance", "40"), ("cpu", "max,-sse4a")])).unwrap();
        assert_eq!(
            (nodes.ram, nodes.distance, nodes.cpu.as_deref()),
            (1 << 30, Some(40), Some("max,-sse4a"))
        );
        assert!(Options::parse(&pairs(&[("numa", "2x512M"), ("ram", "2G")])).is_err());
        let restored = |more| Options::parse(&pairs(&[("trace", "restored"), more]));
        assert_eq!(restored(("after", "0.5")).unwrap().restore.after, Duration::from_millis(500));
        for wrong in [("first", "0"), ("first", "-1"), ("after", "NaN"), ("after", "1e9")] {
            assert!(restored(wrong).is_err(), "{wrong:?}");
        }
        for wrong in [
            ("cpus", "0"),
            ("ram", "1M"),
            ("ram", "100000p"),
            ("accel", "x"),
            ("machine", "a,b"),
            ("timeout", "0"),
            ("numa", "512M"),
            ("distance", "40"),
            ("cpu", "max -S"),
            ("colour", "red"),
            ("root", "/etc/hostname"),
            ("file", "/does/not/exist"),
            ("after", "1"),
        ] {
            assert!(Options::parse(&pairs(&[wrong])).is_err(), "{wrong:?}");
        }
    }
}
