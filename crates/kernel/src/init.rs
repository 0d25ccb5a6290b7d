//! What the first process of a guest needs: mounts, modules, a raw serial line, an end.

use std::ffi::CStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

use rustix::mount::{MountFlags, mount, mount_bind_recursive};
use rustix::system::{RebootCommand, finit_module, reboot};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use crate::root::{Root, open_in};

/// (kind, where)
const MOUNTS: [(&str, &str); 6] = [
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("tracefs", "/sys/kernel/tracing"),
    ("devtmpfs", "/dev"),
    ("cgroup2", "/sys/fs/cgroup"),
    ("tmpfs", "/tmp"),
];

/// Mounts the kernel's file systems; what this kernel lacks stays away.
pub fn mount_all() {
    for (kind, place) in MOUNTS {
        let _ = fs::create_dir_all(place);
        let _ = mount(kind, place, kind, MountFlags::empty(), None::<&CStr>);
    }
}

/// Mounts the kernel's file system for debugging.
///
/// # Errors
/// When this kernel has none.
pub fn mount_debug() -> io::Result<()> {
    Ok(mount("debugfs", "/sys/kernel/debug", "debugfs", MountFlags::empty(), None::<&CStr>)?)
}

/// Mounts the file system of the disk `device` where scratch files go.
///
/// # Errors
/// When this kernel cannot read it.
pub fn mount_files(device: &Path) -> io::Result<()> {
    const PLACE: &str = "/var/tmp";
    fs::create_dir_all(PLACE)?;
    Ok(mount(device, PLACE, "ext4", MountFlags::NOATIME, None::<&CStr>)?)
}

/// Mounts the kernel's file systems and the folder `scratch` below `root`, as this process has them.
///
/// # Errors
/// When one of them cannot be had there.
pub fn mount_below(root: &Path, scratch: &Path) -> io::Result<()> {
    let everybodys = |folder: &Path| {
        fs::create_dir_all(folder)?;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o1777))
    };
    for place in ["tmp", "var/tmp"] {
        everybodys(&root.join(place))?;
    }
    let scratch = scratch.strip_prefix("/").unwrap_or(scratch);
    for place in ["proc", "sys", "dev"].map(Path::new).into_iter().chain([scratch]) {
        let to = root.join(place);
        fs::create_dir_all(&to)?;
        mount_bind_recursive(Path::new("/").join(place), to)?;
    }
    let shared = root.join("dev/shm");
    everybodys(&shared)?;
    Ok(mount("tmpfs", &shared, "tmpfs", MountFlags::empty(), Some(c"mode=1777"))?)
}

/// Shows the file `from` at `place` below `root`, where that root has none.
///
/// # Errors
/// When it cannot be shown there.
pub fn show_below(root: &Path, from: &Path, place: &Path) -> io::Result<()> {
    let to = root.join(place.strip_prefix("/").unwrap_or(place));
    if open_in(root, place).is_ok() || fs::symlink_metadata(&to).is_ok() {
        return Ok(());
    }
    to.parent().map_or(Ok(()), fs::create_dir_all)?;
    File::create_new(&to)?;
    Ok(mount_bind_recursive(from, to)?)
}

/// Has a shell on `terminal`, in `root`, and waits for its end.
///
/// # Errors
/// When it cannot be started.
pub fn shell(root: &Root, words: &[String], terminal: &Path) -> io::Result<ExitStatus> {
    use std::os::unix::process::CommandExt;
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let line = OpenOptions::new().read(true).write(true).open(terminal)?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().env("PATH", &root.path).env("HOME", "/").env("TERM", "linux");
    command.stdin(line.try_clone()?).stdout(line.try_clone()?).stderr(line);
    let root = root.clone();
    // SAFETY: between fork and exec of a program of one thread, system calls alone.
    unsafe {
        command.pre_exec(move || {
            // A session of its own, whose terminal this is: Ctrl-C is for what runs in it.
            rustix::process::setsid()?;
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
            root.enter()
        });
    }
    command.status()
}

/// Loads a kernel module, uncompressed; one that is there already is fine.
///
/// # Errors
/// When the kernel refuses it.
pub fn load_module(path: &Path) -> io::Result<()> {
    match finit_module(File::open(path)?, c"", 0) {
        Err(rustix::io::Errno::EXIST) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Opens a serial line so that bytes pass unchanged.
///
/// # Errors
/// When it is none.
pub fn serial(path: &Path) -> io::Result<File> {
    let line = OpenOptions::new().read(true).write(true).open(path)?;
    let mut settings = tcgetattr(&line)?;
    settings.make_raw();
    tcsetattr(&line, OptionalActions::Now, &settings)?;
    Ok(line)
}

/// Waits until everything is written to `line`.
pub fn drain(line: &File) {
    let _ = rustix::termios::tcdrain(line);
}

/// Ends the machine. Does not return but where the kernel refuses.
pub fn restart() {
    rustix::fs::sync();
    let _ = reboot(RebootCommand::Restart);
}
