//! The table of windows: what a run over a reference stream saw in each part of it.

use super::sheet::Sheet;
use crate::observation::Table;
use crate::tables::windows;

/// One window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Window {
    /// References made up to its end.
    pub reference: u64,
    /// References in it.
    pub references: u64,
    /// The sum of their times, ns.
    pub time: u64,
    /// The longest of them, ns.
    pub longest: u64,
    /// Minor faults in it.
    pub minor: u64,
    /// Major faults in it.
    pub major: u64,
    /// Pages read from swap meanwhile; `None`: not known.
    pub swap_in: Option<u64>,
    /// Pages written to swap meanwhile; `None`: not known.
    pub swap_out: Option<u64>,
    /// Pages present at its end; `None`: not known.
    pub present: Option<u64>,
}

/// The table under construction.
#[derive(Debug)]
pub struct Windows {
    sheet: Sheet,
    time: u64,
}

impl Windows {
    /// Without windows.
    pub fn new() -> Self {
        Self { sheet: Sheet::new(windows::TABLE), time: 0 }
    }

    /// Adds the next window.
    pub fn add(&mut self, window: &Window) {
        self.time += window.time;
        let number = |value: u64| Some(value as f64);
        self.sheet.row([
            number(window.reference),
            number(self.time),
            Some(window.time as f64 / window.references as f64),
            number(window.longest),
            number(window.minor),
            number(window.major),
            window.swap_in.map(|pages| pages as f64),
            window.swap_out.map(|pages| pages as f64),
            window.present.map(|pages| pages as f64),
        ]);
    }

    /// The table.
    pub fn table(self) -> Table {
        self.sheet.table()
    }
}

impl Default for Windows {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_adds_up_and_what_is_not_known_is_a_dash() {
        let mut made = Windows::new();
        let window = Window { reference: 4, references: 4, time: 10, longest: 7, ..Window::default() };
        made.add(&window);
        made.add(&Window { reference: 6, references: 2, swap_in: Some(3), ..window });
        let table = made.table();
        assert_eq!(table.numbers(windows::TIME).unwrap(), [Some(10.0), Some(20.0)]);
        assert_eq!(table.numbers(windows::ACCESS_MEAN).unwrap(), [Some(2.5), Some(5.0)]);
        assert_eq!(table.numbers(windows::SWAP_IN).unwrap(), [None, Some(3.0)]);
    }
}
