//! The ports by which the first process of a guest speaks with the machine that it is in: QEMU
//! stops the machine at one, and hands in files at another. Both at the very instruction that asks,
//! so that a guest that counts instructions counts the same each time; a line would deliver at
//! moments of the host's.
//!
//! Sources: QEMU's docs/specs/pvpanic.rst and docs/specs/fw_cfg.rst.

/// Stops the machine until whoever runs it lets it go on; false where it has no such device.
#[must_use]
pub fn park() -> bool {
    imp::park()
}

/// The content of the file that the machine hands in under this name.
pub fn handed(name: &str) -> Option<Vec<u8>> {
    imp::handed(name)
}

#[cfg(target_arch = "x86_64")]
mod imp {
    use std::arch::asm;

    /// pvpanic: reads as the events it takes, or as nothing; a written event stops the machine.
    const PANIC: u16 = 0x505;
    const PANICKED: u8 = 1;
    const NOBODY: u8 = 0xff;
    /// fw_cfg: what to read, and its bytes one by one.
    const SELECT: u16 = 0x510;
    const DATA: u16 = 0x511;
    const SIGNATURE: u16 = 0;
    const DIRECTORY: u16 = 0x19;
    /// Bytes of an entry of the directory, of which the name has the last.
    const ENTRY: usize = 64;
    const NAME: usize = 8;

    /// The right to use ports, given back when dropped.
    struct Ports;

    impl Ports {
        fn open() -> Option<Self> {
            // SAFETY: changes this thread's rights alone.
            (unsafe { libc::syscall(libc::SYS_iopl, 3) } == 0).then_some(Self)
        }

        fn byte(&self, port: u16) -> u8 {
            let value: u8;
            // SAFETY: the right is held; the ports read here change nothing of this process.
            unsafe { asm!("in al, dx", out("al") value, in("dx") port, options(nomem, nostack)) };
            value
        }

        fn set(&self, port: u16, value: u8) {
            // SAFETY: as above.
            unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack)) };
        }

        fn select(&self, what: u16) {
            // SAFETY: as above.
            unsafe { asm!("out dx, ax", in("dx") SELECT, in("ax") what, options(nomem, nostack)) };
        }

        fn bytes(&self, count: usize) -> Vec<u8> {
            (0..count).map(|_| self.byte(DATA)).collect()
        }
    }

    impl Drop for Ports {
        fn drop(&mut self) {
            // SAFETY: as for `open`.
            unsafe { libc::syscall(libc::SYS_iopl, 0) };
        }
    }

    pub fn park() -> bool {
        let Some(ports) = Ports::open() else { return false };
        if ports.byte(PANIC) == NOBODY {
            return false;
        }
        ports.set(PANIC, PANICKED);
        true
    }

    pub fn handed(name: &str) -> Option<Vec<u8>> {
        let ports = Ports::open()?;
        ports.select(SIGNATURE);
        if ports.bytes(4) != b"QEMU" {
            return None;
        }
        ports.select(DIRECTORY);
        let number = |bytes: &[u8]| bytes.iter().fold(0_usize, |value, byte| value << 8 | usize::from(*byte));
        let count = number(&ports.bytes(4));
        // An entry: size and selector, the most significant byte first, and the name, ended by a zero.
        let entries: Vec<Vec<u8>> = (0..count.min(1024)).map(|_| ports.bytes(ENTRY)).collect();
        let is_it = |entry: &&Vec<u8>| entry[NAME..].split(|byte| *byte == 0).next() == Some(name.as_bytes());
        let entry = entries.iter().find(is_it)?;
        ports.select(number(&entry[4..6]) as u16);
        Some(ports.bytes(number(&entry[..4])))
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod imp {
    pub fn park() -> bool {
        false
    }

    pub fn handed(_: &str) -> Option<Vec<u8>> {
        None
    }
}
