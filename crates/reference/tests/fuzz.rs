//! Every reader of traces against spoiled ones: an error with a place, or references; never a panic.

mod made;

use std::io::{Cursor, Write};
use std::path::Path;

use made::{lcs, oracle_general};
use pagelab_reference::Pattern;
use pagelab_reference::progress::unwatched;
use pagelab_reference::trace::{self, Format, Options};
use pagelab_testing::fuzz;

/// The most references taken of one input: a few bytes may unpack to many.
const MAX_REFERENCES: usize = 20_000;

/// A trace of every format, of so many references.
fn good(count: u64) -> Vec<Vec<u8>> {
    let text = |line: &dyn Fn(u64) -> String| (0..count).map(line).collect::<String>().into_bytes();
    let mut list = vec![
        text(&|n| format!("{}\n", n * 7 % 90)),
        text(&|n| format!("0x{:x}\n", n * 4096)),
        text(&|n| format!("==1== x\n L {:08x},4\n S {:08x},8\nI  {:08x},3\n", n * 64, n, n * 9)),
        text(&|n| format!("{n},{},w,{}\n", n % 50, n % 3)),
        format!(
            "time,page,op,pid\n{}",
            String::from_utf8(text(&|n| format!("{n},{},r,7\n", n % 50))).unwrap()
        )
        .into(),
        text(&|n| format!("{},{n},512,r,0.{n}\n", n % 4)),
        text(&|n| format!("{n},host,0,Read,{},4096,9\n", n * 4096)),
        text(&|n| format!("{} 0x{:x} 1\n", if n % 2 == 0 { 'l' } else { 's' }, n * 64)),
        text(&|n| {
            format!("  {n} cpu/mem-{}/P: {:x}\n", if n % 2 == 0 { "loads" } else { "stores" }, n * 999)
        }),
        text(&|n| if n == 0 { "id;size;op\n".into() } else { format!("{};4096;get\n", n % 50) }),
        (0..count).flat_map(|n| (n * 11 % 77).to_le_bytes()).collect(),
        (0..count as u32).flat_map(|n| (n * 11 % 77).to_be_bytes()).collect(),
    ];
    let objects: Vec<u64> = (0..count).map(|n| n % 10).collect();
    list.extend([oracle_general(&objects, 0, 512), lcs(2, &objects)]);
    let packed = |bytes: &[u8]| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap()
    };
    list.extend([
        packed(&list[0]),
        packed(&list[list.len() - 2]),
        zstd::encode_all(&list[3][..], 1).unwrap(),
    ]);
    list
}

/// Reads all of an input, one by one and in batches.
fn read(name: &Path, bytes: &[u8], options: &Options) {
    let open = || {
        let content = Box::new(Cursor::new(bytes.to_vec()));
        trace::Reader::of(name, content, bytes.len() as u64, options)
    };
    if let Ok(reader) = open()
        && let Some(Err(error)) = reader.take(MAX_REFERENCES).last()
    {
        let error = error.to_string();
        assert!(error.starts_with("the trace spoiled is not usable at "), "{error}");
        assert!([" at line ", " at byte "].iter().any(|place| error.contains(place)), "{error}");
    }
    if let Ok(mut reader) = open() {
        let mut pages = Vec::new();
        let mut before = 1;
        while pages.len() < MAX_REFERENCES && pages.len() != before {
            before = pages.len();
            if reader.pages(1000, &mut pages).is_err() {
                break;
            }
        }
    }
}

/// The format and the page size that an input is read by: half are to be recognised.
fn options(bytes: &[u8]) -> Options {
    let format = Format::ALL.get(bytes.len() % (2 * Format::ALL.len())).map(|(format, ..)| *format);
    Options { format, page_size: 1 << (bytes.len() % 64), ..Options::default() }
}

/// Short ones, of which there are many a second, in memory.
#[test]
fn short_traces() {
    let good: Vec<Vec<u8>> = [3, 12, 30].into_iter().flat_map(good).collect();
    fuzz::fuzz("short-traces", &good, |bytes| read(Path::new("spoiled"), bytes, &options(bytes)));
}

/// Longer ones, in a file, and as a pattern.
#[test]
fn traces() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fuzz::fuzz("traces", &good(400), |bytes| {
        read(Path::new("spoiled"), bytes, &options(bytes));
        std::fs::write(file.path(), bytes).unwrap();
        let pattern = Pattern::Trace(file.path().to_owned());
        if let Ok(mut blocks) = pattern.blocks(100, 5000, 1, &mut unwatched) {
            while blocks.left() > 0
                && blocks.next(700).is_ok_and(|block| block.iter().all(|&page| page < 100))
            {}
        }
    });
}
