//! `pagelab convert STREAM -o FILE --to FORMAT`: writes a stream as a trace that other programs read.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use pagelab_reference::Stream;
use pagelab_reference::trace::recorded::{Ending, Heading, LOAD, RUNS, STORE, Writer};
use pagelab_reference::trace::{Densifier, Reader};
use pagelab_report::text;
use pagelab_simulation::cost::{Cost, NUMBERING};
use pagelab_simulation::piece::too_many_pages;
use pagelab_simulation::records::{Records, Wanted};
use pagelab_simulation::{Stopped, Watch as _};

use crate::context::Context;
use crate::file;
use crate::output::{aside, say};
use crate::stream::{StreamArguments, described};
use crate::watching::Watching;

/// What the index of the next request takes.
const NEXT: Cost = Cost { page: 4, reference: 4 };

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(before_help = "Examples:
  pagelab convert zipf:1 --pages 1000 --references 100000 -o zipf.bin
  pagelab convert trace.zst --to pagelab -o small.trace
  pagelab convert trace.zst --to text -o - | head
  pagelab convert sort.trace --to lackey -o - | zstd > sort.lackey.zst
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

/// The formats that are written. A trace's pages have the numbers of their first references, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum To {
    /// libCacheSim's binary records of 24 bytes: objects from 1, each of a page's bytes
    OracleGeneral,
    /// pagelab's own, compressed, with writes where the trace knows them
    Pagelab,
    /// Page numbers, decimal, one a line
    Text,
    /// Page numbers, binary little-endian 64 bits
    U64,
    /// Page numbers, binary little-endian 32 bits
    U32,
    /// Lines as valgrind's lackey prints them: loads, stores and fetches of one byte at the page's address; of a trace alone
    Lackey,
}

/// Reads or makes the stream, and writes it.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let path = &arguments.output;
    let mut converted = Converted::default();
    file::write(path, |out| {
        let mut out = BufWriter::new(out);
        converted = match arguments.to {
            To::OracleGeneral => whole(arguments, &mut out, context)?,
            To::Pagelab => own(arguments, &mut out, context)?,
            To::Text | To::U64 | To::U32 => numbers(arguments, &mut out, context)?,
            To::Lackey => lackey(arguments, &mut out, context)?,
        };
        Ok(out.flush()?)
    })?;
    let to_stdout = file::is_stdout(path);
    if let Some(described) = &converted.described {
        aside(described, to_stdout);
    }
    if !context.quiet && !to_stdout {
        let [references, pages] = [converted.references, converted.pages].map(|n| text::count(n as f64));
        say!("{references} references to {pages} pages in {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// What was written.
#[derive(Default)]
struct Converted {
    references: u64,
    pages: u64,
    described: Option<String>,
}

/// Page numbers, as they are read.
fn numbers(arguments: &Arguments, out: &mut impl Write, context: &Context) -> Result<Converted> {
    let mut numbering = Numbering::new(arguments);
    let described = arguments.stream.pass("converting", context, |pages| {
        for &page in numbering.next(pages)? {
            match arguments.to {
                To::Text => writeln!(out, "{page}")?,
                To::U64 => out.write_all(&u64::from(page).to_le_bytes())?,
                _ => out.write_all(&page.to_le_bytes())?,
            }
        }
        Ok(())
    })?;
    Ok(numbering.converted(described))
}

/// pagelab's own format, as it is read: of a trace that knows writes with these.
fn own(arguments: &Arguments, out: &mut impl Write, context: &Context) -> Result<Converted> {
    let heading = |writes: bool| Heading {
        program: vec![arguments.stream.words()],
        recorder: "pagelab convert".to_owned(),
        unit: arguments.stream.page_size(),
        kinds: if writes { vec!["load".into(), "store".into()] } else { vec!["load".into()] },
        reduced: None,
        window: None,
    };
    let mut numbering = Numbering::new(arguments);
    let ending = || Ending { status: "converted".into(), ..Ending::default() };
    let Ok((path, options)) = arguments.stream.recorded("convert") else {
        let mut writer = Writer::new(out, &heading(false))?;
        let described = arguments.stream.pass("converting", context, |pages| {
            let pages = numbering.next(pages)?;
            Ok(writer.block(1, 0, pages.iter().map(|&page| (u64::from(page), 0, 1)))?)
        })?;
        writer.finish(ending())?;
        return Ok(numbering.converted(described));
    };
    let watching = Watching::new("reading the trace", context.quiet)?;
    let mut records = Records::open(path, &options, Wanted::default(), &watching)?;
    let mut writer = Writer::new(out, &heading(records.knows_writes()))?;
    let (mut named, mut kinds) = (Vec::new(), Vec::new());
    loop {
        let record = records.read()?;
        if let Some(record) = record {
            named.push(record.page);
            kinds.push(u64::from(record.write));
        }
        if named.len() == RUNS || (record.is_none() && !named.is_empty()) {
            let pages = numbering.next(&named)?;
            writer.block(1, 0, pages.iter().zip(&kinds).map(|(&page, &kind)| (u64::from(page), kind, 1)))?;
            named.clear();
            kinds.clear();
        }
        if record.is_none() {
            break;
        }
    }
    writer.finish(ending())?;
    Ok(numbering.converted(Some(described(&records.reading()))))
}

/// Lines of lackey's: a trace with its kinds, as it is read.
fn lackey(arguments: &Arguments, out: &mut impl Write, context: &Context) -> Result<Converted> {
    let mut numbering = Numbering::new(arguments);
    let (path, options) = arguments.stream.recorded("--to lackey")?;
    let mut reader = Reader::open(path, &options)?;
    let shift = arguments.stream.page_size().trailing_zeros();
    let watching = Watching::new("converting", context.quiet)?;
    let (mut references, mut last) = (0, None);
    while let Some((page, kind, count)) = reader.run(u64::MAX)? {
        if last != Some(page) {
            numbering.next(&[page])?;
            last = Some(page);
        }
        let kind = match kind {
            LOAD => " L ",
            STORE => " S ",
            _ => "I  ",
        };
        let address = page.checked_shl(shift).filter(|address| address >> shift == page);
        let address = address.context("a page whose address has more than 64 bits")?;
        for _ in 0..count {
            writeln!(out, "{kind}{address:08x},1")?;
        }
        if (references ^ (references + count)) >> 20 != 0 {
            watching.at(reader.fraction());
            if watching.stopped() {
                return Err(Stopped.into());
            }
        }
        references += count;
    }
    Ok(Converted { references, ..numbering.converted(None) })
}

/// oracleGeneral, of which each record tells of the next for its page: the whole stream is in memory.
fn whole(arguments: &Arguments, out: &mut impl Write, context: &Context) -> Result<Converted> {
    let loaded = arguments.stream.load(&NEXT, context)?;
    let stream = &loaded.stream;
    oracle_general(stream, arguments.stream.page_size(), out)?;
    // A pattern need not reference every page of its region, and the file has no others.
    let mut referenced = vec![false; stream.pages() as usize];
    stream.references().iter().for_each(|&page| referenced[page as usize] = true);
    let pages = referenced.iter().filter(|referenced| **referenced).count() as u64;
    let references = stream.len() as u64;
    Ok(Converted { references, pages, described: loaded.described })
}

/// Numbers a trace's pages by their first references; a pattern's keep theirs.
struct Numbering<'a> {
    stream: &'a StreamArguments,
    densifier: Densifier,
    list: Vec<u32>,
    references: u64,
    /// Pages that there is memory for.
    allowed: u64,
}

impl<'a> Numbering<'a> {
    /// Pages between two checks of the memory that is left.
    const STEP: u64 = 1 << 20;

    fn new(arguments: &'a Arguments) -> Self {
        let densifier = Densifier::default();
        Self { stream: &arguments.stream, densifier, list: Vec::new(), references: 0, allowed: 0 }
    }

    fn next(&mut self, pages: &[u64]) -> Result<&[u32]> {
        self.list.clear();
        let numbered = self.densifier.number_all(pages, &mut self.list);
        numbered.map_err(|_| too_many_pages(Path::new(&self.stream.stream)))?;
        if self.stream.trace().is_none() {
            self.list.iter_mut().zip(pages).for_each(|(number, &page)| *number = page as u32);
        }
        self.references += pages.len() as u64;
        if u64::from(self.densifier.pages()) >= self.allowed {
            self.allowed = u64::from(self.densifier.pages()) + Self::STEP;
            NUMBERING.allow(self.allowed, 0, 0)?;
        }
        Ok(&self.list)
    }

    fn converted(self, described: Option<String>) -> Converted {
        Converted { references: self.references, pages: self.densifier.pages().into(), described }
    }
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
