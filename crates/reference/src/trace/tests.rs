//! All formats: what they give, how they fail, and that nothing panics.

use super::*;
use crate::patterns::recorded::recorded;
use proptest::prelude::*;
use std::io::Write;

fn with_file<T>(bytes: &[u8], run: impl FnOnce(&Path) -> T) -> T {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    run(file.path())
}

fn records(bytes: &[u8], format: Option<Format>) -> Result<(Format, Vec<Record>), String> {
    with_file(bytes, |path| {
        let options = Options { format, ..Options::default() };
        let reader = Reader::open(path, &options).map_err(|e| e.to_string())?;
        let format = reader.format();
        let list: Result<Vec<_>, _> = reader.collect();
        Ok((format, list.map_err(|e| e.to_string())?))
    })
}

fn region(bytes: &[u8], references: usize) -> Result<Vec<u32>, String> {
    with_file(bytes, |path| {
        let mut list = Vec::new();
        let generated = recorded(path, 100).and_then(|mut generator| generator(references, &mut list));
        generated.map(|()| list).map_err(|e| e.to_string())
    })
}

fn oracle_general(objects: &[u64], base: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (i, object) in objects.iter().enumerate() {
        let next = objects[i + 1..].iter().position(|o| o == object);
        bytes.extend((i as u32 / 3).to_le_bytes());
        bytes.extend(object.to_le_bytes());
        bytes.extend(512u32.to_le_bytes());
        bytes.extend(next.map_or(-1, |n| (i + 1 + n) as i64 + base).to_le_bytes());
    }
    bytes
}

fn u64s(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

fn u32s(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// Records of (command, block).
fn vscsi(version: u16, requests: &[(u16, u64)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (n, (command, block)) in requests.iter().enumerate() {
        let numbers = [n as u32, 4096, 1].map(u32::to_le_bytes).concat();
        let command = [*command, version << 8 | 3].map(u16::to_le_bytes).concat();
        bytes.extend(if version == 1 { [numbers, command].concat() } else { [command, numbers].concat() });
        bytes.extend(block.to_le_bytes());
        bytes.extend((n as u64 * 1000).to_le_bytes());
        if version == 2 {
            bytes.extend(77u64.to_le_bytes());
        }
    }
    bytes
}

fn record(page: u64, write: bool, pid: Option<u32>) -> Record {
    Record { page, write, pid }
}

#[test]
fn each_format_is_recognised_and_gives_its_references() {
    let read = |page| record(page, false, None);
    let write = |page| record(page, true, None);
    let cases: Vec<(Format, Vec<u8>, Vec<Record>)> = vec![
        (Format::Text, b"\xef\xbb\xbf# pages\r\n3\r\n\n 1\n4\n*\n".to_vec(), vec![read(3), read(1), read(4)]),
        (Format::U64, u64s(&[3, 1, 4]), vec![read(3), read(1), read(4)]),
        (
            Format::OracleGeneral,
            oracle_general(&[7 << 40, 9, 7 << 40, 8], 0),
            vec![read(7 << 40), read(9), read(7 << 40), read(8)],
        ),
        (Format::OracleGeneral, oracle_general(&[7, 7, 9, 7], 1), vec![read(7), read(7), read(9), read(7)]),
        (
            Format::Lackey,
            b"==1== Lackey\n\nI  04000fff,3\n S 1ffe001000,8\n L 2000,4\n M 3fff,1\n==1== end".to_vec(),
            vec![read(0x4000), write(0x1ffe001), read(2), write(3)],
        ),
        (Format::LoadStore, b"s 0x1fffff50 1\nl 0x1000 12\n".to_vec(), vec![write(0x1ffff), read(1)]),
        (
            Format::Csv,
            b"1,17,0x1000,r\n2,18,8192,w\n".to_vec(),
            vec![record(1, false, Some(17)), record(2, true, Some(18))],
        ),
        (Format::Spc, b"0,8,4096,W,0.5\n1,16,512,r,1.25\n".to_vec(), vec![write(1), read(1 << 40 | 2)]),
        (
            Format::Msr,
            b"Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n1281663,hm,1,Read,8192,512,9\n"
                .to_vec(),
            vec![read(1 << 40 | 2)],
        ),
        (Format::Vscsi1, vscsi(1, &[(0x28, 8), (0x2a, 80)]), vec![read(1), write(10)]),
        (Format::Vscsi2, vscsi(2, &[(0x28, 8), (0x2a, 80)]), vec![read(1), write(10)]),
        (
            Format::U64Be,
            [3u64, 1, 4].iter().flat_map(|n| n.to_be_bytes()).collect(),
            vec![read(3), read(1), read(4)],
        ),
        (Format::U32, u32s(&[300, 100, 400]), vec![read(300), read(100), read(400)]),
        (
            Format::U32Be,
            [300u32, 100, 400].iter().flat_map(|n| n.to_be_bytes()).collect(),
            vec![read(300), read(100), read(400)],
        ),
        (Format::Csv, b"rw, addr ,size\nWRITE,0x5000,8\nread,4096,8\n".to_vec(), vec![write(5), read(1)]),
    ];
    for (format, bytes, wanted) in cases {
        assert_eq!(records(&bytes, None).unwrap(), (format, wanted.clone()), "{format}");
        let zstd = zstd::encode_all(&bytes[..], 3).unwrap();
        assert_eq!(records(&zstd, None).unwrap(), (format, wanted.clone()), "{format} in zstd");
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&bytes).unwrap();
        assert_eq!(records(&gzip.finish().unwrap(), None).unwrap(), (format, wanted), "{format} in gzip");
        assert_eq!(format.to_string().parse::<Format>().unwrap(), format);
    }
}

#[test]
fn binary_page_numbers_in_order_are_not_taken_for_oracle_records() {
    for count in [1, 2, 3, 24, 30_000] {
        let linear: Vec<u64> = (0..count).collect();
        assert_eq!(records(&u64s(&linear), None).unwrap().0, Format::U64, "{count}");
    }
}

/// Some thousand numbers below `bound`, without order.
fn scattered(bound: u64) -> Vec<u64> {
    let mut rng = crate::rng::Rng::new(5);
    (0..5000).map(|_| rng.below(bound)).collect()
}

#[test]
fn no_binary_is_taken_for_another() {
    let narrow: Vec<u32> = scattered(1000).iter().map(|&n| n as u32).collect();
    let high: Vec<u64> = scattered(1 << 20).iter().map(|n| n + 0x7_f000_0000).collect();
    let blocks: Vec<(u16, u64)> = scattered(1 << 30).iter().map(|&n| (0x28, n)).collect();
    let objects = scattered(2000);
    for (bytes, format) in [
        (u32s(&narrow[..500]), Format::U32),
        (u32s(&narrow), Format::U32),
        (u64s(&high), Format::U64),
        (u64s(&scattered(1 << 20)), Format::U64),
        (high.iter().flat_map(|n| n.to_be_bytes()).collect(), Format::U64Be),
        (vscsi(1, &blocks), Format::Vscsi1),
        (vscsi(2, &blocks), Format::Vscsi2),
        (oracle_general(&objects, 0), Format::OracleGeneral),
        (oracle_general(&objects, 1), Format::OracleGeneral),
        (oracle_general(&[1 << 60, 2, 3], 1), Format::OracleGeneral),
    ] {
        assert_eq!(records(&bytes, None).unwrap().0, format);
    }
}

#[test]
fn what_speaks_against_a_format_is_said() {
    let whole = oracle_general(&scattered(2000), 1);
    let cut = &whole[..2500 * 24];
    // Addresses, not pages: too great for page numbers, and no records either.
    let addresses: Vec<u64> = scattered(1 << 30).iter().map(|n| n + 0x7f00_0000_0000).collect();
    for (bytes, format, wanted) in [
        (cut.to_vec(), None, "beyond the end: is the file cut?"),
        (cut.to_vec(), Some(Format::OracleGeneral), "it is cut, or no oracleGeneral"),
        (zstd::encode_all(cut, 1).unwrap(), Some(Format::OracleGeneral), "it is cut, or no oracleGeneral"),
        (u64s(&addresses), None, "not recognised"),
        (vec![0x89, b'P', b'N', b'G', 0, 1, 2, 3], None, "not recognised"),
        (b"0,1,2,W,x\n".to_vec(), None, "not recognised"),
        (b"0,1,8192,W,0.5\n0,2,4096,Q,0.7\n".to_vec(), None, "line 2: 'Q' is neither r nor w"),
        (b"0,1,8192,W,0.5\n0,2\n".to_vec(), None, "line 2: field 3 is missing"),
        (b"0,99999999999999999,8192,W,0.5\n".to_vec(), Some(Format::Spc), "beyond any disk"),
        (
            b"1,hm,0,Read,0,512,9\n1,hm,0,Trim,0,512,9\n".to_vec(),
            None,
            "line 2: 'Trim' is neither Read nor Write",
        ),
        (b"1,hm,0,Read,x,512,9\n".to_vec(), Some(Format::Msr), "line 1: 'x' is not an offset"),
        (b"1,hm,0\n".to_vec(), Some(Format::Msr), "field 4 is missing"),
        (vscsi(1, &[(1, 1), (1, 2)])[..50].to_vec(), Some(Format::Vscsi1), "byte 32: torn: 18 bytes"),
        (vscsi(2, &[(1, 1), (1, 2)])[..50].to_vec(), Some(Format::Vscsi2), "byte 40: torn: 10 bytes"),
        (u32s(&[1, 2])[..7].to_vec(), Some(Format::U32), "byte 4: torn: 3 bytes"),
    ] {
        let error = records(&bytes, format).unwrap_err();
        assert!(error.contains(wanted), "wanted '{wanted}', got '{error}'");
    }
}

#[test]
fn batches_give_what_single_records_give() {
    let objects = scattered(1 << 40);
    for bytes in [oracle_general(&objects, 1), vscsi(2, &[(1, 8), (2, 90)]), b"1\n2\n3\n".to_vec()] {
        let single: Vec<u64> = records(&bytes, None).unwrap().1.iter().map(|r| r.page).collect();
        let mut all = Vec::new();
        with_file(&bytes, |path| {
            let take = |batch: &mut Vec<u64>, _| {
                all.extend_from_slice(batch);
                *batch = vec![99];
                Ok(())
            };
            read(path, &Options::default(), take).unwrap()
        });
        assert_eq!(all, single);
    }
}

#[test]
fn errors_name_the_position() {
    let mut torn = oracle_general(&[1, 2, 1], 1);
    torn.truncate(60);
    let zstd = zstd::encode_all(&oracle_general(&[1, 2, 1], 1)[..], 3).unwrap();
    for (bytes, format, wanted) in [
        (b"1\nx\n".to_vec(), None, "line 2: 'x' is not a page number"),
        (u64s(&[1, 2])[..10].to_vec(), None, "byte 8: torn: 2 bytes"),
        (torn, Some(Format::OracleGeneral), "byte 48: torn: 12 bytes are left where a record has 24"),
        (Vec::new(), None, "holds no page number"),
        (b"once upon a time\n".to_vec(), None, "not recognised; name it"),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec(), None, "not recognised"),
        (b"1,2,0x10,r\n1,2,zz,r\n".to_vec(), None, "line 2: 'zz' is not an address"),
        (b"1,2,0x10,r\n1,2,0x10,q\n".to_vec(), None, "line 2: 'q' is neither r nor w"),
        (b"1,2,0x10,r\n1,2\n".to_vec(), None, "line 2: field 3 is missing"),
        (b"l 0x10 1\nl 0x10\n".to_vec(), None, "line 2"),
        (b" L 10,4\nhello\n".to_vec(), None, "line 2: 'hello' is not a line of lackey's"),
        (zstd[..zstd.len() - 3].to_vec(), None, "damaged or torn"),
        ([b"1\n".to_vec(), vec![b'1'; 70_000]].concat(), None, "line 2: the line is longer"),
    ] {
        let error = records(&bytes, format).unwrap_err();
        assert!(error.contains(wanted), "wanted '{wanted}', got '{error}'");
    }
    let options = Options { page_size: 1000, ..Options::default() };
    assert!(Reader::open(Path::new("/dev/null"), &options).is_err());
}

#[test]
fn a_region_takes_page_numbers_as_they_are_and_repeats_a_short_trace() {
    assert_eq!(region(b"# pages\n3\n\n 1\n4\n", 5).unwrap(), [3, 1, 4, 3, 1]);
    assert_eq!(region(&u64s(&[3, 1, 4]), 2).unwrap(), [3, 1]);
    assert!(
        region(b"1\n100\n", 10).unwrap_err().contains("line 2: page 100 is outside the region of 100 pages")
    );
}

#[test]
fn a_region_numbers_objects_and_addresses_by_first_reference() {
    assert_eq!(region(&oracle_general(&[900, 800, 900, 700], 1), 5).unwrap(), [0, 1, 0, 2, 0]);
    assert_eq!(region(b"l 0x5000 1\ns 0x1000 1\nl 0x5008 1\n", 3).unwrap(), [0, 1, 0]);
    let many: Vec<u64> = (0..101).collect();
    assert!(region(&oracle_general(&many, 1), 200).unwrap_err().contains("byte 2400: the trace has more"));
}

#[test]
fn a_loaded_trace_is_dense() {
    let trace = with_file(b"s 0x5000 1\ns 0x1000 1\nl 0x5008 1\n", |path| {
        load(path, &Options::default(), |_| {}).unwrap()
    });
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
            let content = if compressed { zstd::encode_all(&content[..], 1).unwrap() } else { content };
            let _ = region(&content, 50);
            for format in [None].into_iter().chain(Format::ALL.map(|(f, ..)| Some(f))) {
                let _ = records(&content, format);
            }
        }
    }

    #[test]
    fn damaged_compression_does_not_panic(at in 0usize..200, byte: u8, gzip: bool) {
        let plain = oracle_general(&(0..40).map(|i| i % 7).collect::<Vec<_>>(), 1);
        let mut bytes = if gzip {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(&plain).unwrap();
            encoder.finish().unwrap()
        } else {
            zstd::encode_all(&plain[..], 3).unwrap()
        };
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = records(&bytes, None);
        bytes.truncate(at);
        let _ = records(&bytes, None);
    }

    #[test]
    fn dense_numbers_keep_equality(
        pages in proptest::collection::vec(
            prop_oneof![4 => 0u64..50, 2 => 1000u64..5_000_000, 1 => (1u64 << 40)..(1 << 40) + 50, 1 => any::<u64>()],
            1..300,
        ),
    ) {
        let mut densifier = Densifier::default();
        let mut all = Vec::new();
        Densifier::default().number_all(&pages, &mut all).unwrap();
        let dense: Vec<u32> = pages.iter().map(|&p| densifier.number(p).unwrap()).collect();
        for i in 0..pages.len() {
            let first = pages.iter().position(|&p| p == pages[i]).unwrap();
            prop_assert_eq!(dense[i], dense[first]);
            let before = pages[..first].iter().collect::<std::collections::BTreeSet<_>>().len();
            prop_assert_eq!(dense[i] as usize, before);
        }
        prop_assert_eq!(all, dense);
    }
}
