//! The cases of random reads: a file small in memory, large in memory, larger than memory.

use super::Figure;
use crate::experiments::{Access, Fileread};
use crate::metrics;

/// The name of the case of each of `sizes` sizes, ascending: the first is small, the last beyond, those
/// between large.
pub fn case_names(sizes: usize) -> impl Iterator<Item = &'static str> {
    (0..sizes).map(move |index| match index {
        0 => "small",
        n if n + 1 == sizes => "beyond",
        _ => "large",
    })
}

/// The processor time of a read in each case; of several sizes of a case the first counts, of several ways
/// to read pread's.
#[derive(Clone, Debug, Default)]
pub struct ReadCosts(Vec<(&'static str, f64)>);

impl ReadCosts {
    /// Adds what a read took in this case by this way, ns.
    pub fn add(&mut self, fileread: &Fileread, case: &'static str, access: Access, cost: f64) {
        if access == Access::Pread || fileread.access.len() == 1 {
            self.0.push((case, cost));
        }
    }

    /// The figures.
    pub fn figures(&self) -> [Figure; 3] {
        let of = |case: &str| self.0.iter().find(|(name, _)| *name == case).map(|(_, cost)| *cost);
        [
            (metrics::READ_CPU_SMALL, of("small")),
            (metrics::READ_CPU_LARGE, of("large")),
            (metrics::READ_CPU_BEYOND, of("beyond")),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_by_size() {
        assert_eq!(case_names(1).collect::<Vec<_>>(), ["small"]);
        assert_eq!(case_names(2).collect::<Vec<_>>(), ["small", "beyond"]);
        assert_eq!(case_names(4).collect::<Vec<_>>(), ["small", "large", "large", "beyond"]);
    }

    #[test]
    fn preads_count_where_there_are_several_ways() {
        let fileread = Fileread { access: vec![Access::Mmap, Access::Pread], ..Fileread::default() };
        let mut costs = ReadCosts::default();
        costs.add(&fileread, "small", Access::Mmap, 1.0);
        costs.add(&fileread, "small", Access::Pread, 2.0);
        assert_eq!(costs.figures().map(|(_, value)| value), [Some(2.0), None, None]);
    }
}
