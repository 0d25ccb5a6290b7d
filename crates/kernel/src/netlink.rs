//! Generic netlink: the sockets over which a process asks a family of the kernel's and hears from it
//! (include/uapi/linux/netlink.h, genetlink.h).

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const HEADER: usize = 16;
const GENERIC_HEADER: usize = 4;
/// The longest message that is taken, bytes.
const MESSAGE: usize = 8192;

/// A connection to one family of the kernel's.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
    family: u16,
    sequence: u32,
}

/// A message of the kernel's: its attributes, or its refusal (0: an acknowledgement).
#[derive(Debug)]
pub(crate) struct Message {
    sequence: u32,
    body: Result<Vec<u8>, i32>,
}

impl Message {
    /// The attributes.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub(crate) fn attributes(&self) -> io::Result<impl Iterator<Item = (u16, &[u8])>> {
        match &self.body {
            Ok(body) => Ok(attributes(body)),
            Err(code) => Err(io::Error::from_raw_os_error(*code)),
        }
    }

    /// From the bytes of a message.
    fn parse(bytes: &[u8]) -> Self {
        let body = match (word16(bytes, 4), word32(bytes, HEADER)) {
            (Some(NLMSG_ERROR), code) => Err(code.map_or(libc::EIO, |code| (code as i32).wrapping_neg())),
            _ => Ok(bytes.get(HEADER + GENERIC_HEADER..).unwrap_or_default().to_vec()),
        };
        Self { sequence: word32(bytes, 8).unwrap_or(0), body }
    }
}

impl Netlink {
    /// Connects to the family of this name; `None` when the kernel has none.
    ///
    /// # Errors
    /// When the socket is refused or breaks.
    pub(crate) fn open(family: &str) -> io::Result<Option<Self>> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(netlink::GENERIC),
        )?;
        let mut new = Self { socket, family: GENL_ID_CTRL, sequence: 0 };
        let name = [family.as_bytes(), b"\0"].concat();
        let reply = new.ask(CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, &name)?;
        let Ok(mut found) = reply.attributes() else { return Ok(None) };
        let id = found.find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID).map(|(_, value)| value);
        let Some(id) = id.and_then(|value| word16(value, 0)) else { return Ok(None) };
        new.family = id;
        Ok(Some(new))
    }

    /// Lets the kernel queue so many bytes, or as many as it allows, before it drops messages.
    pub(crate) fn queue(&self, bytes: usize) {
        // Beyond the limit of ordinary users only root may; else as much as there may be.
        let _ = set_socket_recv_buffer_size_force(&self.socket, bytes)
            .or_else(|_| set_socket_recv_buffer_size(&self.socket, bytes));
    }

    /// Sends one command with one attribute.
    pub(crate) fn send(&mut self, command: u8, attribute: u16, value: &[u8]) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let length = HEADER + GENERIC_HEADER + 4 + value.len();
        let mut message = Vec::with_capacity(length);
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
        Ok(())
    }

    /// Sends one command with one attribute; the kernel's answer.
    pub(crate) fn ask(&mut self, command: u8, attribute: u16, value: &[u8]) -> io::Result<Message> {
        self.send(command, attribute, value)?;
        loop {
            let answer = self.receive(RecvFlags::empty())?;
            // Else a late answer to an earlier question.
            if answer.sequence == self.sequence {
                return Ok(answer);
            }
        }
    }

    /// The next message that is there; `None` when none is.
    pub(crate) fn next(&self) -> io::Result<Option<Message>> {
        match self.receive(RecvFlags::DONTWAIT) {
            Ok(message) => Ok(Some(message)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn receive(&self, flags: RecvFlags) -> io::Result<Message> {
        let mut buffer = [0_u8; MESSAGE];
        let (length, _) = recv(&self.socket, &mut buffer[..], flags)?;
        Ok(Message::parse(&buffer[..length]))
    }
}

fn word16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_ne_bytes)
}

fn word32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

/// The attributes of a message or of another attribute: kind and value, each padded to four bytes.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
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
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn attributes_are_padded_and_a_cut_one_ends_the_list() {
        let bytes = [5, 0, 1, 0, 9, 0, 0, 0, 6, 0, 2, 0x80, 7, 8, 0, 0, 99, 0, 3, 0];
        let found: Vec<_> = attributes(&bytes).collect();
        assert_eq!(found, [(1, &[9_u8][..]), (2, &[7, 8][..])]);
    }

    #[test]
    fn a_family_that_is_not_there_is_none() {
        assert!(Netlink::open("PAGELAB-HAS-NONE").unwrap().is_none());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let message = Message::parse(&bytes);
            let _ = message.attributes().map(Iterator::count);
        }
    }
}
