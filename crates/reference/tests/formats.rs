//! A good trace and at least three bad ones of every format: what the good one gives, recognised and named, and that the
//! error about a bad one says where.

use std::io::Cursor;
use std::path::Path;

use pagelab_reference::trace::recorded::{Ending, Heading, Writer};
use pagelab_reference::trace::{Format, Options, Reader};

/// What becomes of a trace.
enum Wanted {
    /// Its pages; it is recognised.
    Good(&'static [u64]),
    /// Refused, read by its format, with these words.
    Bad(&'static str),
    /// Refused when it is to be recognised as well.
    Foreign(&'static str),
}
use Wanted::{Bad, Foreign, Good};

fn numbers<const N: usize>(list: &[u64], bytes: fn(u64) -> [u8; N]) -> Vec<u8> {
    list.iter().flat_map(|&n| bytes(n)).collect()
}

fn be32(n: u64) -> [u8; 4] {
    (n as u32).to_be_bytes()
}

fn le32(n: u64) -> [u8; 4] {
    (n as u32).to_le_bytes()
}

/// When the object of each request is requested next, counted from 0.
fn next(objects: &[u64], at: usize) -> i64 {
    objects[at + 1..].iter().position(|other| *other == objects[at]).map_or(-1, |n| (at + 1 + n) as i64)
}

fn oracle_general(objects: &[u64]) -> Vec<u8> {
    let record = |(n, object): (usize, &u64)| {
        [&le32(n as u64)[..], &object.to_le_bytes(), &le32(512), &next(objects, n).to_le_bytes()].concat()
    };
    objects.iter().enumerate().flat_map(record).collect()
}

fn lcs(version: u64, objects: &[u64]) -> Vec<u8> {
    let mut bytes = vec![0; 8192];
    let magic = 0x1234_5678_9abc_def0_u64.to_le_bytes();
    bytes[..8].copy_from_slice(&magic);
    bytes[8..16].copy_from_slice(&version.to_le_bytes());
    bytes[16..24].copy_from_slice(&(objects.len() as u64).to_le_bytes());
    bytes[8184..].copy_from_slice(&magic);
    for (n, object) in objects.iter().enumerate() {
        bytes.extend([&le32(n as u64)[..], &object.to_le_bytes(), &le32(512)].concat());
        bytes.extend(next(objects, n).to_le_bytes());
    }
    bytes
}

fn vscsi(version: u16, blocks: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (n, block) in blocks.iter().enumerate() {
        let numbers = [le32(n as u64), le32(4096), le32(1)].concat();
        let command = [0x28, version << 8 | 3].map(u16::to_le_bytes).concat();
        bytes.extend(if version == 1 { [numbers, command].concat() } else { [command, numbers].concat() });
        bytes.extend([block.to_le_bytes(), (n as u64 * 1000).to_le_bytes()].concat());
        bytes.extend(if version == 2 { &[77; 8][..] } else { &[] });
    }
    bytes
}

fn champ_sim(reads: &[u64]) -> Vec<u8> {
    let instruction = |(n, read): (usize, &u64)| {
        let mut bytes = [0; 64];
        bytes[..8].copy_from_slice(&(0x40_0000 + 4 * n as u64).to_le_bytes());
        bytes[32..40].copy_from_slice(&read.to_le_bytes());
        bytes
    };
    reads.iter().enumerate().flat_map(instruction).collect()
}

fn own(unit: u64, pages: &[u64]) -> Vec<u8> {
    let heading = Heading {
        program: vec!["test".into()],
        recorder: "test".into(),
        unit,
        kinds: vec!["load".into()],
        reduced: None,
    };
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &heading).unwrap();
    writer.block(1, 1, pages.iter().map(|&page| (page, 0, 1))).unwrap();
    writer.finish(Ending::default()).unwrap();
    bytes
}

fn spoiled(mut bytes: Vec<u8>, at: usize) -> Vec<u8> {
    bytes[at] ^= 0x41;
    bytes
}

fn cut(mut bytes: Vec<u8>, left: usize) -> Vec<u8> {
    bytes.truncate(left);
    bytes
}

fn corpus() -> Vec<(Format, Vec<u8>, Wanted)> {
    use Format::*;
    let text = |format: Format, list: Vec<(&str, Wanted)>| {
        list.into_iter()
            .map(move |(text, wanted)| (format, text.as_bytes().to_vec(), wanted))
            .collect::<Vec<_>>()
    };
    let own_good = own(4096, &[3, 1, 3]);
    let torn = own_good.len() - 30;
    let longest = format!("1\n{}\n", "1".repeat(5000));
    let mut list = vec![
        (Recorded, own_good.clone(), Good(&[3, 1, 3])),
        (Recorded, cut(own_good.clone(), torn), Bad("it was torn")),
        (Recorded, spoiled(own_good.clone(), 150), Bad("at byte ")),
        (Recorded, spoiled(own_good, 3), Bad("does not begin as a trace of pagelab's")),
        (Recorded, own(8192, &[1]), Foreign("recorded in units of 8192 bytes")),
        (OracleGeneral, oracle_general(&[7, 9, 7]), Good(&[7, 9, 7])),
        (OracleGeneral, cut(oracle_general(&[7, 9, 7]), 60), Foreign("byte 48: torn: 12 bytes")),
        (
            OracleGeneral,
            cut(oracle_general(&[7, 9, 8, 7]), 48),
            Bad("byte 24: it is cut, or no oracleGeneral"),
        ),
        (OracleGeneral, cut(oracle_general(&[7, 9]), 20), Foreign("torn: 20 bytes")),
        (OracleGeneral, vec![], Foreign("it holds no page number")),
        (Lcs, lcs(1, &[7, 9, 7]), Good(&[7, 9, 7])),
        (Lcs, lcs(9, &[7]), Foreign("lcs of version 9")),
        (Lcs, cut(lcs(1, &[7]), 8000), Foreign("no header of lcs")),
        (Lcs, cut(lcs(1, &[7, 9, 7]), 8192 + 30), Foreign("byte 8216: torn: 6 bytes")),
        (Lcs, cut(lcs(1, &[7, 9, 7]), 8192 + 24), Foreign("byte 8192: it is cut")),
        (
            Lcs,
            cut(lcs(1, &[7, 9, 8]), 8192 + 48),
            Foreign("it is cut: its header counts 3 requests, and there are 2"),
        ),
        (Vscsi1, vscsi(1, &[8, 80]), Good(&[1, 10])),
        (Vscsi1, cut(vscsi(1, &[8, 80]), 50), Bad("byte 32: torn: 18 bytes")),
        (Vscsi1, cut(vscsi(1, &[8]), 31), Bad("byte 0: torn: 31 bytes")),
        (Vscsi1, vec![], Bad("it holds no page number")),
        (Vscsi2, vscsi(2, &[8, 80]), Good(&[1, 10])),
        (Vscsi2, cut(vscsi(2, &[8, 80]), 50), Bad("byte 40: torn: 10 bytes")),
        (Vscsi2, cut(vscsi(2, &[8]), 39), Bad("byte 0: torn: 39 bytes")),
        (Vscsi2, vec![], Bad("it holds no page number")),
        (ChampSim, champ_sim(&[0x5000, 0x7000, 0x6000, 0x5008]), Good(&[5, 7, 6, 5])),
        (ChampSim, cut(champ_sim(&[0x5000, 0x7000]), 70), Bad("byte 64: torn: 6 bytes")),
        (ChampSim, cut(champ_sim(&[0x5000]), 63), Bad("byte 0: torn: 63 bytes")),
        (ChampSim, vec![], Bad("it holds no page number")),
        (U64, numbers(&[3, 1, 4], u64::to_le_bytes), Good(&[3, 1, 4])),
        (U64, cut(numbers(&[3, 1], u64::to_le_bytes), 15), Foreign("byte 8: torn: 7 bytes")),
        (
            U64,
            numbers(&[1 << 60, 1 << 59], u64::to_le_bytes).into_iter().take(9).collect(),
            Bad("byte 8: torn: 1 bytes"),
        ),
        (U64, vec![], Bad("it holds no page number")),
        (U64Be, numbers(&[3, 1, 4], u64::to_be_bytes), Good(&[3, 1, 4])),
        (U64Be, cut(numbers(&[3, 1], u64::to_be_bytes), 15), Bad("byte 8: torn: 7 bytes")),
        (U64Be, vec![0], Bad("byte 0: torn: 1 bytes")),
        (U64Be, vec![], Bad("it holds no page number")),
        (U32, numbers(&[300, 100, 400], le32), Good(&[300, 100, 400])),
        (U32, cut(numbers(&[300, 100], le32), 7), Bad("byte 4: torn: 3 bytes")),
        (U32, vec![0], Bad("byte 0: torn: 1 bytes")),
        (U32, vec![], Bad("it holds no page number")),
        (U32Be, numbers(&[300, 100, 400], be32), Good(&[300, 100, 400])),
        (U32Be, cut(numbers(&[300, 100], be32), 7), Bad("byte 4: torn: 3 bytes")),
        (U32Be, vec![0], Bad("byte 0: torn: 1 bytes")),
        (U32Be, vec![], Bad("it holds no page number")),
        (Text, longest.into_bytes(), Foreign("line 2: the line is longer than 4096 bytes")),
    ];
    list.extend(text(
        Text,
        vec![
            ("\u{feff}# pages\r\n3\r\n\r\n1\r\n*\r\n4\r\n", Good(&[3, 1, 4])),
            ("1\nx\n", Foreign("line 2: 'x' is not a page number")),
            ("1\n-2\n", Foreign("line 2: '-2' is not a page number")),
            ("1\n18446744073709551616\n", Foreign("line 2: '18446744073709551616' is not a page number")),
            ("# nothing but words\n", Bad("holds no reference")),
        ],
    ));
    list.extend(text(
        Lackey,
        vec![
            (
                "==1== Lackey\n\nI  04000fff,3\n S 1ffe001000,8\n L 2000,4\n",
                Good(&[0x4000, 0x4001, 0x1ffe001, 2]),
            ),
            (" L 10,4\n X 10,4\n", Foreign("line 2")),
            (" L zz,4\n", Bad("line 1")),
            (" L 10,99999\n", Bad("line 1")),
            (" L 10,4\nhello\n", Foreign("line 2: 'hello' is not a line of lackey's")),
        ],
    ));
    list.extend(text(
        PerfScript,
        vec![
            ("  4711 cpu/mem-loads,ldlat=30/P:  7f8a1c2d3e40\n", Good(&[0x7_f8a1_c2d3])),
            ("1 mem-loads: 10\n2 mem-loads:\n", Foreign("line 2: '2 mem-loads:' has no address")),
            ("1 mem-loads: 10\nno sample\n", Foreign("line 2: 'no sample' names no event")),
            ("1 mem-loads: zz\n", Bad("line 1: '1 mem-loads: zz' has no address")),
        ],
    ));
    list.extend(text(
        Csv,
        vec![
            ("rw, addr ,size\nWRITE,0x5000,8\nread,4096,8\n", Good(&[5, 1])),
            ("1,2,0x10,r\n1,2,zz,r\n", Foreign("line 2: 'zz' is not an address")),
            ("1,2,0x10,r\n1,2,0x10,q\n", Foreign("line 2: 'q' is neither r nor w")),
            ("1,2,0x10,r\n1,2\n", Foreign("line 2: field 3 is missing")),
        ],
    ));
    list.extend(text(
        LoadStore,
        vec![
            ("s 0x1fffff50 1\nl 0x1000 12\n", Good(&[0x1ffff, 1])),
            ("l 0x10 1\nq 0x10 1\n", Foreign("line 2")),
            ("s 0xzz 1\n", Bad("line 1")),
            ("l 0x10 1\nl 0x10\n", Foreign("line 2")),
        ],
    ));
    list.extend(text(
        Spc,
        vec![
            ("0,8,4096,W,0.5\n0,16,512,r,1.25\n", Good(&[1, 2])),
            ("0,1,8192,W,0.5\n0,2,4096,Q,0.7\n", Foreign("line 2: 'Q' is neither r nor w")),
            ("0,1,8192,W,0.5\n0,2\n", Foreign("line 2: field 3 is missing")),
            ("0,99999999999999999,8192,W,0.5\n", Bad("line 1: ")),
        ],
    ));
    list.extend(text(
        Msr,
        vec![
            (
                "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n1281663,hm,0,Read,8192,512,9\n",
                Good(&[2]),
            ),
            (
                "1,hm,0,Read,0,512,9\n1,hm,0,Trim,0,512,9\n",
                Foreign("line 2: 'Trim' is neither Read nor Write"),
            ),
            ("1,hm,0,Read,x,512,9\n", Bad("line 1: 'x' is not an offset")),
            ("1,hm,0\n", Bad("line 1: field 4 is missing")),
        ],
    ));
    list
}

fn pages(bytes: &[u8], format: Option<Format>) -> Result<(Format, Vec<u64>), String> {
    pages_of("trace", bytes, format)
}

fn pages_of(name: &str, bytes: &[u8], format: Option<Format>) -> Result<(Format, Vec<u64>), String> {
    let options = Options { format, ..Options::default() };
    let reader =
        Reader::of(Path::new(name), Box::new(Cursor::new(bytes.to_vec())), bytes.len() as u64, &options)
            .map_err(|e| e.to_string())?;
    let format = reader.format();
    let pages = reader.map(|record| record.map(|record| record.page)).collect::<Result<Vec<_>, _>>();
    match pages.map_err(|e| e.to_string())? {
        none if none.is_empty() => Err("holds no reference".into()),
        pages => Ok((format, pages)),
    }
}

#[test]
fn a_last_line_without_an_end_is_an_error() {
    let mut seen = 0;
    for (format, bytes, wanted) in corpus() {
        let (Good(_), Some((b'\n', rest))) = (wanted, bytes.split_last()) else { continue };
        if format == Format::Recorded {
            continue;
        }
        for length in [rest.len(), rest.len() - 1] {
            let error = pages(&rest[..length], Some(format)).unwrap_err();
            assert!(error.contains("the line has no end") && error.contains("echo >>"), "{format}: {error}");
        }
        seen += 1;
    }
    assert_eq!(seen, 7, "formats of lines");
    assert!(pages(b"1\n# a comment that is cut", None).is_ok());
}

#[test]
fn a_name_breaks_a_tie() {
    let objects: Vec<u64> =
        (0..10_000).map(|n: u64| (n % 5000 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let far = oracle_general(&objects);
    let narrow = numbers(&[300, 100], le32);
    for (bytes, format, name) in [
        (&far, Format::OracleGeneral, "w42.oracleGeneral.bin"),
        (&far, Format::OracleGeneral, "w42.oracleGeneral.zst"),
        (&narrow, Format::U32, "t.u32"),
    ] {
        assert!(pages_of("trace.bin", bytes, None).unwrap_err().contains("not recognised"), "{name}");
        assert_eq!(pages_of(name, bytes, None).unwrap().0, format, "{name}");
    }
    // A name says nothing against what the content says.
    assert_eq!(pages_of("t.oracleGeneral", b"1\n", None).unwrap().0, Format::Text);
    let foreign = pages_of("t.oracleGeneral", &[0x7f; 48], None).unwrap_err();
    assert!(foreign.contains("not recognised"), "{foreign}");
}

#[test]
fn every_format_has_a_good_trace_and_three_bad_ones() {
    let list = corpus();
    for (format, name, _) in Format::ALL {
        let of_it = || list.iter().filter(|one| one.0 == format).map(|one| &one.2);
        let good = of_it().filter(|wanted| matches!(wanted, Good(_))).count();
        let bad = of_it().count() - good;
        assert!(good >= 1 && bad >= 3, "{name}: {good} good traces and {bad} bad ones");
    }
    for (format, bytes, wanted) in list {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned();
        match wanted {
            Good(list) => {
                assert_eq!(pages(&bytes, None), Ok((format, list.to_vec())), "{shown}");
                assert_eq!(pages(&bytes, Some(format)), Ok((format, list.to_vec())), "{shown}");
            }
            Bad(words) | Foreign(words) => {
                let error = pages(&bytes, Some(format)).expect_err(&shown);
                assert!(error.contains(words), "{format}, {shown}: wanted '{words}', got '{error}'");
                let place = [" at line ", " at byte ", " at its start", "holds no reference"];
                assert!(place.iter().any(|place| error.contains(place)), "{format}, {shown}: {error}");
                if matches!(wanted, Foreign(_)) {
                    pages(&bytes, None).expect_err(&shown);
                }
            }
        }
    }
}

#[test]
fn a_reader_goes_to_any_place_of_a_format_that_has_them() {
    let mut with = Vec::new();
    for (format, bytes, wanted) in corpus() {
        let Good(list) = wanted else { continue };
        let options = Options { format: Some(format), ..Options::default() };
        let file = || Box::new(Cursor::new(bytes.clone()));
        let reader = || Reader::of(Path::new("trace"), file(), bytes.len() as u64, &options).unwrap();
        let Some(places) = reader().places() else { continue };
        with.push(format);
        assert_eq!(places, list.len() as u64, "{format}");
        for before in 0..=list.len() {
            let mut reader = reader();
            reader.go_to(before as u64).unwrap();
            let mut left = Vec::new();
            while reader.pages(2, &mut left).map(|_| left.len()).unwrap() + before < list.len() {}
            assert_eq!(left, list[before..], "{format} from {before}");
            assert_eq!(
                reader.pages(1, &mut left).map_err(|e| e.to_string()),
                Ok(0),
                "{format}: what is before the place counts"
            );
        }
    }
    use Format::*;
    with.sort_unstable_by_key(|format| format.to_string());
    with.dedup();
    assert_eq!(with, [Lcs, OracleGeneral, U32, U32Be, U64, U64Be, Vscsi1, Vscsi2]);
}
