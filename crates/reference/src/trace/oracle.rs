//! libCacheSim's oracleGeneral: little-endian records of 24 bytes: u32 time, u64 object, u32 size,
//! i64 index of the next request for the object (−1 for none).
//!
//! An object is taken as one page, whatever its size, unless sizes are asked for. Some writers count the requests from 0 and some
//! from 1, and some put the greatest i64 for none; all are accepted. A request whose object is next
//! requested behind the end of the file tells that the file is cut.

/// Bytes in a record.
pub(super) const SIZE: usize = 24;

fn field<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    record[at..at + N].try_into().expect("the record has 24 bytes")
}

/// The object, which is the page.
#[inline]
pub(super) fn object(record: &[u8; SIZE]) -> u64 {
    u64::from_le_bytes(field(record, 4))
}

/// The object's size in bytes.
#[inline]
pub(super) fn bytes(record: &[u8; SIZE]) -> u64 {
    u32::from_le_bytes(field(record, 12)).into()
}

/// The index of the next request for the object.
#[inline]
pub(super) fn next(record: &[u8; SIZE]) -> i64 {
    i64::from_le_bytes(field(record, 16))
}

/// Whether it is one, and not never.
#[inline]
fn is_index(next: i64) -> bool {
    next != -1 && next != i64::MAX
}

/// The greatest index of a next request that was met: beyond the last record in a file that is cut.
#[derive(Debug, Default)]
pub(super) struct Links {
    records: u64,
    greatest: i64,
    /// The records that the file's header counts.
    pub counted: Option<u64>,
}

impl Links {
    /// The next record has so many before it.
    pub fn go_to(&mut self, before: u64) {
        self.records = before;
    }

    /// Appends the objects of the records that were read next, and takes note of these.
    #[inline]
    pub fn objects(&mut self, records: &[[u8; SIZE]], objects: &mut Vec<u64>) {
        self.records += records.len() as u64;
        let mut greatest = self.greatest;
        objects.extend(records.iter().map(|record| {
            // One pass for both: what is at hand was fetched from memory a moment ago.
            let next = next(record);
            greatest = greatest.max(if is_index(next) { next } else { 0 });
            object(record)
        }));
        self.greatest = greatest;
    }

    /// Takes note of a record with this index of the next request.
    #[inline]
    pub fn note(&mut self, next: i64) {
        self.records += 1;
        if is_index(next) {
            self.greatest = self.greatest.max(next);
        }
    }

    /// What is wrong once all records were read.
    pub fn problem(&self) -> Option<String> {
        if let Some(counted) = self.counted.filter(|&counted| counted > self.records) {
            let records = self.records;
            return Some(format!("it is cut: its header counts {counted} requests, and there are {records}"));
        }
        let beyond = u64::try_from(self.greatest).is_ok_and(|next| next > self.records);
        beyond.then(|| {
            format!(
                "it is cut, or no oracleGeneral: a record says that its object is requested again at number {}, \
                 and there are {} records",
                self.greatest, self.records
            )
        })
    }
}

/// What is said of records that are in order but for links beyond the end.
pub(super) const CUT: &str = "is the file cut?";

/// What is said of records that are in order, none of which can be seen to point at the right one.
pub(super) const UNSEEN: &str = "no record points at another that can be seen";

/// Whether the records can be oracleGeneral: time does not run backwards, each points forward, at a
/// record for the same object where that is in the head, else into the file of `length` bytes. At least one must be seen to
/// point at the right one, or all must point nowhere.
///
/// # Errors
/// What contradicts it.
pub(super) fn plausible(head: &[u8], whole: bool, length: Option<u64>) -> Result<(), String> {
    let (records, _) = head.as_chunks::<SIZE>();
    if records.is_empty() {
        return Err("it is shorter than a record".into());
    }
    let count = if whole { Some(records.len() as u64) } else { length.map(|bytes| bytes / SIZE as u64) };
    let (mut confirmed, mut open, mut beyond) = (0, 0, None);
    let mut before = 0;
    for (index, record) in records.iter().enumerate() {
        let time = u32::from_le_bytes(field(record, 0));
        if time < before {
            return Err(format!("time runs backwards at record {index}"));
        }
        before = time;
        let next = next(record);
        if !is_index(next) {
            continue;
        }
        let Some(next) = usize::try_from(next).ok().filter(|&next| next > index) else {
            return Err(format!("record {index} points back, at {next}"));
        };
        if count.is_some_and(|count| next as u64 > count) {
            beyond = beyond.or(Some(format!("record {index} points at {next}, beyond the end")));
            continue;
        }
        let same = |at: usize| at > index && records.get(at).is_some_and(|o| object(o) == object(record));
        if same(next) || same(next - 1) {
            confirmed += 1;
        } else if next < records.len() {
            return Err(format!("record {index} points at {next}, which is another object"));
        } else {
            open += 1;
        }
    }
    if let Some(problem) = beyond {
        return Err(if confirmed > 0 { format!("{problem}: {CUT}") } else { problem });
    }
    if confirmed == 0 && open > 0 {
        return Err(UNSEEN.into());
    }
    Ok(())
}
