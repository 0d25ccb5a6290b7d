//! Programs that the recorded one executes.
//!
//! QEMU 7.2 and later hand execve(2) of a program to the kernel, which would run another program without QEMU. So the tracer,
//! which is called before each system call, executes QEMU itself: with this tracer, the same ring and that program. The process,
//! its descriptors, signals and environment stay. What this cannot or should not do is left to the machine, which then runs
//! the program unrecorded or says what is wrong with it: other architectures, programs that change the user (set-user-ID,
//! set-group-ID, capabilities), those without the ring in reach (another root or user), and execveat(2) with a descriptor.

use std::ffi::{CStr, CString, OsStr, c_char, c_void};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::ring;

/// The most arguments, and variables of the environment.
const MAX_ARGUMENTS: usize = 1 << 20;
/// Interpreters of interpreters, as the kernel allows.
const DEPTH: usize = 5;
/// Looked at of a file: the kernel does the same.
const HEAD: usize = 256;
/// `EM_X86_64`, `EM_AARCH64`, `EM_RISCV`, and QEMU's name for each.
const MACHINES: [(&[u8], u16); 3] = [(b"x86_64", 62), (b"aarch64", 183), (b"riscv64", 243)];

/// How this program was begun.
struct Begun {
    qemu: CString,
    /// The tracer with its arguments, as QEMU was given it.
    plugin: CString,
    /// What has to be in reach.
    files: [CString; 2],
    machine: u16,
}

static BEGUN: OnceLock<Begun> = OnceLock::new();
/// What is added to an address of the program's for one of QEMU's.
static BASE: AtomicU64 = AtomicU64::new(0);

/// Reads how this QEMU was begun (`QEMU -plugin TRACER,ring=RING -0 NAME PROGRAM ARGUMENTS…`, as pagelab and this module do); `ring`
/// is the ring's file, `machine` QEMU's name of the architecture. The program and its arguments, with zeros between them.
pub fn begin(ring: &[u8], machine: &[u8]) -> Vec<u8> {
    let line = fs::read("/proc/self/cmdline").unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|&byte| byte == 0).collect();
    let [_, b"-plugin", plugin, b"-0", _, program @ ..] = &words[..] else { return Vec::new() };
    let tracer = plugin.split(|&byte| byte == b',').next().unwrap_or_default();
    let machine = MACHINES.iter().find(|(name, _)| *name == machine);
    if let (Ok(qemu), Some(&(_, machine))) = (fs::read_link("/proc/self/exe"), machine) {
        let text = |bytes: &[u8]| CString::new(bytes).unwrap_or_default();
        let begun = Begun {
            qemu: text(qemu.as_os_str().as_bytes()),
            plugin: text(plugin),
            files: [text(tracer), text(ring)],
            machine,
        };
        // It is begun once.
        let _ = BEGUN.set(begun);
    }
    let words = program.join(&0);
    words.strip_suffix(b"\0").unwrap_or(&words).to_vec()
}

/// Learns where QEMU has the program's memory: `here` is what stands at its `address`.
pub fn located(address: u64, here: *const c_void) {
    if !here.is_null() {
        BASE.store((here.addr() as u64).wrapping_sub(address), Relaxed);
    }
}

/// Executes a program under QEMU, with the arguments of execve(2). Comes back where that is left to the machine.
pub fn execute(path: u64, arguments: u64, environment: u64) {
    let Some(begun) = BEGUN.get() else { return };
    // SAFETY: asks about a path that ends with a zero.
    let reached = |file: &CString| unsafe { libc::access(file.as_ptr(), libc::R_OK) } == 0;
    if !begun.files.iter().all(reached) || !ring::has_room() {
        return;
    }
    let (Some(path), Some(arguments), Some(environment)) =
        (text(path), pointers(arguments), pointers(environment))
    else {
        return;
    };
    let given = arguments.get(1..).unwrap_or_default();
    let Some(words) = resolved(&path, begun.machine) else { return };
    // A script's interpreter has its own name for the first, a program what it is given.
    let name = match (&words[..], arguments.first()) {
        ([_], Some(&first)) => first,
        _ => words[0].as_ptr(),
    };
    let mut line =
        vec![begun.qemu.as_ptr(), c"-plugin".as_ptr(), begun.plugin.as_ptr(), c"-0".as_ptr(), name];
    line.extend(words.iter().map(|word| word.as_ptr()));
    line.extend(given);
    line.push(ptr::null());
    let mut variables = environment;
    variables.push(ptr::null());
    ring::be_looked_at();
    ring::leave(true);
    // SAFETY: lists that end with a null, of texts that are ours, or of pointers of the program's that the kernel tests.
    unsafe { libc::execve(begun.qemu.as_ptr(), line.as_ptr(), variables.as_ptr()) };
    ring::leave(false);
}

/// The program's file, with its interpreter and what that is given before it for a script; `None` for what is left to the machine.
fn resolved(path: &CStr, machine: u16) -> Option<Vec<CString>> {
    let mut words = vec![path.to_owned()];
    for _ in 0..DEPTH {
        let file = words[0].clone();
        // SAFETY: asks about a path that ends with a zero.
        if unsafe { libc::faccessat(libc::AT_FDCWD, file.as_ptr(), libc::X_OK, libc::AT_EACCESS) } != 0 {
            return None;
        }
        let place = Path::new(OsStr::from_bytes(file.to_bytes()));
        let known = fs::metadata(place).ok().filter(fs::Metadata::is_file)?;
        let mut head = Vec::with_capacity(HEAD);
        fs::File::open(place).ok()?.take(HEAD as u64).read_to_end(&mut head).ok()?;
        if let Some(line) = head.strip_prefix(b"#!") {
            let line = &line[..line.iter().position(|&byte| byte == b'\n')?];
            let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
            let line = line.trim_ascii();
            let (interpreter, argument) = match line.iter().position(blank) {
                Some(at) => (&line[..at], Some(line[at..].trim_ascii())),
                None => (line, None),
            };
            let before = [Some(interpreter), argument].into_iter().flatten();
            words.splice(0..0, before.filter_map(|word| CString::new(word).ok()));
            continue;
        }
        let ours = head.len() >= 20
            && head.starts_with(&[0x7f, b'E', b'L', b'F', 2, 1])
            && u16::from_le_bytes([head[18], head[19]]) == machine;
        return (ours && !changes_user(&file, &known)).then_some(words);
    }
    None
}

/// Whether the kernel would give the program other rights, which it would not have under QEMU.
fn changes_user(file: &CStr, known: &fs::Metadata) -> bool {
    // SAFETY: these read numbers, and the length of an attribute of a path that ends with a zero.
    let (user, group, capabilities) = unsafe {
        (
            libc::geteuid(),
            libc::getegid(),
            libc::getxattr(file.as_ptr(), c"security.capability".as_ptr(), ptr::null_mut(), 0) > 0,
        )
    };
    let set = |bit: u32, owner: u32, own: u32| known.mode() & bit != 0 && owner != own;
    set(libc::S_ISUID, known.uid(), user)
        || set(libc::S_ISGID, known.gid(), group)
        || capabilities && user != 0
}

/// The program's pointers at `address` up to a null, as QEMU's; `None` where it has none there. None at all are none.
fn pointers(address: u64) -> Option<Vec<*const c_char>> {
    let mut list = Vec::new();
    if address == 0 {
        return Some(list);
    }
    for at in 0..MAX_ARGUMENTS as u64 {
        let mut word = [0; 8];
        if read(address.wrapping_add(8 * at), &mut word) != word.len() {
            return None;
        }
        match u64::from_le_bytes(word) {
            0 => return Some(list),
            pointer => list.push(here(pointer).cast()),
        }
    }
    None
}

/// The program's text at `address`.
fn text(address: u64) -> Option<CString> {
    let mut bytes = vec![0; libc::PATH_MAX as usize];
    // What lies behind a text may not be mapped: up to the end of its page first.
    let first = bytes.len().min(4096 - (address % 4096) as usize);
    let mut length = read(address, &mut bytes[..first]);
    if length == first {
        length += read(address + first as u64, &mut bytes[first..]);
    }
    CStr::from_bytes_until_nul(&bytes[..length]).ok().map(CStr::to_owned)
}

/// Reads the program's memory as far as there is any; how many bytes.
fn read(address: u64, to: &mut [u8]) -> usize {
    let local = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    let remote = libc::iovec { iov_base: here(address).cast_mut(), iov_len: to.len() };
    // SAFETY: the kernel reads this process's own memory, where there is any, into a buffer of that length.
    let length = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    usize::try_from(length).unwrap_or(0)
}

/// Where QEMU has the program's `address`.
fn here(address: u64) -> *const c_void {
    ptr::without_provenance(address.wrapping_add(BASE.load(Relaxed)) as usize)
}
