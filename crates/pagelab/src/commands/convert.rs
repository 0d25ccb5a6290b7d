//! `pagelab convert STREAM -o FILE --to FORMAT`: writes a stream as a trace that other programs read.

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use pagelab_reference::Stream;
use pagelab_report::text;
use pagelab_simulation::Cost;

use crate::context::Context;
use crate::file;
use crate::output::{aside, say};
use crate::stream::StreamArguments;

/// What the index of the next request takes.
const NEXT: Cost = Cost { page: 4, reference: 4 };

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(before_help = "Examples:
  pagelab convert zipf:1 --pages 1000 --references 100000 --to oracle-general -o zipf.bin
  pagelab convert trace.zst --to text -o - | head
")]
pub struct Arguments {
    #[command(flatten)]
    stream: StreamArguments,
    /// The format to write
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = To::OracleGeneral)]
    to: To,
    /// The file to write; - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// The formats that are written. Pages have the numbers of their first references, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum To {
    /// libCacheSim's binary records of 24 bytes: objects from 1, each of a page's bytes
    OracleGeneral,
    /// Page numbers, decimal, one a line
    Text,
    /// Page numbers, binary little-endian 64 bits
    U64,
    /// Page numbers, binary little-endian 32 bits
    U32,
}

/// Reads or makes the stream, and writes it.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let next = if arguments.to == To::OracleGeneral { NEXT } else { Cost::default() };
    let loaded = arguments.stream.load(&next, context)?;
    let (stream, path) = (&loaded.stream, &arguments.output);
    file::write(path, |out| {
        let mut out = BufWriter::new(out);
        match arguments.to {
            To::OracleGeneral => oracle_general(stream, arguments.stream.page_size(), &mut out)?,
            To::Text => stream.references().iter().try_for_each(|page| writeln!(out, "{page}"))?,
            To::U64 => stream
                .references()
                .iter()
                .try_for_each(|&page| out.write_all(&u64::from(page).to_le_bytes()))?,
            To::U32 => stream.references().iter().try_for_each(|page| out.write_all(&page.to_le_bytes()))?,
        }
        Ok(out.flush()?)
    })
    .with_context(|| format!("{} cannot be written", path.display()))?;
    let to_stdout = file::is_stdout(path);
    if let Some(described) = loaded.described() {
        aside(&described, to_stdout);
    }
    if !context.quiet && !to_stdout {
        let (references, pages) = (text::count(stream.len() as f64), text::count(f64::from(stream.pages())));
        say!("{references} references to {pages} pages in {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Requests are counted from 1 and come at one a second; an object that is not requested again has -1.
fn oracle_general(stream: &Stream, page_size: u64, out: &mut impl Write) -> Result<()> {
    let references = stream.references();
    let mut upcoming = vec![u32::MAX; stream.pages() as usize];
    let mut next = vec![u32::MAX; references.len()];
    for (index, &page) in references.iter().enumerate().rev() {
        next[index] = std::mem::replace(&mut upcoming[page as usize], u32::try_from(index + 1)?);
    }
    let bytes = u32::try_from(page_size).context("a page of 4 GiB or more has no room in the format")?;
    for (index, (&page, &next)) in references.iter().zip(&next).enumerate() {
        let next = if next == u32::MAX { -1 } else { i64::from(next) };
        out.write_all(&u32::try_from(index)?.to_le_bytes())?;
        out.write_all(&(u64::from(page) + 1).to_le_bytes())?;
        out.write_all(&bytes.to_le_bytes())?;
        out.write_all(&next.to_le_bytes())?;
    }
    Ok(())
}
