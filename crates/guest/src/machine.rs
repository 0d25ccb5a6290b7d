//! The machine: a QEMU process with two serial lines, one for the console, one for messages.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

use pagelab_kernel::lifetime::{die_with_parent, in_memory, line, path_of};
use pagelab_live::harness::message::{Received, listen};
use pagelab_live::harness::tracer;

use crate::image::{Image, Machine};
use crate::init::HANDED;
use crate::monitor::Monitor;
use crate::numa::Nodes;
use crate::options::{Accel, Options};
use crate::restored::Saved;

/// A running guest. It is ended when dropped.
pub struct Running {
    child: Child,
    /// What the guest sends.
    pub messages: Receiver<Received>,
    threads: Vec<JoinHandle<()>>,
    console: File,
    /// What the console showed before the machine was saved and restored.
    earlier: Vec<u8>,
    /// Where the machine can be stopped and kept: what does that.
    pub monitor: Option<Monitor>,
    said: Option<JoinHandle<String>>,
}

/// What a guest is started with.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// What it boots from.
    pub initramfs: &'a File,
    /// What it is handed when it asks.
    pub job: &'a File,
    /// Its disks.
    pub disks: &'a [File],
    /// Whether it can be stopped and kept.
    pub monitored: bool,
    /// The tracer, and what it is told.
    pub tracer: Option<(&'a File, &'a str)>,
    /// The machine in this file instead of one that boots.
    pub state: Option<&'a File>,
}

/// The program for images of `machine`.
pub fn program(machine: Machine) -> &'static str {
    match machine {
        Machine::X86_64 => "qemu-system-x86_64",
        Machine::Aarch64 => "qemu-system-aarch64",
    }
}

/// Whether `program` is in one of PATH's folders.
pub fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// The version that `program` says it is of: `7.2.22`.
pub fn version(program: &str) -> Option<String> {
    let said = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    said.split_once("version ")?.1.split_whitespace().next().map(str::to_owned)
}

/// The console's and the message line's device in the guest.
pub fn lines(machine: Machine) -> (&'static str, &'static str) {
    match machine {
        Machine::X86_64 => ("ttyS0", "/dev/ttyS1"),
        Machine::Aarch64 => ("ttyAMA0", "/dev/hvc0"),
    }
}

/// The machine without its lines and disks.
fn command(image: &Image, initramfs: &File, options: &Options, accel: Accel) -> Command {
    let mut command = Command::new(program(image.machine));
    let (console_line, _) = lines(image.machine);
    let defaults = match image.machine {
        Machine::X86_64 => ("pc", if accel == Accel::Kvm { "host" } else { "qemu64" }),
        Machine::Aarch64 => ("virt", if accel == Accel::Kvm { "host" } else { "cortex-a57" }),
    };
    let name = options.machine.as_deref().unwrap_or(defaults.0);
    let tables = if options.numa.as_ref().is_some_and(Nodes::any_slow) { ",hmat=on" } else { "" };
    // Addresses are the same each time. A string instruction would count as one however much it clears or
    // copies: without REP_GOOD (bit 112) and ERMS (bit 297) an x86 kernel uses loops instead.
    let same = match (accel, image.machine) {
        (Accel::Icount, Machine::X86_64) => "nokaslr norandmaps clearcpuid=112,297 ",
        (Accel::Icount, Machine::Aarch64) => "nokaslr norandmaps ",
        // On a busy machine a translated kernel may see no tick in time, and panics in
        // setup_IO_APIC.
        (Accel::Tcg, Machine::X86_64) => "no_timer_check ",
        _ => "",
    };
    // Left to itself a kernel tests its ciphers for seconds after it has started its first process.
    let words = format!(
        "console={console_line} panic=-1 reboot=t oops=panic loglevel=5 cryptomgr.notests {same}{}",
        options.append
    );
    command
        .args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"])
        .args(["-machine", &format!("{name}{tables}"), "-cpu", options.cpu.as_deref().unwrap_or(defaults.1)])
        .args(["-smp", &options.cpus.to_string(), "-m", &format!("{}k", options.ram >> 10)])
        .arg("-kernel")
        .arg(&image.path)
        .arg("-initrd")
        .arg(path_of(initramfs))
        .arg("-append")
        .arg(words.trim_end());
    if let Some(nodes) = &options.numa {
        command.args(nodes.words(options.cpus, options.distance));
    }
    command.args(options.qemu.split_whitespace());
    match accel {
        Accel::Kvm => command.args(["-accel", "kvm"]),
        Accel::Tcg | Accel::Auto => command.args(["-accel", "tcg"]),
        // One instruction is one nanosecond of the guest's clock, idling takes no time, and what is
        // random is the same each time.
        Accel::Icount => command
            .args(["-accel", "tcg,thread=single", "-icount", "shift=0,align=off,sleep=off"])
            .args(["-rtc", "base=2000-01-01,clock=vm", "-seed", "1"]),
    };
    command
}

/// Has the machine's console on this terminal until it ends.
///
/// # Errors
/// When QEMU cannot be started, and what it ended with where that was no success.
pub fn on_terminal(image: &Image, initramfs: &File, options: &Options, accel: Accel) -> io::Result<()> {
    let mut command = command(image, initramfs, options, accel);
    command.args(["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"]);
    die_with_parent(&mut command);
    match command.status()? {
        ended if ended.success() => Ok(()),
        ended => Err(io::Error::other(format!("QEMU ended with {ended}"))),
    }
}

/// A QEMU process that was just started.
struct Launched {
    child: Child,
    console: File,
    monitor: Option<UnixStream>,
    said: JoinHandle<String>,
}

/// Starts QEMU with its messages going to `messages`.
fn launch(
    image: &Image,
    start: Start<'_>,
    options: &Options,
    accel: Accel,
    messages: Stdio,
) -> io::Result<Launched> {
    let console = in_memory("pagelab-console")?;
    let mut command = command(image, start.initramfs, options, accel);
    command
        .args(["-serial", &format!("file:{}", path_of(&console).display())])
        .args(["-chardev", "stdio,id=messages,signal=off"]);
    match image.machine {
        Machine::X86_64 => command.args(["-serial", "chardev:messages"]),
        Machine::Aarch64 => {
            command.args(["-device", "virtio-serial-pci", "-device", "virtconsole,chardev=messages"])
        }
    };
    for (n, disk) in start.disks.iter().enumerate() {
        let drive = format!(
            "file={},format=raw,if=none,id=disk{n},cache.writeback=on,cache.direct=off,cache.no-flush=on,file.locking=off",
            path_of(disk).display()
        );
        command.args(["-drive", &drive, "-device", &format!("virtio-blk-pci,drive=disk{n}")]);
    }
    let monitor = if start.monitored { Some(line()?) } else { None };
    if let Some((_, there)) = &monitor {
        command
            .args(["-chardev", &format!("socket,id=monitor,fd={}", there.as_raw_fd())])
            .args(["-mon", "chardev=monitor,mode=control"])
            // A write to this device's port stops the machine.
            .args(["-device", "pvpanic", "-action", "panic=pause"])
            .args(["-fw_cfg", &format!("name={HANDED},file={}", path_of(start.job).display())]);
    }
    if let Some((plugin, words)) = start.tracer {
        command.args(["-plugin", &format!("{},{words}", tracer::path(plugin))]);
    }
    if start.state.is_some() {
        command.args(["-incoming", "defer"]);
    }
    command.stdin(Stdio::piped()).stdout(messages).stderr(Stdio::piped());
    die_with_parent(&mut command);
    let mut child = command.spawn()?;
    let mut errors = child.stderr.take().expect("piped");
    let said = std::thread::Builder::new().spawn(move || {
        let mut text = String::new();
        let _ = errors.read_to_string(&mut text);
        text.trim().to_owned()
    })?;
    Ok(Launched { child, console, monitor: monitor.map(|(here, _)| here), said })
}

impl Running {
    /// Starts the guest.
    ///
    /// # Errors
    /// When QEMU cannot be started, or cannot bring back the machine that it is to start with.
    pub fn start(image: &Image, start: Start<'_>, options: &Options, accel: Accel) -> io::Result<Self> {
        let Launched { mut child, console, monitor, said } =
            launch(image, start, options, accel, Stdio::piped())?;
        let (messages, reading) = listen(BufReader::new(child.stdout.take().expect("piped")))?;
        let mut new = Self {
            child,
            messages,
            threads: vec![reading],
            console,
            earlier: Vec::new(),
            monitor: None,
            said: Some(said),
        };
        if let Some(line) = monitor {
            let mut monitor = Monitor::new(line)?;
            if let Some(state) = start.state {
                monitor.restore(state)?;
                monitor.go_on()?;
            }
            new.monitor = Some(monitor);
        }
        Ok(new)
    }

    /// Saves the machine to a file, ends its QEMU, and begins to restore it page by page in another
    /// one: the saved machine, its file, and the line over which QEMU asks for pages. `start` is
    /// what the machine was started with.
    ///
    /// # Errors
    /// When there is no monitor, or QEMU refuses.
    pub fn begin_again(
        &mut self,
        image: &Image,
        start: Start<'_>,
        options: &Options,
        accel: Accel,
    ) -> io::Result<(Saved, File, UnixStream)> {
        let monitor = self.monitor.as_mut().ok_or_else(|| io::Error::other("QEMU has no monitor"))?;
        let state = in_memory("pagelab-snapshot")?;
        monitor.stop()?;
        monitor.save(&state)?;
        let saved = Saved::parse(&state)?;
        // The reader of messages goes on reading the same pipe.
        let messages = File::options().write(true).open(format!("/proc/{}/fd/1", self.child.id()))?;
        let (here, there) = line()?;
        let start = Start { state: Some(&state), ..start };
        let launched = launch(image, start, options, accel, messages.into())?;
        let old = std::mem::replace(&mut self.child, launched.child);
        end(old);
        self.earlier.extend(contents(&mut self.console));
        self.console = launched.console;
        self.said = Some(launched.said);
        let line = launched.monitor.ok_or_else(|| io::Error::other("QEMU has no monitor"))?;
        let mut monitor = Monitor::new(line)?;
        monitor.restore_by_page(&there)?;
        self.monitor = Some(monitor);
        Ok((saved, state, here))
    }

    /// Everything that the guest's console has shown so far.
    pub fn console(&mut self) -> Vec<u8> {
        let mut text = self.earlier.clone();
        text.extend(contents(&mut self.console));
        text
    }

    /// Ends the guest: how QEMU ended, and what it said itself.
    pub fn end(mut self) -> (Option<ExitStatus>, String) {
        let _ = self.child.kill();
        let status = self.child.wait().ok();
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
        (status, self.said.take().and_then(|thread| thread.join().ok()).unwrap_or_default())
    }
}

fn contents(console: &mut File) -> Vec<u8> {
    let mut text = Vec::new();
    let _ = console.seek(SeekFrom::Start(0)).and_then(|_| console.read_to_end(&mut text));
    text
}

fn end(mut child: Child) {
    let _ = child.kill();
    let _ = child.wait();
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether this user may use the host's own processor for guests.
pub fn kvm_is_there() -> bool {
    File::options().read(true).write(true).open(Path::new("/dev/kvm")).is_ok()
}
