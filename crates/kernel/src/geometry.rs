//! The sizes of the machine's caches and TLBs, as far as it shows them.

use std::fs;

/// Sizes that the machine shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of the data or unified cache of level 1, 2 and 3, of the first processor.
    pub caches: [Option<u64>; 3],
    /// Entries for base pages of the first-level data TLB and of the second-level TLB.
    pub tlbs: [Option<u64>; 2],
}

/// The machine's: caches from sysfs, TLBs from CPUID.
pub fn machine() -> Geometry {
    let (first, second) = tlb();
    Geometry { caches: [cache(1), cache(2), cache(3)], tlbs: [first, second] }
}

/// Entries of the greatest TLB; many where the machine does not say.
pub fn tlb_entries() -> u64 {
    const DEFAULT_ENTRIES: u64 = 4096;
    let (first, second) = tlb();
    second.max(first).unwrap_or(DEFAULT_ENTRIES)
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
/// appendix E). Where leaf 8000_0021 says so (EAX bit 14, L2TlbSIzeX32), the second level is given
/// in units of 32; hypervisors hide that leaf, but no Zen has fewer than 1,536 entries, and 32
/// times 48 are that many. Intel: leaf 18 (Software Developer's Manual, volume 2A, CPUID). A
/// hypervisor may have blanked either.
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
        return (some(first), some(amd_second(second, family(__cpuid(1).eax))));
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

/// The family that EAX of leaf 1 names.
#[cfg(target_arch = "x86_64")]
fn family(signature: u32) -> u32 {
    let (base, extended) = ((signature >> 8) & 0xf, (signature >> 20) & 0xff);
    if base == 0xf { base + extended } else { base }
}

/// Entries of AMD's second level from the number that leaf 8000_0006 has for it.
#[cfg(target_arch = "x86_64")]
fn amd_second(given: u32, family: u32) -> u32 {
    /// The first family of Zen processors, and the entries that the smallest of them has.
    const ZEN: (u32, u32) = (0x17, 1536);
    if family >= ZEN.0 && given < ZEN.1 { given * 32 } else { given }
}

#[cfg(not(target_arch = "x86_64"))]
fn tlb() -> (Option<u64>, Option<u64>) {
    (None, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_second_level_in_units_of_32_is_counted_in_entries() {
        // A Zen 4 gives its 3,072 entries as they are, a Zen 5 its 4,096 as 128; a Piledriver has 1,024.
        let (zen4, zen5, piledriver) = (family(0x00a1_0f11), family(0x00b0_0f21), family(0x0060_0f12));
        assert_eq!((zen4, zen5, piledriver), (0x19, 0x1a, 0x15));
        assert_eq!(amd_second(3072, zen4), 3072);
        assert_eq!(amd_second(128, zen5), 4096);
        assert_eq!(amd_second(1024, piledriver), 1024);
    }

    #[test]
    fn caches_grow_with_their_level() {
        let Geometry { caches, tlbs } = machine();
        for pair in caches.windows(2).chain([&tlbs[..]]) {
            if let [Some(small), Some(large)] = pair {
                assert!(small < large, "{caches:?} {tlbs:?}");
            }
        }
    }
}
