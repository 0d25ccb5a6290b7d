//! What fork, exec, exit and faults cost the kernel besides its reverse map.
//!
//! Derived from Morton's run and profile without reverse map: a function's share of 76.19 s over its calls
//! in ten copies, which are twice the published ones of five. What no listed function has is divided evenly
//! among forks and execs.

use super::space::Counts;

/// Processor time of the parts, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelCosts {
    /// An entry copied by fork (`copy_page_range`).
    pub copied: f64,
    /// An entry dropped by exec or exit (`zap_pte_range`, `page_cache_release`).
    pub dropped: f64,
    /// A first touch of a page (`do_no_page`).
    pub touched: f64,
    /// What a fresh page costs more (`do_anonymous_page`).
    pub fresh: f64,
    /// A write to a protected page (`do_wp_page`): two thirds of them copy it.
    pub protected: f64,
    /// A fork with the exit that ends it, or an exec, besides.
    pub call: f64,
}

impl KernelCosts {
    /// A quad Pentium III with 2.5.27.
    pub const QUAD_PENTIUM_III: Self = Self {
        copied: 705.0,
        dropped: 948.0,
        touched: 1_963.0,
        fresh: 15_946.0,
        protected: 20_464.0,
        call: 1_007_676.0,
    };

    /// The time of so many calls, in ns.
    pub fn time(&self, counts: &Counts) -> f64 {
        [
            (counts.add_copy_page_range, self.copied),
            (counts.remove_zap_pte_range, self.dropped),
            (counts.do_no_page, self.touched),
            (counts.add_do_anonymous_page, self.fresh),
            (counts.do_wp_page, self.protected),
            (counts.forks + counts.execs, self.call),
        ]
        .into_iter()
        .map(|(count, cost)| count as f64 * cost)
        .sum()
    }
}
