//! How a stream is cut into windows, and after which of them the page map is looked at.

/// Windows of a run; a stream with fewer references has a window for each.
const WINDOWS: usize = 240;
/// Looks besides the one at the start: every 16th window, the last among them.
const POLLS: usize = 15;

/// The windows of a stream. They are numbered from 1; their lengths differ by one reference at most.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    references: usize,
    windows: usize,
}

impl Plan {
    /// For a stream of `references` references.
    pub fn new(references: usize) -> Self {
        Self { references, windows: references.min(WINDOWS) }
    }

    /// The references of all windows.
    pub fn references(&self) -> usize {
        self.references
    }

    /// The number of windows.
    pub fn windows(&self) -> usize {
        self.windows
    }

    /// References before this window.
    pub fn start(&self, window: usize) -> usize {
        self.end(window - 1)
    }

    /// References up to the end of this window; 0 for window 0.
    pub fn end(&self, window: usize) -> usize {
        if window == 0 {
            return 0;
        }
        (window as u128 * self.references as u128 / self.windows as u128) as usize
    }

    /// Whether the page map is looked at after this window; 0 stands for the start.
    pub fn snapshot_after(&self, window: usize) -> bool {
        let number = |window: usize| window * POLLS / self.windows.max(1);
        window == 0 || number(window) != number(window - 1)
    }

    /// The number of snapshots.
    pub fn snapshots(&self) -> usize {
        (0..=self.windows).filter(|&window| self.snapshot_after(window)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn windows_cover_every_reference_once(references in 1usize..5_000_000) {
            let plan = Plan::new(references);
            prop_assert_eq!(plan.start(1), 0);
            prop_assert_eq!(plan.end(plan.windows()), references);
            for window in 1..=plan.windows() {
                prop_assert!(plan.end(window) > plan.start(window));
            }
            prop_assert!(plan.snapshot_after(0) && plan.snapshot_after(plan.windows()));
            prop_assert_eq!(plan.snapshots(), 16.min(references + 1));
        }
    }
}
