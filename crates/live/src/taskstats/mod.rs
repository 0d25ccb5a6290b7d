//! How long each task was delayed, from the kernel's delay accounting, over generic netlink.
//!
//! The kernel answers for a thread or for a whole process, threads that ended included. It needs
//! CAP_NET_ADMIN, and `kernel.task_delayacct` = 1 when the task started: a task that was there before
//! the switch has no accounting until it ends, so nothing is known of it ([`Taskstats::process`] is
//! None) rather than that it never waited.

mod layout;
mod switch;

use std::os::fd::OwnedFd;

use pagelab_counters::views::prstat::Delays;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

pub use switch::{Accounting, SWITCH};

/// Why delays cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum TaskstatsError {
    /// The socket was refused or broke.
    #[error("delay accounting over netlink failed: {0}")]
    Socket(#[from] std::io::Error),
    /// The kernel has none.
    #[error("this kernel has no taskstats: it needs CONFIG_TASKSTATS and CONFIG_TASK_DELAY_ACCT")]
    Absent,
    /// The caller may not ask.
    #[error("delay accounting needs root (CAP_NET_ADMIN): run with sudo")]
    Denied,
}

impl From<rustix::io::Errno> for TaskstatsError {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Socket(errno.into())
    }
}

// include/uapi/linux/netlink.h, genetlink.h, taskstats.h
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const TASKSTATS_CMD_GET: u8 = 1;
const CMD_ATTR_PID: u16 = 1;
const CMD_ATTR_TGID: u16 = 2;
const TYPE_STATS: u16 = 3;
const TYPE_AGGR_PID: u16 = 4;
const TYPE_AGGR_TGID: u16 = 5;
const HEADER: usize = 16;
const GENERIC_HEADER: usize = 4;

/// A connection to the kernel's delay accounting.
#[derive(Debug)]
pub struct Taskstats {
    socket: OwnedFd,
    family: u16,
    sequence: u32,
}

impl Taskstats {
    /// Connects.
    ///
    /// # Errors
    /// When the kernel has no taskstats, or the caller may not ask.
    pub fn open() -> Result<Self, TaskstatsError> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(netlink::GENERIC),
        )?;
        let mut connection = Self { socket, family: GENL_ID_CTRL, sequence: 0 };
        let reply = match connection.ask(CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, b"TASKSTATS\0")? {
            Ok(reply) => reply,
            Err(_) => return Err(TaskstatsError::Absent),
        };
        let id = attributes(&reply).find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID);
        connection.family = id
            .and_then(|(_, v)| v.first_chunk().copied())
            .map(u16::from_ne_bytes)
            .ok_or(TaskstatsError::Absent)?;
        // Asking about oneself shows whether one may ask at all.
        match connection.ask(TASKSTATS_CMD_GET, CMD_ATTR_TGID, &std::process::id().to_ne_bytes())? {
            Err(libc::EPERM) => Err(TaskstatsError::Denied),
            Err(code) => Err(std::io::Error::from_raw_os_error(code).into()),
            Ok(_) => Ok(connection),
        }
    }

    /// A process's delays, its ended threads' included; None when it has ended or is not accounted.
    pub fn process(&mut self, pid: u64) -> Option<Delays> {
        self.delays(CMD_ATTR_TGID, TYPE_AGGR_TGID, pid)
    }

    /// A thread's delays; None as [`Taskstats::process`].
    pub fn thread(&mut self, tid: u64) -> Option<Delays> {
        self.delays(CMD_ATTR_PID, TYPE_AGGR_PID, tid)
    }

    fn delays(&mut self, ask: u16, aggregate: u16, task: u64) -> Option<Delays> {
        let task = u32::try_from(task).ok()?;
        let reply = self.ask(TASKSTATS_CMD_GET, ask, &task.to_ne_bytes()).ok()?.ok()?;
        let (_, aggregate) = attributes(&reply).find(|(kind, _)| *kind == aggregate)?;
        let (_, stats) = attributes(aggregate).find(|(kind, _)| *kind == TYPE_STATS)?;
        layout::delays(stats)
    }

    /// Sends one command with one attribute; the reply's attributes, or the kernel's refusal.
    fn ask(
        &mut self,
        command: u8,
        attribute: u16,
        value: &[u8],
    ) -> Result<Result<Vec<u8>, i32>, TaskstatsError> {
        self.sequence = self.sequence.wrapping_add(1);
        let length = HEADER + GENERIC_HEADER + 4 + value.len();
        let mut message = Vec::with_capacity(length + 4);
        message.extend_from_slice(&(length as u32).to_ne_bytes());
        message.extend_from_slice(&self.family.to_ne_bytes());
        message.extend_from_slice(&NLM_F_REQUEST.to_ne_bytes());
        message.extend_from_slice(&self.sequence.to_ne_bytes());
        message.extend_from_slice(&0_u32.to_ne_bytes());
        message.extend_from_slice(&[command, 1, 0, 0]);
        message.extend_from_slice(&((4 + value.len()) as u16).to_ne_bytes());
        message.extend_from_slice(&attribute.to_ne_bytes());
        message.extend_from_slice(value);
        sendto(&self.socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut buffer = [0_u8; 8192];
        loop {
            let (length, _) = recv(&self.socket, &mut buffer[..], RecvFlags::empty())?;
            let reply = &buffer[..length];
            if word32(reply, 8) != Some(self.sequence) {
                continue; // a late reply to an earlier question
            }
            if word16(reply, 4) == Some(NLMSG_ERROR) {
                return Ok(Err(word32(reply, HEADER).map_or(libc::EIO, |code| (code as i32).wrapping_neg())));
            }
            return Ok(Ok(reply.get(HEADER + GENERIC_HEADER..).unwrap_or_default().to_vec()));
        }
    }
}

fn word16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_ne_bytes)
}

fn word32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

/// The attributes of a message: kind and value, each padded to four bytes.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    const NESTED_AND_ORDER: u16 = 0xc000;
    std::iter::from_fn(move || {
        let length = usize::from(word16(bytes, 0)?);
        let kind = word16(bytes, 2)? & !NESTED_AND_ORDER;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn attributes_are_padded_and_cut_ones_end_the_list() {
        let bytes = [5, 0, 1, 0, 9, 0, 0, 0, 6, 0, 2, 0x80, 7, 8, 0, 0, 99, 0, 3, 0];
        let found: Vec<_> = attributes(&bytes).collect();
        assert_eq!(found, [(1, &[9_u8][..]), (2, &[7, 8][..])]);
    }

    #[test]
    fn the_kernel_answers_about_ourselves_or_says_why_not() {
        match Taskstats::open() {
            Ok(mut taskstats) => {
                assert_eq!(taskstats.process(u64::from(u32::MAX)), None, "there is no such process")
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = attributes(&bytes).count();
            let _ = layout::delays(&bytes);
        }
    }
}
