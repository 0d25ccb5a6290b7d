//! What tests may need of the machine, and how each need is found out.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Every name that a need may have, and so every word of `PAGELAB_TEST_REQUIRE`.
pub(crate) const NAMES: [&str; 33] = [
    "alone",
    "root",
    "limits",
    "tmpfs",
    "userfault",
    "preload",
    "thp",
    "qemu",
    "qemu-user",
    "kernels",
    "arm64",
    "chromium",
    "prometheus",
    "readers",
    "cc",
    "bpf",
    "tracepoints",
    "kpageflags",
    "git",
    "delay-accounting",
    "tsc",
    "zram",
    "zswap",
    "thp-sizes",
    "hugetlb",
    "cgroup-1",
    "ksm",
    "disk",
    "traces",
    "python",
    "fixture-there",
    "fixture-absent",
    "strace",
];

/// Something of the machine without which a test cannot be performed.
#[derive(Debug)]
pub struct Need {
    /// Its name in `PAGELAB_TEST_REQUIRE`.
    pub name: &'static str,
    /// The needs that it has itself; looked at first.
    pub on: &'static [&'static Need],
    /// Finds out; the error says what is lacking and how to get it.
    pub met: fn() -> Result<(), String>,
}

/// A need that is not met.
#[derive(Debug)]
pub struct Lack {
    /// The need's name.
    pub name: &'static str,
    /// What is lacking, and how to get it.
    pub reason: String,
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "needs {}: {}", self.name, self.reason)
    }
}

impl Need {
    /// The first of these needs that is not met.
    ///
    /// # Panics
    /// When a need's name is none of the names that can be required.
    #[must_use]
    pub fn lack(needs: &[&Self]) -> Option<Lack> {
        needs.iter().find_map(|need| {
            assert!(NAMES.contains(&need.name), "'{}' is not in the list of needs", need.name);
            Self::lack(need.on).or_else(|| {
                (need.met)().err().map(|reason| Lack { name: need.name, reason: reason.trim().to_owned() })
            })
        })
    }
}

/// No other test of the program runs at the same time: for tests of settings and resources that the
/// machine has once, such as swap, zram and what is in `/proc/sys`.
pub const ALONE: Need = Need { name: "alone", on: &[], met: || Ok(()) };

/// The user is root.
pub const ROOT: Need = Need {
    name: "root",
    on: &[],
    met: || there(rustix::process::geteuid().is_root(), "this user is not root"),
};

/// A memory cgroup can be made.
pub const LIMITS: Need = Need {
    name: "limits",
    on: &[&ROOT],
    met: || {
        let unified = std::fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
        let found = Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists()
            || unified.split_whitespace().any(|controller| controller == "memory");
        there(found, "no memory cgroup is mounted at /sys/fs/cgroup")
    },
};

/// The memory controller is one of version 1.
pub const CGROUP_1: Need = Need {
    name: "cgroup-1",
    on: &[],
    met: || {
        let found = Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists();
        there(found, "the memory controller is not one of version 1")
    },
};

/// A file system in memory can be mounted.
pub const TMPFS: Need = Need {
    name: "tmpfs",
    on: &[&ROOT],
    met: || {
        // In a mount namespace of its own: nothing is left to unmount.
        let mount = ["--mount", "mount", "-t", "tmpfs", "-o", "size=64k", "none", "/mnt"];
        there(succeeds(Command::new("unshare").args(mount)), "a tmpfs cannot be mounted")
    },
};

/// The kernel has transparent huge pages.
pub const THP: Need = Need {
    name: "thp",
    on: &[],
    met: || {
        let there_is = Path::new("/sys/kernel/mm/transparent_hugepage/enabled").exists();
        there(there_is, "this kernel has no transparent huge pages")
    },
};

/// The kernel lets user space resolve page faults.
pub const USERFAULT: Need = Need {
    name: "userfault",
    on: &[],
    met: || {
        let there_is = Path::new("/proc/sys/vm/unprivileged_userfaultfd").exists();
        there(there_is, "this kernel has no userfaultfd")
    },
};

/// Programs of others can be paged in user space: by root, with the library that they load.
pub const PRELOAD: Need = Need {
    name: "preload",
    on: &[&ROOT, &USERFAULT],
    met: || {
        let built = |profile: &str| target(profile).join("libpagelab_preload.so").exists();
        there(built("debug") || built("release"), "the library is not built (cargo build -p pagelab-preload)")
    },
};

/// QEMU for this kind of processor.
pub const QEMU: Need = Need {
    name: "qemu",
    on: &[],
    met: || {
        let found = succeeds(Command::new("qemu-system-x86_64").arg("--version"));
        there(found, "no qemu-system-x86_64 (scripts/setup test)")
    },
};

/// QEMU's user mode, and the tracer that it loads.
pub const QEMU_USER: Need = Need {
    name: "qemu-user",
    on: &[],
    met: || {
        let built = |profile: &str| target(profile).join("libpagelab_tracer.so").exists();
        if !built("debug") && !built("release") {
            return Err("the tracer is not built (cargo build -p pagelab-tracer)".into());
        }
        let found = succeeds(Command::new("qemu-x86_64").arg("--version"));
        there(found, "no qemu-x86_64 (scripts/setup test)")
    },
};

/// Two kernel images.
pub const KERNELS: Need = Need {
    name: "kernels",
    on: &[&QEMU],
    met: || there(kernels().len() >= 2, "fewer than two images in target/kernels (scripts/kernels)"),
};

/// An image of an arm64 kernel, with the pagelab that its guests begin with.
pub const ARM64: Need = Need {
    name: "arm64",
    on: &[],
    met: || {
        let qemu = succeeds(Command::new("qemu-system-aarch64").arg("--version"));
        let built =
            |profile: &str| target("aarch64-unknown-linux-gnu").join(profile).join("pagelab").exists();
        there(qemu, "qemu-system-aarch64 is not installed (scripts/setup test)")?;
        there(!arm64().is_empty(), "no image in target/kernels-arm64 (scripts/kernels arm64)")?;
        there(built("debug") || built("release"), "no pagelab for that processor (make aarch64)")
    },
};

/// Chromium.
pub const CHROMIUM: Need = Need {
    name: "chromium",
    on: &[],
    met: || {
        there(chromium().is_some(), "no chromium, chromium-browser or google-chrome (scripts/setup test)")
    },
};

/// A Prometheus server.
pub const PROMETHEUS: Need = Need {
    name: "prometheus",
    on: &[],
    met: || there(prometheus().is_some(), "no prometheus (scripts/prometheus)"),
};

/// The tools that read what `export` writes.
pub const READERS: Need = Need {
    name: "readers",
    on: &[],
    met: || {
        let folder = target("readers");
        let there_are = folder.join("benchstat").exists() && folder.join("python/done").exists();
        there(there_are, "no benchstat or no Python packages in target/readers (scripts/readers)")
    },
};

/// A C compiler.
pub const CC: Need = Need {
    name: "cc",
    on: &[],
    met: || there(succeeds(Command::new("cc").arg("--version")), "no cc (scripts/setup build)"),
};

/// The tool that counts a program's system calls.
pub const STRACE: Need = Need {
    name: "strace",
    on: &[],
    met: || there(succeeds(Command::new("strace").arg("-V")), "no strace (scripts/setup test)"),
};

/// The kernel images that `scripts/kernels` fetched, by name.
#[must_use]
pub fn kernels() -> Vec<PathBuf> {
    images("kernels")
}

/// The images that `scripts/kernels arm64` fetched.
#[must_use]
pub fn arm64() -> Vec<PathBuf> {
    images("kernels-arm64")
}

fn images(folder: &str) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(target(folder)).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = folders
        .filter_map(|entry| std::fs::read_dir(entry.path().join("boot")).ok())
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-")))
        .collect();
    found.sort();
    found
}

/// The browser.
#[must_use]
pub fn chromium() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    names.into_iter().find(|name| succeeds(Command::new(name).arg("--version")))
}

/// The server that `scripts/prometheus` fetched, else that of the machine.
#[must_use]
pub fn prometheus() -> Option<PathBuf> {
    [target("prometheus/usr/bin/prometheus"), "prometheus".into()]
        .into_iter()
        .find(|program| succeeds(Command::new(program).arg("--version")))
}

/// A tool that `scripts/readers` fetched: `benchstat`, `python/bin/python`.
#[must_use]
pub fn reader(name: &str) -> PathBuf {
    target("readers").join(name)
}

/// Where the scripts put what they fetch.
fn target(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(name)
}

fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn there(met: bool, lacking: &str) -> Result<(), String> {
    if met { Ok(()) } else { Err(lacking.to_owned()) }
}
