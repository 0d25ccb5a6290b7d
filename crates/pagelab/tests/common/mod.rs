//! What the end-to-end tests share: a pagelab with a notebook and a state folder of its own, and a
//! look at what a run may have left on the machine.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A folder of its own, in which pagelab runs.
pub struct Lab {
    pub folder: TempDir,
}

impl Lab {
    pub fn new() -> Self {
        // On a real file system: a swap file cannot live on tmpfs.
        let folder = tempfile::Builder::new().prefix("pagelab-test-").tempdir_in("/var/tmp").unwrap();
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn state(&self) -> PathBuf {
        self.path("state")
    }

    /// `pagelab ARGUMENTS` in the folder.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pagelab"));
        command
            .args(arguments.split_whitespace())
            .current_dir(self.folder.path())
            .env("PAGELAB_STATE_DIR", self.state())
            .env("NO_COLOR", "1")
            .env_remove("PAGELAB_NOTEBOOK")
            .env_remove("COLUMNS");
        command
    }

    /// Runs it, whatever it exits with.
    pub fn output(&self, arguments: &str) -> Output {
        self.command(arguments).output().unwrap()
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

    /// Runs it, expects success, gives its JSON.
    pub fn json(&self, arguments: &str) -> serde_json::Value {
        serde_json::from_str(&self.ok(arguments)).unwrap()
    }
}

/// Whether this process may set up cgroups and swap; says why a test is skipped where not.
pub fn may_confine(test: &str) -> bool {
    let uid = std::fs::read_to_string("/proc/self/status").unwrap();
    let root = uid.lines().any(|l| l.starts_with("Uid:\t0\t"));
    if !root {
        eprintln!("{test}: skipped: it sets up a memory cgroup and swap, which needs root");
    }
    root
}

/// Everything of pagelab's that is on the machine: swaps, cgroups, zram devices, workers. Tests run
/// beside one another, so each looks only for what carries the marks of its own lab.
pub fn swaps() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/swaps").unwrap();
    text.lines().skip(1).map(|l| l.split_whitespace().next().unwrap().to_owned()).collect()
}

/// The cgroups of pagelab on this machine.
pub fn cgroups() -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(Path::new("/sys/fs/cgroup"), 4, &mut found);
    found
}

fn collect(folder: &Path, depth: u32, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir())) {
        if entry.file_name().to_string_lossy().starts_with("pagelab") {
            found.push(entry.path());
        } else if depth > 0 {
            collect(&entry.path(), depth - 1, found);
        }
    }
}

/// The worker processes of pagelab.
pub fn workers() -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let Ok(line) = std::fs::read(entry.path().join("cmdline")) else { continue };
        if line.split(|&b| b == 0).nth(1) == Some(b"__worker".as_slice()) {
            found.push(pid);
        }
    }
    found
}
