//! What the tracer counted of a load by function: its instructions, and what they missed; from what it wrote and what the
//! guest tells of its addresses.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use pagelab_experiment::build::{Sheet, metric};
use pagelab_experiment::tables::{self, cache_misses};
use pagelab_experiment::{Failure, MetricId, Recorder, Result, metrics};
use pagelab_kernel::perf::symbols::Symbols;
use pagelab_procfs::addresses;
use pagelab_ring::{COUNTED, FIGURES, INSTRUCTIONS, L1D, L1I, L2, REFERENCES, TLB, UNCOUNTED, WALKS};

use crate::options::Trace;

/// Rows of either; the rest is in one more.
const ROWS: usize = 120;
/// From here up addresses are the kernel's, on every 64-bit processor.
const KERNEL: u64 = 1 << 63;

/// What is counted besides instructions: the metrics of user mode and the kernel.
const MISSED: [(usize, [MetricId; 2]); 6] = [
    (REFERENCES, [metrics::REFERENCES_USER, metrics::REFERENCES_KERNEL]),
    (L1I, [metrics::MISSES_L1I_USER, metrics::MISSES_L1I_KERNEL]),
    (L1D, [metrics::MISSES_L1D_USER, metrics::MISSES_L1D_KERNEL]),
    (L2, [metrics::MISSES_L2_USER, metrics::MISSES_L2_KERNEL]),
    (TLB, [metrics::MISSES_TLB_USER, metrics::MISSES_TLB_KERNEL]),
    (WALKS, [metrics::WALKS_USER, metrics::WALKS_KERNEL]),
];

/// Records what `counts` says, by the functions in `told`.
///
/// # Errors
/// When nothing was counted, or it cannot be read or kept.
pub fn report(trace: Trace, counts: &File, told: &File, recorder: &mut dyn Recorder) -> Result<()> {
    let reading = |e: io::Error| Failure::system("reading the counts of instructions", &e);
    let (pages, counts) = whole(counts).and_then(|bytes| lines(&bytes)).map_err(reading)?;
    let told = text(told).map_err(reading)?;
    let (maps, symbols) = told.split_once("\n\n").unwrap_or_default();
    let symbols = Symbols::parse(symbols);
    let rows = by_function(&counts, &symbols, &mappings(maps));
    if rows.is_empty() {
        return Err(Failure::unsupported(
            "no instructions were counted",
            "the tracer needs a QEMU with plugins, such as Debian's",
        ));
    }
    instructions(&rows, recorder)?;
    if let Some(pages) = pages {
        metric(recorder, metrics::PAGES_TOUCHED, Some(pages as f64))?;
        system_calls(&counts, &symbols, recorder)?;
    }
    match trace {
        Trace::Functions | Trace::On | Trace::Restored => Ok(()),
        Trace::Cache => misses(rows, recorder),
    }
}

/// The sum of a figure in user mode, and in the kernel.
fn sums(rows: &[Row], figure: usize) -> [f64; 2] {
    [false, true].map(|kernel| {
        rows.iter().filter(|row| row.kernel == kernel).map(|row| row.figures[figure]).sum::<u64>() as f64
    })
}

fn mode(row: &Row) -> &'static str {
    if row.kernel { "kernel" } else { "user" }
}

/// The rows beyond those that are kept, as one.
fn rest(rows: &[Row]) -> Option<[u64; FIGURES]> {
    let rest = rows.get(ROWS..).filter(|rest| !rest.is_empty())?;
    Some(std::array::from_fn(|figure| rest.iter().map(|row| row.figures[figure]).sum()))
}

fn instructions(rows: &[Row], recorder: &mut dyn Recorder) -> Result<()> {
    let [user, kernel] = sums(rows, INSTRUCTIONS);
    let mut sheet = Sheet::new(tables::instructions::TABLE);
    let values = |count: u64| [Some(count as f64), Some(count as f64 / (user + kernel))];
    for row in rows.iter().take(ROWS) {
        sheet.named([&row.name, mode(row)], values(row.figures[INSTRUCTIONS]));
    }
    if let Some(rest) = rest(rows) {
        sheet.named(["(all others)", ""], values(rest[INSTRUCTIONS]));
    }
    sheet.record(recorder)?;
    metric(recorder, metrics::INSTRUCTIONS_USER, Some(user))?;
    metric(recorder, metrics::INSTRUCTIONS_KERNEL, Some(kernel))
}

/// Records how often the kernel function of each system call was entered, the most frequent call
/// first.
fn system_calls(counts: &[Line], symbols: &Symbols, recorder: &mut dyn Recorder) -> Result<()> {
    let mut calls: BTreeMap<String, u64> = BTreeMap::new();
    for (address, figures) in counts {
        if let Some(call) = called(symbols.beginning(*address)) {
            *calls.entry(call).or_default() += figures[INSTRUCTIONS];
        }
    }
    let mut rows: Vec<(String, u64)> = calls.into_iter().collect();
    rows.sort_by_key(|&(_, count)| Reverse(count));
    let mut sheet = Sheet::new(tables::system_calls::TABLE);
    for (call, count) in &rows {
        sheet.named([call], [Some(*count as f64)]);
    }
    sheet.record(recorder)?;
    let sum: u64 = rows.iter().map(|&(_, count)| count).sum();
    metric(recorder, metrics::SYSTEM_CALLS, Some(sum as f64))
}

/// The system call that a function with these names implements, on x86-64
/// (arch/x86/include/asm/syscall_wrapper.h). A call that only 32-bit programs make is marked. A
/// call without arguments has one function for both.
fn called<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let names: Vec<&str> = names.collect();
    let of = |prefix: &str| names.iter().find_map(|name| name.strip_prefix(prefix));
    let narrow = || of("__ia32_compat_sys_").or_else(|| of("__ia32_sys_"));
    match of("__x64_sys_") {
        Some(call) => Some(call.to_owned()),
        None => narrow().map(|call| call.to_owned() + " (32-bit)"),
    }
}

/// The most misses of the second-level cache first.
fn misses(mut rows: Vec<Row>, recorder: &mut dyn Recorder) -> Result<()> {
    let order = |row: &Row| [L2, WALKS, L1D, L1I].map(|figure| row.figures[figure]);
    rows.sort_by(|a, b| (order(b), &a.name).cmp(&(order(a), &b.name)));
    let mut sheet = Sheet::new(cache_misses::TABLE);
    let values = |figures: &[u64; FIGURES]| MISSED.map(|(figure, _)| Some(figures[figure] as f64));
    for row in rows.iter().take(ROWS) {
        sheet.named([&row.name, mode(row)], values(&row.figures));
    }
    if let Some(rest) = rest(&rows) {
        sheet.named(["(all others)", ""], values(&rest));
    }
    sheet.record(recorder)?;
    for (figure, names) in MISSED {
        for (name, sum) in names.into_iter().zip(sums(&rows, figure)) {
            metric(recorder, name, Some(sum))?;
        }
    }
    Ok(())
}

/// The mappings of the load's process, as the guest tells them.
///
/// # Errors
/// When they cannot be read.
pub fn told_mappings(told: &File) -> Result<Vec<Mapping>> {
    let told = text(told).map_err(|e| Failure::system("reading the mappings of the load", &e))?;
    Ok(mappings(told.split_once("\n\n").unwrap_or_default().0))
}

/// What is written at the beginning of a disk.
fn text(disk: &File) -> io::Result<String> {
    let mut bytes = whole(disk)?;
    bytes.truncate(bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len()));
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn whole(mut file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// An instruction's address, and its figures.
type Line = (u64, [u64; FIGURES]);

/// The number of touched pages, if the tracer counted them, and the lines that it wrote: none if it
/// never began.
///
/// # Errors
/// When it writes them otherwise.
fn lines(bytes: &[u8]) -> io::Result<(Option<u64>, Vec<Line>)> {
    let Some((layout, bytes)) = bytes.split_first_chunk() else { return Ok((None, Vec::new())) };
    if u64::from_ne_bytes(*layout) != COUNTED {
        return Err(io::Error::other("pagelab and its tracer are of different versions"));
    }
    let Some((pages, bytes)) = bytes.split_first_chunk() else { return Ok((None, Vec::new())) };
    let pages = Some(u64::from_ne_bytes(*pages)).filter(|&pages| pages != UNCOUNTED);
    let word = |line: &[u8], at: usize| {
        u64::from_ne_bytes(line[8 * at..8 * at + 8].try_into().expect("eight bytes"))
    };
    let line = |line: &[u8]| (word(line, 0), std::array::from_fn(|figure| word(line, 1 + figure)));
    Ok((pages, bytes.chunks_exact(8 * (1 + FIGURES)).map(line).collect()))
}

/// A mapping of the load's process: from, to, and what is mapped.
pub type Mapping = (u64, u64, String);

/// The lines of a `/proc/PID/maps`.
fn mappings(text: &str) -> Vec<Mapping> {
    let line = |line: &str| {
        let range = addresses(line)?;
        let name = line.split_ascii_whitespace().nth(5).unwrap_or("[anonymous]");
        Some((range.start, range.end, name.rsplit('/').next().unwrap_or(name).to_owned()))
    };
    text.lines().filter_map(line).collect()
}

/// What was counted in a function of the kernel's, or in a file of the program's.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    name: String,
    kernel: bool,
    figures: [u64; FIGURES],
}

/// The most instructions first.
fn by_function(counts: &[Line], symbols: &Symbols, mappings: &[Mapping]) -> Vec<Row> {
    let mut sums: HashMap<(bool, &str), [u64; FIGURES]> = HashMap::new();
    for &(address, figures) in counts {
        let kernel = address >= KERNEL;
        let mapped = || mappings.iter().find(|(from, to, _)| (*from..*to).contains(&address));
        let name = match kernel {
            true => symbols.name(address),
            false => mapped().map_or("[another process]", |(.., name)| name),
        };
        let sum = sums.entry((kernel, name)).or_default();
        sum.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure);
    }
    let row = |((kernel, name), figures): ((bool, &str), _)| Row { name: name.to_owned(), kernel, figures };
    let mut rows: Vec<Row> = sums.into_iter().map(row).collect();
    rows.sort_by(|a, b| (b.figures[INSTRUCTIONS], &a.name).cmp(&(a.figures[INSTRUCTIONS], &b.name)));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_line_is_none_and_another_layout_is_refused() {
        let words = |layout: u64, rest: &[u64]| -> Vec<u8> {
            [layout].iter().chain(rest).flat_map(|word| word.to_ne_bytes()).collect()
        };
        let one: Vec<u64> = (0..=12).collect();
        let line = (1, [2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(lines(&words(COUNTED, &one)).unwrap(), (Some(0), vec![line]));
        let uncounted = [&[UNCOUNTED], &one[1..]].concat();
        assert_eq!(lines(&words(COUNTED, &uncounted)).unwrap(), (None, vec![line]));
        assert_eq!(lines(&[]).unwrap(), (None, vec![]));
        assert!(lines(&words(0xffff_ffff_8100_0000, &one)).unwrap_err().to_string().contains("versions"));
    }

    #[test]
    fn instructions_are_of_the_function_or_the_file_that_holds_them() {
        let symbols = Symbols::parse("ffffffff81000000 T first\nffffffff81000010 t second\n");
        let maps = mappings(
            "555555554000-555555560000 r-xp 00000000 00:02 13 /init\n7ffff7fc1000-7ffff7fc3000 r-xp 00000000 00:00 0 [vdso]\n",
        );
        let base = 0xffff_ffff_8100_0000;
        let counts = [
            (base, 5),
            (base + 4, 6),
            (base + 0x10, 3),
            (0x5555_5555_4010, 7),
            (0x7fff_f7fc_1000, 1),
            (0x10, 2),
        ];
        let counts = counts.map(|(address, count)| (address, line(count)));
        let rows = by_function(&counts, &symbols, &maps);
        let told: Vec<_> =
            rows.iter().map(|row| (row.name.as_str(), row.kernel, row.figures[INSTRUCTIONS])).collect();
        assert_eq!(
            told,
            [
                ("first", true, 11),
                ("init", false, 7),
                ("second", true, 3),
                ("[another process]", false, 2),
                ("[vdso]", false, 1)
            ]
        );
    }

    /// Only the first instruction of a function is its entry. A patched instruction counts with its
    /// old and its new length.
    #[test]
    fn system_calls_are_entries_of_their_functions() {
        let symbols = Symbols::parse(
            "10 T __x64_sys_read\n20 t ksys_read\n30 T __x64_sys_brk\n40 T __ia32_compat_sys_open\n\
             50 t __do_sys_getppid\n50 T __ia32_sys_getppid\n50 T __x64_sys_getppid\n",
        );
        let counts = [(0x10, 5), (0x10, 2), (0x14, 9), (0x20, 8), (0x30, 9), (0x40, 1), (0x50, 3)];
        let counts = counts.map(|(address, count)| (address, line(count)));
        let mut seen = pagelab_experiment::Observations::default();
        system_calls(&counts, &symbols, &mut seen).unwrap();
        let table = seen.table(tables::system_calls::TABLE).unwrap();
        assert_eq!(
            table.texts(tables::system_calls::CALL).unwrap(),
            ["brk", "read", "getppid", "open (32-bit)"]
        );
        let calls = table.numbers(tables::system_calls::CALLS).unwrap();
        assert_eq!(calls, [Some(9.0), Some(7.0), Some(3.0), Some(1.0)]);
        assert_eq!(seen.metric(metrics::SYSTEM_CALLS), Some(20.0));
    }

    fn line(instructions: u64) -> [u64; FIGURES] {
        let mut figures = [0; FIGURES];
        figures[INSTRUCTIONS] = instructions;
        figures
    }

    /// Whatever is beyond the rows that are kept is in one more, so that a table's sums are the metrics.
    #[test]
    fn no_miss_is_left_out_of_the_table() {
        use pagelab_experiment::Observations;
        let row = |n: u64| {
            let figures = std::array::from_fn(|figure| n * (figure as u64 + 1));
            Row { name: format!("f{n}"), kernel: n.is_multiple_of(2), figures }
        };
        let mut seen = Observations::default();
        misses((1..=200).map(row).collect(), &mut seen).unwrap();
        let table = seen.table(cache_misses::TABLE).unwrap();
        for (column, (figure, names)) in cache_misses::TABLE.columns[2..].iter().zip(MISSED) {
            let sum: f64 = table.numbers(*column).unwrap().iter().flatten().sum();
            assert_eq!(sum, (20_100 * (figure + 1)) as f64, "{}", column.name);
            let value = |metric| seen.metric(metric).unwrap();
            assert_eq!(names.map(value).iter().sum::<f64>(), sum, "{}", column.name);
        }
        assert_eq!(table.numbers(cache_misses::L2).unwrap()[0], Some(1000.0), "the most first");
    }
}
