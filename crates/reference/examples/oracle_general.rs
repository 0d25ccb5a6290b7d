//! Writes a generated stream as a trace in libCacheSim's oracleGeneral format, the same on every machine, so that both
//! programs can be given it (`scripts/goals`).
//!
//! ```text
//! cargo run --release -p pagelab-reference --example oracle_general -- PATTERN PAGES REFERENCES FILE [LIFE]
//! ```
//!
//! Pages have scattered 64-bit names, as objects of recorded traces do. With LIFE each lives that many references, and
//! another of the same popularity takes its place, one after another: objects come and go as in the traces of Twitter's
//! caches (J. Yang, Y. Yue and K. V. Rashmi, "A large scale analysis of hundreds of in-memory cache clusters at
//! Twitter", OSDI 2020).

use std::fs::File;
use std::io::{BufWriter, Write};

use pagelab_reference::Pattern;

/// The name of a page: the finaliser of SplitMix64 (G. L. Steele, D. Lea and C. H. Flood, OOPSLA 2014), which is
/// one to one.
fn name(page: u64) -> u64 {
    let mut z = (page + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (pattern, pages, references, file, life) = match &words[..] {
        [pattern, pages, references, file] => (pattern, pages, references, file, u64::MAX),
        [pattern, pages, references, file, life] => (pattern, pages, references, file, life.parse()?),
        _ => return Err("usage: oracle_general PATTERN PAGES REFERENCES FILE [LIFE]".into()),
    };
    let stream = pattern.parse::<Pattern>()?.stream(pages.parse()?, references.parse()?, 1)?;
    let (list, pages) = (stream.references(), u64::from(stream.pages()));
    // How often the place of a page was taken anew; the pages' turns are spread evenly.
    let object = |at: usize| {
        let page = u64::from(list[at]);
        let turn = if life == u64::MAX { 0 } else { (at as u64 + page * life / pages) / life };
        page + turn * pages
    };
    // Backwards, for the record of a request says when the next one for its object is; 0 for none.
    let lives = if life == u64::MAX { 1 } else { list.len() as u64 / life + 2 };
    let mut upcoming = vec![0u32; (pages * lives) as usize];
    let mut next = vec![0u32; list.len()];
    for at in (0..list.len()).rev() {
        next[at] = std::mem::replace(&mut upcoming[object(at) as usize], u32::try_from(at + 1)?);
    }
    let mut out = BufWriter::with_capacity(1 << 20, File::create(file)?);
    for (at, &next) in next.iter().enumerate() {
        let mut record = [0; 24];
        record[..4].copy_from_slice(&(at as u32 / 1000).to_le_bytes());
        record[4..12].copy_from_slice(&name(object(at)).to_le_bytes());
        record[12..16].copy_from_slice(&4096u32.to_le_bytes());
        let next = if next == 0 { -1 } else { i64::from(next) };
        record[16..].copy_from_slice(&next.to_le_bytes());
        out.write_all(&record)?;
    }
    Ok(out.flush()?)
}
