//! Files and processes that cannot outlive pagelab.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};
use rustix::process::{Resource, Signal, getrlimit, set_parent_process_death_signal, setrlimit};

/// Has the kernel kill `command`'s process when the thread that starts it ends, however it ends.
pub fn die_with_parent(command: &mut Command) {
    // SAFETY: between fork and exec only one system call is made, which allocates nothing.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
}

/// Has the kernel end this process in order (SIGTERM) when the thread that started it ends, however
/// it ends. Whether process `parent` is still there, so that there is something to do.
///
/// # Errors
/// When the kernel refuses.
pub fn end_with(parent: u32) -> io::Result<bool> {
    set_parent_process_death_signal(Some(Signal::TERM))?;
    // It may have ended before.
    Ok(std::os::unix::process::parent_id() == parent)
}

/// The most that this process's stack may grow to, in bytes; `None` without a bound.
pub fn stack_limit() -> Option<u64> {
    getrlimit(Resource::Stack).current
}

/// Allows this process as many open files as its hard limit does.
///
/// # Errors
/// When the kernel refuses.
pub fn allow_open_files() -> io::Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    Ok(setrlimit(Resource::Nofile, limit)?)
}

/// A file without a name in memory, which child processes inherit: it is gone with the last of them.
///
/// # Errors
/// When the kernel refuses.
pub fn in_memory(name: &str) -> io::Result<File> {
    Ok(File::from(memfd_create(name, MemfdFlags::empty())?))
}

/// The same on the disk of `folder`.
///
/// # Errors
/// When its file system cannot make one.
pub fn on_disk(folder: &std::path::Path) -> io::Result<File> {
    let mode = Mode::RUSR | Mode::WUSR;
    Ok(File::from(open(folder, OFlags::TMPFILE | OFlags::RDWR, mode)?))
}

/// The two ends of a line, of which child processes inherit the second.
///
/// # Errors
/// When the kernel refuses.
pub fn line() -> io::Result<(UnixStream, UnixStream)> {
    let (here, there) = UnixStream::pair()?;
    rustix::io::fcntl_setfd(&there, rustix::io::FdFlags::empty())?;
    Ok((here, there))
}

/// The path under which a child process finds an inherited file.
pub fn path_of(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, Write};

    #[test]
    fn a_child_reads_what_has_no_name() {
        for mut file in
            [in_memory("pagelab-test").unwrap(), on_disk(std::path::Path::new("/var/tmp")).unwrap()]
        {
            file.write_all(b"seen").unwrap();
            file.rewind().unwrap();
            let output = Command::new("cat").arg(path_of(&file)).output().unwrap();
            assert_eq!(output.stdout, b"seen");
        }
    }

    #[test]
    fn a_process_dies_with_the_thread_that_started_it() {
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut command = Command::new("sleep");
            die_with_parent(command.arg("1000"));
            sender.send(command.spawn().unwrap()).unwrap();
        })
        .join()
        .unwrap();
        let status = receiver.recv().unwrap().wait().unwrap();
        assert!(!status.success());
    }
}
