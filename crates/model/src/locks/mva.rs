//! Exact mean value analysis of jobs that share one lock.
//!
//! Closed network: n jobs alternate between a delay and a lock whose holder is slowed by each that waits
//! (cache lines that spinning moves about, retries, interrupts). Load-dependent mean value analysis:
//! Reiser and Lavenberg, "Mean-value analysis of closed multichain queuing networks", JACM 27 (1980). The
//! probability of an idle lock is carried on by the ratio of throughputs, not by subtraction, so it stays
//! accurate when the lock is nearly always taken.

/// Zero-fill faults a second of one process alone (the same commit).
pub const ALONE: f64 = 35_000.0;
/// By how much a waiter lengthens a hold: fitted on the builds of the study.
const SLOWING: f64 = 0.0208;

/// The share of a build's work under the lock: fitted on the same.
const BUILD_HELD: f64 = 0.1871;

/// The lock of a system.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Token {
    /// Share of a job's work that is done holding the lock, below 1.
    pub held: f64,
    /// By what share of itself each waiter lengthens a hold.
    pub slowing: f64,
}

impl Token {
    /// No lock at all.
    pub const NONE: Self = Self { held: 0.0, slowing: 0.0 };
    /// Zero-fill faults under DragonFly's one token: a ceiling of 225,000 a second (commit 027193eb61 says
    /// 200,000 to 250,000).
    pub const ZERO_FILL: Self = Self { held: ALONE / 225_000.0, slowing: SLOWING };
    /// The same when the page queues were divided: a ceiling of 900,000.
    pub const ZERO_FILL_QUEUES: Self = Self { held: ALONE / 900_000.0, slowing: SLOWING };

    /// A build's work under vm_token: as the study fits it.
    pub const BUILD: Self = Self { held: BUILD_HELD, slowing: SLOWING };

    /// The time of a hold with `at` jobs at the lock, in units of work.
    pub fn hold(&self, at: u32) -> f64 {
        self.held * (1.0 + self.slowing * f64::from(at.saturating_sub(1)))
    }

    /// Work done in a second of time by 0, 1, … `most` jobs, in seconds of one job alone.
    pub fn throughput(&self, most: u32) -> Vec<f64> {
        let delay = 1.0 - self.held;
        let mut rates = vec![0.0];
        // at[j]: probability of j jobs at the lock.
        let mut at = vec![1.0];
        for jobs in 1..=most {
            let count = f64::from(jobs);
            let response: f64 = (1..=jobs).map(|j| f64::from(j) * self.hold(j) * at[j as usize - 1]).sum();
            let rate = count / (delay + response);
            let mut next = vec![at[0] * rate * delay / count];
            next.extend((1..=jobs).map(|j| rate * self.hold(j) * at[j as usize - 1]));
            at = next;
            rates.push(rate);
        }
        rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The product form, summed directly.
    fn product_form(token: &Token, most: u32) -> Vec<f64> {
        let delay: f64 = 1.0 - token.held;
        let constant = |jobs: u32| -> f64 {
            (0..=jobs)
                .map(|at| {
                    let lock: f64 = (1..=at).map(|j| token.hold(j)).product();
                    let away: f64 = (1..=jobs - at).map(|k| delay / f64::from(k)).product();
                    lock * away
                })
                .sum()
        };
        (0..=most).map(|n| if n == 0 { 0.0 } else { constant(n - 1) / constant(n) }).collect()
    }

    proptest! {
        #[test]
        fn agrees_with_the_product_form(held in 0.0f64..0.9, slowing in 0.0f64..0.1) {
            let token = Token { held, slowing };
            for (mva, exact) in token.throughput(20).into_iter().zip(product_form(&token, 20)) {
                prop_assert!((mva - exact).abs() <= 1e-9 * exact.max(1.0), "{} {}", mva, exact);
            }
        }

        #[test]
        fn no_faster_than_the_jobs_nor_than_the_lock(held in 0.01f64..0.9, slowing in 0.0f64..0.1) {
            let token = Token { held, slowing };
            for (jobs, rate) in token.throughput(48).into_iter().enumerate() {
                prop_assert!(rate <= jobs as f64 + 1e-9 && rate <= 1.0 / held + 1e-9);
            }
        }
    }

    #[test]
    fn waiters_that_slow_the_holder_make_more_jobs_slower() {
        let rates = Token { held: 0.233, slowing: 0.0124 }.throughput(48);
        assert!((rates[1] - 1.0).abs() < 1e-12);
        assert!(rates[8] > rates[4] && rates[48] < rates[8]);
    }
}
