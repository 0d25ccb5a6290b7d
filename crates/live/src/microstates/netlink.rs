//! The kernel's task statistics over generic netlink: asked for one's own thread, and sent for every
//! task that ends.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::stats::Stats;

// include/uapi/linux/netlink.h, genetlink.h, taskstats.h
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const CMD_GET: u8 = 1;
const CMD_ATTR_PID: u16 = 1;
const CMD_ATTR_REGISTER_CPUMASK: u16 = 3;
const TYPE_STATS: u16 = 3;
const TYPE_AGGR_PID: u16 = 4;
const HEADER: usize = 16;
const GENERIC: usize = 4;
/// What the kernel may queue of statistics before it drops some, bytes.
const QUEUE: libc::c_int = 32 << 20;

/// A socket that asks, or one that listens.
#[derive(Debug)]
pub(super) struct Netlink {
    socket: OwnedFd,
    family: u16,
    /// Whether the kernel dropped statistics because the queue was full.
    pub(super) overflowed: bool,
}

impl Netlink {
    /// Connects to the kernel's task statistics.
    pub(super) fn open() -> io::Result<Self> {
        // SAFETY: no pointers.
        let raw = unsafe {
            libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_GENERIC)
        };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else has.
        let socket = unsafe { OwnedFd::from_raw_fd(raw) };
        let mut new = Self { socket, family: GENL_ID_CTRL, overflowed: false };
        new.send(CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, b"TASKSTATS\0")?;
        let reply = new.reply()?;
        let id = attributes(&reply).find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID);
        let id = id.and_then(|(_, value)| value.first_chunk().copied()).map(u16::from_ne_bytes);
        new.family = id.ok_or_else(|| io::Error::other("the kernel has no taskstats"))?;
        Ok(new)
    }

    /// A listener for every task that ends on any processor.
    pub(super) fn listen() -> io::Result<Self> {
        let (new, queue) = (Self::open()?, QUEUE);
        for option in [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF] {
            // SAFETY: the value is a c_int of the length given.
            let set = unsafe {
                libc::setsockopt(
                    new.socket.as_raw_fd(),
                    libc::SOL_SOCKET,
                    option,
                    (&raw const queue).cast(),
                    size_of::<libc::c_int>() as libc::socklen_t,
                )
            };
            if set == 0 {
                break;
            }
        }
        let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
        let mask = format!("{}\0", possible.trim());
        new.send(CMD_GET, CMD_ATTR_REGISTER_CPUMASK, mask.as_bytes())?;
        // Success is silent; a refusal would be there at once.
        if let Some(message) = new.receive(true)? {
            refusal(&message).map_or(Ok(()), Err)?;
        }
        Ok(new)
    }

    /// The statistics of one live thread.
    pub(super) fn thread(&mut self, thread: u32) -> io::Result<Stats> {
        self.send(CMD_GET, CMD_ATTR_PID, &thread.to_ne_bytes())?;
        let reply = self.reply()?;
        stats(&reply).ok_or_else(|| io::Error::other("the kernel's answer has no statistics"))
    }

    /// Takes what has been queued of tasks that ended.
    pub(super) fn drain(&mut self, into: &mut Vec<Stats>) {
        loop {
            match self.receive(true) {
                Ok(Some(message)) => into.extend(message.get(HEADER + GENERIC..).and_then(stats)),
                Ok(None) => return,
                Err(error) => {
                    self.overflowed = true;
                    // A full queue is said once and goes on; anything else would be said for ever.
                    if error.raw_os_error() != Some(libc::ENOBUFS) {
                        return;
                    }
                }
            }
        }
    }

    fn send(&self, command: u8, attribute: u16, value: &[u8]) -> io::Result<()> {
        let length = HEADER + GENERIC + 4 + value.len();
        let mut message = Vec::with_capacity(length + 4);
        message.extend_from_slice(&(length as u32).to_ne_bytes());
        message.extend_from_slice(&self.family.to_ne_bytes());
        message.extend_from_slice(&NLM_F_REQUEST.to_ne_bytes());
        message.extend_from_slice(&[0; 8]);
        message.extend_from_slice(&[command, 1, 0, 0]);
        message.extend_from_slice(&((4 + value.len()) as u16).to_ne_bytes());
        message.extend_from_slice(&attribute.to_ne_bytes());
        message.extend_from_slice(value);
        // SAFETY: the buffer is as long as said.
        let sent = unsafe { libc::send(self.socket.as_raw_fd(), message.as_ptr().cast(), message.len(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The attributes of the next message.
    fn reply(&self) -> io::Result<Vec<u8>> {
        let message = self.receive(false)?.unwrap_or_default();
        match refusal(&message) {
            Some(error) => Err(error),
            None => Ok(message.get(HEADER + GENERIC..).unwrap_or_default().to_vec()),
        }
    }

    /// One message; `None` when none is there and `at_once` is wanted.
    fn receive(&self, at_once: bool) -> io::Result<Option<Vec<u8>>> {
        let mut buffer = vec![0_u8; 8192];
        let flags = if at_once { libc::MSG_DONTWAIT } else { 0 };
        // SAFETY: the buffer is as long as said.
        let length =
            unsafe { libc::recv(self.socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), flags) };
        match usize::try_from(length) {
            Ok(length) => {
                buffer.truncate(length);
                Ok(Some(buffer))
            }
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                error => Err(error),
            },
        }
    }
}

/// The error that a message of type NLMSG_ERROR carries.
fn refusal(message: &[u8]) -> Option<io::Error> {
    let kind = message.get(4..6)?.first_chunk().copied().map(u16::from_ne_bytes)?;
    let code = message.get(HEADER..)?.first_chunk().copied().map(i32::from_ne_bytes)?;
    (kind == NLMSG_ERROR && code != 0).then(|| io::Error::from_raw_os_error(code.wrapping_neg()))
}

fn stats(bytes: &[u8]) -> Option<Stats> {
    let (_, aggregate) = attributes(bytes).find(|(kind, _)| *kind == TYPE_AGGR_PID)?;
    let (_, stats) = attributes(aggregate).find(|(kind, _)| *kind == TYPE_STATS)?;
    Stats::parse(stats)
}

/// The attributes of a message: kind and value, each padded to four bytes.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    const NESTED_AND_ORDER: u16 = 0xc000;
    std::iter::from_fn(move || {
        let word = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u16::from_ne_bytes);
        let (length, kind) = (usize::from(word(0)?), word(2)? & !NESTED_AND_ORDER);
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn attributes_are_padded_and_a_cut_one_ends_the_list() {
        let bytes = [5, 0, 1, 0, 9, 0, 0, 0, 6, 0, 2, 0x80, 7, 8, 0, 0, 99, 0, 3, 0];
        let found: Vec<_> = attributes(&bytes).collect();
        assert_eq!(found, [(1, &[9_u8][..]), (2, &[7, 8][..])]);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = (stats(&bytes), refusal(&bytes), attributes(&bytes).count());
        }
    }
}
