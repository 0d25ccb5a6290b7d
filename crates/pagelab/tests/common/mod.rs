//! What the end-to-end tests share: a pagelab with a notebook and a state folder of its own, and a
//! look at what it may have left on the machine.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub mod kept;

/// Where labs are: on a real file system, for a swap file cannot live on tmpfs.
const LABS: &str = "/var/tmp";

/// What begins a lab's name.
const PREFIX: &str = "pagelab-test-";

/// The file that the owner of a lab holds locked, and the kernel lets go however the owner ends.
const LOCK: &str = "lock";

/// A folder of its own, in which pagelab runs.
pub struct Lab {
    pub folder: TempDir,
    _lock: File,
    /// The processes begun in it: what they set up carries their numbers.
    begun: Mutex<Vec<u32>>,
}

impl Lab {
    pub fn new() -> Self {
        static ONCE: Once = Once::new();
        ONCE.call_once(clear_dead_labs);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(LABS).unwrap();
        let lock = File::create(folder.path().join(LOCK)).unwrap();
        lock.lock().unwrap();
        Self { folder, _lock: lock, begun: Mutex::default() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `pagelab ARGUMENTS` in the folder. `kernel:OLD` and `kernel:NEW` are the first and the second
    /// kernel image.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = pagelab_in(self.folder.path());
        let images = ["OLD", "NEW"].into_iter().zip(pagelab_testing::kernels());
        let arguments = images.fold(arguments.to_owned(), |line, (word, image)| {
            line.replace(&format!("kernel:{word}"), &format!("kernel:{}", image.display()))
        });
        command
            .args(arguments.split_whitespace())
            .env("NO_COLOR", "1")
            .env_remove("PAGELAB_NOTEBOOK")
            .env_remove("COLUMNS");
        command
    }

    /// A C program, compiled with these words besides.
    pub fn compile(&self, name: &str, source: &str, words: &[&str]) -> PathBuf {
        let (file, program) = (self.path(&format!("{name}.c")), self.path(name));
        std::fs::write(&file, source).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-pthread", "-o"]).arg(&program).arg(&file).args(words);
        assert!(compiler.status().unwrap().success(), "{name}");
        program
    }

    /// Begins it, with standard error, and with standard output where `stdout` says so, to be read.
    pub fn begin(&self, arguments: &str, stdout: Stdio) -> Child {
        let child = self.command(arguments).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
        self.begun.lock().unwrap().push(child.id());
        child
    }

    /// Runs it, whatever it exits with.
    pub fn output(&self, arguments: &str) -> Output {
        self.begin(arguments, Stdio::piped()).wait_with_output().unwrap()
    }

    /// Runs it under strace(1), expects success, gives its system calls, one per line: those of strace's `trace=WHICH`.
    pub fn system_calls(&self, arguments: &str, which: &str) -> Vec<String> {
        let run = self.command(arguments);
        let mut traced = Command::new("strace");
        traced.args(["-f", "-y", "-o", "calls", "-e"]).arg(format!("trace={which}"));
        traced.arg(run.get_program()).args(run.get_args()).current_dir(self.path("."));
        traced.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = traced.output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        self.text("calls").lines().map(str::to_owned).collect()
    }

    /// Runs it, expects success, gives standard output.
    pub fn ok(&self, arguments: &str) -> String {
        let output = self.output(arguments);
        assert!(
            output.status.success(),
            "pagelab {arguments}: {}\n{}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs it, expects this exit status, gives standard error.
    pub fn fails(&self, arguments: &str, status: i32) -> String {
        let output = self.output(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "pagelab {arguments}: {error}");
        error
    }

    /// Runs it, expects this exit status and these words on standard error, however they are wrapped;
    /// gives all of them on one line.
    pub fn refuses(&self, arguments: &str, status: i32, wanted: &[&str]) -> String {
        let error = joined(&self.fails(arguments, status));
        for wanted in wanted {
            assert!(error.contains(wanted.trim_end()), "pagelab {arguments} lacks '{wanted}': {error}");
        }
        error
    }

    /// Runs it, expects success and these words on standard output, however they are wrapped; gives all
    /// of them on one line.
    pub fn shows(&self, arguments: &str, wanted: &[&str]) -> String {
        let text = joined(&self.ok(arguments));
        for wanted in wanted {
            assert!(text.contains(wanted), "pagelab {arguments} lacks '{wanted}': {text}");
        }
        text
    }

    /// Runs it, expects success, gives the JSON of each line.
    pub fn rows(&self, arguments: &str) -> Vec<serde_json::Value> {
        self.ok(arguments).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What a file in the folder says.
    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// A shell's script in the folder, for a pagelab under limits of its own: `$0` is the program.
    pub fn shell(&self, script: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", script, env!("CARGO_BIN_EXE_pagelab")]).current_dir(self.folder.path());
        shell.env("PAGELAB_STATE_DIR", self.path("state"));
        shell
    }

    /// Begins it and kills it as soon as this holds.
    pub fn killed(&self, arguments: &str, what: &str, holds: impl Fn() -> bool) {
        let mut child = self.begin(arguments, Stdio::null());
        eventually(what, holds);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Runs it, expects success, gives its JSON.
    pub fn json(&self, arguments: &str) -> serde_json::Value {
        serde_json::from_str(&self.ok(arguments)).unwrap()
    }
}

/// A test that ended too early leaves nothing either: what names it goes with the folder.
impl Drop for Lab {
    fn drop(&mut self) {
        let noted = || {
            let entries = std::fs::read_dir(self.path("state")).into_iter().flatten().flatten();
            entries.filter(|entry| !entry.file_name().to_string_lossy().ends_with(".lock")).count()
        };
        for _ in 0..10 {
            if noted() == 0 {
                return;
            }
            let _ = pagelab_in(self.folder.path()).arg("patterns").stdout(Stdio::null()).status();
            std::thread::sleep(Duration::from_millis(100));
        }
        // The next test run tries again.
        self.folder.disable_cleanup(true);
    }
}

/// Waits until it holds.
///
/// # Panics
/// When it does not hold within two minutes.
pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(120), "not within two minutes: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A metric of the first run of what `run --json` printed; `None` where it is a dash or not there.
pub fn metric(result: &serde_json::Value, name: &str) -> Option<f64> {
    result["result"]["runs"][0]["repetitions"][0]["metrics"][name]["value"].as_f64()
}

/// Standard error on one line.
pub fn said(output: &Output) -> String {
    joined(&String::from_utf8_lossy(&output.stderr))
}

/// A text on one line: what the terminal's width broke is whole again.
pub fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `pagelab` in a lab's folder.
fn pagelab_in(lab: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagelab"));
    command.current_dir(lab).env("PAGELAB_STATE_DIR", lab.join("state"));
    command
}

/// Removes the labs of tests that were killed, and what their pagelabs had set up: those could not,
/// and nobody else starts a pagelab there.
fn clear_dead_labs() {
    for entry in std::fs::read_dir(LABS).unwrap().flatten() {
        let lab = entry.path();
        let lock = File::open(lab.join(LOCK));
        let dead = lock.is_ok_and(|lock| lock.try_lock().is_ok());
        if entry.file_name().to_string_lossy().starts_with(PREFIX) && dead {
            let done = pagelab_in(&lab).arg("patterns").stdout(Stdio::null()).status().unwrap();
            assert!(done.success(), "what a killed test left in {} cannot be removed", lab.display());
            let _ = std::fs::remove_dir_all(&lab);
        }
    }
}

/// What is on the machine of what was begun in a lab, and of nobody else's: the machine may have other
/// pagelabs.
impl Lab {
    /// The cgroups.
    pub fn cgroups(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        self.collect_cgroups(Path::new("/sys/fs/cgroup"), 4, &mut found);
        found
    }

    fn collect_cgroups(&self, folder: &Path, depth: u32, found: &mut Vec<PathBuf>) {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for entry in entries.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir())) {
            if self.set_up(&entry.file_name().to_string_lossy()) {
                found.push(entry.path());
            } else if depth > 0 {
                self.collect_cgroups(&entry.path(), depth - 1, found);
            }
        }
    }

    /// The swap files in use.
    pub fn swaps(&self) -> Vec<String> {
        let text = std::fs::read_to_string("/proc/swaps").unwrap();
        let paths = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        paths.filter(|path| self.set_up(path.rsplit('/').next().unwrap())).map(str::to_owned).collect()
    }

    /// What `pagelab doctor --leftovers` lists, but what it finds of others' by name.
    pub fn leftovers(&self) -> Vec<serde_json::Value> {
        let mut listed = self.json("doctor --leftovers --json")["leftovers"].as_array().unwrap().clone();
        listed.retain(|left| {
            let [what, why] = ["what", "why"].map(|key| left[key].as_str().unwrap());
            !why.starts_with("no journal of this user's") || self.set_up(what.rsplit('/').next().unwrap())
        });
        listed
    }

    /// Whether what has this name was set up by a process begun here.
    fn set_up(&self, name: &str) -> bool {
        self.begun.lock().unwrap().iter().any(|pid| name.starts_with(&format!("pagelab-{pid}-")))
    }

    /// Asserts that there is none of these, nor a process of a run's, nor a journal.
    pub fn nothing_is_left(&self, when: &str) {
        assert_eq!(self.cgroups(), Vec::<PathBuf>::new(), "{when}: cgroups");
        assert_eq!(self.swaps(), Vec::<String>::new(), "{when}: swaps");
        assert_eq!(self.workers(), Vec::<u32>::new(), "{when}: workers");
        assert_eq!(self.processes(), Vec::<String>::new(), "{when}: processes");
        let noted = std::fs::read_dir(self.path("state")).into_iter().flatten().flatten();
        let noted = noted.map(|entry| entry.file_name().into_string().unwrap());
        let noted: Vec<String> = noted.filter(|name| !name.ends_with(".lock")).collect();
        assert!(noted.is_empty(), "{when}: {noted:?}");
    }

    /// The processes of runs begun here.
    pub fn processes(&self) -> Vec<String> {
        let begun = self.begun.lock().unwrap();
        let marks: Vec<Vec<u8>> =
            begun.iter().map(|pid| format!("PAGELAB_RUN=pagelab-{pid}-").into()).collect();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(environment) = std::fs::read(entry.path().join("environ")) else { continue };
            let marked = |variable: &[u8]| marks.iter().any(|mark| variable.starts_with(mark));
            if environment.split(|&b| b == 0).any(marked) {
                let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                found.push(String::from_utf8_lossy(&line).into_owned());
            }
        }
        found
    }

    /// The worker processes.
    pub fn workers(&self) -> Vec<u32> {
        let mark = self.folder.path().to_str().unwrap().as_bytes();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
            let Ok(line) = std::fs::read(entry.path().join("cmdline")) else { continue };
            let Ok(environment) = std::fs::read(entry.path().join("environ")) else { continue };
            let ours = environment.windows(mark.len()).any(|part| part == mark);
            if ours && line.split(|&b| b == 0).nth(1) == Some(b"__worker".as_slice()) {
                found.push(pid);
            }
        }
        found
    }
}
