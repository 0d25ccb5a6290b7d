//! The machine's nodes of memory, and where pages lie.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::ptr;

use pagelab_procfs::{list, value};

use crate::region::{Region, page_size};

const NODES: &str = "/sys/devices/system/node";
const TIERS: &str = "/sys/devices/virtual/memory_tiering";

/// The two nodes that are compared: that of a processor, and the one farthest from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nodes {
    /// The processor's own.
    pub fast: usize,
    /// The farthest of the others.
    pub slow: usize,
    /// Whether the kernel has the slow one in a slower tier.
    pub tiered: bool,
    /// What a load waits for either, ns, as the machine's tables (HMAT) tell.
    pub latency: Option<[f64; 2]>,
}

/// The nodes that have memory.
pub fn with_memory() -> Vec<usize> {
    fs::read_to_string(format!("{NODES}/has_memory")).map_or_else(|_| Vec::new(), |text| list(&text))
}

impl Nodes {
    /// As seen from `processor`; `None` where there are not two nodes with memory.
    pub fn of(processor: usize) -> Option<Self> {
        let all = with_memory();
        let own = |node: &usize| PathBuf::from(format!("{NODES}/node{node}/cpu{processor}")).exists();
        let fast = all.iter().copied().find(own)?;
        let distances = fs::read_to_string(format!("{NODES}/node{fast}/distance")).unwrap_or_default();
        let distances: Vec<u32> =
            distances.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
        // A line has a word for each node that is online, in their order.
        let online =
            fs::read_to_string(format!("{NODES}/online")).map_or_else(|_| Vec::new(), |text| list(&text));
        let far = |node: &usize| {
            online.iter().position(|known| known == node).and_then(|n| distances.get(n).copied())
        };
        let others = all.iter().copied().filter(|&node| node != fast);
        // Of nodes equally far the one without a processor: max_by_key takes the last.
        let slow = others.max_by_key(|node| (far(node).unwrap_or(0), !has_processor(*node)))?;
        let tiered = tier(slow).zip(tier(fast)).is_some_and(|(slow, fast)| slow > fast);
        let latency = [fast, slow].map(latency);
        Some(Self {
            fast,
            slow,
            tiered,
            latency: latency[0].zip(latency[1]).map(|(fast, slow)| [fast, slow]),
        })
    }
}

fn has_processor(node: usize) -> bool {
    fs::read_to_string(format!("{NODES}/has_cpu")).is_ok_and(|text| list(&text).contains(&node))
}

/// The number of the tier of a node: greater ones are slower.
fn tier(node: usize) -> Option<u64> {
    fs::read_dir(TIERS).ok()?.flatten().find_map(|entry| {
        let number = entry.file_name().to_str()?.strip_prefix("memory_tier")?.parse().ok()?;
        let nodes = fs::read_to_string(entry.path().join("nodelist")).ok()?;
        list(&nodes).contains(&node).then_some(number)
    })
}

/// The latency of loads from `node` by its nearest initiators, ns.
fn latency(node: usize) -> Option<f64> {
    ["access0", "access1"].iter().find_map(|access| {
        let text = fs::read_to_string(format!("{NODES}/node{node}/{access}/initiators/read_latency")).ok()?;
        text.trim().parse().ok().filter(|latency| *latency > 0.0)
    })
}

/// The bytes free on `node`.
pub fn free(node: usize) -> Option<u64> {
    let text = fs::read_to_string(format!("{NODES}/node{node}/meminfo")).ok()?;
    // Node 0 MemFree: 1 kB
    text.lines().find_map(|line| value(line.splitn(3, ' ').nth(2)?, "MemFree"))
}

/// Where new pages of a mapping are to lie.
#[derive(Clone, Copy, Debug)]
pub enum Policy {
    /// Wherever the kernel has them.
    Default,
    /// On these nodes alone.
    Bind(usize),
    /// On both in turn.
    Interleave(usize, usize),
}

/// Sets the policy of a mapping: mbind(2).
///
/// # Errors
/// What the kernel says.
pub fn place(region: &Region, policy: Policy) -> io::Result<()> {
    let (mode, mask) = match policy {
        Policy::Default => (libc::MPOL_DEFAULT, 0u64),
        Policy::Bind(node) => (libc::MPOL_BIND, 1 << node),
        Policy::Interleave(a, b) => (libc::MPOL_INTERLEAVE, 1 << a | 1 << b),
    };
    let (nodes, most) = if mask == 0 { (ptr::null(), 0) } else { (&raw const mask, 65_usize) };
    // SAFETY: the range is this mapping, and the kernel reads 64 bits of nodes.
    let set = unsafe { libc::syscall(libc::SYS_mbind, region.base(), region.bytes(), mode, nodes, most, 0) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// How many of the pages from `first` on lie on which node, `count` of them: move_pages(2), which
/// moves none where no node is named.
///
/// # Errors
/// What the kernel says.
pub fn nodes_of(region: &Region, first: usize, count: usize, nodes: [usize; 2]) -> io::Result<[u64; 2]> {
    let base = region.base();
    let pages: Vec<*mut u8> =
        (first..first + count).map(|page| base.wrapping_add(page * page_size())).collect();
    let mut status = vec![-1_i32; count];
    // SAFETY: the kernel reads `count` addresses, which it checks itself, and writes `count` numbers.
    let asked = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0,
            count,
            pages.as_ptr(),
            ptr::null::<i32>(),
            status.as_mut_ptr(),
            0,
        )
    };
    if asked < 0 {
        return Err(io::Error::last_os_error());
    }
    let on = |node: usize| status.iter().filter(|&&status| status == node as i32).count() as u64;
    Ok(nodes.map(on))
}

/// How many pages of the mapping lie on which node, as /proc/self/numa_maps has it. The mapping
/// must be one by itself.
pub fn mapped(region: &Region, nodes: [usize; 2]) -> Option<[u64; 2]> {
    let text = fs::read_to_string("/proc/self/numa_maps").ok()?;
    let begin = format!("{:08x} ", region.range().start);
    let line = text.lines().find_map(|line| line.strip_prefix(&begin))?;
    let on = |node: usize| {
        let begin = format!("N{node}=");
        line.split_ascii_whitespace().find_map(|word| word.strip_prefix(&begin)?.parse().ok()).unwrap_or(0)
    };
    Some(nodes.map(on))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_counts_of_the_nodes_of_pages_agree() {
        let Some(&node) = with_memory().first() else { return };
        let region = Region::anonymous(64).unwrap();
        region.keep_apart().unwrap();
        let _ = region.advise(crate::region::HugePages::Forbidden);
        region.populate(|_, _| {});
        let asked = nodes_of(&region, 0, 64, [node, usize::MAX >> 1]).unwrap();
        if with_memory().len() == 1 {
            assert_eq!(asked, [64, 0]);
        }
        // A kernel without NUMA has no such file.
        if let Some(mapped) = mapped(&region, [node, usize::MAX >> 1]) {
            assert_eq!(mapped, asked);
        }
    }
}
