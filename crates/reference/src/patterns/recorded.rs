//! A recorded trace as the references to a region that an experiment has laid out.

use std::fs;
use std::path::Path;

use super::Generator;
use crate::trace::{Densifier, Options, Reader, TraceError};

/// The references of the trace at `path` to a region of `pages` pages; a shorter trace is repeated from its start.
///
/// Page numbers are taken as they are. Objects and byte addresses (in pages of 4 KiB) are numbered in
/// the order of first reference. A regular file is read again for each repetition; of another (a FIFO, standard
/// input) the references are kept: 4 bytes each.
///
/// # Errors
/// When the trace cannot be opened. The generator fails where the trace is empty, torn or foreign, or has a page
/// outside the region.
pub fn recorded(path: &Path, pages: u32) -> Result<Generator, TraceError> {
    let path = path.to_owned();
    let can_be_read_again = fs::metadata(&path).is_ok_and(|found| found.is_file());
    let mut reader = Reader::open(&path, &Options::default())?;
    let as_they_are = reader.format().has_page_numbers();
    let mut densifier = Densifier::default();
    let (mut kept, mut repeated, mut any, mut ended) = (Vec::new(), 0, false, false);
    Ok(Box::new(move |count, list: &mut Vec<u32>| {
        let end = list.len() + count;
        while list.len() < end {
            if ended {
                list.push(kept[repeated % kept.len()]);
                repeated += 1;
                continue;
            }
            let Some(record) = reader.next().transpose()? else {
                if !any {
                    return Err(reader.error("it holds no page number".into()));
                }
                if can_be_read_again {
                    reader = Reader::open(&path, &Options::default())?;
                    densifier = Densifier::default();
                } else {
                    ended = true;
                }
                continue;
            };
            let number = if as_they_are {
                u32::try_from(record.page).ok()
            } else {
                densifier.number(record.page).ok()
            };
            let Some(page) = number.filter(|&n| n < pages) else {
                let what = if as_they_are {
                    format!("page {} is outside the region of {pages} pages", record.page)
                } else {
                    format!("the trace has more different pages than the region's {pages}")
                };
                return Err(reader.error(what));
            };
            any = true;
            list.push(page);
            if !can_be_read_again {
                kept.push(page);
            }
        }
        Ok(())
    }))
}
