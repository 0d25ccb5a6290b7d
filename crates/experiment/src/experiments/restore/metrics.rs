//! Metrics of `restore`.

use crate::metrics::metrics;

metrics! {
    RESTORE_ANSWER = "restore.answer", Nanoseconds, Value, Lower,
        "restore: time to the first answer without prefetching",
        "From the first reference to the last one of the answer. Each page that the answer \
         touches is read from the snapshot file on demand, one at a time.";
    RESTORE_ANSWER_RECORDED = "restore.answer.recorded", Nanoseconds, Value, Lower,
        "restore: time to the first answer with the pages of a recording prefetched",
        "The prefetcher copies pages in the order in which the recording first touched them, as in \
         REAP and FaaSnap. --changed sets how much the recording differs from the answer.";
    RESTORE_ANSWER_SEQUENTIAL = "restore.answer.sequential", Nanoseconds, Value, Lower,
        "restore: time to the first answer with the snapshot prefetched from its start",
        "The prefetcher copies pages from page 0 upward, without knowledge of the answer.";
    RESTORE_ANSWER_LRU = "restore.answer.lru", Nanoseconds, Value, Lower,
        "restore: time to the first answer with the most recent half of a recording prefetched",
        "The prefetcher copies the pages that LRU holds after the recording, the most recently \
         used first. LRU has half as many frames as the recording touched pages.";
    RESTORE_VAIN_RECORDED = "restore.vain.recorded", Share, Share, Lower,
        "restore: share of the prefetched pages of a recording that the answer never touched",
        "Pages prefetched until the answer. Missing if no page was prefetched.";
    RESTORE_VAIN_SEQUENTIAL = "restore.vain.sequential", Share, Share, Lower,
        "restore: share of the pages prefetched from the start that the answer never touched",
        "See restore.vain.recorded.";
    RESTORE_VAIN_LRU = "restore.vain.lru", Share, Share, Lower,
        "restore: share of the prefetched most recent pages that the answer never touched",
        "See restore.vain.recorded.";
}
