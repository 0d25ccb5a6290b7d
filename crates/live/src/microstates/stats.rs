//! What `struct taskstats` says of one task (include/uapi/linux/taskstats.h).
//!
//! The structure grows at its end from version to version, with one exception: version 15 has a
//! greatest and a least value after each delay; version 16 has them at the end.

/// One task, from its start to the moment of asking or its end. Times in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stats {
    pub(super) pid: u32,
    pub(super) parent: u32,
    /// Wall time since it started.
    pub(super) elapsed: u64,
    /// Processor time as the ticks sampled it: good for the proportion of the two.
    pub(super) user: u64,
    pub(super) system: u64,
    /// Processor time, exact.
    pub(super) on_cpu: u64,
    /// Runnable, waiting for a processor.
    pub(super) runnable: u64,
    pub(super) block_io: u64,
    pub(super) swap_in: u64,
    pub(super) reclaim: u64,
    pub(super) thrashing: Option<u64>,
    pub(super) compaction: Option<u64>,
}

/// The version that has extremes inside.
const EXTREMES_INSIDE: u16 = 15;

impl Stats {
    /// `None` when the bytes are too few.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let version = u16::from_ne_bytes(*bytes.first_chunk()?);
        let word32 = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes);
        let word64 = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u64::from_ne_bytes);
        let extremes = if version == EXTREMES_INSIDE { 16 } else { 0 };
        // After the header three delays (count and total each), then times and identity.
        let delay = |n: usize| word64(16 + n * (16 + extremes) + 8);
        let after = 3 * extremes;
        let reclaim = 312 + after;
        let thrashing = reclaim + 16 + extremes;
        let compaction = thrashing + 16 + extremes + 8;
        let since = |from: u16, at: usize| (version >= from).then(|| word64(at + 8)).flatten();
        Some(Self {
            runnable: delay(0)?,
            block_io: delay(1)?,
            swap_in: delay(2)?,
            on_cpu: word64(72 + after)?,
            pid: word32(128 + after)?,
            parent: word32(132 + after)?,
            elapsed: word64(144 + after)?.saturating_mul(1000),
            user: word64(152 + after)?.saturating_mul(1000),
            system: word64(160 + after)?.saturating_mul(1000),
            reclaim: word64(reclaim + 8)?,
            thrashing: since(9, thrashing),
            compaction: since(11, compaction),
        })
    }

    /// Whether no delay is longer than the task lived. One that began before delay accounting was
    /// switched on, and ended after, is counted from the boot of the machine.
    pub(super) fn plausible(&self) -> bool {
        let longest = [self.block_io, self.swap_in, self.reclaim].into_iter().max().unwrap_or(0);
        let longest = longest.max(self.thrashing.unwrap_or(0)).max(self.compaction.unwrap_or(0));
        longest <= self.elapsed.saturating_add(10_000_000)
    }

    /// The growth since `before`, of the same task.
    pub(super) fn since(&self, before: &Self) -> Self {
        let less = |a: u64, b: u64| a.saturating_sub(b);
        let option = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| less(a, b));
        Self {
            pid: self.pid,
            parent: self.parent,
            elapsed: less(self.elapsed, before.elapsed),
            user: less(self.user, before.user),
            system: less(self.system, before.system),
            on_cpu: less(self.on_cpu, before.on_cpu),
            runnable: less(self.runnable, before.runnable),
            block_io: less(self.block_io, before.block_io),
            swap_in: less(self.swap_in, before.swap_in),
            reclaim: less(self.reclaim, before.reclaim),
            thrashing: option(self.thrashing, before.thrashing),
            compaction: option(self.compaction, before.compaction),
        }
    }

    /// Both tasks together.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let option = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a + b);
        Self {
            pid: 0,
            parent: 0,
            elapsed: self.elapsed + other.elapsed,
            user: self.user + other.user,
            system: self.system + other.system,
            on_cpu: self.on_cpu + other.on_cpu,
            runnable: self.runnable + other.runnable,
            block_io: self.block_io + other.block_io,
            swap_in: self.swap_in + other.swap_in,
            reclaim: self.reclaim + other.reclaim,
            thrashing: option(self.thrashing, other.thrashing),
            compaction: option(self.compaction, other.compaction),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// offsetof() of the version 13 header: cpu_delay_total 24, blkio 40, swapin 56,
    /// cpu_run_virtual_total 72, ac_pid 128, ac_ppid 132, ac_etime 144, ac_utime 152, ac_stime 160,
    /// freepages_delay_total 320, thrashing 336, compact 360.
    #[test]
    fn offsets_are_the_headers() {
        let mut bytes = vec![0_u8; 416];
        bytes[0] = 13;
        for (at, value) in [
            (24, 1_u64),
            (40, 2),
            (56, 3),
            (72, 4),
            (144, 5),
            (152, 6),
            (160, 7),
            (320, 8),
            (336, 9),
            (360, 10),
        ] {
            bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        bytes[128..132].copy_from_slice(&11_u32.to_ne_bytes());
        bytes[132..136].copy_from_slice(&12_u32.to_ne_bytes());
        let stats = Stats::parse(&bytes).unwrap();
        assert_eq!((stats.runnable, stats.block_io, stats.swap_in, stats.on_cpu), (1, 2, 3, 4));
        assert_eq!((stats.elapsed, stats.user, stats.system), (5000, 6000, 7000));
        assert_eq!((stats.reclaim, stats.thrashing, stats.compaction), (8, Some(9), Some(10)));
        assert_eq!((stats.pid, stats.parent), (11, 12));
        assert_eq!(stats.since(&stats).on_cpu, 0);
        assert_eq!(stats.plus(&stats).thrashing, Some(18));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = Stats::parse(&bytes);
        }
    }
}
