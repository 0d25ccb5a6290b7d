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
    Record { write, pid, ..Record::of(page) }
}

/// Of one page.
fn sized(record: Record, bytes: u64) -> Record {
    Record { bytes: Some(bytes), ..record }
}

/// A file of lcs, of objects of 512 bytes that are set.
fn lcs(version: u64, objects: &[u64]) -> Vec<u8> {
    let mut bytes = vec![0; 8192];
    let magic = 0x1234_5678_9abc_def0_u64.to_le_bytes();
    bytes[..8].copy_from_slice(&magic);
    bytes[8..16].copy_from_slice(&version.to_le_bytes());
    bytes[8184..].copy_from_slice(&magic);
    for (n, object) in objects.iter().enumerate() {
        let next = objects[n + 1..].iter().position(|o| o == object);
        bytes.extend((n as u32).to_le_bytes());
        bytes.extend(object.to_le_bytes());
        match version {
            3 => bytes.extend(512_u64.to_le_bytes()),
            _ => bytes.extend(512_u32.to_le_bytes()),
        }
        if version > 1 {
            bytes.extend([3, 0, 0, 0]);
        }
        if version > 2 {
            bytes.extend(9_u32.to_le_bytes());
        }
        bytes.extend(next.map_or(-1, |next| (n + 1 + next) as i64).to_le_bytes());
    }
    bytes
}

#[test]
fn instructions_of_champsim_reference_what_they_access() {
    let mut pointer = 0x40_0000_u64;
    let mut instruction = |reads: [u64; 2], write: u64| {
        let mut bytes = [0; 64];
        pointer += 4;
        bytes[..8].copy_from_slice(&pointer.to_le_bytes());
        bytes[16..24].copy_from_slice(&write.to_le_bytes());
        bytes[32..40].copy_from_slice(&reads[0].to_le_bytes());
        bytes[40..48].copy_from_slice(&reads[1].to_le_bytes());
        bytes
    };
    let instructions = [([0, 0], 0), ([0x5000, 0x6fff], 0x7000), ([0, 0], 0), ([0, 0], 0), ([0, 0x8000], 0)];
    let bytes = instructions.map(|(reads, write)| instruction(reads, write)).concat();
    let named = Some(Format::ChampSim);
    let (read, write) = (|page| record(page, false, None), |page| record(page, true, None));
    assert_eq!(records(&bytes, named).unwrap().1, [read(5), read(6), write(7), read(8)]);
    with_file(&bytes, |path| {
        let mut all = Vec::new();
        let options = Options { format: named, ..Options::default() };
        let reading = super::read(path, &options, |batch, _| {
            all.extend_from_slice(batch);
            Ok(())
        });
        assert_eq!((all, reading.unwrap().writes), (vec![5, 6, 7, 8], 1));
    });
    assert_eq!(records(&bytes, None).unwrap().0, Format::ChampSim);
    assert!(records(&bytes[..70], named).unwrap_err().contains("byte 64: torn: 6 bytes"));
    assert!(records(&[], named).unwrap_err().contains("holds no"));
}

#[test]
fn columns_are_named_on_the_command_line() {
    let read_by = |text: &str, columns: &str| {
        with_file(text.as_bytes(), |path| {
            let columns = csv::Columns::of_header(columns.as_bytes());
            assert!(columns.is_some());
            let reader = Reader::open(path, &Options { columns, ..Options::default() }).unwrap();
            reader.collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())
        })
    };
    let wanted = vec![sized(record(7, true, None), 4096), sized(record(9, false, None), 1)];
    assert_eq!(read_by("7;4096;w\n9;1;r\n", "page,size,op").unwrap(), wanted);
    assert_eq!(read_by("lba|n|what\n7|4096|w\n9|1|r\n", "page,size,op").unwrap(), wanted);
    let spanning = Record { bytes: Some(4097), span: 2, ..record(1, false, None) };
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
fn bytes_span_pages() {
    let spc = records(b"0,7,4096,W,0.5\n0,8,4096,r,0.6\n", None).unwrap().1;
    assert_eq!(spc.iter().map(|one| one.span).collect::<Vec<_>>(), [2, 1]);
    let mut objects = oracle_general(&[1, 2, 1], 1);
    objects[12..16].copy_from_slice(&4097_u32.to_le_bytes());
    let spans: Vec<u64> = records(&objects, None).unwrap().1.iter().map(|one| one.span).collect();
    assert_eq!(spans, [2, 1, 1]);
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
            [7 << 40, 9, 7 << 40, 8].map(|page| sized(read(page), 512)).to_vec(),
        ),
        (
            Format::OracleGeneral,
            oracle_general(&[7, 7, 9, 7], 1),
            [7, 7, 9, 7].map(|page| sized(read(page), 512)).to_vec(),
        ),
        (
            Format::Lackey,
            b"==1== Lackey\n\nI  04000fff,3\n S 1ffe001000,8\n L 2000,4\n M 3fff,1\n==1== end".to_vec(),
            vec![read(0x4000), read(0x4001), write(0x1ffe001), read(2), write(3)],
        ),
        (Format::LoadStore, b"s 0x1fffff50 1\nl 0x1000 12\n".to_vec(), vec![write(0x1ffff), read(1)]),
        (
            Format::Csv,
            b"1,17,0x1000,r\n2,18,8192,w\n".to_vec(),
            vec![record(1, false, Some(17)), record(2, true, Some(18))],
        ),
        (Format::Spc, b"0,8,4096,W,0.5\n1,16,512,r,1.25\n".to_vec(), vec![sized(write(1), 4096), sized(read(1 << 40 | 2), 512)]),
        (
            Format::Msr,
            b"Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n1281663,hm,1,Read,8192,512,9\n"
                .to_vec(),
            vec![sized(read(1 << 40 | 2), 512)],
        ),
        (Format::Vscsi1, vscsi(1, &[(0x28, 8), (0x2a, 80)]), vec![sized(read(1), 4096), sized(write(10), 4096)]),
        (Format::Vscsi2, vscsi(2, &[(0x28, 8), (0x2a, 80)]), vec![sized(read(1), 4096), sized(write(10), 4096)]),
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
        (
            Format::Csv,
            b"rw, addr ,size\nWRITE,0x5000,8\nread,4096,8\n".to_vec(),
            vec![Record { bytes: Some(8), ..write(5) }, Record { bytes: Some(8), ..read(1) }],
        ),
        (Format::Csv, b"time;obj_id;op\n1;77;get\n2;4096;set\n".to_vec(), vec![read(77), write(4096)]),
        (Format::Csv, b"page\tpid\n7\t1\n8\t2\n".to_vec(), vec![record(7, false, Some(1)), record(8, false, Some(2))]),
        (Format::Lcs, lcs(1, &[7, 9, 7]), [7, 9, 7].map(|page| Record { bytes: Some(512), ..read(page) }).to_vec()),
        (Format::Lcs, lcs(2, &[7, 9]), [7, 9].map(|page| Record { bytes: Some(512), ..write(page) }).to_vec()),
        (Format::Lcs, lcs(3, &[7, 9]), [7, 9].map(|page| Record { bytes: Some(512), ..write(page) }).to_vec()),
        (
            Format::PerfScript,
            b"  4711 cpu/mem-loads,ldlat=30/P:  7f8a1c2d3e40\n4712 12.5: cpu/mem-stores/P: 7f8a1c2d4e40 [unknown]\n".to_vec(),
            vec![record(0x7_f8a1_c2d3, false, Some(4711)), record(0x7_f8a1_c2d4, true, Some(4712))],
        ),
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
    let low: Vec<u64> = scattered(5000).iter().map(|n| n + 0x7f5a_0000_0000).collect();
    for (bytes, format, wanted) in [
        (cut.to_vec(), None, "beyond the end: is the file cut?"),
        (cut.to_vec(), Some(Format::OracleGeneral), "it is cut, or no oracleGeneral"),
        (zstd::encode_all(cut, 1).unwrap(), Some(Format::OracleGeneral), "it is cut, or no oracleGeneral"),
        (u64s(&addresses), None, "not recognised"),
        // Both halves of these addresses are small.
        (u64s(&low), None, "every other one is one of 1"),
        (low.iter().flat_map(|n| n.to_be_bytes()).collect(), None, "every other one is one of 1"),
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
        (lcs(9, &[1]), None, "lcs of version 9"),
        (lcs(1, &[1])[..8000].to_vec(), None, "no header of lcs"),
        (lcs(2, &[1, 2, 1])[..8200].to_vec(), None, "byte 8192: torn: 8 bytes"),
        (lcs(1, &[1, 2, 1])[..8192 + 24].to_vec(), None, "it is cut"),
        (b"1 mem-loads: 10\n2 mem-loads:\n".to_vec(), None, "line 2: '2 mem-loads:' has no address"),
        (b"1 mem-loads: 10\nno sample\n".to_vec(), None, "line 2: 'no sample' names no event"),
        (b"1 mem-loads: zz\n".to_vec(), Some(Format::PerfScript), "line 1: '1 mem-loads: zz' has no address"),
        (vscsi(2, &[(1, 1)])[..39].to_vec(), Some(Format::Vscsi2), "byte 0: torn: 39 bytes"),
        (vec![], Some(Format::U64Be), "holds no page number"),
        (u64s(&[1, 2])[..12].to_vec(), Some(Format::U64Be), "byte 8: torn: 4 bytes"),
        (u32s(&[1, 2])[..6].to_vec(), Some(Format::U32Be), "byte 4: torn: 2 bytes"),
        (b"l 0x10 1\nq 0x10 1\n".to_vec(), None, "line 2"),
        (b"s 0xzz 1\n".to_vec(), Some(Format::LoadStore), "line 1"),
        (b" L 10,4\n X 10,4\n".to_vec(), None, "line 2"),
        (b" L zz,4\n".to_vec(), Some(Format::Lackey), "line 1"),
        (
            b"1\n99999999999999999999999\n".to_vec(),
            None,
            "line 2: '99999999999999999999999' is not a page number",
        ),
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
