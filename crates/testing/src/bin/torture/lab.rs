//! A folder in which pagelab is tortured, and a look at what it left on the machine.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// No command may take longer than this; the longest tries end by a signal much earlier.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(90);
/// How long what was killed may take to be gone.
const GONE: Duration = Duration::from_secs(10);
/// What a panic and an abort leave as a status.
const PANIC: i32 = 101;

/// The folder.
pub struct Lab {
    folder: Option<TempDir>,
    path: PathBuf,
    program: PathBuf,
    settings: Vec<(&'static str, String)>,
    /// The processes begun here: what they set up has their numbers.
    begun: RefCell<Vec<u32>>,
}

/// Settings that tries change, to values that do no harm.
pub const SETTINGS: [&str; 3] =
    ["/proc/sys/vm/stat_interval", "/proc/sys/vm/dirty_bytes", "/proc/sys/vm/dirty_ratio"];

impl Lab {
    /// An empty one.
    pub fn new(program: &Path) -> Self {
        let folder = tempfile::Builder::new().prefix("pagelab-torture-").tempdir_in("/var/tmp");
        let folder = folder.expect("/var/tmp can be written");
        let path = folder.path().to_owned();
        for part in ["state", "scratch"] {
            fs::DirBuilder::new().mode(0o700).create(path.join(part)).expect("a new folder");
        }
        fs::write(path.join("script"), "sleep 0.02\n").expect("a new file");
        let settings = SETTINGS.map(|file| (file, fs::read_to_string(file).unwrap_or_default())).into();
        Self { folder: Some(folder), path, program: program.to_owned(), settings, begun: RefCell::default() }
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// It stays, for whoever looks at a failure.
    pub fn keep(&mut self) {
        if let Some(folder) = self.folder.take() {
            println!("  kept: {}", folder.keep().display());
        }
    }

    /// The pagelab that is tortured.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// `pagelab ARGUMENTS` in it.
    pub fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.command_of([&self.program]);
        command.args(arguments);
        command
    }

    /// A program and its arguments in it.
    pub fn command_of<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Command {
        let mut words = words.into_iter();
        let mut command = Command::new(words.next().expect("a program"));
        command
            .args(words)
            .current_dir(&self.path)
            .env("PAGELAB_STATE_DIR", self.path("state"))
            .env("PAGELAB_SCRATCH_DIR", self.path("scratch"))
            .env("NO_COLOR", "1")
            .env_remove("PAGELAB_NOTEBOOK")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Begins a command line.
    pub fn begin(&self, line: &str) -> Result<Child, String> {
        self.spawn(line, &mut self.command(line.split_whitespace()))
    }

    /// Begins a command, shown as `line`.
    pub fn spawn(&self, line: &str, command: &mut Command) -> Result<Child, String> {
        let child = command.spawn().map_err(|e| format!("{line}: {e}"))?;
        self.begun.borrow_mut().push(child.id());
        Ok(child)
    }

    /// Waits for what was begun, and finds a panic, an abort or no end.
    pub fn end(&self, line: &str, child: Child) -> Result<Output, String> {
        let (pid, begun) = (child.id(), Instant::now());
        // Its output is taken meanwhile, or it waits for that.
        let waiting = thread::spawn(move || child.wait_with_output());
        while !waiting.is_finished() {
            if begun.elapsed() > COMMAND_TIMEOUT {
                kill(pid, Signal::KILL);
                let _ = waiting.join();
                return Err(format!("{line}: no end after {COMMAND_TIMEOUT:?}"));
            }
            thread::sleep(Duration::from_millis(2));
        }
        let output = waiting.join().expect("it does not panic").map_err(|e| format!("{line}: {e}"))?;
        let by = output.status.signal();
        let own_fault = output.status.code() == Some(PANIC) || matches!(by, Some(4 | 6 | 7 | 8 | 11));
        if own_fault {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("{line}: {}: {said}", output.status));
        }
        Ok(output)
    }

    /// Performs a command line wholly.
    pub fn run(&self, line: &str) -> Result<Output, String> {
        self.end(line, self.begin(line)?)
    }

    /// The same, and it must succeed.
    pub fn ok(&self, line: &str) -> Result<String, String> {
        let output = self.run(line)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(format!("{line}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr)))
    }

    /// The processes that were begun here, with what they began.
    pub fn processes(&self) -> Vec<(u32, String)> {
        let mark = format!("PAGELAB_STATE_DIR={}", self.path("state").display());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
            let Ok(environment) = fs::read(entry.path().join("environ")) else { continue };
            if environment.split(|&b| b == 0).any(|variable| variable == mark.as_bytes()) {
                let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
                found.push((pid, String::from_utf8_lossy(&line).replace('\0', " ")));
            }
        }
        found
    }

    /// Whether nothing of what was begun here is on the machine any more.
    ///
    /// # Errors
    /// What is.
    pub fn nothing_is_left(&self) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            match self.left() {
                None => return Ok(()),
                // The kernel may take a moment to bury what was killed.
                Some(what) if begun.elapsed() > GONE => return Err(format!("left behind: {what}")),
                Some(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    fn left(&self) -> Option<String> {
        if let Some((pid, line)) = self.processes().first() {
            return Some(format!("process {pid}: {line}"));
        }
        let names = |folder: &str| -> Vec<String> {
            let entries = fs::read_dir(self.path(folder)).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        };
        let noted = names("state").into_iter().find(|name| !name.ends_with(".lock"));
        let here = self.path.to_string_lossy().into_owned();
        let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
        let setting = self
            .settings
            .iter()
            .find(|(file, before)| fs::read_to_string(file).is_ok_and(|now| now != *before));
        None.or_else(|| noted.map(|name| format!("in the folder of journals: {name}")))
            .or_else(|| names("scratch").first().map(|name| format!("scratch file {name}")))
            .or_else(|| swaps.lines().find(|line| line.contains(&here)).map(|line| format!("swap: {line}")))
            .or_else(|| setting.map(|(file, before)| format!("{file} was {}", before.trim())))
            .or_else(|| self.cgroup())
            .or_else(|| self.zram())
    }

    /// A cgroup of a process that was begun here; others may run pagelab beside.
    fn cgroup(&self) -> Option<String> {
        let ours: Vec<String> = self.begun.borrow().iter().map(|pid| format!("pagelab-{pid}-")).collect();
        let mut open = vec![PathBuf::from("/sys/fs/cgroup")];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    continue;
                }
                if ours.iter().any(|ours| name.starts_with(ours)) {
                    return Some(format!("cgroup {}", entry.path().display()));
                }
                if !name.starts_with("pagelab-") {
                    open.push(entry.path());
                }
            }
        }
        None
    }

    /// A zram device of the size that only this lab's runs ask for.
    fn zram(&self) -> Option<String> {
        let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
        let mut ours = devices.filter(|entry| {
            let size = fs::read_to_string(entry.path().join("disksize")).unwrap_or_default();
            size.trim().parse() == Ok(self.swap_pages() * 4096)
        });
        ours.next().map(|entry| format!("device {}", entry.path().display()))
    }

    /// The swap of a run here, in pages: no other's has this size.
    pub fn swap_pages(&self) -> u64 {
        16_384 + u64::from(std::process::id())
    }
}

/// Sends a signal to a process, if it is there; whether it was.
pub fn kill(pid: u32, signal: Signal) -> bool {
    Pid::from_raw(pid as i32).is_some_and(|pid| kill_process(pid, signal).is_ok())
}

/// A file of zeros as large as the room that is left in `folder`.
pub fn fill(folder: &Path) -> File {
    let file = File::create(folder.join("filler")).expect("a new file");
    let block = [0; 4096];
    let mut at = 0;
    while file.write_all_at(&block, at).is_ok() {
        at += block.len() as u64;
    }
    file
}
