//! Huge pages that are set aside (hugetlbfs), of the default size.
//!
//! Documentation/admin-guide/mm/hugetlbpage.rst.

use std::fs;
use std::path::Path;

use pagelab_procfs::value;

use crate::files::number;

/// The number of pages set aside, the machine's over all nodes.
pub const PAGES: &str = "/proc/sys/vm/nr_hugepages";
/// What a kernel needs.
pub const REMEDY: &str = "use a kernel built with CONFIG_HUGETLBFS, or another --backing";

/// The default size of a page, bytes; `None` on a kernel without.
pub fn page_size() -> Option<u64> {
    value(&fs::read_to_string("/proc/meminfo").ok()?, "Hugepagesize")
}

/// The value of [`PAGES`] with so many bytes more than there are; `None` on a kernel without.
pub fn with_more(bytes: u64) -> Option<u64> {
    number(Path::new(PAGES))?.checked_add(bytes.div_ceil(page_size()?))
}
