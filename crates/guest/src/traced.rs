//! The instructions of a load by function, from the counts of the tracer and what the guest tells of its addresses.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use pagelab_experiment::build::{Sheet, metric};
use pagelab_experiment::catalogue::name;
use pagelab_experiment::observation::Unit;
use pagelab_experiment::{Failure, Recorder};
use pagelab_live::perf::symbols::Symbols;

/// The table: function, mode, instructions, share.
pub const TABLE: &str = "instructions";
/// Rows of it; the rest is in one more.
const ROWS: usize = 120;
/// From here up addresses are the kernel's, on every 64-bit processor.
const KERNEL: u64 = 1 << 63;

/// Records what `counts` says, by the functions in `told`.
///
/// # Errors
/// When nothing was counted, or it cannot be read or kept.
pub fn report(counts: &File, told: &File, recorder: &mut dyn Recorder) -> Result<(), Failure> {
    let reading = |e: io::Error| Failure::system("reading the counts of instructions", &e);
    let counts = pairs(&whole(counts).map_err(reading)?);
    let mut told = whole(told).map_err(reading)?;
    told.truncate(told.iter().position(|&byte| byte == 0).unwrap_or(told.len()));
    let told = String::from_utf8_lossy(&told);
    let (maps, symbols) = told.split_once("\n\n").unwrap_or_default();
    let rows = by_function(&counts, &Symbols::parse(symbols), &mappings(maps));
    let of = |kernel: bool| {
        rows.iter().filter(|row| row.kernel == kernel).map(|row| row.count).sum::<u64>() as f64
    };
    let (user, kernel) = (of(false), of(true));
    if user + kernel == 0.0 {
        return Err(Failure::unsupported(
            "no instructions were counted",
            "the tracer needs a QEMU with plugins, as Debian's is",
        ));
    }
    let mut sheet = Sheet::new(TABLE, &[("instructions", Unit::Instructions), ("share", Unit::Share)])
        .with_texts("function")
        .with_texts("mode");
    let share = |count: f64| Some(count / (user + kernel));
    let mode = |kernel: bool| if kernel { "kernel" } else { "user" };
    for row in rows.iter().take(ROWS) {
        sheet.named([&row.name, mode(row.kernel)], [Some(row.count as f64), share(row.count as f64)]);
    }
    let rest: u64 = rows.iter().skip(ROWS).map(|row| row.count).sum();
    if rest > 0 {
        sheet.named(["(all others)", ""], [Some(rest as f64), share(rest as f64)]);
    }
    sheet.record(recorder)?;
    metric(recorder, name::INSTRUCTIONS_USER, Some(user))?;
    metric(recorder, name::INSTRUCTIONS_KERNEL, Some(kernel))
}

fn whole(mut file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Address and count of each instruction, as the tracer writes them.
fn pairs(bytes: &[u8]) -> Vec<(u64, u64)> {
    let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
    bytes.chunks_exact(16).map(|pair| (word(&pair[..8]), word(&pair[8..]))).collect()
}

/// A mapping of the load's process: from, to, and what is mapped.
type Mapping = (u64, u64, String);

/// The lines of a `/proc/PID/maps`.
fn mappings(text: &str) -> Vec<Mapping> {
    let line = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let name = rest.split_ascii_whitespace().nth(4).unwrap_or("[anonymous]");
        let name = name.rsplit('/').next().unwrap_or(name);
        Some((u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?, name.to_owned()))
    };
    text.lines().filter_map(line).collect()
}

/// What was executed in a function of the kernel's, or in a file of the program's.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    name: String,
    kernel: bool,
    count: u64,
}

/// The most first.
fn by_function(counts: &[(u64, u64)], symbols: &Symbols, mappings: &[Mapping]) -> Vec<Row> {
    let mut sums: HashMap<(bool, &str), u64> = HashMap::new();
    for &(address, count) in counts {
        let kernel = address >= KERNEL;
        let mapped = || mappings.iter().find(|(from, to, _)| (*from..*to).contains(&address));
        let name = match kernel {
            true => symbols.name(address),
            false => mapped().map_or("[another process]", |(.., name)| name),
        };
        *sums.entry((kernel, name)).or_default() += count;
    }
    let row = |((kernel, name), count): ((bool, &str), u64)| Row { name: name.to_owned(), kernel, count };
    let mut rows: Vec<Row> = sums.into_iter().map(row).collect();
    rows.sort_by(|a, b| (b.count, &a.name).cmp(&(a.count, &b.name)));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let rows = by_function(&counts, &symbols, &maps);
        let told: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.kernel, row.count)).collect();
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

    #[test]
    fn half_a_pair_is_none() {
        let bytes = [1_u64.to_ne_bytes(), 2_u64.to_ne_bytes(), 3_u64.to_ne_bytes()].concat();
        assert_eq!(pairs(&bytes), [(1, 2)]);
    }
}
