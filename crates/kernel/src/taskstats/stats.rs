//! What `struct taskstats` says of one task (include/uapi/linux/taskstats.h).
//!
//! The structure only grows at its end from version to version, with one exception: version 15 has a
//! maximum and a minimum after each delay; version 16 has them at the end.

use pagelab_counters::views::prstat::Delays;

/// One task, from its start to the moment of asking or its end. Times in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Its number.
    pub pid: u32,
    /// The process that is its parent.
    pub parent: u32,
    /// The process that it is a thread of; `None` before Linux 5.19.
    pub process: Option<u32>,
    /// Voluntary and involuntary context switches.
    pub switches: [u64; 2],
    /// Most resident memory of its process, bytes; of a sum the greatest of one.
    pub peak: u64,
    /// Its command's name, behind it zeroes.
    pub command: [u8; 16],
    /// Wall time since it started.
    pub elapsed: u64,
    /// Processor time as the ticks sampled it: good for the proportion of the two.
    pub user: u64,
    /// The same in the kernel.
    pub system: u64,
    /// Processor time, exact, up to the end of this account.
    pub on_cpu: u64,
    /// Of a sum: processor time of the exits themselves, which no task's account has.
    pub exits: u64,
    /// Runnable, waiting for a CPU.
    pub runnable: u64,
    /// Its delays, 0 where none is accounted.
    pub waits: Delays,
    /// Whether the kernel has counted a delay of any kind but for a processor: 0 of all means that it
    /// accounts none.
    pub accounted: bool,
}

/// The version that has extremes inside.
const EXTREMES_INSIDE: u16 = 15;

impl Stats {
    /// `None` when the bytes are too few.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let version = u16::from_ne_bytes(*bytes.first_chunk()?);
        let word32 = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes);
        let word64 = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u64::from_ne_bytes);
        let extremes = if version == EXTREMES_INSIDE { 16 } else { 0 };
        // After the header three delays (count and total each), then times and identity.
        // Each delay is a number of events and their time.
        let pair = |at: usize| word64(at).zip(word64(at + 8));
        let first = |n: usize| pair(16 + n * (16 + extremes));
        let after = 3 * extremes;
        let reclaim_at = 312 + after;
        let thrashing_at = reclaim_at + 16 + extremes;
        // Behind a start time of 8 bytes; copies behind 32 bytes of identity.
        let compaction_at = thrashing_at + 16 + extremes + 8;
        let copy_at = compaction_at + 16 + extremes + 32;
        let since = |from: u16, at: usize| (version >= from).then(|| pair(at)).flatten();
        let (runnable, block_io, swap_in, reclaim) = (first(0)?, first(1)?, first(2)?, pair(reclaim_at)?);
        let (thrashing, compaction, copy) =
            (since(9, thrashing_at), since(11, compaction_at), since(13, copy_at));
        let delays = [Some(block_io), Some(swap_in), Some(reclaim), thrashing, compaction, copy];
        Some(Self {
            runnable: runnable.1,
            on_cpu: word64(72 + after)?,
            exits: 0,
            command: bytes.get(80 + after..)?.first_chunk().copied()?,
            pid: word32(128 + after)?,
            parent: word32(132 + after)?,
            process: (version >= 12).then(|| word32(compaction_at + 16 + extremes)).flatten(),
            peak: word64(200 + after)?.saturating_mul(1024),
            switches: [word64(272 + after)?, word64(280 + after)?],
            elapsed: word64(144 + after)?.saturating_mul(1000),
            user: word64(152 + after)?.saturating_mul(1000),
            system: word64(160 + after)?.saturating_mul(1000),
            waits: Delays {
                block_io: block_io.1,
                swap_in: swap_in.1,
                reclaim: reclaim.1,
                thrashing: thrashing.map(|p| p.1),
                compaction: compaction.map(|p| p.1),
                copy: copy.map(|p| p.1),
            },
            accounted: delays.into_iter().flatten().any(|(events, _)| events > 0),
        })
    }

    /// The task's name.
    pub fn name(&self) -> String {
        let end = self.command.iter().position(|&byte| byte == 0).unwrap_or(self.command.len());
        String::from_utf8_lossy(&self.command[..end]).into_owned()
    }

    /// The delays; `None` where the kernel accounts none for this task.
    pub fn delays(&self) -> Option<Delays> {
        self.accounted.then_some(self.waits)
    }

    /// Whether no delay is longer than the task lived. One that began before delay accounting was
    /// switched on, and ended after, is counted from the boot of the machine.
    pub fn plausible(&self) -> bool {
        let Delays { block_io, swap_in, reclaim, thrashing, compaction, .. } = self.waits;
        let longest = block_io.max(swap_in).max(reclaim).max(thrashing.max(compaction).unwrap_or(0));
        longest <= self.elapsed.saturating_add(10_000_000)
    }

    /// The growth since `before`, of the same task.
    pub fn since(&self, before: &Self) -> Self {
        self.with(before, u64::saturating_sub)
    }

    /// Both tasks together.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            pid: 0,
            parent: 0,
            process: None,
            peak: self.peak.max(other.peak),
            command: [0; 16],
            accounted: self.accounted || other.accounted,
            ..self.with(other, |a, b| a + b)
        }
    }

    /// This task with each count and time of both, put together.
    fn with(&self, other: &Self, both: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            switches: [0, 1].map(|kind| both(self.switches[kind], other.switches[kind])),
            elapsed: both(self.elapsed, other.elapsed),
            user: both(self.user, other.user),
            system: both(self.system, other.system),
            on_cpu: both(self.on_cpu, other.on_cpu),
            exits: both(self.exits, other.exits),
            runnable: both(self.runnable, other.runnable),
            waits: self.waits.with(&other.waits, both),
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// offsetof() of the version 13 header: cpu_delay_total 24, blkio 40, swapin 56,
    /// cpu_run_virtual_total 72, ac_comm 80, ac_pid 128, ac_ppid 132, ac_etime 144, ac_utime 152,
    /// ac_stime 160, hiwater_rss 200, nvcsw 272, nivcsw 280, ac_tgid 368, freepages_delay_total
    /// 320, thrashing 336, compact 360, wpcopy_count 400.
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
            (200, 13),
            (272, 14),
            (280, 15),
            (320, 8),
            (336, 9),
            (360, 10),
            (400, 1),
            (408, 20),
        ] {
            bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        bytes[128..132].copy_from_slice(&11_u32.to_ne_bytes());
        bytes[132..136].copy_from_slice(&12_u32.to_ne_bytes());
        bytes[368..372].copy_from_slice(&10_u32.to_ne_bytes());
        bytes[80..85].copy_from_slice(b"sleep");
        let stats = Stats::parse(&bytes).unwrap();
        assert_eq!(stats.name(), "sleep");
        assert_eq!((stats.runnable, stats.waits.swap_in, stats.on_cpu), (1, 3, 4));
        assert_eq!((stats.elapsed, stats.user, stats.system), (5000, 6000, 7000));
        assert_eq!(
            (stats.waits.reclaim, stats.waits.thrashing, stats.waits.compaction),
            (8, Some(9), Some(10))
        );
        assert_eq!((stats.pid, stats.parent, stats.process), (11, 12, Some(10)));
        assert_eq!((stats.peak, stats.switches), (13 << 10, [14, 15]));
        let delays = stats.delays().unwrap();
        assert_eq!((delays.block_io, delays.copy), (2, Some(20)));
        assert_eq!(Stats::parse(&[0; 416]).unwrap().delays(), None, "no event counted: not accounted");
        assert_eq!(stats.since(&stats).on_cpu, 0);
        assert_eq!(stats.plus(&stats).waits.thrashing, Some(18));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = Stats::parse(&bytes);
        }
    }
}
