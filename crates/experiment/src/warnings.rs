//! The warnings that a run can carry: of each the words by which a reader recognizes it, and what it means.

/// Words that occur in each warning of a kind, and what they mean for the figures.
pub type Warning = (&'static str, &'static str);

/// Declares the warnings: constant, words, meaning.
macro_rules! warnings {
    ($($constant:ident = $words:literal, $help:literal;)*) => {
        $(
            #[doc = $help]
            pub const $constant: Warning = ($words, $help);
        )*
        /// Every warning's words and what they mean.
        pub const ALL: &[Warning] = &[$($constant),*];
    };
}

warnings! {
    GUEST_BUSY = "the guest was still busy after booting", "The guest's kernel did not become idle before the experiment began, so figures include its own work. Repeat the run";
    REPEATED = "OOM kill inside the limit although swap was left", "The kernel gave up reclaim while the disk was busy and killed the load. pagelab repeated the repetition, and its figures count only the last attempt";
    NO_HUGE_PAGES = "cannot request huge pages", "The kernel refused the request (madvise), so the figures are those of base pages. Boot a kernel with transparent huge pages, or use --thp never";
    EVICTIONS_LOST = "the log of evictions lacks events", "The kernel reported evictions faster than pagelab read them, so the judgement of evictions is incomplete. Repeat the run with less other load";
    CLASSIFICATION = "the classification is not exact in this run", "The faults that pagelab derived from the times of references differ from the kernel's counters by more than 0.1%. The counts of hits, minor and major faults are approximate, the total time is not affected";
    STILL_MERGING = "ksmd still merged", "ksmd had not finished when the time was up, so ksm.sharing is too low and ksm.time a lower bound. Raise --timeout or --scan";
    CLOCKS = "time is suspect on this machine", "The clocks disagree or jumped, for the reason given, so times of this machine may be wrong. Choose another clock source or another machine";
    NO_KILL = "no process was killed", "All processes fit into the limit, so there is no OOM kill to measure. Raise --grow";
    ENDED_WITH = "ended with", "The program failed, and --allow-failure keeps its figures. They may describe less work than a successful run does";
    FEW_KINDS = "the recording holds only these kinds of references", "The trace lacks loads, stores or fetches, so the simulated faults are too few";
    INCOMPLETE = "a simulator sees fewer references than the kernel", "The recorder did not follow all programs or threads, so the simulated faults are too few";
    NOT_PAGED = "ranges of memory could not be paged", "userfaultfd refused these ranges, so the policy did not page them and the faults are fewer than the program would have";
}
