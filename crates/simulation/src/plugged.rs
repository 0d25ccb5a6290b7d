//! Replays of a policy that the caller supplies, such as a Python class.

use pagelab_model::policy::plugged::{Plugged, Replacement, WrongVictim};

/// References between two calls of `pause`.
const STEP: usize = 1 << 12;

/// The misses of `policy` with `frames` frames for the pages `0..pages`.
///
/// `pause` is called after every 4,096 references with the policy and the share that is done. An
/// error of it ends the replay and has precedence over a wrong victim.
///
/// # Errors
/// The error of `pause`; within it, a victim that is not resident.
pub fn misses<R: Replacement, E>(
    policy: R,
    references: &[u32],
    pages: u32,
    frames: u32,
    mut pause: impl FnMut(&mut R, f64) -> Result<(), E>,
) -> Result<Result<u64, WrongVictim>, E> {
    let (mut plugged, mut misses) = (Plugged::new(policy, pages, frames), 0);
    for (number, chunk) in references.chunks(STEP).enumerate() {
        let more = plugged.misses(chunk);
        pause(&mut plugged.policy, (number * STEP + chunk.len()) as f64 / references.len() as f64)?;
        match more {
            Ok(more) => misses += more,
            Err(wrong) => return Ok(Err(wrong)),
        }
    }
    Ok(Ok(misses))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names this victim for every miss.
    struct Always(Option<u32>);

    impl Replacement for Always {
        fn on_hit(&mut self, _: u32) {}

        fn on_miss(&mut self, _: u32) -> Option<u32> {
            self.0
        }
    }

    #[test]
    fn all_misses_are_counted_and_the_last_share_is_one() {
        let references: Vec<u32> = (0..10_000).collect();
        let mut shares = Vec::new();
        let counted = misses(Always(None), &references, 10_000, 10_000, |_, share| {
            shares.push(share);
            Ok::<(), ()>(())
        });
        assert_eq!(counted, Ok(Ok(10_000)));
        assert_eq!(shares, [0.4096, 0.8192, 1.0]);
    }

    #[test]
    fn an_error_of_the_caller_has_precedence_over_a_wrong_victim() {
        let wrong = Err(WrongVictim::NotResident { page: 1, victim: 7 });
        assert_eq!(misses(Always(Some(7)), &[1], 8, 2, |_, _| Ok::<(), ()>(())), Ok(wrong));
        assert_eq!(misses(Always(Some(7)), &[1], 8, 2, |_, _| Err("raised")), Err("raised"));
    }
}
