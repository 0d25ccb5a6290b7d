//! The sizes of the machine's caches and TLBs, as far as it shows them: environment entries.

use std::fs;

use crate::environment::{Entries, entries};

/// What there is: `cache.*` in bytes from sysfs, `tlb.*` in entries for base pages from CPUID.
pub fn machine() -> Entries {
    let (first, second) = tlb();
    entries([
        ("cache.l1d", cache(1).map(|v| v.to_string())),
        ("cache.l2", cache(2).map(|v| v.to_string())),
        ("cache.l3", cache(3).map(|v| v.to_string())),
        ("tlb.l1d", first.map(|v| v.to_string())),
        ("tlb.l2", second.map(|v| v.to_string())),
    ])
}

/// Bytes of the data or unified cache of this level, of the first processor.
fn cache(level: u32) -> Option<u64> {
    let folder = "/sys/devices/system/cpu/cpu0/cache";
    fs::read_dir(folder).ok()?.flatten().find_map(|index| {
        let text = |name: &str| fs::read_to_string(index.path().join(name)).ok();
        let is_wanted = text("level")?.trim() == level.to_string() && text("type")?.trim() != "Instruction";
        let size = text("size")?;
        let kib = size.trim().strip_suffix('K')?.parse::<u64>().ok()?;
        is_wanted.then(|| kib * 1024)
    })
}

/// Entries of the first-level data TLB and of the second-level TLB for base pages.
///
/// AMD: CPUID leaves 8000_0005 and 8000_0006 (AMD64 Architecture Programmer's Manual, volume 3,
/// appendix E). Intel: leaf 18 (Software Developer's Manual, volume 2A, CPUID). A hypervisor may
/// have blanked either.
#[cfg(target_arch = "x86_64")]
fn tlb() -> (Option<u64>, Option<u64>) {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    let some = |entries: u32| (entries > 0).then_some(u64::from(entries));
    let vendor = __cpuid(0);
    let highest = vendor.eax;
    // "Auth", "Hygo"
    if [0x6874_7541, 0x6f67_7948].contains(&vendor.ebx) && __cpuid(0x8000_0000).eax >= 0x8000_0006 {
        let first = (__cpuid(0x8000_0005).ebx >> 16) & 0xff;
        let second = (__cpuid(0x8000_0006).ebx >> 16) & 0xfff;
        return (some(first), some(second));
    }
    if highest < 0x18 {
        return (None, None);
    }
    let (mut first, mut second) = (None, None);
    for leaf in 0..=__cpuid_count(0x18, 0).eax.min(32) {
        let found = __cpuid_count(0x18, leaf);
        let (kind, level) = (found.edx & 0x1f, (found.edx >> 5) & 7);
        let base_pages = found.ebx & 1 != 0;
        let entries = (found.ebx >> 16).saturating_mul(found.ecx);
        // 1: data, 3: unified, 4: loads alone.
        match (base_pages, kind, level) {
            (true, 1 | 3 | 4, 1) => first = first.max(some(entries)),
            (true, 1 | 3, 2) => second = second.max(some(entries)),
            _ => {}
        }
    }
    (first, second)
}

#[cfg(not(target_arch = "x86_64"))]
fn tlb() -> (Option<u64>, Option<u64>) {
    (None, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_experiment::catalogue::ENVIRONMENT;

    #[test]
    fn caches_grow_with_their_level_and_names_are_in_the_catalogue() {
        let found = machine();
        for name in found.keys() {
            assert!(ENVIRONMENT.iter().any(|(known, _)| known == name), "{name}");
        }
        let number = |name: &str| found.get(name).map(|v| v.parse::<u64>().unwrap());
        for (small, large) in [("cache.l1d", "cache.l2"), ("cache.l2", "cache.l3"), ("tlb.l1d", "tlb.l2")] {
            if let (Some(small), Some(large)) = (number(small), number(large)) {
                assert!(small < large, "{found:?}");
            }
        }
    }
}
