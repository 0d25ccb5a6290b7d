//! Recorded traces: plain page numbers, as text (one a line) or binary (little-endian u64).

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Why a trace cannot be used. Every message names the file and the position.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The operating system refused.
    #[error("cannot read the trace {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The content is not what the format wants.
    #[error("the trace {path} is not usable at {position}: {problem}", path = path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Where: a line or a byte.
        position: String,
        /// What is wrong.
        problem: String,
    },
}

/// Reads the page numbers of `path` for a region of `pages` pages, `references` of them; a shorter
/// trace is repeated from its start.
///
/// A file whose first 4 KiB are all printable ASCII or white space is text: a decimal number a
/// line, empty lines and lines that begin with `#` are passed over. Everything else is binary.
///
/// # Errors
/// When the file cannot be read, is empty, torn (binary: not a multiple of 8 bytes), or names a
/// page outside the region.
pub fn read_pages(path: &Path, pages: u32, references: usize) -> Result<Vec<u32>, TraceError> {
    let read_error = |source| TraceError::Read { path: path.to_owned(), source };
    let content =
        |position: String, problem: String| TraceError::Content { path: path.to_owned(), position, problem };
    let mut reader = BufReader::new(File::open(path).map_err(read_error)?);
    let head = reader.fill_buf().map_err(read_error)?;
    let head = &head[..head.len().min(4096)];
    let text = head.iter().all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace());
    let mut list: Vec<u32> = Vec::new();
    let mut push = |page: u64, position: String| match u32::try_from(page) {
        Ok(page) if page < pages => {
            list.push(page);
            Ok(list.len() == references)
        }
        _ => Err(content(position, format!("page {page} is outside the region of {pages} pages"))),
    };
    if text {
        let mut line = String::new();
        for number in 1.. {
            line.clear();
            if reader.read_line(&mut line).map_err(read_error)? == 0 {
                break;
            }
            let word = line.trim();
            if word.is_empty() || word.starts_with('#') {
                continue;
            }
            let page: u64 = word
                .parse()
                .map_err(|_| content(format!("line {number}"), format!("'{word}' is not a page number")))?;
            if push(page, format!("line {number}"))? {
                break;
            }
        }
    } else {
        let mut position = 0;
        loop {
            let mut record = [0; 8];
            let mut filled = 0;
            while filled < 8 {
                match reader.read(&mut record[filled..]).map_err(read_error)? {
                    0 => break,
                    n => filled += n,
                }
            }
            match filled {
                0 => break,
                8 => {}
                _ => {
                    let problem = format!("torn: {filled} bytes are left where a record has 8");
                    return Err(content(format!("byte {position}"), problem));
                }
            }
            if push(u64::from_le_bytes(record), format!("byte {position}"))? {
                break;
            }
            position += 8;
        }
    }
    if list.is_empty() {
        return Err(content("its start".into(), "it holds no page number".into()));
    }
    let recorded = list.len();
    list.reserve_exact(references - recorded);
    for i in recorded..references {
        list.push(list[i - recorded]);
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(name: &str, bytes: &[u8]) -> PathBuf {
        let path = std::env::temp_dir().join(format!("pagelab-trace-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn read(name: &str, bytes: &[u8], references: usize) -> Result<Vec<u32>, String> {
        let path = file(name, bytes);
        let result = read_pages(&path, 100, references).map_err(|e| e.to_string());
        std::fs::remove_file(path).unwrap();
        result
    }

    #[test]
    fn text_and_binary_give_the_same_pages_and_repeat() {
        assert_eq!(read("a", b"# pages\n3\n\n 1\n4\n", 5).unwrap(), [3, 1, 4, 3, 1]);
        let binary: Vec<u8> = [3u64, 1, 4].iter().flat_map(|p| p.to_le_bytes()).collect();
        assert_eq!(read("b", &binary, 2).unwrap(), [3, 1]);
    }

    #[test]
    fn errors_name_the_position() {
        for (name, bytes, wanted) in [
            ("c", b"1\nx\n".to_vec(), "line 2"),
            ("d", b"1\n100\n".to_vec(), "outside the region of 100 pages"),
            ("e", vec![0, 0, 0, 0, 0, 0, 0, 0, 1, 0], "byte 8: torn"),
            ("f", Vec::new(), "no page number"),
        ] {
            let error = read(name, &bytes, 10).unwrap_err();
            assert!(error.contains(wanted), "{name}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_content_makes_the_reader_panic(bytes: Vec<u8>) {
            let _ = read("fuzz", &bytes, 50);
        }
    }
}
