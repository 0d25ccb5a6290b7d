//! Waits until one of several descriptors can be read; a bell is one that another thread makes so.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// Waits until one of them can be read or has hung up, so long at most; which ones. None of them
/// after a signal, or when the time is over.
///
/// # Errors
/// When the kernel refuses.
pub fn readable<const N: usize>(
    descriptors: [BorrowedFd<'_>; N],
    most: Option<Duration>,
) -> io::Result<[bool; N]> {
    let mut asked = descriptors.each_ref().map(|descriptor| PollFd::new(descriptor, PollFlags::IN));
    match poll(&mut asked, most.map(timespec).as_ref()) {
        Ok(_) => Ok(asked.map(|asked| !asked.revents().is_empty())),
        Err(rustix::io::Errno::INTR) => Ok([false; N]),
        Err(error) => Err(error.into()),
    }
}

/// Waits until the standard input has something to read, a signal comes or the time is over. False
/// when the terminal has hung up: whoever reads it then reads nothing for ever.
pub fn for_input(most: Duration) -> bool {
    let stdin = rustix::stdio::stdin();
    let mut asked = [PollFd::new(&stdin, PollFlags::IN)];
    let found = poll(&mut asked, Some(&timespec(most)));
    found.is_err() || !asked[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
}

fn timespec(most: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(most.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: most.subsec_nanos().into(),
    }
}

/// Can be read once it was rung.
#[derive(Debug)]
pub struct Bell(OwnedFd);

impl Bell {
    /// One that nobody has rung.
    ///
    /// # Errors
    /// When the system refuses a descriptor.
    pub fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC)?))
    }

    /// Rings, for good.
    pub fn ring(&self) {
        // An event counter refuses what would make it overflow alone.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_descriptor_is_reported() {
        let bells = [Bell::new().unwrap(), Bell::new().unwrap()];
        let heard = |most| readable(bells.each_ref().map(Bell::as_fd), most).unwrap();
        assert_eq!(heard(Some(Duration::from_millis(1))), [false, false]);
        std::thread::scope(|scope| {
            scope.spawn(|| bells[1].ring());
            assert_eq!(heard(None), [false, true]);
        });
        assert_eq!(heard(Some(Duration::ZERO)), [false, true], "for good");
    }
}
