//! The references of a trace, one by one or in batches.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use super::input::{Input, Trouble};
use super::{
    Format, Options, Record, Seekable, TraceError, block_csv, champ_sim, csv, lackey, lcs, load_store,
    oracle, perf_script, plain, recognise, recorded, vscsi,
};

/// The message for a last line without a newline: a page number that lost its last digits names
/// another page.
const CUT: &str = "the line has no end, so the file may be cut; if it is whole, add one (echo >> FILE)";

/// The references of a trace, one by one. After an error it gives nothing more.
pub struct Reader {
    path: PathBuf,
    input: Input,
    format: Format,
    why: String,
    page_shift: u32,
    /// Of the pages that objects are split into.
    object_shift: u32,
    /// Bytes in a record of the file.
    record_size: Option<usize>,
    columns: csv::Columns,
    /// Whether the columns were given, so that a header says nothing.
    given: bool,
    /// References of a record that has several.
    pending: VecDeque<Record>,
    links: oracle::Links,
    recorded: Option<recorded::References>,
    /// Whether a line was met that says something: a header can come no more.
    begun: bool,
    done: bool,
}

impl Reader {
    /// Opens a trace, `-` for standard input. Recognises its format if the options do not name it.
    ///
    /// # Errors
    /// When the file cannot be read or is empty, the format is not recognised, or the page size is
    /// no power of two.
    pub fn open(path: &Path, options: &Options) -> Result<Self, TraceError> {
        Self::begin(path, Input::open(path), options)
    }

    /// Like [`Self::open`], for a file that is already open. `path` names it in errors; `length`
    /// is in bytes.
    ///
    /// # Errors
    /// As there.
    pub fn of(
        path: &Path,
        file: Box<dyn Seekable>,
        length: u64,
        options: &Options,
    ) -> Result<Self, TraceError> {
        Self::begin(path, Input::of_file(file, length), options)
    }

    fn begin(path: &Path, input: std::io::Result<Input>, options: &Options) -> Result<Self, TraceError> {
        if !options.page_size.is_power_of_two() {
            return Err(TraceError::PageSize(options.page_size));
        }
        let read = |source| TraceError::Read { path: path.to_owned(), source };
        let content = |problem: &str| TraceError::Content {
            path: path.to_owned(),
            position: "its start".into(),
            problem: problem.into(),
        };
        let mut input = input.map_err(read)?;
        let length = input.length();
        let (head, whole) = input.head().map_err(|e| match e.raw_os_error() {
            Some(_) => read(e),
            None => content(&format!("the compressed data are damaged or torn ({e})")),
        })?;
        if head.is_empty() {
            return Err(content("it holds no page number"));
        }
        let (format, why) = match options.format {
            Some(format) => (format, "as named".to_owned()),
            None if options.columns.is_some() => (Format::Csv, "its columns are named".to_owned()),
            None => recognise::recognise(head, whole, length, recognise::by_name(path))
                .map_err(|why| TraceError::Format { path: path.to_owned(), why })?,
        };
        let mut record_size = format.record_size();
        let mut links = oracle::Links::default();
        if format == Format::Lcs {
            let header = lcs::header(head).map_err(|problem| content(&problem))?;
            record_size = Some(header);
            links.counted = lcs::requests(head);
            input.skip(lcs::HEADER);
        } else if record_size.is_none() && head.starts_with(plain::BOM) {
            input.skip(plain::BOM.len());
        }
        let mut reader = Self {
            path: path.to_owned(),
            input,
            format,
            why,
            page_shift: if format.has_addresses() && !options.columns.is_some_and(csv::Columns::have_pages) {
                options.page_size.trailing_zeros()
            } else {
                0
            },
            object_shift: options.page_size.trailing_zeros(),
            record_size,
            columns: options.columns.unwrap_or_default(),
            given: options.columns.is_some(),
            pending: VecDeque::new(),
            links,
            recorded: None,
            begun: false,
            done: false,
        };
        if format == Format::Recorded {
            let opened = recorded::References::open(&mut reader.input, options);
            reader.recorded = Some(opened.map_err(|trouble| reader.trouble(trouble))?);
        } else if options.process.is_some() {
            return Err(content(&format!(
                "{format} does not tell processes apart; one of them can be chosen in what pagelab trace recorded"
            )));
        }
        Ok(reader)
    }

    /// What is known of a recorded program's trace, where this is one.
    pub fn heading(&self) -> Option<&recorded::Heading> {
        self.recorded.as_ref().map(|references| &references.heading)
    }

    /// The format that was named or recognised.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether what is read are pages or objects with names, not byte addresses.
    pub fn names_objects(&self) -> bool {
        !self.format.has_addresses() || (self.format == Format::Csv && self.columns.have_pages())
    }

    /// What speaks for the format.
    pub fn why(&self) -> &str {
        &self.why
    }

    /// Bytes in a page.
    pub(super) fn page_size(&self) -> u64 {
        1 << self.object_shift
    }

    /// How much of the file has been read, from 0 to 1.
    pub fn fraction(&self) -> f64 {
        self.input.fraction()
    }

    /// The number of references in the file, if each is a record of one length and the file is
    /// neither compressed nor a pipe. A torn record at the end does not count.
    pub fn places(&self) -> Option<u64> {
        let size = self.record_size.filter(|_| self.format != Format::ChampSim)? as u64;
        Some(self.input.length()?.saturating_sub(self.first_byte()) / size)
    }

    /// The byte that the first record begins at.
    fn first_byte(&self) -> u64 {
        if self.format == Format::Lcs { lcs::HEADER as u64 } else { 0 }
    }

    /// Goes on at the reference that has `before` others before it.
    ///
    /// # Errors
    /// When the file cannot be read there.
    ///
    /// # Panics
    /// When the file has no such [place](Self::places).
    pub fn go_to(&mut self, before: u64) -> Result<(), TraceError> {
        assert!(self.places().is_some_and(|places| before <= places), "no place {before}");
        let size = self.record_size.expect("a place is a record's") as u64;
        self.links.go_to(before);
        let gone = self.input.go_to(self.first_byte() + before * size);
        gone.map_err(|error| self.trouble(Trouble::Read(error)))
    }

    /// An error at the record or line that was read last.
    pub(crate) fn error(&self, problem: String) -> TraceError {
        let position = match self.record_size {
            Some(size) => format!("byte {}", self.input.byte.saturating_sub(size as u64)),
            None => format!("line {}", self.input.line),
        };
        TraceError::Content { path: self.path.clone(), position, problem }
    }

    fn trouble(&self, trouble: Trouble) -> TraceError {
        let path = self.path.clone();
        let problem = match trouble {
            Trouble::Read(source) if source.raw_os_error().is_some() => {
                return TraceError::Read { path, source };
            }
            Trouble::Read(error) => format!("the compressed data are damaged or torn ({error})"),
            Trouble::Content(problem) => problem,
        };
        let position = match self.record_size {
            None if self.format != Format::Recorded => format!("line {}", self.input.line + 1),
            _ => format!("byte {}", self.input.byte),
        };
        TraceError::Content { path, position, problem }
    }

    /// Up to `limit` binary records, undecoded; none at the end of the trace.
    #[inline]
    fn binary(&mut self, size: usize, limit: usize) -> Result<&[u8], TraceError> {
        // Asked for twice where there are none: what is returned borrows the reader.
        match self.input.records(size, limit).map(|bytes| bytes.len()) {
            Err(trouble) => Err(self.trouble(trouble)),
            Ok(0) => self.links.problem().map_or(Ok(&[][..]), |problem| Err(self.error(problem))),
            Ok(length) => Ok(self.input.taken(length)),
        }
    }

    /// Appends the pages of the next references to `pages`: as many as are buffered, at most
    /// `limit` (at least 1), none at the end of the trace. Returns how many are writes.
    ///
    /// # Errors
    /// When the trace cannot be read, is torn, cut or foreign. The pages before that are appended.
    pub fn pages(&mut self, limit: usize, pages: &mut Vec<u64>) -> Result<u64, TraceError> {
        let mut writes = 0;
        if let Some(size) = self.record_size {
            let (format, shift) = (self.format, self.page_shift);
            let limit =
                if format == Format::ChampSim { (limit / champ_sim::REFERENCES).max(1) } else { limit };
            let before = pages.len();
            let length = self.binary(size, limit)?.len();
            let (bytes, ended) = (self.input.taken(length), length == 0);
            let mut addresses = |record: Record| {
                writes += u64::from(record.write);
                record.page >> shift
            };
            match format {
                Format::OracleGeneral => self.links.objects(bytes.as_chunks().0, pages),
                Format::ChampSim => {
                    let references = bytes.as_chunks().0.iter().flat_map(champ_sim::references);
                    pages.extend(references.map(|record| {
                        writes += u64::from(record.write);
                        record.page >> shift
                    }));
                }
                Format::Lcs => {
                    pages.extend(bytes.chunks_exact(size).map(|record| {
                        self.links.note(lcs::next(record));
                        let record = lcs::record(record, 0);
                        writes += u64::from(record.write);
                        record.page
                    }));
                }
                Format::Vscsi1 => {
                    pages.extend(bytes.as_chunks().0.iter().map(|r| addresses(vscsi::reference_1(r))));
                }
                Format::Vscsi2 => {
                    pages.extend(bytes.as_chunks().0.iter().map(|r| addresses(vscsi::reference_2(r))));
                }
                Format::U64Be => pages.extend(bytes.as_chunks().0.iter().map(|n| u64::from_be_bytes(*n))),
                Format::U32 => {
                    pages.extend(bytes.as_chunks().0.iter().map(|n| u64::from(u32::from_le_bytes(*n))));
                }
                Format::U32Be => {
                    pages.extend(bytes.as_chunks().0.iter().map(|n| u64::from(u32::from_be_bytes(*n))));
                }
                _ => pages.extend(bytes.as_chunks().0.iter().map(|n| u64::from_le_bytes(*n))),
            }
            // Instructions need not access memory; nothing at all says that the trace has ended.
            if pages.len() == before && !ended {
                return self.pages(limit, pages);
            }
            return Ok(writes);
        }
        if let Some(recorded) = &mut self.recorded {
            let mut left = limit as u64;
            while left > 0 {
                let (page, kind, count) = match recorded.next(&mut self.input, left) {
                    Ok(Some(run)) => run,
                    Ok(None) => break,
                    Err(trouble) => return Err(self.trouble(trouble)),
                };
                pages.resize(pages.len() + count as usize, page);
                writes += if kind == recorded::STORE { count } else { 0 };
                left -= count;
            }
            return Ok(writes);
        }
        for _ in 0..limit {
            let Some(record) = self.text()? else { break };
            pages.push(record.page);
            writes += u64::from(record.write);
        }
        Ok(writes)
    }

    /// The next run of references of one kind to one page, at most `limit` (at least 1) long. Only
    /// recorded programs have runs longer than one reference. `None` at the end.
    ///
    /// # Errors
    /// When the trace cannot be read, is torn, cut or foreign.
    #[inline]
    pub fn run(&mut self, limit: u64) -> Result<Option<recorded::Run>, TraceError> {
        match &mut self.recorded {
            Some(recorded) => recorded.next(&mut self.input, limit).map_err(|trouble| self.trouble(trouble)),
            None => Ok(self.next().transpose()?.map(|record| (record.page, u64::from(record.write), 1))),
        }
    }

    /// The next record of a binary format.
    fn one(&mut self, size: usize) -> Result<Option<Record>, TraceError> {
        let (format, shift) = (self.format, self.page_shift);
        if format == Format::ChampSim {
            return self.of_instruction(size);
        }
        let object_shift = self.object_shift;
        let length = self.binary(size, 1)?.len();
        let bytes = self.input.taken(length);
        let number = |order: fn([u8; 8]) -> u64| bytes.first_chunk().map(|n| Record::of(order(*n)));
        let narrow = |order: fn([u8; 4]) -> u32| bytes.first_chunk().map(|n| Record::of(order(*n).into()));
        let record = match format {
            Format::OracleGeneral => bytes.first_chunk().map(|record| {
                self.links.note(oracle::next(record));
                Record::object(oracle::object(record), oracle::bytes(record), object_shift)
            }),
            Format::Lcs => (!bytes.is_empty()).then(|| {
                self.links.note(lcs::next(bytes));
                lcs::record(bytes, object_shift)
            }),
            Format::Vscsi1 => bytes.first_chunk().map(vscsi::reference_1),
            Format::Vscsi2 => bytes.first_chunk().map(vscsi::reference_2),
            Format::U64Be => number(u64::from_be_bytes),
            Format::U32 => narrow(u32::from_le_bytes),
            Format::U32Be => narrow(u32::from_be_bytes),
            _ => number(u64::from_le_bytes),
        };
        Ok(if format.has_addresses() { record.map(|record| record.in_pages(shift)) } else { record })
    }

    /// The next reference of an instruction, or of those behind it.
    fn of_instruction(&mut self, size: usize) -> Result<Option<Record>, TraceError> {
        while self.pending.is_empty() {
            let shift = self.page_shift;
            let bytes = self.binary(size, 1)?;
            let Some(record) = bytes.first_chunk() else { return Ok(None) };
            let references = champ_sim::references(record);
            self.pending.extend(references.map(|record| record.in_pages(shift)));
        }
        Ok(self.pending.pop_front())
    }

    fn text(&mut self) -> Result<Option<Record>, TraceError> {
        if let Some(recorded) = &mut self.recorded {
            let run = recorded.next(&mut self.input, 1).map_err(|trouble| self.trouble(trouble))?;
            return Ok(
                run.map(|(page, kind, _)| Record { write: kind == recorded::STORE, ..Record::of(page) })
            );
        }
        if let Some(record) = self.pending.pop_front() {
            return Ok(Some(record));
        }
        loop {
            let first = !self.begun;
            let columns = self.columns;
            let line = match self.input.line() {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(None),
                Err(trouble) => return Err(self.trouble(trouble)),
            };
            let wrong = |wanted: &str| {
                let shown: String = String::from_utf8_lossy(line).chars().take(40).collect();
                format!("'{}' is not {wanted}", shown.trim())
            };
            let found = match self.format {
                Format::Lackey => lackey::reference(line).map_err(|()| wrong("a line of a lackey trace")),
                _ if plain::is_blank(line) => continue,
                Format::Csv => {
                    self.begun = true;
                    if first && self.given && columns.is_heading(line) {
                        continue;
                    }
                    if first
                        && !self.given
                        && let Some(named) = csv::Columns::of_header(line)
                    {
                        self.columns = named;
                        if named.have_pages() {
                            self.page_shift = 0;
                        }
                        continue;
                    }
                    columns.reference(line).map(Some)
                }
                Format::Spc => block_csv::spc(line).map(Some),
                Format::Msr if block_csv::is_msr_header(line) => Ok(None),
                Format::Msr => block_csv::msr(line).map(Some),
                Format::PerfScript => perf_script::reference(line),
                Format::LoadStore => match load_store::reference(line) {
                    None => Err(wrong("a reference such as 'l 0x1fffff50 1'")),
                    found => Ok(found),
                },
                _ => match plain::number(line) {
                    None => Err(wrong("a page number")),
                    Some(page) => Ok(Some(Record::of(page))),
                },
            };
            match found {
                Ok(None) => {}
                Ok(Some(_)) if !self.input.line_ended => return Err(self.error(CUT.into())),
                Err(problem) if !self.input.line_ended => return Err(self.error(format!("{problem}; {CUT}"))),
                Ok(Some(record)) if self.format == Format::Lackey => {
                    let Record { page, span, write, .. } = record.in_pages(self.page_shift);
                    let one = |page| Record { write, ..Record::of(page) };
                    self.pending.extend((1..span).map(|part| one(page + part)));
                    return Ok(Some(one(page)));
                }
                Ok(Some(record)) => {
                    return Ok(Some(if !self.names_objects() {
                        record.in_pages(self.page_shift)
                    } else if let Some(bytes) = record.bytes {
                        let Record { span, .. } = Record::object(record.page, bytes, self.object_shift);
                        Record { span, ..record }
                    } else {
                        record
                    }));
                }
                Err(problem) => return Err(self.error(problem)),
            }
        }
    }
}

impl Iterator for Reader {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let result = match self.record_size {
            Some(size) => self.one(size),
            None => self.text(),
        };
        self.done = !matches!(result, Ok(Some(_)));
        result.transpose()
    }
}
