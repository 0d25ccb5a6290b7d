//! Parses BTF, the kernel's description of its own types and functions (Documentation/bpf/btf.rst),
//! for the offsets of structure members and the IDs of functions that programs attach to.

use std::collections::HashMap;
use std::fs;

use super::TraceError;

const FILE: &str = "/sys/kernel/btf/vmlinux";
const MAGIC: u16 = 0xeb9f;

/// Kinds of types (`BTF_KIND_*`).
const INT: u32 = 1;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const TYPEDEF: u32 = 8;
const RESTRICT: u32 = 11;
const FUNCTION: u32 = 12;
const PROTOTYPE: u32 = 13;
const VARIABLE: u32 = 14;
const SECTION: u32 = 15;
const DECLARATION_TAG: u32 = 17;
const TYPE_TAG: u32 = 18;
const ENUM_64: u32 = 19;

/// Maximum nesting depth of types.
const DEPTH: u32 = 16;

/// The parsed BTF.
#[derive(Debug)]
pub(super) struct Btf {
    bytes: Vec<u8>,
    /// The offset of each type by its ID; ID 0 is void.
    types: Vec<usize>,
    strings: usize,
    functions: HashMap<String, u32>,
    tracepoints: HashMap<String, u32>,
}

impl Btf {
    /// Reads the BTF of the running kernel.
    pub(super) fn read() -> Result<Self, TraceError> {
        let lacking = || TraceError::Types(FILE);
        Self::parse(fs::read(FILE).map_err(|_| lacking())?).ok_or_else(lacking)
    }

    fn parse(bytes: Vec<u8>) -> Option<Self> {
        let header = word(&bytes, 0)?;
        let own = if cfg!(target_endian = "little") { header as u16 } else { (header >> 16) as u16 };
        (own == MAGIC).then_some(())?;
        let start = word(&bytes, 4)? as usize;
        let [types_at, types_length, strings_at] =
            [8, 12, 16].map(|at| word(&bytes, at).map(|word| word as usize));
        let strings = start + strings_at?;
        let (mut at, end) = (start + types_at?, start + types_at? + types_length?);
        let mut new =
            Self { bytes, types: vec![0], strings, functions: HashMap::new(), tracepoints: HashMap::new() };
        while at < end {
            let (kind, number) = (new.kind(at)?, new.types.len() as u32);
            if kind == FUNCTION {
                let name = new.name(at)?.to_owned();
                new.functions.insert(name, number);
            } else if kind == TYPEDEF
                && let Some(name) = new.name(at)?.strip_prefix("btf_trace_").map(str::to_owned)
            {
                new.tracepoints.insert(name, number);
            }
            new.types.push(at);
            at += 12 + new.rest(at)?;
        }
        Some(new)
    }

    /// The number of bytes after the first three words of the type at `at`.
    fn rest(&self, at: usize) -> Option<usize> {
        let length = (self.info(at)? & 0xffff) as usize;
        Some(match self.kind(at)? {
            INT | VARIABLE | DECLARATION_TAG => 4,
            ARRAY => 12,
            STRUCT | UNION | SECTION | ENUM_64 => 12 * length,
            ENUM | PROTOTYPE => 8 * length,
            _ => 0,
        })
    }

    fn info(&self, at: usize) -> Option<u32> {
        word(&self.bytes, at + 4)
    }

    fn kind(&self, at: usize) -> Option<u32> {
        Some(self.info(at)? >> 24 & 0x1f)
    }

    fn name(&self, at: usize) -> Option<&str> {
        let from = self.strings + word(&self.bytes, at)? as usize;
        let rest = self.bytes.get(from..)?;
        std::str::from_utf8(&rest[..rest.iter().position(|&byte| byte == 0)?]).ok()
    }

    /// The ID of a function.
    pub(super) fn function(&self, name: &str) -> Option<u32> {
        self.functions.get(name).copied()
    }

    /// The ID of the type of a tracepoint's function.
    pub(super) fn tracepoint(&self, name: &str) -> Option<u32> {
        self.tracepoints.get(name).copied()
    }

    /// The number of arguments of a function.
    pub(super) fn arguments(&self, name: &str) -> Option<usize> {
        let function = *self.types.get(self.function(name)? as usize)?;
        let prototype = *self.types.get(word(&self.bytes, function + 8)? as usize)?;
        Some((self.info(prototype)? & 0xffff) as usize)
    }

    /// The offset in bytes of `member`, or of a nested member (`f_path.dentry`), in a structure.
    pub(super) fn offset(&self, structure: &str, member: &str) -> Result<usize, TraceError> {
        let found = || {
            let named = |at: &usize| self.kind(*at) == Some(STRUCT) && self.name(*at) == Some(structure);
            let mut at = self.types[1..].iter().copied().find(named)?;
            let mut offset = 0;
            for part in member.split('.') {
                let (more, next) = self.member(at, part, DEPTH)?;
                offset += more;
                at = self.resolved(next).unwrap_or(0);
            }
            Some(offset)
        };
        found().ok_or_else(|| TraceError::Member(format!("{structure}.{member}")))
    }

    /// The offset and type of a member; the search includes unnamed members.
    fn member(&self, at: usize, wanted: &str, depth: u32) -> Option<(usize, u32)> {
        let info = self.info(at)?;
        let is_compound = matches!(self.kind(at)?, STRUCT | UNION);
        (is_compound && depth > 0).then_some(())?;
        (0..(info & 0xffff) as usize).find_map(|n| {
            let place = at + 12 + 12 * n;
            let (kind, bits) = (word(&self.bytes, place + 4)?, word(&self.bytes, place + 8)?);
            let bits = if info >> 31 == 1 { bits & 0xff_ffff } else { bits };
            match self.name(place)? {
                "" => {
                    let (more, found) = self.member(self.resolved(kind)?, wanted, depth - 1)?;
                    Some((bits as usize / 8 + more, found))
                }
                name => (name == wanted).then_some((bits as usize / 8, kind)),
            }
        })
    }

    /// The offset of the type with this ID, after its typedefs and qualifiers.
    fn resolved(&self, mut number: u32) -> Option<usize> {
        for _ in 0..DEPTH {
            let at = *self.types.get(number as usize).filter(|_| number > 0)?;
            match self.kind(at)? {
                TYPEDEF..=RESTRICT | TYPE_TAG => number = word(&self.bytes, at + 8)?,
                _ => return Some(at),
            }
        }
        None
    }

    /// The value of an enumerator.
    pub(super) fn value(&self, enumeration: &str, name: &str) -> Result<u32, TraceError> {
        let of = |at: usize| {
            let mut entries = (0..(self.info(at)? & 0xffff) as usize).map(|n| at + 12 + 8 * n);
            let entry = entries.find(|&entry| self.name(entry) == Some(name))?;
            word(&self.bytes, entry + 4)
        };
        let named = |at: &usize| self.kind(*at) == Some(ENUM) && self.name(*at) == Some(enumeration);
        let found = self.types[1..].iter().copied().filter(named).find_map(of);
        found.ok_or_else(|| TraceError::Member(format!("{enumeration}.{name}")))
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `struct inode { union { int a; const struct { int b; int c; }; }; struct inner d; }`, an
    /// enumeration, a function.
    fn example() -> Vec<u8> {
        let strings = "\0int\0inode\0a\0b\0c\0d\0inner\0flags\0HEAD\0work\0e\0";
        let at = |name: &str| strings.find(&format!("\0{name}\0")).unwrap() as u32 + 1;
        let kind = |kind: u32, length: u32| kind << 24 | length;
        let types: Vec<u32> = [
            vec![at("int"), kind(INT, 0), 4, 32],
            // 2: the unnamed structure, 3: its const version, 4: the union.
            vec![0, kind(STRUCT, 2), 8, at("b"), 1, 0, at("c"), 1, 32],
            vec![0, kind(10, 0), 2],
            vec![0, kind(UNION, 2), 8, at("a"), 1, 0, 0, 3, 0],
            // 5: the inner structure, 6: the outer one.
            vec![at("inner"), kind(STRUCT, 2), 8, at("a"), 1, 0, at("e"), 1, 32],
            vec![at("inode"), kind(STRUCT, 2), 16, 0, 4, 0, at("d"), 5, 64],
            vec![at("flags"), kind(ENUM, 1), 4, at("HEAD"), 6],
            vec![0, kind(PROTOTYPE, 1), 0, at("a"), 1],
            vec![at("work"), kind(FUNCTION, 1), 8],
        ]
        .concat();
        let length = types.len() as u32 * 4;
        let magic = if cfg!(target_endian = "little") { 0x0001_eb9f_u32 } else { 0xeb9f_0100 };
        let mut words = vec![magic, 24, 0, length, length, strings.len() as u32];
        words.extend(types);
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.extend(strings.as_bytes());
        bytes
    }

    #[test]
    fn members_are_found_in_members_without_a_name() {
        let btf = Btf::parse(example()).unwrap();
        let offset = |member| btf.offset("inode", member).ok();
        assert_eq!(
            [offset("a"), offset("b"), offset("c"), offset("d")],
            [Some(0), Some(0), Some(4), Some(8)]
        );
        assert_eq!((offset("d.e"), offset("e"), offset("c.e")), (Some(12), None, None));
        assert_eq!((btf.value("flags", "HEAD").ok(), btf.function("work")), (Some(6), Some(9)));
        assert_eq!(btf.arguments("work"), Some(1));
        assert!(btf.offset("none", "a").is_err() && btf.function("none").is_none());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(at in 0..200_usize, byte: u8, length in 0..300_usize) {
            let mut bytes = example();
            let last = bytes.len() - 1;
            bytes[at.min(last)] = byte;
            bytes.truncate(length);
            if let Some(btf) = Btf::parse(bytes) {
                let _ = (btf.offset("inode", "d.e"), btf.value("flags", "HEAD"), btf.function("work"));
            }
        }
    }
}
