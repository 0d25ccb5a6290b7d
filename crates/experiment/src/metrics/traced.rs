//! Metrics of guests that count instructions or model caches, and of profiles.

use super::metrics;

metrics! {
    INSTRUCTIONS_USER = "instructions.user", Instructions, Count, Lower,
        "trace=functions: instructions in user mode during one more execution of the load",
        "The emulator counts each instruction. The table instructions lists them per file.";
    INSTRUCTIONS_KERNEL = "instructions.kernel", Instructions, Count, Lower,
        "trace=functions: instructions in the kernel during one more execution of the load",
        "Includes interrupts and kernel threads. The emulator counts each instruction, and a \
         faulting one each time it starts. The table instructions lists them per function.";
    PAGES_TOUCHED = "pages.touched", Count, Count, Lower,
        "trace=functions: pages that the program fetches from, loads or stores in user mode",
        "Distinct virtual pages of 4 KiB. The same address in several processes counts once. \
         Pages that only the kernel reads or writes for the program do not count.";
    SYSTEM_CALLS = "system-calls", Count, Count, Lower,
        "trace=functions: system calls of the program",
        "Entries into the kernel's system call functions, from execve to exit_group. \
         The table system-calls lists them by name.";
    REFERENCES_USER = "references.user", Count, Count, Neither,
        "trace=cache: loads and stores in user mode during one more execution of the load",
        "The table cache-misses lists them per function. An instruction that reads and writes \
         counts twice.";
    REFERENCES_KERNEL = "references.kernel", Count, Count, Neither,
        "trace=cache: loads and stores in the kernel during one more execution of the load",
        "Counted like references.user; includes interrupts and kernel threads.";
    MISSES_L1I_USER = "misses.l1i.user", Count, Count, Lower,
        "trace=cache: fetches in user mode that missed the modelled L1I cache",
        "Lines of 64 bytes, LRU within a set, no prefetching. The environment's guest.core has \
         the sizes.";
    MISSES_L1I_KERNEL = "misses.l1i.kernel", Count, Count, Lower,
        "trace=cache: fetches in the kernel that missed the modelled L1I cache",
        "Counted like misses.l1i.user; includes interrupts and kernel threads.";
    MISSES_L1D_USER = "misses.l1d.user", Count, Count, Lower,
        "trace=cache: loads and stores in user mode that missed the modelled L1D cache",
        "Lines of 64 bytes, LRU within a set, no prefetching; stores also fetch their line. The \
         caches are empty at the start of the load.";
    MISSES_L1D_KERNEL = "misses.l1d.kernel", Count, Count, Lower,
        "trace=cache: loads and stores in the kernel that missed the modelled L1D cache",
        "Counted like misses.l1d.user; includes interrupts and kernel threads.";
    MISSES_L2_USER = "misses.l2.user", Count, Count, Lower,
        "trace=cache: fetches, loads and stores in user mode that missed the modelled L2 cache",
        "The second level holds instructions and data. There is no model of a third level.";
    MISSES_L2_KERNEL = "misses.l2.kernel", Count, Count, Lower,
        "trace=cache: fetches, loads and stores in the kernel that missed the modelled L2 cache",
        "Counted like misses.l2.user; includes interrupts and kernel threads.";
    MISSES_TLB_USER = "misses.tlb.user", Count, Count, Lower,
        "trace=cache: fetches, loads and stores in user mode that missed the modelled first-level \
         TLBs",
        "The model assumes base pages for user memory, and large pages for the kernel's direct \
         map, text and struct pages.";
    MISSES_TLB_KERNEL = "misses.tlb.kernel", Count, Count, Lower,
        "trace=cache: fetches, loads and stores in the kernel that missed the modelled \
         first-level TLBs",
        "Counted like misses.tlb.user; includes interrupts and kernel threads.";
    WALKS_USER = "walks.user", Count, Count, Lower,
        "trace=cache: fetches, loads and stores in user mode that missed both levels of the \
         modelled TLBs",
        "Each would walk the page tables; the walk's own reads are not counted. A switch of \
         address spaces drops all translations except the kernel's.";
    WALKS_KERNEL = "walks.kernel", Count, Count, Lower,
        "trace=cache: fetches, loads and stores in the kernel that missed both levels of the \
         modelled TLBs",
        "Counted like walks.user; includes interrupts and kernel threads.";
    PROFILE_SAMPLES = "profile.samples", Count, Count, Neither,
        "samples of the profile, in the kernel and elsewhere",
        "--profile sets the frequency. profile.kernel is a share of these samples.";
    PROFILE_KERNEL = "profile.kernel", Share, Share, Neither,
        "share of the samples in the kernel",
        "The table of kernel functions shows their distribution.";
}
