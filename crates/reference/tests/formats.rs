//! A good trace and at least three bad ones of every format: what the good one gives, recognised and named, and that the
//! error about a bad one says where.

mod made;

use std::io::{Cursor, Write};
use std::path::Path;

use made::{lcs, oracle_general};
use pagelab_reference::trace::recorded::{Ending, Heading, Writer};
use pagelab_reference::trace::{Format, Options, Reader, Record, csv, load, read};
use pagelab_reference::{Pattern, Stream, rng::Rng};
use proptest::prelude::*;

/// What becomes of a trace.
enum Wanted {
    /// Its references; it is recognised.
    Good(Vec<Record>),
    /// Refused, read by its format, with these words.
    Bad(&'static str),
    /// Refused when it is to be recognised as well.
    Foreign(&'static str),
}
use Wanted::{Bad, Foreign, Good};

fn load_of(page: u64) -> Record {
    Record { page, write: false, pid: None, bytes: None, span: 1 }
}

fn store_to(page: u64) -> Record {
    Record { write: true, ..load_of(page) }
}

fn sized(record: Record, bytes: u64) -> Record {
    Record { bytes: Some(bytes), ..record }
}

/// Loads of these pages.
fn loads(pages: &[u64]) -> Wanted {
    Good(pages.iter().map(|&page| load_of(page)).collect())
}

/// Requests for these objects of 512 bytes.
fn objects(list: &[u64]) -> Wanted {
    Good(list.iter().map(|&object| sized(load_of(object), 512)).collect())
}

fn numbers<const N: usize>(list: &[u64], bytes: fn(u64) -> [u8; N]) -> Vec<u8> {
    list.iter().flat_map(|&n| bytes(n)).collect()
}

fn be32(n: u64) -> [u8; 4] {
    (n as u32).to_be_bytes()
}

fn le32(n: u64) -> [u8; 4] {
    (n as u32).to_le_bytes()
}

/// Requests of (command, block).
fn vscsi(version: u16, requests: &[(u16, u64)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (n, (command, block)) in requests.iter().enumerate() {
        let numbers = [le32(n as u64), le32(4096), le32(1)].concat();
        let command = [*command, version << 8 | 3].map(u16::to_le_bytes).concat();
        bytes.extend(if version == 1 { [numbers, command].concat() } else { [command, numbers].concat() });
        bytes.extend([block.to_le_bytes(), (n as u64 * 1000).to_le_bytes()].concat());
        bytes.extend(if version == 2 { &[77; 8][..] } else { &[] });
    }
    bytes
}

/// Instructions that read two addresses and write one; 0 for none.
fn champ_sim(instructions: &[[u64; 3]]) -> Vec<u8> {
    let instruction = |(n, [read, other, write]): (usize, &[u64; 3])| {
        let mut bytes = [0; 64];
        for (at, word) in [(0, 0x40_0000 + 4 * n as u64), (16, *write), (32, *read), (40, *other)] {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    };
    instructions.iter().enumerate().flat_map(instruction).collect()
}

fn own(unit: u64, pages: &[u64]) -> Vec<u8> {
    let heading = Heading {
        program: vec!["test".into()],
        recorder: "test".into(),
        unit,
        kinds: vec!["load".into()],
        reduced: None,
        window: None,
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

/// Some thousand numbers below `bound`, without order.
fn scattered(bound: u64) -> Vec<u64> {
    let mut rng = Rng::new(5);
    (0..5000).map(|_| rng.below(bound)).collect()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
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
    let whole = oracle_general(&scattered(2000), 1, 512);
    let requests = || Good(vec![sized(load_of(1), 4096), sized(store_to(10), 4096)]);
    let of = |pid, record| Record { pid: Some(pid), ..record };
    let longest = format!("1\n{}\n", "1".repeat(5000));
    let mut list = vec![
        (Recorded, own_good.clone(), loads(&[3, 1, 3])),
        (Recorded, cut(own_good.clone(), torn), Bad("it is cut")),
        (Recorded, spoiled(own_good.clone(), 150), Bad("at byte ")),
        (Recorded, spoiled(own_good, 3), Bad("does not begin like a trace of pagelab")),
        (Recorded, own(8192, &[1]), Foreign("recorded in units of 8192 bytes")),
        (
            OracleGeneral,
            oracle_general(&[7 << 40, 9, 7 << 40, 8], 0, 512),
            objects(&[7 << 40, 9, 7 << 40, 8]),
        ),
        (OracleGeneral, oracle_general(&[7, 7, 9, 7], 1, 512), objects(&[7, 7, 9, 7])),
        (
            OracleGeneral,
            oracle_general(&[1, 2, 1], 1, 4097),
            Good([1, 2, 1].map(|page| Record { span: 2, ..sized(load_of(page), 4097) }).to_vec()),
        ),
        (OracleGeneral, whole[..2500 * 24].to_vec(), Bad("it is cut, or no oracleGeneral")),
        (OracleGeneral, zstd(&whole[..2500 * 24]), Bad("it is cut, or no oracleGeneral")),
        (OracleGeneral, cut(oracle_general(&[7, 9, 7], 0, 512), 60), Foreign("byte 48: torn: 12 bytes")),
        (
            OracleGeneral,
            cut(oracle_general(&[7, 9, 8, 7], 0, 512), 48),
            Bad("byte 24: it is cut, or no oracleGeneral"),
        ),
        (OracleGeneral, cut(oracle_general(&[7, 9], 0, 512), 20), Foreign("torn: 20 bytes")),
        (OracleGeneral, vec![], Foreign("it holds no page number")),
        (Lcs, lcs(1, &[7, 9, 7]), objects(&[7, 9, 7])),
        (Lcs, lcs(2, &[7, 9]), Good([7, 9].map(|object| sized(store_to(object), 512)).to_vec())),
        (Lcs, lcs(3, &[7, 9]), Good([7, 9].map(|object| sized(store_to(object), 512)).to_vec())),
        (Lcs, cut(lcs(2, &[1, 2, 1]), 8200), Foreign("byte 8192: torn: 8 bytes")),
        (Lcs, lcs(9, &[7]), Foreign("lcs of version 9")),
        (Lcs, cut(lcs(1, &[7]), 8000), Foreign("no header of lcs")),
        (Lcs, cut(lcs(1, &[7, 9, 7]), 8192 + 30), Foreign("byte 8216: torn: 6 bytes")),
        (Lcs, cut(lcs(1, &[7, 9, 7]), 8192 + 24), Foreign("byte 8192: it is cut")),
        (
            Lcs,
            cut(lcs(1, &[7, 9, 8]), 8192 + 48),
            Foreign("it is cut: its header counts 3 requests, and there are 2"),
        ),
        (Vscsi1, vscsi(1, &[(0x28, 8), (0x2a, 80)]), requests()),
        (Vscsi1, cut(vscsi(1, &[(1, 8), (1, 80)]), 50), Bad("byte 32: torn: 18 bytes")),
        (Vscsi1, cut(vscsi(1, &[(1, 8)]), 31), Bad("byte 0: torn: 31 bytes")),
        (Vscsi1, vec![], Bad("it holds no page number")),
        (Vscsi2, vscsi(2, &[(0x28, 8), (0x2a, 80)]), requests()),
        (Vscsi2, cut(vscsi(2, &[(1, 8), (1, 80)]), 50), Bad("byte 40: torn: 10 bytes")),
        (Vscsi2, cut(vscsi(2, &[(1, 8)]), 39), Bad("byte 0: torn: 39 bytes")),
        (Vscsi2, vec![], Bad("it holds no page number")),
        (
            ChampSim,
            champ_sim(&[[0; 3], [0x5000, 0x6fff, 0x7000], [0; 3], [0; 3], [0, 0x8000, 0]]),
            Good(vec![load_of(5), load_of(6), store_to(7), load_of(8)]),
        ),
        (ChampSim, cut(champ_sim(&[[0x5000, 0, 0]; 2]), 70), Bad("byte 64: torn: 6 bytes")),
        (ChampSim, cut(champ_sim(&[[0x5000, 0, 0]]), 63), Bad("byte 0: torn: 63 bytes")),
        (ChampSim, vec![], Bad("it holds no page number")),
        (U64, numbers(&[3, 1, 4], u64::to_le_bytes), loads(&[3, 1, 4])),
        (U64, cut(numbers(&[3, 1], u64::to_le_bytes), 15), Foreign("byte 8: torn: 7 bytes")),
        (
            U64,
            numbers(&[1 << 60, 1 << 59], u64::to_le_bytes).into_iter().take(9).collect(),
            Bad("byte 8: torn: 1 bytes"),
        ),
        (U64, vec![], Bad("it holds no page number")),
        (U64Be, numbers(&[3, 1, 4], u64::to_be_bytes), loads(&[3, 1, 4])),
        (U64Be, cut(numbers(&[3, 1], u64::to_be_bytes), 15), Bad("byte 8: torn: 7 bytes")),
        (U64Be, vec![0], Bad("byte 0: torn: 1 bytes")),
        (U64Be, vec![], Bad("it holds no page number")),
        (U32, numbers(&[300, 100, 400], le32), loads(&[300, 100, 400])),
        (U32, cut(numbers(&[300, 100], le32), 7), Bad("byte 4: torn: 3 bytes")),
        (U32, vec![0], Bad("byte 0: torn: 1 bytes")),
        (U32, vec![], Bad("it holds no page number")),
        (U32Be, numbers(&[300, 100, 400], be32), loads(&[300, 100, 400])),
        (U32Be, cut(numbers(&[300, 100], be32), 7), Bad("byte 4: torn: 3 bytes")),
        (U32Be, vec![0], Bad("byte 0: torn: 1 bytes")),
        (U32Be, vec![], Bad("it holds no page number")),
        (Text, longest.into_bytes(), Foreign("line 2: the line is longer than 4096 bytes")),
    ];
    list.extend(text(
        Text,
        vec![
            ("\u{feff}# pages\r\n3\r\n\r\n1\r\n*\r\n4\r\n", loads(&[3, 1, 4])),
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
                "==1== Lackey\n\nI  04000fff,3\n S 1ffe001000,8\n L 2000,4\n M 3fff,1\n==1== end\n",
                Good(vec![load_of(0x4000), load_of(0x4001), store_to(0x1ffe001), load_of(2), store_to(3)]),
            ),
            (" L 10,4\n X 10,4\n", Foreign("line 2")),
            (" L zz,4\n", Bad("line 1")),
            (" L 10,99999\n", Bad("line 1")),
            (" L 10,4\nhello\n", Foreign("line 2: 'hello' is not a line of a lackey trace")),
        ],
    ));
    list.extend(text(
        PerfScript,
        vec![
            (
                "  4711 cpu/mem-loads,ldlat=30/P:  7f8a1c2d3e40\n\
                 4712 12.5: cpu/mem-stores/P: 7f8a1c2d4e40 [unknown]\n",
                Good(vec![of(4711, load_of(0x7_f8a1_c2d3)), of(4712, store_to(0x7_f8a1_c2d4))]),
            ),
            ("1 mem-loads: 10\n2 mem-loads:\n", Foreign("line 2: '2 mem-loads:' has no address")),
            ("1 mem-loads: 10\nno sample\n", Foreign("line 2: 'no sample' names no event")),
            ("1 mem-loads: zz\n", Bad("line 1: '1 mem-loads: zz' has no address")),
        ],
    ));
    list.extend(text(
        Csv,
        vec![
            (
                "rw, addr ,size\nWRITE,0x5000,8\nread,4096,8\n",
                Good(vec![sized(store_to(5), 8), sized(load_of(1), 8)]),
            ),
            ("1,17,0x1000,r\n2,18,8192,w\n", Good(vec![of(17, load_of(1)), of(18, store_to(2))])),
            ("time;obj_id;op\n1;77;get\n2;4096;set\n", Good(vec![load_of(77), store_to(4096)])),
            ("page\tpid\n7\t1\n8\t2\n", Good(vec![of(1, load_of(7)), of(2, load_of(8))])),
            ("1,2,0x10,r\n1,2,zz,r\n", Foreign("line 2: 'zz' is not an address")),
            ("1,2,0x10,r\n1,2,0x10,q\n", Foreign("line 2: 'q' is neither r nor w")),
            ("1,2,0x10,r\n1,2\n", Foreign("line 2: field 3 is missing")),
        ],
    ));
    list.extend(text(
        LoadStore,
        vec![
            ("s 0x1fffff50 1\nl 0x1000 12\n", Good(vec![store_to(0x1ffff), load_of(1)])),
            ("l 0x10 1\nq 0x10 1\n", Foreign("line 2")),
            ("s 0xzz 1\n", Bad("line 1")),
            ("l 0x10 1\nl 0x10\n", Foreign("line 2")),
        ],
    ));
    list.extend(text(
        Spc,
        vec![
            (
                "0,8,4096,W,0.5\n1,16,512,r,1.25\n0,7,4096,r,1.5\n",
                Good(vec![
                    sized(store_to(1), 4096),
                    sized(load_of(1 << 40 | 2), 512),
                    Record { span: 2, ..sized(load_of(0), 4096) },
                ]),
            ),
            ("0,1,8192,W,0.5\n0,2,4096,Q,0.7\n", Foreign("line 2: 'Q' is neither r nor w")),
            ("0,1,8192,W,0.5\n0,2\n", Foreign("line 2: field 3 is missing")),
            ("0,99999999999999999,8192,W,0.5\n", Bad("beyond any disk")),
        ],
    ));
    list.extend(text(
        Msr,
        vec![
            (
                "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n1281663,hm,1,Read,8192,512,9\n",
                Good(vec![sized(load_of(1 << 40 | 2), 512)]),
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

fn reader(name: &str, bytes: &[u8], options: &Options) -> Result<Reader, String> {
    let file = Box::new(Cursor::new(bytes.to_vec()));
    Reader::of(Path::new(name), file, bytes.len() as u64, options).map_err(|e| e.to_string())
}

fn records_of(name: &str, bytes: &[u8], options: &Options) -> Result<(Format, Vec<Record>), String> {
    let reader = reader(name, bytes, options)?;
    let format = reader.format();
    match reader.collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())? {
        none if none.is_empty() => Err("holds no reference".into()),
        records => Ok((format, records)),
    }
}

fn records(bytes: &[u8], format: Option<Format>) -> Result<(Format, Vec<Record>), String> {
    records_of("trace", bytes, &Options { format, ..Options::default() })
}

fn with_file<T>(bytes: &[u8], run: impl FnOnce(&Path) -> T) -> T {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    run(file.path())
}

/// A trace as the references to a region of 100 pages.
fn region(bytes: &[u8], references: u64) -> Result<Vec<u32>, String> {
    with_file(bytes, |path| {
        let stream = Pattern::Trace(path.to_owned()).stream(100, references, 1);
        stream.map(Stream::into_references).map_err(|e| e.to_string())
    })
}

#[test]
fn a_last_line_without_an_end_is_an_error() {
    let mut seen = std::collections::BTreeSet::new();
    for (format, bytes, wanted) in corpus() {
        let (Good(_), Some((b'\n', rest))) = (wanted, bytes.split_last()) else { continue };
        if [Format::Recorded, Format::Lackey].contains(&format) {
            continue;
        }
        for length in [rest.len(), rest.len() - 1] {
            let error = records(&rest[..length], Some(format)).unwrap_err();
            assert!(error.contains("the line has no end") && error.contains("echo >>"), "{format}: {error}");
        }
        seen.insert(format.to_string());
    }
    assert_eq!(seen.len(), 6, "formats of lines: {seen:?}");
    assert!(records(b" L 10,4\n L 20,4", None).unwrap_err().contains("the line has no end"));
    assert!(records(b"1\n# a comment that is cut", None).is_ok());
}

#[test]
fn a_name_breaks_a_tie() {
    let objects: Vec<u64> =
        (0..10_000).map(|n: u64| (n % 5000 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let far = oracle_general(&objects, 0, 512);
    let narrow = numbers(&[300, 100], le32);
    let named = |name: &str, bytes: &[u8]| records_of(name, bytes, &Options::default());
    for (bytes, format, name) in [
        (&far, Format::OracleGeneral, "w42.oracleGeneral.bin"),
        (&far, Format::OracleGeneral, "w42.oracleGeneral.zst"),
        (&narrow, Format::U32, "t.u32"),
    ] {
        assert!(named("trace.bin", bytes).unwrap_err().contains("unknown trace format"), "{name}");
        assert_eq!(named(name, bytes).unwrap().0, format, "{name}");
    }
    // A name says nothing against what the content says.
    assert_eq!(named("t.oracleGeneral", b"1\n").unwrap().0, Format::Text);
    let foreign = named("t.oracleGeneral", &[0x7f; 48]).unwrap_err();
    assert!(foreign.contains("unknown trace format"), "{foreign}");
}

#[test]
fn every_format_has_a_good_trace_and_three_bad_ones() {
    let list = corpus();
    for (format, name, _) in Format::ALL {
        let of_it = || list.iter().filter(|one| one.0 == format).map(|one| &one.2);
        let good = of_it().filter(|wanted| matches!(wanted, Good(_))).count();
        let bad = of_it().count() - good;
        assert!(good >= 1 && bad >= 3, "{name}: {good} good traces and {bad} bad ones");
        assert_eq!(format.to_string().parse::<Format>().unwrap(), format);
    }
    for (format, bytes, wanted) in list {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned();
        match wanted {
            Good(list) => {
                for content in [&bytes, &zstd(&bytes), &gzip(&bytes)] {
                    assert_eq!(records(content, None), Ok((format, list.clone())), "{shown}");
                }
                assert_eq!(records(&bytes, Some(format)), Ok((format, list.clone())), "{shown}");
                let mut all = Vec::new();
                let options = Options { format: Some(format), ..Options::default() };
                // Whatever is left in place of a batch is overwritten.
                let take = |batch: &mut Vec<u64>, _| {
                    all.append(batch);
                    *batch = vec![99];
                    Ok(())
                };
                let reading = with_file(&bytes, |path| read(Reader::open(path, &options)?, take)).unwrap();
                assert_eq!(all, list.iter().map(|one| one.page).collect::<Vec<_>>(), "{shown} in batches");
                assert_eq!(reading.writes, list.iter().filter(|one| one.write).count() as u64, "{shown}");
            }
            Bad(words) | Foreign(words) => {
                let error = records(&bytes, Some(format)).expect_err(&shown);
                assert!(error.contains(words), "{format}, {shown}: wanted '{words}', got '{error}'");
                let place = [" at line ", " at byte ", " at its start", "holds no reference"];
                assert!(place.iter().any(|place| error.contains(place)), "{format}, {shown}: {error}");
                if matches!(wanted, Foreign(_)) {
                    records(&bytes, None).expect_err(&shown);
                }
            }
        }
    }
}

#[test]
fn foreign_files_are_refused_with_the_contradiction() {
    let whole = oracle_general(&scattered(2000), 1, 512);
    // Addresses, not pages: too great for page numbers, and no records either.
    let addresses: Vec<u64> = scattered(1 << 30).iter().map(|n| n + 0x7f00_0000_0000).collect();
    // Both halves of these are small.
    let low: Vec<u64> = scattered(5000).iter().map(|n| n + 0x7f5a_0000_0000).collect();
    let mut packed = zstd(&oracle_general(&[1, 2, 1], 1, 512));
    packed.truncate(packed.len() - 3);
    for (bytes, wanted) in [
        (&whole[..2500 * 24], "beyond the end: is the file cut?"),
        (&numbers(&addresses, u64::to_le_bytes), "unknown trace format"),
        (&numbers(&low, u64::to_le_bytes), "every other one is one of 1"),
        (&numbers(&low, u64::to_be_bytes), "every other one is one of 1"),
        (&[0x89, b'P', b'N', b'G', 0, 1, 2, 3], "unknown trace format"),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0", "unknown trace format"),
        (b"0,1,2,W,x\n", "unknown trace format"),
        (b"once upon a time\n", "unknown trace format"),
        (&[], "holds no page number"),
        (&packed, "damaged or torn"),
    ] {
        let error = records(bytes, None).unwrap_err();
        assert!(error.contains(wanted), "wanted '{wanted}', got '{error}'");
    }
    assert!(reader("trace", b"1\n", &Options { page_size: 1000, ..Options::default() }).is_err());
}

#[test]
fn no_binary_is_taken_for_another() {
    let high: Vec<u64> = scattered(1 << 20).iter().map(|n| n + 0x7_f000_0000).collect();
    let blocks: Vec<(u16, u64)> = scattered(1 << 30).iter().map(|&n| (0x28, n)).collect();
    let objects = scattered(2000);
    let linear = |count: u64| numbers(&(0..count).collect::<Vec<_>>(), u64::to_le_bytes);
    for (bytes, format) in [
        (numbers(&scattered(1000)[..500], le32), Format::U32),
        (numbers(&scattered(1000), le32), Format::U32),
        (numbers(&high, u64::to_le_bytes), Format::U64),
        (numbers(&scattered(1 << 20), u64::to_le_bytes), Format::U64),
        (numbers(&high, u64::to_be_bytes), Format::U64Be),
        (vscsi(1, &blocks), Format::Vscsi1),
        (vscsi(2, &blocks), Format::Vscsi2),
        (oracle_general(&objects, 0, 512), Format::OracleGeneral),
        (oracle_general(&objects, 1, 512), Format::OracleGeneral),
        (oracle_general(&[1 << 60, 2, 3], 1, 512), Format::OracleGeneral),
        (linear(1), Format::U64),
        (linear(2), Format::U64),
        (linear(3), Format::U64),
        (linear(24), Format::U64),
        (linear(30_000), Format::U64),
    ] {
        assert_eq!(records(&bytes, None).unwrap().0, format);
    }
}

#[test]
fn columns_are_named_on_the_command_line() {
    let read_by = |text: &str, columns: &str| {
        let columns = csv::Columns::of_header(columns.as_bytes());
        assert!(columns.is_some());
        records_of("trace", text.as_bytes(), &Options { columns, ..Options::default() }).map(|found| found.1)
    };
    let wanted = vec![sized(store_to(7), 4096), sized(load_of(9), 1)];
    assert_eq!(read_by("7;4096;w\n9;1;r\n", "page,size,op").unwrap(), wanted);
    assert_eq!(read_by("lba|n|what\n7|4096|w\n9|1|r\n", "page,size,op").unwrap(), wanted);
    let spanning = Record { span: 2, ..sized(load_of(1), 4097) };
    assert_eq!(read_by("4096,4097\n", "address,size").unwrap(), [spanning]);
    assert!(read_by("7,8\n9\n", "page,size").unwrap_err().contains("line 2: field 2 is missing"));
    assert!(read_by("7,8\n9,x\n", "page,size").unwrap_err().contains("line 2: 'x' is not a size"));
}

/// `3\\n1\\n4\\n` three times, as xz and bzip2 pack it.
#[rustfmt::skip]
const PACKED: [&[u8]; 2] = [
    &[0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02, 0x00, 0x21, 0x01, 0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0xe0, 0x00, 0x11, 0x00, 0x0c, 0x5d, 0x00, 0x19, 0x82, 0x82, 0x65, 0x0a, 0x1f, 0x04, 0xc0, 0xa1, 0xb9, 0x00, 0x00, 0x00, 0x57, 0x4f, 0xc7, 0xa8, 0x8c, 0x18, 0x6b, 0x77, 0x00, 0x01, 0x28, 0x12, 0xc9, 0x6a, 0x62, 0x8e, 0x1f, 0xb6, 0xf3, 0x7d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59, 0x5a],
    &[0x42, 0x5a, 0x68, 0x39, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, 0x54, 0x55, 0x96, 0xea, 0x00, 0x00, 0x07, 0x48, 0x00, 0x00, 0x10, 0x2c, 0x00, 0x20, 0x00, 0x30, 0xcd, 0x34, 0x1b, 0x46, 0x98, 0x44, 0x49, 0x38, 0xbb, 0x92, 0x29, 0xc2, 0x84, 0x82, 0xa2, 0xac, 0xb7, 0x50],
];

#[test]
fn xz_and_bzip2_are_unpacked() {
    for packed in PACKED {
        let numbers = |bytes: &[u8]| {
            records(bytes, None)
                .map(|(format, list)| (format, list.iter().map(|one| one.page).collect::<Vec<_>>()))
        };
        assert_eq!(numbers(packed), Ok((Format::Text, [3, 1, 4].repeat(3))));
        assert_eq!(
            numbers(&packed.repeat(2)).map(|found| found.1.len()),
            Ok(18),
            "several streams in one file"
        );
        let cut = numbers(&packed[..packed.len() - 20]).unwrap_err();
        assert!(cut.contains("damaged or torn"), "{cut}");
        let mut damaged = packed.to_vec();
        damaged[packed.len() / 2] ^= 0x55;
        assert!(numbers(&damaged).unwrap_err().contains("damaged or torn"));
    }
}

#[test]
fn a_reader_goes_to_any_place_of_a_format_that_has_them() {
    let mut with = Vec::new();
    for (format, bytes, wanted) in corpus() {
        let Good(list) = wanted else { continue };
        let options = Options { format: Some(format), ..Options::default() };
        let reader = || reader("trace", &bytes, &options).unwrap();
        let list: Vec<u64> = list.iter().map(|one| one.page).collect();
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

#[test]
fn a_region_takes_page_numbers_as_they_are_and_repeats_a_short_trace() {
    assert_eq!(region(b"# pages\n3\n\n 1\n4\n", 5).unwrap(), [3, 1, 4, 3, 1]);
    assert_eq!(region(&numbers(&[3, 1, 4], u64::to_le_bytes), 2).unwrap(), [3, 1]);
    assert!(
        region(b"1\n100\n", 10).unwrap_err().contains("line 2: page 100 is outside the region of 100 pages")
    );
}

#[test]
fn a_region_numbers_objects_and_addresses_by_first_reference() {
    assert_eq!(region(&oracle_general(&[900, 800, 900, 700], 1, 512), 5).unwrap(), [0, 1, 0, 2, 0]);
    assert_eq!(region(b"l 0x5000 1\ns 0x1000 1\nl 0x5008 1\n", 3).unwrap(), [0, 1, 0]);
    let many: Vec<u64> = (0..101).collect();
    assert!(
        region(&oracle_general(&many, 1, 512), 200).unwrap_err().contains("byte 2400: the trace has more")
    );
}

#[test]
fn a_loaded_trace_is_dense() {
    let trace =
        with_file(b"s 0x5000 1\ns 0x1000 1\nl 0x5008 1\n", |path| load(path, &Options::default()).unwrap());
    assert_eq!(trace.stream, Stream::new(2, vec![0, 1, 0]));
    let reading = trace.reading;
    assert_eq!((reading.format, reading.writes), (Format::LoadStore, 2));
    assert_eq!((reading.page_size, reading.first), (Some(4096), vec![5, 1, 5]));
    assert!(reading.why.contains("s 0x5000 1"), "{}", reading.why);
}

proptest! {
    #[test]
    fn no_content_panics(bytes: Vec<u8>, text in "[0-9a-fx,lsrwISLM #*=\n\r-]{0,300}", compressed: bool) {
        for content in [bytes, text.into_bytes()] {
            let content = if compressed { zstd(&content) } else { content };
            let _ = region(&content, 50);
            for format in [None].into_iter().chain(Format::ALL.map(|(f, ..)| Some(f))) {
                let _ = records(&content, format);
            }
        }
    }

    #[test]
    fn damaged_compression_does_not_panic(at in 0usize..200, byte: u8, gzip: bool) {
        let plain = oracle_general(&(0..40).map(|i| i % 7).collect::<Vec<_>>(), 1, 512);
        let mut bytes = if gzip { self::gzip(&plain) } else { zstd(&plain) };
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = records(&bytes, None);
        bytes.truncate(at);
        let _ = records(&bytes, None);
    }
}
