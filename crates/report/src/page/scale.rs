//! A scale from figures to a share of an axis, and the round figures that mark it.

use pagelab_analysis::figure::Plot;

/// How far figures go on an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The figure at the axis' start.
    pub low: f64,
    /// The figure at its end; always more than `low`.
    pub high: f64,
    /// Logarithmic; then `low` is above 0.
    pub log: bool,
}

impl Scale {
    /// The scale that just holds all of `values`; what has no place on it (no number, or not above 0 on
    /// a logarithmic one) is left out.
    pub fn over(values: impl IntoIterator<Item = f64>, log: bool) -> Self {
        let fits = |v: &f64| v.is_finite() && v.abs() < 1e300 && (!log || *v > 1e-300);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.into_iter().filter(fits) {
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            (low, high) = if log { (1.0, 10.0) } else { (0.0, 1.0) };
        }
        if high - low <= low.abs().max(high.abs()) * 1e-9 {
            // One figure: from 0 to it, on a logarithmic scale from its tenth.
            (low, high) = match (log, low) {
                (true, _) => (low / 10.0, high),
                (false, 0.0) => (0.0, 1.0),
                (false, _) => (low.min(0.0), high.max(0.0)),
            };
        }
        Self { low, high, log }
    }

    /// The same with room at its ends, as an ordinate has it: from 0 on a linear one.
    pub fn with_room(self) -> Self {
        if self.log {
            return Self { low: self.low / 1.3, high: self.high * 1.3, ..self };
        }
        let low = self.low.min(0.0);
        Self { low, high: self.high + (self.high - low) * 0.05, ..self }
    }

    /// The same with a little room at its ends, so that a dot there is drawn whole.
    pub fn with_ends(self) -> Self {
        const ROOM: f64 = 0.012;
        if self.log {
            let by = (self.high / self.low).powf(ROOM);
            return Self { low: self.low / by, high: self.high * by, ..self };
        }
        let by = (self.high - self.low) * ROOM;
        Self { low: self.low - by, high: self.high + by, ..self }
    }

    /// The same with room at its ends, and from its smallest figure on where that is more than half of the
    /// greatest: small differences of great figures are seen.
    pub fn close(self) -> Self {
        if self.log || self.low < self.high / 2.0 {
            return self.with_room();
        }
        let room = (self.high - self.low) * 0.05;
        Self { low: self.low - room, high: self.high + room, ..self }
    }

    /// Where a figure is: 0 at the start, 1 at the end; `None` where it has no place.
    pub fn share(&self, value: f64) -> Option<f64> {
        if !value.is_finite() || (self.log && value <= 0.0) {
            return None;
        }
        let of = |v: f64| if self.log { v.ln() } else { v };
        let share = (of(value) - of(self.low)) / (of(self.high) - of(self.low));
        share.is_finite().then(|| share.clamp(-1.0, 2.0))
    }

    /// About `count` round figures within the scale: 1, 2 or 5 times a power of ten (of two with `binary`);
    /// on a logarithmic scale powers of two with `binary`, else whole decades, or 1, 2 and 5 of each where there are few.
    pub fn ticks(&self, count: usize, binary: bool) -> Vec<f64> {
        if self.log && binary {
            let (from, to) = (self.low.log2().ceil() as i32, self.high.log2().floor() as i32);
            let every = ((to - from + 1).max(0) as usize).div_ceil(count.max(1)).max(1);
            let ticks: Vec<f64> = (from..=to).step_by(every).map(|e| 2f64.powi(e)).collect();
            if ticks.len() > 1 {
                return ticks;
            }
        } else if self.log {
            let (from, to) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
            let every = (to - from).unsigned_abs().div_ceil(count.clamp(1, 100) as u32).max(1) as i32;
            let within = if to - from <= 2 { &[1.0, 2.0, 5.0][..] } else { &[1.0] };
            let ticks: Vec<f64> = (from..=to)
                .filter(|e| e.rem_euclid(every) == 0)
                .flat_map(|e| within.iter().map(move |m| m * 10f64.powi(e)))
                .filter(|v| (self.low * 0.999..=self.high * 1.001).contains(v))
                .collect();
            if ticks.len() > 1 {
                return ticks;
            }
        }
        let radix: f64 = if binary { 2.0 } else { 10.0 };
        let raw = (self.high - self.low) / count.max(1) as f64;
        let power = radix.powf(raw.log(radix).floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .filter(|&m| !binary || m < 4.0)
            .map(|m| m * power)
            .find(|&step| step >= raw * 0.999)
            .unwrap_or(raw);
        let (first, last) = ((self.low / step).ceil(), (self.high / step * (1.0 + 1e-12)).floor());
        if !(step > 0.0 && (0.0..100.0).contains(&(last - first))) {
            return Vec::new();
        }
        (0..=(last - first) as u32).map(|n| (first + f64::from(n)) * step).collect()
    }
}

/// The abscissa's scale.
pub(super) fn scale_x(plot: &Plot) -> Scale {
    let lines = plot.series.iter().flat_map(|s| s.x.iter().flatten().copied());
    let strips = plot.strips.iter().flat_map(|s| s.x);
    let heat = plot.heat.iter().flat_map(|h| h.x.iter().copied());
    let marks = plot.marks.iter().flat_map(|m| [Some(m.x), m.low, m.high]).flatten();
    let scale = Scale::over(lines.chain(strips).chain(heat).chain(marks), plot.x.log);
    // What begins a little above 0, as a first window does, is drawn from 0.
    let near = !scale.log && scale.low > 0.0 && scale.low < scale.high / 20.0;
    let scale = Scale { low: if near { 0.0 } else { scale.low }, ..scale };
    let dots = plot.heat.is_none() && plot.strips.is_empty() && plot.series.iter().any(|s| s.dots);
    if dots { scale.with_ends() } else { scale }
}

/// The ordinate's scale, and the other one where the reader may switch.
pub(super) fn scales_y(plot: &Plot) -> Vec<Scale> {
    if let Some(heat) = &plot.heat {
        return vec![Scale { low: 0.0, high: f64::from(heat.pages.max(1)), log: false }];
    }
    let values = || plot.series.iter().flat_map(|s| s.y.iter().flatten().copied());
    let logs = if plot.y.toggle { vec![plot.y.log, !plot.y.log] } else { vec![plot.y.log] };
    let scale = |log| {
        let scale = Scale::over(values(), log);
        if plot.y.close { scale.close() } else { scale.with_room() }
    };
    logs.into_iter().map(scale).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dots_at_the_ends_are_whole() {
        for scale in [Scale { low: 1e6, high: 8e6, log: true }, Scale { low: 0.0, high: 5.0, log: false }] {
            let wider = scale.with_ends();
            let (first, last) = (wider.share(scale.low).unwrap(), wider.share(scale.high).unwrap());
            assert!((0.01..0.02).contains(&first) && (0.98..0.99).contains(&last), "{first} {last}");
        }
    }

    #[test]
    fn ticks_are_round() {
        let ticks = |low, high, log| Scale { low, high, log }.ticks(5, false);
        assert_eq!(ticks(0.0, 400_000.0, false), [0.0, 1e5, 2e5, 3e5, 4e5]);
        assert_eq!(ticks(-3.0, 3.0, false), [-2.0, 0.0, 2.0]);
        assert_eq!(ticks(90.0, 2.0e7, true), [1e2, 1e4, 1e6]);
        assert_eq!(
            Scale { low: 1000.0, high: 9000.0, log: true }.ticks(5, true),
            [1024.0, 2048.0, 4096.0, 8192.0]
        );
        assert_eq!(ticks(3.0, 60.0, true), [5.0, 10.0, 20.0, 50.0]);
        assert_eq!(ticks(2.1, 4.4, true), [2.5, 3.0, 3.5, 4.0]);
        assert_eq!(
            Scale { low: 0.0, high: 4096.0, log: false }.ticks(4, true),
            [0.0, 1024.0, 2048.0, 3072.0, 4096.0]
        );
    }

    #[test]
    fn a_scale_of_nothing_or_one_figure_is_one() {
        assert_eq!(Scale::over([], false), Scale { low: 0.0, high: 1.0, log: false });
        assert_eq!(Scale::over([0.0, -1.0, f64::NAN], true), Scale { low: 1.0, high: 10.0, log: true });
        assert_eq!(Scale::over([7.0, 7.0], false), Scale { low: 0.0, high: 7.0, log: false });
        assert_eq!(Scale::over([10.0, 30.0], false).with_room(), Scale { low: 0.0, high: 31.5, log: false });
    }

    #[test]
    fn a_close_scale_begins_at_its_smallest_figure_where_0_is_far_away() {
        let close = |low, high| Scale { low, high, log: false }.close();
        assert_eq!(close(80.0, 100.0), Scale { low: 79.0, high: 101.0, log: false });
        assert_eq!(close(10.0, 100.0), Scale { low: 0.0, high: 105.0, log: false });
    }

    proptest! {
        #[test]
        fn every_figure_has_a_place_and_ticks_are_few(values: Vec<f64>, log: bool, binary: bool) {
            let scale = Scale::over(values.iter().copied(), log);
            prop_assert!(scale.low < scale.high);
            for scale in [scale, scale.with_room()] {
                let ticks = scale.ticks(5, binary);
                prop_assert!(ticks.len() <= 12, "{scale:?}: {ticks:?}");
                prop_assert!(ticks.is_sorted());
                for tick in ticks {
                    let share = scale.share(tick).unwrap();
                    prop_assert!((-0.01..=1.01).contains(&share), "{scale:?}: {tick}");
                }
            }
        }
    }
}
