//! Whether memory can be had, asked before it is taken: an allocation that fails ends the program.

/// Whether so many bytes can be had at once now. Nothing is kept.
pub fn can_be_had(bytes: u64) -> bool {
    let mut room: Vec<u8> = Vec::new();
    let had = usize::try_from(bytes).is_ok_and(|bytes| room.try_reserve_exact(bytes).is_ok());
    // Else the compiler may leave both the taking and the giving back out.
    std::hint::black_box(&room);
    had
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_has_cannot_be_had() {
        assert!(can_be_had(0) && can_be_had(1 << 20));
        assert!(!can_be_had(u64::MAX) && !can_be_had(1 << 60));
    }
}
