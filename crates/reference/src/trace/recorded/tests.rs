//! What is written is read, and what is spoiled is refused.

use std::num::NonZeroU32;
use std::path::Path;

use super::numbers::{get, put, unzigzag, zigzag};
use super::reader::{BlockHeader, Decoder};
use super::*;
use pagelab_ring::words::{self, key};
use proptest::prelude::*;
use std::collections::HashMap;

fn heading() -> Heading {
    Heading {
        program: vec!["sort".into()],
        recorder: "test".into(),
        unit: 4096,
        kinds: vec!["load".into()],
        reduced: None,
        window: None,
    }
}

#[test]
fn a_heading_that_is_stated_again_is_read() {
    use std::io::Write as _;
    let path = std::env::temp_dir().join(format!("pagelab-restated-{}", std::process::id()));
    let before = Heading { window: Some(65_536), ..heading() };
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, &before).unwrap();
    writer.block(0, 0, [(1, LOAD, 1)].into_iter()).unwrap();
    writer.finish(Ending::default()).unwrap();
    std::fs::write(&path, &file).unwrap();
    let mut opened = File::options().write(true).open(&path).unwrap();
    let after = Heading { window: Some(256), ..heading() };
    assert!(restate(&mut opened, &after, &before).is_err(), "a longer one");
    restate(&mut opened, &before, &after).unwrap();
    opened.flush().unwrap();
    let (found, ending) = ends(&path).unwrap().unwrap();
    assert_eq!((&found, found.least(), ending.loads), (&after, 1024, 1));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_trace_through_a_window_is_read_only_where_it_holds() {
    use crate::trace::{Options, Reader};
    let mut file = Vec::new();
    let heading = Heading { window: Some(256), ..heading() };
    let mut writer = Writer::new(&mut file, &heading).unwrap();
    writer.block(0, 0, [(1, LOAD, 1)].into_iter()).unwrap();
    writer.finish(Ending::default()).unwrap();
    let open = |options: Options| {
        let file: Box<dyn crate::trace::Seekable> = Box::new(io::Cursor::new(file.clone()));
        Reader::of(Path::new("w"), file, 0, &options)
    };
    let refused = open(Options::default()).err().map(|error| error.to_string());
    assert!(refused.is_some_and(|refused| refused.contains("1024 pages and more")));
    assert!(open(Options { window: true, ..Options::default() }).is_ok());
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
    assert!(of(3).unwrap_err().contains("2 processes, but not process 3"), "{:?}", of(3));
}

/// All runs of a file, with those that are the same put together.
fn runs_of(file: Vec<u8>) -> Result<Vec<Run>, String> {
    use crate::trace::{Options, Reader, Seekable};
    let file: Box<dyn Seekable> = Box::new(io::Cursor::new(file));
    let mut reader =
        Reader::of(Path::new("a"), file, 0, &Options::default()).map_err(|error| error.to_string())?;
    let mut found: Vec<Run> = Vec::new();
    while let Some((page, kind, count)) = reader.run(u64::MAX).map_err(|error| error.to_string())? {
        add(&mut found, (page, kind, count));
    }
    Ok(found)
}

fn add(runs: &mut Vec<Run>, (page, kind, count): Run) {
    match runs.last_mut() {
        Some(last) if (last.0, last.1) == (page, kind) => last.2 += count,
        _ => runs.push((page, kind, count)),
    }
}

#[test]
fn files_of_before_are_read() {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, &heading()).unwrap();
    writer.block(7, 1, [(1, LOAD, 1), (2, FETCH, 5)].into_iter()).unwrap();
    writer.finish(Ending::default()).unwrap();
    file[..BEFORE.len()].copy_from_slice(BEFORE);
    assert_eq!(runs_of(file).unwrap(), [(1, LOAD, 1), (2, FETCH, 5)]);
}

#[test]
fn words_that_mean_nothing_are_refused() {
    let defined = [&[words::define(1)][..], &words::fetched(key(5, FETCH), 3)].concat();
    let refused = |words: &[u32]| {
        let mut writer = Writer::new(io::sink(), &heading()).unwrap();
        writer.executed(0, 0, &[&defined, words].concat(), |_| {}).is_err()
    };
    assert!(!refused(&[words::execute(0)]));
    assert!(!refused(&[words::execute(0), words::execute(0), words::go(7)]), "it follows itself");
    assert!(refused(&[words::execute(1)]), "a block that is not defined");
    assert!(refused(&words::replace(0, key(1, LOAD))), "of no execution");
    assert!(refused(&[&[words::execute(0)][..], &words::replace(1, key(1, LOAD))].concat()), "one left out");
    assert!(refused(&[words::execute(0), words::cut(1)]), "shorter than it is");
    assert!(refused(&[words::execute(0), words::go(1)]), "nothing followed it");
    assert!(refused(&[words::define(2), 1, 0, 1]), "a definition that ends early");
    assert!(refused(&words::apart(3)), "no kind");
}

/// What a tracer does, as simply as can be: what is executed, and the words for it.
#[derive(Default)]
struct Tracer {
    words: Vec<u32>,
    /// By block: its number here, the keys of its last execution, and what followed it.
    known: HashMap<usize, (u32, Vec<u64>, Option<usize>)>,
    last: Option<usize>,
    going: u32,
}

impl Tracer {
    fn go(&mut self) {
        if self.going > 0 {
            self.words.push(words::go(std::mem::take(&mut self.going)));
        }
    }

    fn execute(&mut self, block: usize, fetches: &[(u64, u32)], keys: &[u64]) {
        let foreseen = self.last.and_then(|last| self.known[&last].2) == Some(block);
        let before = self.last.replace(block);
        if foreseen {
            self.going += 1;
        } else {
            self.go();
            if !self.known.contains_key(&block) {
                self.words.push(words::define(fetches.len() as u32));
                self.words.extend(fetches.iter().flat_map(|&(key, count)| words::fetched(key, count)));
                self.known.insert(block, (self.known.len() as u32, Vec::new(), None));
            }
            self.words.push(words::execute(self.known[&block].0));
            if let Some(before) = before {
                self.known.get_mut(&before).unwrap().2 = Some(block);
            }
        }
        let was = std::mem::replace(&mut self.known.get_mut(&block).unwrap().1, keys.to_vec());
        for (position, &key) in keys.iter().enumerate() {
            if was.get(position) != Some(&key) {
                self.go();
                self.words.extend(words::replace(position as u32, key));
            }
        }
        if keys.len() < was.len() {
            self.go();
            self.words.push(words::cut(keys.len() as u32));
        }
    }

    fn apart(&mut self, key: u64) {
        self.go();
        self.words.extend(words::apart(key));
    }
}

/// What a program does: it executes the block of a number, which loads and stores these, or references one by itself.
#[derive(Clone, Debug)]
enum Does {
    Execute(usize, Vec<(u64, u64)>),
    Apart(u64),
}

fn does() -> impl Strategy<Value = Does> {
    let accesses = prop::collection::vec((0u64..4, 0u64..2), 0..4);
    prop_oneof![
        9 => (0usize..5, accesses).prop_map(|(block, accesses)| Does::Execute(block, accesses)),
        4 => (0usize..5).prop_map(|block| Does::Execute(block, vec![(1 << 40, LOAD); block])),
        1 => (0u64..1 << 42).prop_map(Does::Apart),
    ]
}

proptest! {
    #[test]
    fn executions_come_back(program in prop::collection::vec(does(), 1..300), again in 1usize..4) {
        // Of block n, n runs are fetched, none of block 0.
        let fetches = |block: usize| -> Vec<(u64, u32)> {
            (0..block).map(|n| (key(100 + n as u64, FETCH), 1 + n as u32)).collect()
        };
        let (mut tracer, mut expected, mut sums) = (Tracer::default(), Vec::new(), [0; 3]);
        let mut expect = |run: Run| {
            sums[run.1 as usize] += run.2;
            add(&mut expected, run);
        };
        let mut buffers = Vec::new();
        for _ in 0..again {
            for one in &program {
                match one {
                    Does::Execute(block, accesses) => {
                        let keys: Vec<u64> = accesses.iter().map(|&(page, kind)| key(page, kind)).collect();
                        tracer.execute(*block, &fetches(*block), &keys);
                        let fetched = fetches(*block).into_iter();
                        fetched.for_each(|(key, n)| expect((words::parts(key).0, FETCH, n.into())));
                        accesses.iter().for_each(|&(page, kind)| expect((page, kind, 1)));
                    }
                    Does::Apart(page) => {
                        tracer.apart(key(*page, STORE));
                        expect((*page, STORE, 1));
                    }
                }
            }
            tracer.go();
            buffers.push(std::mem::take(&mut tracer).words);
        }
        let (mut file, mut units) = (Vec::new(), std::collections::HashSet::new());
        let mut writer = Writer::new(&mut file, &heading()).unwrap();
        for buffer in &buffers {
            writer.executed(7, 1, buffer, |unit| { units.insert(unit); }).unwrap();
        }
        let (ending, _) = writer.finish(Ending::default()).unwrap();
        prop_assert_eq!([ending.loads, ending.stores, ending.fetches], sums);
        prop_assert!(ending.runs >= expected.len() as u64);
        prop_assert!(expected.iter().all(|run| units.contains(&run.0)));
        prop_assert_eq!(runs_of(file).unwrap(), expected);
    }

    #[test]
    fn no_words_make_the_writer_panic(words in prop::collection::vec(prop_oneof![any::<u32>(), 0u32..64], 0..60)) {
        let mut writer = Writer::new(io::sink(), &heading()).unwrap();
        let _ = writer.executed(0, 0, &words, |_| {});
    }

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
    fn no_block_makes_the_decoder_panic(
        count in 0usize..RUNS,
        executed: bool,
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0u8..16], 0..100),
    ) {
        let packed = zstd::bulk::compress(&bytes, 1).unwrap();
        for packed in [&packed, &bytes] {
            let crc = crc32fast::hash(packed);
            let header = BlockHeader { count, executed, length: packed.len(), process: 1, crc };
            let (mut decoder, mut runs) = (Decoder::new(None).unwrap(), Vec::new());
            if decoder.block(&header, packed, &mut runs).is_ok() {
                // So far: a few bytes can go on for long.
                for _ in 0..10 {
                    runs.clear();
                    if !decoder.more(&mut runs).unwrap_or(false) {
                        break;
                    }
                }
            }
        }
    }
}
