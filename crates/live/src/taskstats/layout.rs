//! Where the delays stand in `struct taskstats` of each version (include/uapi/linux/taskstats.h).
//!
//! The structure only grows at its end, except that version 15 put a maximum and a minimum after each
//! delay; version 16 moved them to the end.

use pagelab_counters::views::prstat::Delays;

/// The words before the first delay: version, exit status, flags, padded.
const START: usize = 16;
/// From the end of the third delay to reclaim's: times, identity, memory and I/O.
const TO_RECLAIM: usize = RECLAIM_V8 - (START + 3 * 16);
const RECLAIM_V8: usize = 312;
/// compaction follows `thrashing` and an 8-byte start time; copy follows 32 bytes of identity.
const START_TIME: usize = 8;
const IDENTITY: usize = 32;
/// The version that put extremes after each delay.
const EXTREMES_INSIDE: u16 = 15;

/// The delays; None where the kernel accounts none for this task: no event of any kind has been counted.
pub(super) fn delays(stats: &[u8]) -> Option<Delays> {
    let version = u16::from_ne_bytes(*stats.first_chunk()?);
    let extremes = if version == EXTREMES_INSIDE { 16 } else { 0 };
    let step = 16 + extremes;
    let word =
        |at: usize| stats.get(at..).and_then(|rest| rest.first_chunk().copied()).map(u64::from_ne_bytes);
    // Each is a count of events and the total in nanoseconds.
    let pair = |at: usize| word(at).zip(word(at + 8));
    // cpu, block I/O, swap-in
    let block_io = pair(START + step)?;
    let swap_in = pair(START + 2 * step)?;
    let reclaim_at = START + 3 * step + TO_RECLAIM;
    let reclaim = pair(reclaim_at)?;
    let thrashing_at = reclaim_at + step;
    let compaction_at = thrashing_at + step + START_TIME;
    let copy_at = compaction_at + step + IDENTITY;
    let since = |from: u16, at: usize| if version >= from { pair(at) } else { None };
    let thrashing = since(9, thrashing_at);
    let compaction = since(11, compaction_at);
    let copy = since(13, copy_at);
    let any = [Some(block_io), Some(swap_in), Some(reclaim), thrashing, compaction, copy]
        .into_iter()
        .flatten()
        .any(|(count, _)| count > 0);
    any.then(|| Delays {
        block_io: block_io.1,
        swap_in: swap_in.1,
        reclaim: reclaim.1,
        thrashing: thrashing.map(|p| p.1),
        compaction: compaction.map(|p| p.1),
        copy: copy.map(|p| p.1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_the_headers() {
        // offsetof() of the version 13 header: blkio_count 32, swapin_count 48, freepages_count 312,
        // thrashing_count 328, compact_count 352, wpcopy_count 400.
        let mut stats = vec![0_u8; 416];
        stats[0] = 13;
        for (offset, value) in
            [(32, 1_u64), (40, 11), (48, 2), (56, 22), (320, 33), (336, 44), (360, 55), (408, 66)]
        {
            stats[offset..offset + 8].copy_from_slice(&value.to_ne_bytes());
        }
        let found = delays(&stats).unwrap();
        let all = [found.block_io, found.swap_in, found.reclaim];
        assert_eq!(all, [11, 22, 33]);
        assert_eq!((found.thrashing, found.compaction, found.copy), (Some(44), Some(55), Some(66)));
        assert_eq!(delays(&[0; 416]), None, "no event counted: not accounted");
    }
}
