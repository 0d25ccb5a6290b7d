//! Who waits for a long computation.

/// The computation was ended by who waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Stopped;

/// Told now and then how far a computation is, from 0 to 1; may end it.
pub type Progress<'a> = &'a mut dyn FnMut(f64) -> Result<(), Stopped>;

/// Nobody waits.
///
/// # Errors
/// None.
pub fn unwatched(_: f64) -> Result<(), Stopped> {
    Ok(())
}
