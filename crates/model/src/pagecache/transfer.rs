//! Reading a disk in order, by the size of a transfer (`maxphys`).
//!
//! The next request comes after the one before it is done. A disk that does not read ahead has turned on by then,
//! and the next sector comes round once more; one that does loses nothing.

/// A disk that is read in order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disk {
    /// Bytes a second that pass under the head.
    pub media: f64,
    /// Seconds of a turn.
    pub turn: f64,
    /// Whether it reads on between requests.
    pub reads_ahead: bool,
}

impl Disk {
    /// The disk that serves a request for `size` bytes in so many seconds.
    pub fn served(size: f64, seconds: f64, turn: f64, reads_ahead: bool) -> Self {
        let waited = if reads_ahead { 0.0 } else { turn };
        Self { media: size / (seconds - waited), turn, reads_ahead }
    }

    /// Requests of `size` bytes a second, one after the other.
    pub fn requests(&self, size: f64) -> f64 {
        let waited = if self.reads_ahead { 0.0 } else { self.turn };
        1.0 / (size / self.media + waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_transfers_lose_a_turn_each() {
        let disk = Disk::served(1e6, 0.045, 0.008, false);
        assert!((disk.requests(1e6) * 0.045 - 1.0).abs() < 1e-9);
        // A tenth of the size is far from ten times the requests.
        assert!(disk.requests(1e5) < 4.0 * disk.requests(1e6), "{}", disk.requests(1e5));
        let ahead = Disk { reads_ahead: true, ..disk };
        assert!((ahead.requests(1e5) - 10.0 * ahead.requests(1e6)).abs() < 1e-6);
    }
}
