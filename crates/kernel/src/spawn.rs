//! A program started without a copy of this process.
//!
//! A fork copies this process's page tables and makes both copy pages, and the program's account
//! has that too: a tenth of a short program's processor time. Here the child borrows this process's
//! memory until it executes the program (as posix_spawn(3) does, which cannot have a program die
//! with its parent).

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use rustix::fs::{Access, access};

use crate::marks;
use crate::region::Region;

/// Pages of the stack that the child has until it executes the program.
const STACK: usize = 64;
/// How long the child of [`Program::run_marked`] waits for its parent to sleep.
const PAUSE: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// A running program: killed and waited for when dropped.
#[derive(Debug)]
pub struct Program {
    pid: libc::pid_t,
    /// Readable when it has ended; `None` before Linux 5.3.
    handle: Option<OwnedFd>,
    ended: Option<ExitStatus>,
}

/// What the child does, and what became of it.
struct Order {
    program: *const libc::c_char,
    arguments: *const *const libc::c_char,
    /// Its standard input and output.
    nothing: libc::c_int,
    parent: libc::pid_t,
    signals: libc::sigset_t,
    /// Whether to execute the program after a pause and a mark.
    marked: bool,
    error: libc::c_int,
}

impl Program {
    /// Starts `words`, a program looked for in PATH and its arguments, with nothing to read and its
    /// output thrown away. The kernel kills it when the calling thread ends, however that happens.
    ///
    /// # Errors
    /// When it cannot be executed.
    pub fn start(words: &[OsString]) -> io::Result<Self> {
        // This thread sleeps until the child has executed the program or exited.
        begun(words, false, libc::CLONE_VFORK, |mut program, error| match error() {
            0 => Ok(program),
            error => {
                program.wait();
                Err(io::Error::from_raw_os_error(error))
            }
        })
    }

    /// Runs `words` until it exits, started like [`Program::start`], between the marks for a
    /// machine that counts. The child waits 50 ms while this thread goes to sleep, then executes
    /// the program. Nothing else of this process runs between the marks.
    ///
    /// # Errors
    /// When it cannot be executed.
    pub fn run_marked(words: &[OsString]) -> io::Result<ExitStatus> {
        let name = words.first().ok_or_else(|| io::Error::other("no program"))?;
        // By its path: otherwise each directory of PATH costs a call of execve(2).
        let place = find(Path::new(name)).ok_or(io::ErrorKind::NotFound)?;
        let words = [&[place.into_os_string()], &words[1..]].concat();
        begun(&words, true, 0, |mut program, error| {
            let status = ExitStatus::from_raw(marks::wait(program.pid)?);
            program.ended = Some(status);
            match error() {
                0 => Ok(status),
                error => Err(io::Error::from_raw_os_error(error)),
            }
        })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.take(libc::WNOHANG)
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> Option<ExitStatus> {
        self.take(0)
    }

    fn take(&mut self, flags: libc::c_int) -> Option<ExitStatus> {
        if self.ended.is_none() {
            let mut status = 0;
            // SAFETY: `status` is writable; a child that was not waited for keeps its id.
            if unsafe { libc::waitpid(self.pid, &mut status, flags) } == self.pid {
                self.ended = Some(ExitStatus::from_raw(status));
            }
        }
        self.ended
    }

    /// Sleeps until it ends, so long at most. Where the kernel cannot tell, no longer than ten
    /// milliseconds.
    pub fn sleep(&self, most: Duration) {
        let Some(handle) = &self.handle else {
            std::thread::sleep(most.min(Duration::from_millis(10)));
            return;
        };
        let mut poll = libc::pollfd { fd: handle.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let most = libc::timespec {
            tv_sec: most.as_secs().min(1 << 30) as libc::time_t,
            tv_nsec: libc::c_long::from(most.subsec_nanos() as i32),
        };
        // SAFETY: one descriptor and a time, both alive. A signal ends the sleep early.
        unsafe { libc::ppoll(&mut poll, 1, &most, std::ptr::null()) };
    }
}

/// Has the kernel kill what `command` starts when the calling thread ends, however that happens.
pub fn dies_with_caller(command: &mut std::process::Command) {
    use std::os::unix::process::CommandExt;
    // SAFETY: the call concerns the child alone and allocates nothing.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.ended().is_none() {
            // SAFETY: no pointers; the child was not waited for, so the id is its own.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
            self.wait();
        }
    }
}

/// Starts `words` and passes the program to `then`, with a function that returns the child's error.
/// Everything that both use lives until `then` returns, and signals are blocked until then. `flags`
/// are for clone(2).
fn begun<T>(
    words: &[OsString],
    marked: bool,
    flags: libc::c_int,
    then: impl FnOnce(Program, &dyn Fn() -> libc::c_int) -> io::Result<T>,
) -> io::Result<T> {
    let texts: Vec<CString> =
        words.iter().map(|word| CString::new(word.as_bytes())).collect::<Result<_, _>>()?;
    let mut arguments: Vec<*const libc::c_char> = texts.iter().map(|text| text.as_ptr()).collect();
    let program = *arguments.first().ok_or_else(|| io::Error::other("no program"))?;
    arguments.push(std::ptr::null());
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    let stack = Region::anonymous(STACK)?;
    // SAFETY: a signal set is plain data, and empty when zeroed.
    let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { std::mem::zeroed() };
    // SAFETY: both sets are writable. With all signals blocked no handler of this process runs
    // in the child.
    unsafe {
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
    }
    let mut order = Order {
        program,
        arguments: arguments.as_ptr(),
        nothing: nothing.as_raw_fd(),
        // SAFETY: no pointers.
        parent: unsafe { libc::getpid() },
        signals: before,
        marked,
        error: 0,
    };
    let order = &raw mut order;
    // SAFETY: the child runs `child` on its own stack, which ends at a page's end. `order`, all
    // that it points to, and the stack live until `then` returns. By then the child has executed
    // the program or exited.
    let pid = unsafe {
        let top = stack.base().add(stack.bytes()).cast();
        libc::clone(child, top, flags | libc::CLONE_VM | libc::SIGCHLD, order.cast())
    };
    let done = if pid < 0 {
        Err(io::Error::last_os_error())
    } else {
        let program = Program { pid, handle: handle(pid), ended: None };
        // SAFETY: the child writes it, if at all, before it ends.
        then(program, &|| unsafe { (&raw const (*order).error).read_volatile() })
    };
    // SAFETY: the set is what was there.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    done
}

/// The file that execvp(3) executes for `name`.
fn find(name: &Path) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return Some(name.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    let executable = |path: &PathBuf| access(path, Access::EXEC_OK).is_ok() && path.is_file();
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(executable)
}

fn handle(pid: libc::pid_t) -> Option<OwnedFd> {
    // SAFETY: no pointers; a new descriptor that nobody else has, closed on exec by itself.
    unsafe {
        let raw = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        i32::try_from(raw).ok().filter(|&raw| raw >= 0).map(|raw| OwnedFd::from_raw_fd(raw))
    }
}

unsafe extern "C" {
    /// The C library's environment strings.
    static environ: *const *const libc::c_char;
}

/// In the child, which shares the parent's memory: system calls alone.
extern "C" fn child(order: *mut libc::c_void) -> libc::c_int {
    // SAFETY: the order lives until this child has executed or ended. `execvp` may look for the
    // program in PATH, for which it uses this stack alone.
    unsafe {
        let order = &mut *order.cast::<Order>();
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != order.parent {
            libc::_exit(1);
        }
        // Programs expect to be ended by a closed pipe; Rust's own ignore that.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::dup2(order.nothing, 0);
        libc::dup2(order.nothing, 1);
        libc::pthread_sigmask(libc::SIG_SETMASK, &order.signals, std::ptr::null_mut());
        let error = if order.marked {
            libc::nanosleep(&PAUSE, std::ptr::null_mut());
            marks::execute(order.program, order.arguments, environ)
        } else {
            libc::execvp(order.program, order.arguments);
            io::Error::last_os_error()
        };
        order.error = error.raw_os_error().unwrap_or(libc::EIO);
        libc::_exit(127)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn a_program_runs_and_says_how_it_ended() {
        let mut program = Program::start(&words(&["sh", "-c", "kill -0 $PPID && exit 7"])).unwrap();
        assert_eq!(program.wait().and_then(|status| status.code()), Some(7));
        let error = Program::start(&words(&["/does/not/exist"])).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_marked_program_runs_to_its_end() {
        let status = Program::run_marked(&words(&["sh", "-c", "exit 7"])).unwrap();
        assert_eq!(status.code(), Some(7));
        for absent in ["no such program", "/does/not/exist"] {
            let error = Program::run_marked(&words(&[absent])).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound, "{absent}");
        }
    }

    #[test]
    fn its_end_is_seen_at_once_and_dropping_ends_it() {
        let program = Program::start(&words(&["sleep", "1000"])).unwrap();
        let id = program.id();
        drop(program);
        assert!(!std::path::Path::new(&format!("/proc/{id}")).exists());
        let mut program = Program::start(&words(&["true"])).unwrap();
        // Its end ends the sleep.
        while program.ended().is_none() {
            program.sleep(Duration::from_secs(1 << 30));
        }
    }
}
