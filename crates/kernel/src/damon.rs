//! The kernel's data access monitor, DAMON: one kdamond that watches a mapping of this process with
//! one scheme ([`Kdamond`]), or samples the memory of another process ([`Sampler`]).
//!
//! Documentation/admin-guide/mm/damon/usage.rst. Only fixed ranges of virtual addresses are watched
//! (operations `fvaddr`): a scheme on physical ones acts on the whole machine, and its filters
//! differ from kernel to kernel. The number of kdamonds is put back to 0 with everything else that
//! a run changes ([`FILES`]), for which one that is on is switched off ([`switch_off`]).

use std::fmt::Display;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::Error;
use crate::kthread::KernelThreads;

/// Where DAMON is told what to do.
pub const FOLDER: &str = "/sys/kernel/mm/damon/admin/kdamonds";
/// What is changed and put back.
pub const FILES: [&str; 1] = ["/sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds"];
/// What a kernel needs.
pub const REMEDY: &str = "use a kernel built with CONFIG_DAMON_SYSFS and CONFIG_DAMON_VADDR";
/// Watching fixed ranges of virtual addresses.
const OPERATIONS: &str = "fvaddr";
/// Regions that the mapping is parted into: what usage.rst has as defaults.
const REGIONS: [u64; 2] = [10, 1000];

/// Why this machine cannot have a kdamond for a run, and what to do instead. Changes nothing.
///
/// # Errors
/// The two sentences.
pub fn available() -> Result<(), (String, String)> {
    let file = Path::new(FILES[0]);
    if !file.exists() {
        return Err((format!("has a kernel without DAMON: there is no {}", FILES[0]), REMEDY.to_owned()));
    }
    let writable = fs::OpenOptions::new().write(true).open(file).is_ok();
    let Some(count) = text(file).filter(|_| writable) else {
        return Err((format!("does not let this user write {}", FILES[0]), "run as root".to_owned()));
    };
    if count == "0" {
        return Ok(());
    }
    let state = text(&Path::new(FOLDER).join("0/state")).unwrap_or_default();
    Err((
        format!("has DAMON in use already: {} holds {count}, the first is {state}", FILES[0]),
        "run it in a guest (--on kernel:IMAGE), or end its user and write 0 there".to_owned(),
    ))
}

/// Switches every kdamond off: only then can their number be written. Whether it did: where one
/// that is on watches anything else than ours do, they are somebody else's by now, and all are left
/// alone.
///
/// # Errors
/// What the kernel says.
pub fn switch_off(folder: &Path) -> io::Result<bool> {
    let kdamonds = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let on: Vec<PathBuf> =
        kdamonds.filter(|path| text(&path.join("state")).is_some_and(|state| state != "off")).collect();
    let ours =
        |path: &PathBuf| text(&path.join("contexts/0/operations")).is_some_and(|what| what == OPERATIONS);
    if !on.iter().all(ours) {
        return Ok(false);
    }
    on.iter().try_for_each(|path| fs::write(path.join("state"), "off"))?;
    Ok(true)
}

/// What is done with regions that were not accessed.
#[derive(Clone, Debug)]
pub struct Scheme {
    /// The action, as DAMON names it.
    pub action: String,
    /// From one sample to the next, ms.
    pub sampling: u32,
    /// From one aggregation of the samples to the next, ms.
    pub aggregation: u32,
    /// Aggregation intervals without access before the action.
    pub age: u32,
}

/// What the scheme counts, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Of regions that it tried its action on.
    pub tried: u64,
    /// Of those on which it was done.
    pub applied: u64,
}

/// A kdamond of ours that is on.
#[derive(Debug)]
pub struct Kdamond {
    thread: KernelThreads,
}

impl Kdamond {
    /// Has the addresses `range` of this process watched, with a scheme that may act on `quota`
    /// bytes in each aggregation interval.
    ///
    /// The quota is charged anew in each interval: some kernels know none in the first charge
    /// window (Debian's 6.12 was seen to act on all there was in it), and in the first interval no
    /// region is old enough.
    ///
    /// # Errors
    /// When DAMON is in use, watches no virtual addresses, or refuses.
    pub fn start(scheme: &Scheme, range: &Range<usize>, quota: u64) -> Result<Self, Error> {
        let mut kdamond = Self::add()?;
        let us = |ms: u32| u64::from(ms) * 1000;
        let context = |file: &str, value: &dyn Display| set(&format!("0/contexts/0/{file}"), value);
        context("monitoring_attrs/intervals/sample_us", &us(scheme.sampling))?;
        context("monitoring_attrs/intervals/aggr_us", &us(scheme.aggregation))?;
        // Fixed ranges are never updated.
        context("monitoring_attrs/intervals/update_us", &us(scheme.aggregation.max(1000)))?;
        context("monitoring_attrs/nr_regions/min", &REGIONS[0])?;
        context("monitoring_attrs/nr_regions/max", &REGIONS[1])?;
        context("targets/nr_targets", &1)?;
        context("targets/0/pid_target", &std::process::id())?;
        context("targets/0/regions/nr_regions", &1)?;
        context("targets/0/regions/0/start", &range.start)?;
        context("targets/0/regions/0/end", &range.end)?;
        context("schemes/nr_schemes", &1)?;
        let set_scheme =
            |file: &str, value: &dyn Display| set(&format!("0/contexts/0/schemes/0/{file}"), value);
        set_scheme("action", &scheme.action)?;
        set_scheme("access_pattern/sz/min", &0)?;
        set_scheme("access_pattern/sz/max", &u64::MAX)?;
        set_scheme("access_pattern/nr_accesses/min", &0)?;
        set_scheme("access_pattern/nr_accesses/max", &0)?;
        set_scheme("access_pattern/age/min", &scheme.age)?;
        set_scheme("access_pattern/age/max", &u32::MAX)?;
        set_scheme("quotas/ms", &0)?;
        set_scheme("quotas/bytes", &quota)?;
        set_scheme("quotas/reset_interval_ms", &scheme.aggregation)?;
        // The oldest first, whatever their size.
        set_scheme("quotas/weights/sz_permil", &0)?;
        set_scheme("quotas/weights/nr_accesses_permil", &0)?;
        set_scheme("quotas/weights/age_permil", &1000)?;
        set_scheme("watermarks/metric", &"none")?;
        set("0/state", "on")?;
        kdamond.thread = KernelThreads::find("kdamond.");
        Ok(kdamond)
    }

    /// Adds one that is off, has one context for fixed ranges of virtual addresses, and is taken
    /// down when it is dropped.
    fn add() -> Result<Self, Error> {
        available().map_err(|(why, remedy)| Error::unsupported(format!("this machine {why}"), remedy))?;
        set("nr_kdamonds", 1)?;
        let kdamond = Self { thread: KernelThreads::none() };
        set("0/contexts/nr_contexts", 1)?;
        let known = text(&path("0/contexts/0/avail_operations")).unwrap_or_default();
        if !known.split_ascii_whitespace().any(|word| word == OPERATIONS) {
            let known = known.replace('\n', ", ");
            let what = format!(
                "this kernel's DAMON does not support virtual addresses ({OPERATIONS}); it has: \
                    {known}"
            );
            return Err(Error::unsupported(what, REMEDY));
        }
        set("0/contexts/0/operations", OPERATIONS)?;
        Ok(kdamond)
    }

    /// What the scheme counts so far.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn stats(&self) -> Result<Stats, Error> {
        set("0/state", "update_schemes_stats")?;
        let of = |file: &str| {
            let path = path(&format!("0/contexts/0/schemes/0/stats/{file}"));
            text(&path).and_then(|text| text.parse().ok()).ok_or_else(|| {
                let what = format!("this kernel's DAMON does not count: {}", path.display());
                Error::unsupported(what, "use Linux 5.18 or later")
            })
        };
        Ok(Stats { tried: of("sz_tried")?, applied: of("sz_applied")? })
    }

    /// Switches it off: nothing is watched or taken any more. What the scheme counted is not told
    /// from then on.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn stop(&self) -> Result<(), Error> {
        set("0/state", "off")
    }

    /// Processor time of its thread so far, ns.
    pub fn time(&self) -> Option<u64> {
        self.thread.time()
    }
}

impl Drop for Kdamond {
    fn drop(&mut self) {
        // What does not succeed here is undone with the journal, and said there.
        if switch_off(Path::new(FOLDER)).unwrap_or(false) {
            let _ = fs::write(FILES[0], "0");
        }
    }
}

/// A kdamond of ours that samples the memory of a process.
///
/// In each range it clears the accessed bit of one page, drawn at random, and looks after an
/// interval whether the page was referenced (mm/damon/vaddr.c). Sampling and aggregation interval
/// are one, so each range is sampled once; and there are too many ranges for DAMON to split them,
/// and their sizes let it merge only small ones with the same outcome (mm/damon/core.c).
#[derive(Debug)]
pub struct Sampler(Kdamond);

/// The scheme, which only counts, and the regions that it found.
const SCHEME: &str = "0/contexts/0/schemes/0";
const FOUND: &str = "0/contexts/0/schemes/0/tried_regions";

impl Sampler {
    /// Sets it up.
    ///
    /// # Errors
    /// When DAMON is in use, watches no virtual addresses, does not tell regions, or refuses.
    pub fn open() -> Result<Self, Error> {
        let new = Self(Kdamond::add()?);
        set("0/contexts/0/targets/nr_targets", 1)?;
        set("0/contexts/0/schemes/nr_schemes", 1)?;
        if !path(FOUND).exists() {
            let what =
                format!("this kernel's DAMON does not list regions: there is no {}", path(FOUND).display());
            return Err(Error::unsupported(what, "use Linux 6.2 or later"));
        }
        let scheme = |file: &str, value: &dyn Display| set(&format!("{SCHEME}/{file}"), value);
        scheme("action", &"stat")?;
        for of in ["sz", "nr_accesses", "age"] {
            scheme(&format!("access_pattern/{of}/min"), &0)?;
            scheme(&format!("access_pattern/{of}/max"), &u32::MAX)?;
        }
        scheme("access_pattern/sz/max", &u64::MAX)?;
        scheme("quotas/ms", &0)?;
        scheme("quotas/bytes", &0)?;
        scheme("watermarks/metric", &"none")?;
        Ok(new)
    }

    /// Begins to sample a page of each of `ranges` of the process `pid` for `interval`. The ranges
    /// are ascending and do not overlap.
    ///
    /// # Errors
    /// When the kernel refuses, for example because the process has ended.
    pub fn begin(&self, pid: u32, ranges: &[Range<u64>], interval: Duration) -> Result<(), Error> {
        /// Fewer are refused.
        const MIN_REGIONS: usize = 3;
        self.stop()?;
        let context = |file: &str, value: &dyn Display| set(&format!("0/contexts/0/{file}"), value);
        for of in ["sample_us", "aggr_us", "update_us"] {
            context(&format!("monitoring_attrs/intervals/{of}"), &interval.as_micros())?;
        }
        let count = ranges.len().max(MIN_REGIONS);
        // The larger one first: a minimum above the maximum may be refused.
        context("monitoring_attrs/nr_regions/max", &(count + count / 2))?;
        context("monitoring_attrs/nr_regions/min", &count)?;
        context("targets/0/pid_target", &pid)?;
        context("targets/0/regions/nr_regions", &ranges.len())?;
        for (number, range) in ranges.iter().enumerate() {
            context(&format!("targets/0/regions/{number}/start"), &range.start)?;
            context(&format!("targets/0/regions/{number}/end"), &range.end)?;
        }
        set("0/state", "on")
    }

    /// Waits for the end of the interval. Returns the parts of the ranges whose page was
    /// referenced.
    ///
    /// # Errors
    /// When the process has ended, or the kernel does not tell.
    pub fn finish(&self) -> Result<Vec<Range<u64>>, Error> {
        set("0/state", "update_schemes_tried_regions")?;
        let folder = path(FOUND);
        let entries = fs::read_dir(&folder)
            .map_err(|source| Error::System { doing: format!("reading {}", folder.display()), source })?;
        let referenced = entries.flatten().filter_map(|entry| {
            let of = |file: &str| text(&entry.path().join(file))?.parse::<u64>().ok();
            (of("nr_accesses")? > 0).then_some(of("start")?..of("end")?)
        });
        let mut referenced: Vec<Range<u64>> = referenced.collect();
        referenced.sort_by_key(|range| range.start);
        self.stop()?;
        Ok(referenced)
    }

    /// Switches it off, if it is on.
    fn stop(&self) -> Result<(), Error> {
        match text(&path("0/state")).as_deref() {
            Some("on") => self.0.stop(),
            _ => Ok(()),
        }
    }
}

fn path(file: &str) -> PathBuf {
    Path::new(FOLDER).join(file)
}

fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn set(file: &str, value: impl Display) -> Result<(), Error> {
    let (path, value) = (path(file), value.to_string());
    fs::write(&path, &value)
        .map_err(|source| Error::System { doing: format!("writing {value} to {}", path.display()), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_monitor_is_switched_off() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("nr_kdamonds"), "2\n").unwrap();
        let file = |number: u32, name: &str| folder.path().join(format!("{number}/{name}"));
        for (number, state) in [(0, "on\n"), (1, "off\n")] {
            fs::create_dir_all(file(number, "contexts/0")).unwrap();
            fs::write(file(number, "contexts/0/operations"), "fvaddr\n").unwrap();
            fs::write(file(number, "state"), state).unwrap();
        }
        let state = |number: u32| fs::read_to_string(file(number, "state")).unwrap();
        // What watches the machine's memory is nobody's of ours.
        fs::write(file(0, "contexts/0/operations"), "paddr\n").unwrap();
        assert!(!switch_off(folder.path()).unwrap());
        assert_eq!(state(0), "on\n");
        fs::write(file(0, "contexts/0/operations"), "fvaddr\n").unwrap();
        assert!(switch_off(folder.path()).unwrap());
        assert_eq!((state(0).as_str(), state(1).as_str()), ("off", "off\n"), "what is off is left");
        assert!(switch_off(&folder.path().join("absent")).is_err());
    }
}
