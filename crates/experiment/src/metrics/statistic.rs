//! Statistics, and the figures that they give.

use serde::Serialize;

/// Which statistic of its population a figure is, within one repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// The arithmetic mean.
    Mean,
    /// The median.
    Median,
    /// The 99th percentile.
    P99,
    /// The 99.9th percentile.
    P999,
    /// The minimum.
    Min,
    /// The maximum.
    Max,
    /// A sum of times or bytes.
    Total,
    /// A number of events or things.
    Count,
    /// Events or bytes per unit of time or of work.
    Rate,
    /// A part divided by its whole.
    Share,
    /// One figure divided by another.
    Ratio,
    /// The state when the references begin.
    First,
    /// The state when the work ends.
    Last,
    /// The only value that there is.
    Value,
    /// A parameter of a fitted law.
    Fit,
}

impl Statistic {
    /// In words.
    pub const fn words(self) -> &'static str {
        self.described().0
    }

    /// In words, and what it means.
    pub const fn described(self) -> (&'static str, &'static str) {
        match self {
            Self::Mean => ("mean", "the sum divided by the number"),
            Self::Median => ("median", "half of the values are smaller, half are larger"),
            Self::P99 => ("99th percentile", "1 value of 100 is larger"),
            Self::P999 => ("99.9th percentile", "1 value of 1,000 is larger"),
            Self::Min => ("minimum", "the smallest value"),
            Self::Max => ("maximum", "the largest value"),
            Self::Total => ("total", "a sum of times or bytes"),
            Self::Count => ("count", "a number of events or things"),
            Self::Rate => ("rate", "events or bytes per unit of time or of work"),
            Self::Share => ("share", "a part divided by its whole"),
            Self::Ratio => ("ratio", "one figure divided by another"),
            Self::First => ("first value", "the state when the references begin"),
            Self::Last => ("last value", "the state when the work ends"),
            Self::Value => ("single value", "the only value that there is"),
            Self::Fit => ("fitted", "a parameter of a law that was fitted to the measurements"),
        }
    }

    /// Every statistic.
    pub const ALL: [Self; 15] = [
        Self::Mean,
        Self::Median,
        Self::P99,
        Self::P999,
        Self::Min,
        Self::Max,
        Self::Total,
        Self::Count,
        Self::Rate,
        Self::Share,
        Self::Ratio,
        Self::First,
        Self::Last,
        Self::Value,
        Self::Fit,
    ];

    /// This statistic of some measurements, in order; `None` of none, and of a statistic that they
    /// do not have.
    pub fn over(self, values: impl IntoIterator<Item = f64>) -> Option<f64> {
        let mut values = values.into_iter().peekable();
        values.peek()?;
        match self {
            Self::Mean => {
                let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
                Some(sum / count)
            }
            Self::Median => median(values.collect()),
            Self::Min => values.reduce(f64::min),
            Self::Max => values.reduce(f64::max),
            Self::Total => Some(values.sum()),
            Self::Count => Some(values.count() as f64),
            Self::First => values.next(),
            Self::Last => values.last(),
            _ => None,
        }
    }
}

/// The median of some measurements, the upper of the two middle ones where they are even; `None` of none.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(Vec::new()), None);
    }
}
