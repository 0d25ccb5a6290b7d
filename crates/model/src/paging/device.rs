//! The swap device: one server, first come first served, with a position.

/// A device that serves one request at a time. A request that starts at the slot behind the last one
/// served needs no positioning.
#[derive(Clone, Debug)]
pub struct Device {
    seek: u64,
    transfer: u64,
    free_at: u64,
    position: u32,
    /// Time spent serving.
    pub busy: u64,
    /// Requests served.
    pub requests: u64,
}

impl Device {
    /// An idle device; times in nanoseconds.
    pub fn new(seek: u64, transfer: u64) -> Self {
        Self { seek, transfer, free_at: 0, position: u32::MAX, busy: 0, requests: 0 }
    }

    /// Queues the transfer of `pages` pages from `slot` on at time `now`; when it will be complete.
    pub fn submit(&mut self, now: u64, slot: u32, pages: u32) -> u64 {
        let position = if slot == self.position { 0 } else { self.seek };
        let service = position + self.transfer * u64::from(pages);
        self.free_at = self.free_at.max(now) + service;
        self.position = slot.wrapping_add(pages);
        self.busy += service;
        self.requests += 1;
        self.free_at
    }
}

#[cfg(test)]
mod tests {
    use super::Device;

    #[test]
    fn requests_queue_and_sequential_ones_need_no_positioning() {
        let mut device = Device::new(1000, 10);
        assert_eq!(device.submit(0, 5, 1), 1010);
        assert_eq!(device.submit(0, 6, 2), 1030);
        assert_eq!(device.submit(5000, 6, 1), 6010);
        assert_eq!((device.busy, device.requests), (1010 + 20 + 1010, 3));
    }
}
