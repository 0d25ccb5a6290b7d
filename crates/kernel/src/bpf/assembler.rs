//! An assembler for BPF (Documentation/bpf/standardization/instruction-set.rst): the instructions that
//! the programs here need, with labels to jump to.

use std::collections::HashMap;

/// A register. R0 is what a call gives, R1 to R5 its arguments, R6 to R9 survive it, R10 is the frame.
pub(super) type Register = u8;
pub(super) const R0: Register = 0;
pub(super) const R1: Register = 1;
pub(super) const R2: Register = 2;
pub(super) const R3: Register = 3;
pub(super) const R4: Register = 4;
pub(super) const R6: Register = 6;
pub(super) const R7: Register = 7;
pub(super) const R8: Register = 8;
pub(super) const R9: Register = 9;
pub(super) const FRAME: Register = 10;

/// Functions of the kernel (include/uapi/linux/bpf.h, `__BPF_FUNC_MAPPER`).
pub(super) const MAP_LOOKUP: i32 = 1;
pub(super) const MAP_UPDATE: i32 = 2;
pub(super) const MAP_DELETE: i32 = 3;
pub(super) const CLOCK: i32 = 5;
pub(super) const CURRENT: i32 = 14;
pub(super) const CURRENT_NAME: i32 = 16;
pub(super) const READ_KERNEL: i32 = 113;
pub(super) const READ_KERNEL_TEXT: i32 = 115;
/// The `task_struct` of the current task. Since 5.11.
pub(super) const CURRENT_TASK: i32 = 158;
/// Copies a record to a ring buffer. Since 5.8.
pub(super) const RING_OUTPUT: i32 = 130;

/// Tells [`MAP_UPDATE`] to leave what is there.
pub(super) const IF_ABSENT: i32 = 1;

/// How two values compare.
#[derive(Clone, Copy, Debug)]
pub(super) enum If {
    Equal = 0x10,
    Not = 0x50,
    /// Of signed numbers.
    AtMost = 0xd0,
    Below = 0xa0,
    AtLeast = 0x30,
}

/// A program being written.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    code: Vec<u64>,
    labels: HashMap<&'static str, usize>,
    jumps: Vec<(usize, &'static str)>,
}

impl Assembler {
    fn emit(&mut self, opcode: u8, to: Register, from: Register, offset: i16, value: i32) -> &mut Self {
        let registers = if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from };
        let ([a, b], [c, d, e, f]) = (offset.to_ne_bytes(), value.to_ne_bytes());
        self.code.push(u64::from_ne_bytes([opcode, registers, a, b, c, d, e, f]));
        self
    }

    /// R0 = what `function` says of the key on the frame at `key` in a map.
    pub(super) fn ask(&mut self, function: i32, map: i32, key: i16) -> &mut Self {
        self.map(R1, map).copy(R2, FRAME).add_value(R2, key.into()).call(function)
    }

    /// Puts what is on the frame at `value` under the key at `key`, unless another processor was faster.
    pub(super) fn put_if_absent(&mut self, map: i32, key: i16, value: i16) -> &mut Self {
        self.copy(R3, FRAME).add_value(R3, value.into()).set(R4, IF_ABSENT).ask(MAP_UPDATE, map, key)
    }

    /// `to = from`.
    pub(super) fn copy(&mut self, to: Register, from: Register) -> &mut Self {
        self.emit(0xbf, to, from, 0, 0)
    }

    /// `to = value`.
    pub(super) fn set(&mut self, to: Register, value: i32) -> &mut Self {
        self.emit(0xb7, to, 0, 0, value)
    }

    /// `to += value`.
    pub(super) fn add_value(&mut self, to: Register, value: i32) -> &mut Self {
        self.emit(0x07, to, 0, 0, value)
    }

    /// `to += from`.
    pub(super) fn add(&mut self, to: Register, from: Register) -> &mut Self {
        self.emit(0x0f, to, from, 0, 0)
    }

    /// `to -= from`.
    pub(super) fn subtract(&mut self, to: Register, from: Register) -> &mut Self {
        self.emit(0x1f, to, from, 0, 0)
    }

    /// `to &= value`.
    pub(super) fn and_value(&mut self, to: Register, value: i32) -> &mut Self {
        self.emit(0x57, to, 0, 0, value)
    }

    /// `to <<= from`.
    pub(super) fn shift_left(&mut self, to: Register, from: Register) -> &mut Self {
        self.emit(0x6f, to, from, 0, 0)
    }

    /// `to &= from`.
    pub(super) fn and(&mut self, to: Register, from: Register) -> &mut Self {
        self.emit(0x5f, to, from, 0, 0)
    }

    /// `to = 0`, computed so that the verifier regards the value as unknown. After an iteration of
    /// a loop the value is unknown too, so the verifier does not walk each iteration again.
    pub(super) fn zero(&mut self, to: Register, unknown: Register) -> &mut Self {
        self.copy(to, unknown).emit(0xaf, to, to, 0, 0)
    }

    /// `to` = eight bytes of the frame, loaded so that the verifier does not link the register to
    /// the stack slot. Bounds that it learns in one iteration of a loop then do not make the next
    /// iteration a different state.
    pub(super) fn load_apart(&mut self, to: Register, place: i16) -> &mut Self {
        self.load(to, FRAME, (place as usize, 8)).and_value(to, -1)
    }

    /// `to = !to`.
    pub(super) fn not(&mut self, to: Register) -> &mut Self {
        self.emit(0xa7, to, 0, 0, -1)
    }

    /// `to *= from`.
    pub(super) fn multiply(&mut self, to: Register, from: Register) -> &mut Self {
        self.emit(0x2f, to, from, 0, 0)
    }

    /// `to <<= value`.
    pub(super) fn shift_left_by(&mut self, to: Register, value: i32) -> &mut Self {
        self.emit(0x67, to, 0, 0, value)
    }

    /// `to >>= value`, unsigned.
    pub(super) fn shift_right_by(&mut self, to: Register, value: i32) -> &mut Self {
        self.emit(0x77, to, 0, 0, value)
    }

    /// `to = value`, 64 bits.
    pub(super) fn set_long(&mut self, to: Register, value: u64) -> &mut Self {
        self.emit(0x18, to, 0, 0, value as i32).emit(0, 0, 0, 0, (value >> 32) as i32)
    }

    /// `to` = the number of bits set in `to`. Clobbers `other` and `constant`.
    pub(super) fn count_bits(&mut self, to: Register, other: Register, constant: Register) -> &mut Self {
        self.copy(other, to).shift_right_by(other, 1).set_long(constant, 0x5555_5555_5555_5555);
        self.and(other, constant).subtract(to, other);
        self.set_long(constant, 0x3333_3333_3333_3333).copy(other, to).shift_right_by(other, 2);
        self.and(other, constant).and(to, constant).add(to, other);
        self.copy(other, to).shift_right_by(other, 4).add(to, other);
        self.set_long(constant, 0x0f0f_0f0f_0f0f_0f0f).and(to, constant);
        self.set_long(constant, 0x0101_0101_0101_0101).multiply(to, constant).shift_right_by(to, 56)
    }

    /// `to = *(from + place)`, of a size in bytes.
    pub(super) fn load(&mut self, to: Register, from: Register, place: (usize, usize)) -> &mut Self {
        let opcode = match place.1 {
            1 => 0x71,
            2 => 0x69,
            4 => 0x61,
            _ => 0x79,
        };
        self.emit(opcode, to, from, place.0 as i16, 0)
    }

    /// `*(to + offset) = from`, eight bytes.
    pub(super) fn store(&mut self, to: Register, offset: i16, from: Register) -> &mut Self {
        self.emit(0x7b, to, from, offset, 0)
    }

    /// `*(to + offset) = from`, four bytes.
    pub(super) fn store_word(&mut self, to: Register, offset: i16, from: Register) -> &mut Self {
        self.emit(0x63, to, from, offset, 0)
    }

    /// `*(to + offset) = value`, eight bytes.
    pub(super) fn store_value(&mut self, to: Register, offset: i16, value: i32) -> &mut Self {
        self.emit(0x7a, to, 0, offset, value)
    }

    /// `*(to + offset) += from`, eight bytes, whatever the other processors do.
    pub(super) fn atomic_add(&mut self, to: Register, offset: i16, from: Register) -> &mut Self {
        self.emit(0xdb, to, from, offset, 0)
    }

    /// As [`Assembler::atomic_add`]; `from` becomes what was there before. Since 5.12.
    pub(super) fn atomic_fetch_add(&mut self, to: Register, offset: i16, from: Register) -> &mut Self {
        self.emit(0xdb, to, from, offset, 1)
    }

    /// `*(to + offset) |= from`, eight bytes, atomically. Since 5.12.
    pub(super) fn atomic_or(&mut self, to: Register, offset: i16, from: Register) -> &mut Self {
        self.emit(0xdb, to, from, offset, 0x40)
    }

    /// `*(to + offset) &= from`, eight bytes, atomically; `from` gets the old value. Since 5.12.
    pub(super) fn atomic_fetch_and(&mut self, to: Register, offset: i16, from: Register) -> &mut Self {
        self.emit(0xdb, to, from, offset, 0x51)
    }

    /// `to` = the map of that number.
    pub(super) fn map(&mut self, to: Register, number: i32) -> &mut Self {
        const IS_MAP: Register = 1;
        self.emit(0x18, to, IS_MAP, 0, number).emit(0, 0, 0, 0, 0)
    }

    /// Calls a function of the kernel.
    pub(super) fn call(&mut self, function: i32) -> &mut Self {
        self.emit(0x85, 0, 0, 0, function)
    }

    /// Goes to `label` when the register compares so with the value.
    pub(super) fn jump_if(&mut self, left: Register, how: If, value: i32, label: &'static str) -> &mut Self {
        self.jumps.push((self.code.len(), label));
        self.emit(0x05 | how as u8, left, 0, 0, value)
    }

    /// Goes to `label` when the registers compare so.
    pub(super) fn jump_if_both(
        &mut self,
        left: Register,
        how: If,
        right: Register,
        label: &'static str,
    ) -> &mut Self {
        self.jumps.push((self.code.len(), label));
        self.emit(0x0d | how as u8, left, right, 0, 0)
    }

    /// Goes to `label`.
    pub(super) fn jump(&mut self, label: &'static str) -> &mut Self {
        self.jumps.push((self.code.len(), label));
        self.emit(0x05, 0, 0, 0, 0)
    }

    /// Here is `label`.
    pub(super) fn label(&mut self, label: &'static str) -> &mut Self {
        let before = self.labels.insert(label, self.code.len());
        debug_assert!(before.is_none(), "{label} is in two places");
        self
    }

    /// Ends the program; jumps to `end` come here.
    pub(super) fn finish(mut self) -> Vec<u64> {
        self.label("end").set(R0, 0).emit(0x95, 0, 0, 0, 0);
        for (place, label) in &self.jumps {
            let distance = self.labels[label] as i64 - *place as i64 - 1;
            let mut bytes = self.code[*place].to_ne_bytes();
            [bytes[2], bytes[3]] = (distance as i16).to_ne_bytes();
            self.code[*place] = u64::from_ne_bytes(bytes);
        }
        self.code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn instructions_are_encoded_as_the_standard_says() {
        let mut program = Assembler::default();
        program.jump_if(R1, If::Equal, 5, "end").copy(R6, R1).load(R2, R6, (16, 4)).jump("end");
        let code = program.finish();
        // Opcode, registers, distance, value.
        assert_eq!(code[0].to_le_bytes(), [0x15, 0x01, 3, 0, 5, 0, 0, 0]);
        assert_eq!(code[1].to_le_bytes(), [0xbf, 0x16, 0, 0, 0, 0, 0, 0]);
        assert_eq!(code[2].to_le_bytes(), [0x61, 0x62, 16, 0, 0, 0, 0, 0]);
        assert_eq!(code[3].to_le_bytes(), [0x05, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(code[4].to_le_bytes(), [0xb7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(code[5].to_le_bytes(), [0x95, 0, 0, 0, 0, 0, 0, 0]);
    }
}
