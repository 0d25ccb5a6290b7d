//! Waiting for a terminal's keys without missing that it is gone.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Waits until the standard input has something to read, a signal comes or the time is over. False
/// when the terminal has hung up: whoever reads it then reads nothing for ever.
pub fn wait_for_input(most: Duration) -> bool {
    let stdin = rustix::stdio::stdin();
    let mut asked = [PollFd::new(&stdin, PollFlags::IN)];
    let most = Timespec {
        tv_sec: i64::try_from(most.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: most.subsec_nanos().into(),
    };
    let found = poll(&mut asked, Some(&most));
    found.is_err() || !asked[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
}
