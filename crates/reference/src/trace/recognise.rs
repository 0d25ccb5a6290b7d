//! Recognising a format by the first bytes of the content: what speaks for it, and refusal where something
//! speaks against every format or two are as likely.

use std::collections::HashSet;
use std::path::Path;

use super::format::Format;
use super::{
    block_csv, champ_sim, csv, lackey, lcs, load_store, oracle, perf_script, plain, recorded, vscsi,
};

/// Page numbers are below this: the pages of 4 KiB in 57 bits of address.
const PAGES: u64 = 1 << 45;
/// 32-bit page numbers are below this, a TiB of 4 KiB pages: greater ones could be anything.
const SMALL_PAGES: u32 = 1 << 28;

/// What is said of two formats as which the content can be read.
const BOTH: &str = "fit both";

/// The format, and why.
type Recognised = Result<(Format, String), String>;

/// The format that a file's name says by convention, as in `NAME.oracleGeneral.bin.zst`.
pub(super) fn by_name(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let mut parts = name.rsplit('.').filter(|part| !["zst", "gz", "bz2", "xz", "bin"].contains(part));
    let last = parts.next()?;
    Format::ALL.iter().map(|one| (one.0, one.1.replace('-', ""))).find(|one| one.1 == last).map(|one| one.0)
}

/// The format of content that begins with `head`; `whole` when that is all of it, `length` its bytes where
/// they are known, `named` what its name says, which breaks a tie.
///
/// # Errors
/// Which formats were tried, and what contradicts them.
pub(super) fn recognise(head: &[u8], whole: bool, length: Option<u64>, named: Option<Format>) -> Recognised {
    if head.starts_with(recorded::MAGIC) || head.starts_with(recorded::BEFORE) {
        return Ok((Format::Recorded, "magic number of pagelab traces".into()));
    }
    let head = head.strip_prefix(plain::BOM).unwrap_or(head);
    if head.iter().all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace()) {
        text(head)
    } else {
        binary(head, whole, length, named)
    }
}

/// Text is judged by its first line that says something.
fn text(head: &[u8]) -> Recognised {
    let lines = head.split(|&b| b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let found = lines.filter(|line| !plain::is_blank(line)).find_map(|line| {
        let shown: String = String::from_utf8_lossy(line).trim().chars().take(40).collect();
        let because = |format: Format| Some((format, format!("a line is '{shown}'")));
        if plain::number(line).is_some() {
            because(Format::Text)
        } else if lackey::is_reference(line) {
            because(Format::Lackey)
        } else if load_store::reference(line).is_some() {
            because(Format::LoadStore)
        } else if block_csv::spc(line).is_ok() {
            because(Format::Spc)
        } else if block_csv::is_msr_header(line) || block_csv::msr(line).is_ok() {
            because(Format::Msr)
        } else if csv::is_csv(line) {
            because(Format::Csv)
        } else if perf_script::is_sample(line) {
            because(Format::PerfScript)
        } else {
            None
        }
    });
    found.ok_or_else(|| "no line has a known form".into())
}

fn binary(head: &[u8], whole: bool, length: Option<u64>, named: Option<Format>) -> Recognised {
    let by_name = |format| (format, "its name says so, and nothing speaks against it".to_owned());
    if lcs::is_lcs(head) {
        return Ok((Format::Lcs, "it begins with the magic number of lcs".into()));
    }
    if vscsi::is_2(head) {
        return Ok((Format::Vscsi2, "its records carry the version 2".into()));
    }
    if vscsi::is_1(head) {
        return Ok((Format::Vscsi1, "its records carry the version 1".into()));
    }
    if champ_sim::plausible(head) {
        return Ok((Format::ChampSim, "its records are instructions one after another".into()));
    }
    let against = match oracle::plausible(head, whole, length) {
        Ok(()) => {
            return Ok((Format::OracleGeneral, "its records point at the next for the same object".into()));
        }
        Err(problem) if problem == oracle::UNSEEN && named == Some(Format::OracleGeneral) => {
            return Ok(by_name(Format::OracleGeneral));
        }
        Err(problem) => format!("{}: {problem}", Format::OracleGeneral),
    };
    match numbers(head, if whole { Some(head.len() as u64) } else { length }) {
        // The words of oracleGeneral's records can be small, too.
        Ok((format, _)) if against.ends_with(oracle::CUT) => Err(format!("it could be {format}; {against}")),
        Ok(found) => Ok(found),
        Err(problem) => {
            match named.filter(|format| problem.ends_with(BOTH) && problem.contains(&format.to_string())) {
                Some(format) => Ok(by_name(format)),
                None => Err(format!("{against}; {problem}")),
            }
        }
    }
}

/// Page numbers of 64 or 32 bits, in either order of bytes.
fn numbers(head: &[u8], bytes: Option<u64>) -> Result<(Format, String), String> {
    let (wide, _) = head.as_chunks::<8>();
    let (narrow, _) = head.as_chunks::<4>();
    // Whether the numbers are small, and the different upper halves: each is 16 TiB of address space, and a
    // program has few of those.
    let wide_fits = |of: fn([u8; 8]) -> u64| {
        let small = !wide.is_empty() && wide.iter().all(|n| of(*n) < PAGES);
        let upper: HashSet<u64> = wide.iter().map(|n| of(*n) >> 32).collect();
        small.then_some(upper).filter(|upper| upper.len() <= 1 + wide.len() / 64)
    };
    let narrow_fits =
        |of: fn([u8; 4]) -> u32| !narrow.is_empty() && narrow.iter().all(|n| of(*n) < SMALL_PAGES);
    let orders = [
        (Format::U64, wide_fits(u64::from_le_bytes), Format::U32, narrow_fits(u32::from_le_bytes)),
        (Format::U64Be, wide_fits(u64::from_be_bytes), Format::U32Be, narrow_fits(u32::from_be_bytes)),
    ];
    let halves = bytes.is_some_and(|bytes| bytes % 8 == 4);
    for (wide_format, upper, narrow_format, narrow_fits) in &orders {
        let Some(upper) = upper.as_ref().filter(|_| !(*narrow_fits && halves)) else { continue };
        if *narrow_fits && !upper.contains(&0) && wide.len() < 64 {
            return Err(format!("{wide_format} and {narrow_format} {BOTH}"));
        }
        return Ok((*wide_format, "all numbers are below 2^45".into()));
    }
    if let Some((_, _, format, _)) = orders.iter().find(|(.., narrow_fits)| *narrow_fits) {
        // The upper halves of addresses are few, too.
        let different = |half: usize| narrow.iter().skip(half).step_by(2).collect::<HashSet<_>>().len();
        let (few, many) = (different(0).min(different(1)), different(0).max(different(1)));
        if !halves && wide.len() >= 64 && few <= 1 + wide.len() / 64 && many > 2 * few {
            return Err(format!(
                "{format}: of {} numbers every other one is one of {few}; u64: they are too great for page numbers",
                narrow.len()
            ));
        }
        return Ok((*format, "all numbers are below 2^28".into()));
    }
    Err("u64, u32: the numbers are too great for page numbers".into())
}
