//! What is written is read, and what is spoiled is refused.

use std::num::NonZeroU32;
use std::path::Path;

use super::numbers::{get, put, unzigzag, zigzag};
use super::reader::{BlockHeader, Decoder};
use super::*;
use proptest::prelude::*;

fn heading() -> Heading {
    Heading {
        program: vec!["sort".into()],
        recorder: "test".into(),
        unit: 4096,
        kinds: vec!["load".into()],
        reduced: None,
    }
}

#[test]
fn one_process_is_read_by_itself() {
    use crate::trace::{Options, Reader};
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, &heading()).unwrap();
    for (process, page) in [(7, 1), (9, 2), (7, 3), (9, 4)] {
        writer.block(process, 0, [(page, LOAD, 1), (page, STORE, 2)].into_iter()).unwrap();
    }
    writer.finish(Ending::default()).unwrap();
    let of = |number: u32| {
        let options = Options { process: NonZeroU32::new(number), ..Options::default() };
        let file: Box<dyn crate::trace::Seekable> = Box::new(io::Cursor::new(file.clone()));
        let mut reader = Reader::of(Path::new("two"), file, 0, &options).unwrap();
        let mut found = Vec::new();
        while let Some(run) = reader.run(u64::MAX).map_err(|error| error.to_string())? {
            found.push(run);
        }
        Ok::<_, String>(found)
    };
    assert_eq!(of(1).unwrap(), [(1, LOAD, 1), (1, STORE, 2), (3, LOAD, 1), (3, STORE, 2)]);
    assert_eq!(of(2).unwrap(), [(2, LOAD, 1), (2, STORE, 2), (4, LOAD, 1), (4, STORE, 2)]);
    assert!(of(3).unwrap_err().contains("2 processes, and no process 3"), "{:?}", of(3));
}

proptest! {
    #[test]
    fn numbers_come_back(numbers: Vec<u64>) {
        let mut bytes = vec![0; 10 * numbers.len()];
        let length = numbers.iter().fold(0, |at, &n| at + put(n, &mut bytes[at..]));
        let mut rest = &bytes[..length];
        for n in numbers {
            prop_assert_eq!(get(&mut rest), Some(n));
            prop_assert_eq!(zigzag(unzigzag(n)), n);
        }
        prop_assert_eq!(get(&mut rest), None);
    }

    #[test]
    fn runs_come_back(runs in prop::collection::vec((0u64..1 << 42, 0u64..3, 1u64..1 << 20), 1..200)) {
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, &heading()).unwrap();
        writer.block(7, 1, runs.iter().copied()).unwrap();
        writer.block(9, 0, runs.iter().copied()).unwrap();
        let (ending, bytes) = writer.finish(Ending::default()).unwrap();
        prop_assert_eq!(bytes, file.len() as u64);
        prop_assert_eq!(ending.references(), 2 * runs.iter().map(|r| r.2).sum::<u64>());
        prop_assert_eq!((ending.processes, ending.threads, ending.blocks), (2, 2, 2));
        let at = 20 + u32::from_le_bytes(file[16..20].try_into().unwrap()) as usize;
        let (mut decoder, mut found, mut rest) = (Decoder::new(None).unwrap(), Vec::new(), &file[at..]);
        for _ in 0..2 {
            let header = BlockHeader::read(rest.first_chunk().unwrap()).unwrap();
            decoder.block(&header, &rest[HEADER..HEADER + header.length], &mut found).unwrap();
            rest = &rest[HEADER + header.length..];
        }
        let apart: Vec<Run> = runs.iter().map(|&(page, kind, n)| (page ^ 1 << 52, kind, n)).collect();
        prop_assert_eq!(found, [runs, apart].concat());
    }

    #[test]
    fn no_block_makes_the_decoder_panic(runs in 0usize..RUNS, bytes: Vec<u8>) {
        let packed = zstd::bulk::compress(&bytes, 1).unwrap();
        for packed in [&packed, &bytes] {
            let header = BlockHeader { runs, length: packed.len(), process: 1, crc: crc32fast::hash(packed) };
            let _ = Decoder::new(None).unwrap().block(&header, packed, &mut Vec::new());
        }
    }
}
