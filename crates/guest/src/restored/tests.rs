//! Files of machines, and a QEMU that asks for their pages.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;

use proptest::prelude::*;

use super::saved::{
    CONFIGURATION, DESCRIPTION, END_OF_FILE, END_OF_SECTION, FOOTER, MAGIC, PAGE, PAGE_SIZE, SAME_BLOCK,
    SECTION_END, SECTION_FULL, SECTION_PART, SECTION_START, SIZES, Saved, VERSION, ZERO,
};
use super::server::{COMMAND, POSTCOPY_RUN, REQUEST, REQUEST_WITH_BLOCK, Touched, beginning, serve};

const SECTION: u32 = 2;

fn footer(out: &mut Vec<u8>) {
    out.push(FOOTER);
    out.extend(SECTION.to_be_bytes());
}

/// A file of a machine with a block of four pages, the second one of zeros, and one of a page.
fn file() -> Vec<u8> {
    let mut out = [&MAGIC.to_be_bytes()[..], &VERSION.to_be_bytes(), &[CONFIGURATION]].concat();
    out.extend([&2u32.to_be_bytes()[..], b"pc", &[SECTION_START], &SECTION.to_be_bytes()].concat());
    out.extend([&b"\x03ram"[..], &[0; 8], &((5 * PAGE_SIZE) | SIZES).to_be_bytes()].concat());
    for (name, pages) in [(&b"\x01a"[..], 4), (b"\x01b", 1)] {
        out.extend([name, &(pages * PAGE_SIZE).to_be_bytes()].concat());
    }
    out.extend(END_OF_SECTION.to_be_bytes());
    footer(&mut out);
    out.push(SECTION_PART);
    out.extend(SECTION.to_be_bytes());
    out.extend([&PAGE.to_be_bytes()[..], b"\x01a", &[10; PAGE_SIZE as usize]].concat());
    out.extend([&(PAGE_SIZE | ZERO | SAME_BLOCK).to_be_bytes()[..], &[0]].concat());
    out.extend(END_OF_SECTION.to_be_bytes());
    footer(&mut out);
    out.push(SECTION_END);
    out.extend(SECTION.to_be_bytes());
    for page in [3u64, 2] {
        out.extend(((page * PAGE_SIZE) | PAGE | SAME_BLOCK).to_be_bytes());
        out.extend([10 + page as u8; PAGE_SIZE as usize]);
    }
    out.extend([&PAGE.to_be_bytes()[..], b"\x01b", &[20; PAGE_SIZE as usize]].concat());
    out.extend(END_OF_SECTION.to_be_bytes());
    footer(&mut out);
    out.extend(
        [&[SECTION_FULL][..], b"devices", &[END_OF_FILE, DESCRIPTION], &2u32.to_be_bytes(), b"{}"].concat(),
    );
    out
}

fn on_disk(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn request(page: u64, pages: u64, block: Option<&[u8]>) -> Vec<u8> {
    let kind = if block.is_some() { REQUEST_WITH_BLOCK } else { REQUEST };
    let name = block.map_or(Vec::new(), |name| [&[name.len() as u8], name].concat());
    let data =
        [&(page * PAGE_SIZE).to_be_bytes()[..], &((pages * PAGE_SIZE) as u32).to_be_bytes(), &name].concat();
    [&kind.to_be_bytes()[..], &(data.len() as u16).to_be_bytes(), &data].concat()
}

/// A page as it is sent: its address, its block, and the byte that fills it.
fn sent(line: &mut UnixStream) -> (u64, u8, u8) {
    let mut head = [0; 15];
    line.read_exact(&mut head).unwrap();
    let record = u64::from_be_bytes(head[5..13].try_into().unwrap());
    let mut content = vec![0; if record & ZERO == 0 { PAGE_SIZE as usize } else { 1 }];
    line.read_exact(&mut content).unwrap();
    assert!(content.iter().all(|&byte| byte == content[0]));
    line.read_exact(&mut [0; 13]).unwrap();
    (record / PAGE_SIZE, head[14], content[0])
}

/// A server of the machine in [`file`] that records for `first`, and QEMU's end of the line, after
/// what comes before the machine runs.
fn started(first: Duration) -> (JoinHandle<Touched>, UnixStream) {
    let file = on_disk(&file());
    let saved = Saved::parse(&file).unwrap();
    assert_eq!((saved.pages(), saved.devices.as_slice()), (5, &b"\x04devices"[..]));
    let start = beginning(&saved);
    let (line, mut qemu) = UnixStream::pair().unwrap();
    let server = std::thread::spawn(move || serve(&saved, &file, line, first).unwrap());
    let mut begun = vec![0; start.len()];
    qemu.read_exact(&mut begun).unwrap();
    assert!(begun == start && start.ends_with(&[COMMAND, 0, POSTCOPY_RUN as u8, 0, 0]));
    (server, qemu)
}

#[test]
fn pages_are_sent_once_and_recorded_in_the_order_of_requests() {
    let (server, mut qemu) = started(Duration::from_secs(600));
    // The second request repeats the first one, and an answer to a ping is between them.
    let pong = [0, 2, 0, 4, 0, 0, 0, 1];
    qemu.write_all(&[request(0, 1, Some(b"b")), pong.to_vec(), request(0, 1, None)].concat()).unwrap();
    assert_eq!(sent(&mut qemu), (0, b'b', 20));
    qemu.write_all(&request(2, 2, Some(b"a"))).unwrap();
    assert_eq!([sent(&mut qemu), sent(&mut qemu)], [(2, b'a', 12), (3, b'a', 13)]);
    qemu.write_all(&request(1, 1, None)).unwrap();
    assert_eq!(sent(&mut qemu), (1, b'a', 0), "a page of zeros");
    drop(qemu);
    let touched = server.join().unwrap();
    assert_eq!((touched.pages, touched.bytes), (vec![4, 2, 3, 1], 3 * PAGE_SIZE));
    assert!(touched.recorded < Duration::from_secs(600));
}

#[test]
fn all_pages_are_sent_after_the_recording() {
    let (server, mut qemu) = started(Duration::ZERO);
    let all = [(0, b'a', 10), (1, b'a', 0), (2, b'a', 12), (3, b'a', 13), (0, b'b', 20)];
    assert_eq!(all.map(|_| sent(&mut qemu)), all);
    drop(qemu);
    assert_eq!(server.join().unwrap(), Touched::default(), "none was requested");
}

#[test]
fn a_page_that_is_not_there_is_an_error() {
    for (page, block) in [(4, Some(&b"a"[..])), (0, Some(b"c")), (0, None), (u64::MAX >> 12, Some(b"a"))] {
        let file = on_disk(&file());
        let saved = Saved::parse(&file).unwrap();
        let (line, mut qemu) = UnixStream::pair().unwrap();
        qemu.write_all(&request(page, 1, block)).unwrap();
        let error = serve(&saved, &file, line, Duration::from_secs(60)).unwrap_err();
        assert!(error.to_string().contains("no page that QEMU asks for"), "{error}");
    }
}

#[test]
fn a_torn_file_is_an_error() {
    let whole = file();
    for end in 0..whole.len() {
        assert!(Saved::parse(&on_disk(&whole[..end])).is_err(), "{end} of {} bytes", whole.len());
    }
}

proptest! {
    #[test]
    fn no_file_makes_it_panic(places: Vec<(prop::sample::Index, u8)>) {
        let mut bytes = file();
        // Contents of pages are not looked at.
        let looked_at: Vec<usize> = (0..bytes.len()).filter(|&n| !(10..=20).contains(&bytes[n])).collect();
        for (place, byte) in places {
            bytes[*place.get(&looked_at)] = byte;
        }
        let _ = Saved::parse(&on_disk(&bytes));
    }
}
