//! `fileread` on Solaris: random reads through segmap or segkpm.

use pagelab_experiment::catalogue::metric;
use pagelab_experiment::experiments::{Access, Fileread};
use pagelab_experiment::observation::Unit;
use pagelab_experiment::{Observation, Recorder, Setting, TargetError};

use super::sheet::{Sheet, note, unsupported};
use crate::pagecache::path::{Costs, Path, random_reads};

/// Bytes of a page, and of the reads whose costs are known.
const READ: u64 = 8192;
/// Segmap's share of memory, in percent (SPARC).
const WINDOWS: u64 = 12;
const NAMES: [&str; 3] = ["small", "large", "beyond"];

/// Random reads of files of the sizes asked for.
pub(super) fn perform(
    name: &str,
    (path, costs): (Path, Costs),
    fileread: &Fileread,
    setting: &Setting,
    recorder: &mut dyn Recorder,
) -> Result<(), TargetError> {
    if fileread.access != [Access::Pread] || fileread.read.bytes(READ) != READ {
        return Err(unsupported(
            name,
            "fileread of 8 KiB by pread".into(),
            "use --access pread --read 8K".into(),
        ));
    }
    let sizes = fileread.sizes.bytes(READ);
    let most = sizes.last().map_or(READ, |&size| 2 * size);
    let memory = setting.memory.map_or(most, |size| size.bytes(READ)) / READ;
    let memory = memory.clamp(16, u64::from(u32::MAX)) as u32;
    let windows = ((u64::from(memory) * WINDOWS / 100) as u32).max(1);
    let mut sheet = Sheet::new(&[
        ("size", Unit::Bytes),
        ("reads", Unit::Count),
        ("cpu.each", Unit::Nanoseconds),
        ("time.system", Unit::Nanoseconds),
        ("hits", Unit::Share),
    ]);
    let mut texts = Vec::new();
    let mut total = 0.0;
    let mut headline = [None; 3];
    for (index, &size) in sizes.iter().enumerate() {
        recorder.progress("cases", index as u64, sizes.len() as u64);
        let case = match index {
            0 => 0,
            n if n + 1 == sizes.len() => 2,
            _ => 1,
        };
        let pages = (size / READ).clamp(1, u64::from(u32::MAX)) as u32;
        let shares = random_reads(pages, windows, memory, fileread.reads.max(1), fileread.seed);
        let each = costs.read(path, &shares, 2).own * 1000.0;
        let reads = fileread.reads as f64;
        headline[case] = headline[case].or(Some(each));
        total += each * reads;
        texts.push(format!("{} pread", NAMES[case]));
        sheet.row(&[size as f64, reads, each, each * reads, shares.window + shares.cached]);
    }
    recorder.observe(sheet.with_texts("case", texts).table("fileread"))?;
    for (figure, value) in ["read.cpu.small", "read.cpu.large", "read.cpu.beyond"].iter().zip(headline) {
        recorder.observe(Observation::Metric(metric(figure, value)))?;
    }
    recorder.observe(Observation::Metric(metric("time.system", Some(total))))?;
    note(recorder, format!("{memory} pages of 8 KiB for files, {windows} of them in windows; two processors"))
}
