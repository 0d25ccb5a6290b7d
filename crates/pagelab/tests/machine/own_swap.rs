//! Swap of the run's own beside an unrelated cgroup that reclaims: what goes where, what is said of
//! it, and that nobody is killed when it is taken out of use.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::{Lab, eventually, joined};
use pagelab_testing::{ALONE, LIMITS, Need, Test, tests};

pub fn tests() -> Vec<Test> {
    tests! {
        others_that_page_into_the_runs_swap_are_named_and_not_killed: LIMITS, ALONE;
        two_runs_with_swap_take_turns: LIMITS, ALONE;
        where_no_swap_file_can_be_the_default_is_zram: LIMITS, ZRAM, ALONE;
    }
}

/// Compressed swap in memory can be made, and there is a file system in memory.
const ZRAM: Need = Need {
    name: "zram",
    on: &[],
    met: || match Path::new("/sys/class/zram-control/hot_add").exists() && Path::new("/dev/shm").is_dir() {
        true => Ok(()),
        false => {
            Err("this kernel has no zram control (modprobe zram num_devices=0), or there is no /dev/shm"
                .into())
        }
    },
};

/// An unrelated cgroup that may have 24 MiB; removed when dropped, with what runs in it.
struct SiblingCgroup {
    path: PathBuf,
}

impl SiblingCgroup {
    fn new() -> Self {
        let one = Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists();
        let root = if one { "/sys/fs/cgroup/memory" } else { "/sys/fs/cgroup" };
        let new = Self { path: Path::new(root).join(format!("beside-{}", std::process::id())) };
        if !one {
            fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+memory").unwrap();
        }
        fs::create_dir(&new.path).unwrap();
        let limit = if one { "memory.limit_in_bytes" } else { "memory.max" };
        fs::write(new.path.join(limit), "25165824").unwrap();
        new
    }

    /// Begins a shell's line in it.
    fn begin(&self, line: &str) -> Child {
        let line = format!("echo $$ > {}/cgroup.procs; {line}", self.path.display());
        Command::new("sh").arg("-c").arg(line).stdout(Stdio::null()).process_group(0).spawn().unwrap()
    }

    fn kills(&self) -> u64 {
        let text =
            ["memory.events", "memory.oom_control"].map(|file| fs::read_to_string(self.path.join(file)));
        let text = text.into_iter().flatten().next().unwrap();
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")).unwrap().parse().unwrap()
    }

    fn end(&self) {
        let members = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        let _ = Command::new("kill").arg("-9").args(members.lines()).stderr(Stdio::null()).status();
    }
}

impl Drop for SiblingCgroup {
    fn drop(&mut self) {
        self.end();
        // Its processes take a moment to go.
        let _ = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            fs::remove_dir(&self.path).is_ok()
        });
    }
}

fn others_that_page_into_the_runs_swap_are_named_and_not_killed() {
    let lab = Lab::new();
    let beside = SiblingCgroup::new();
    // At its limit by page cache, before the run; reclaim leaves it up to some large folios below.
    let file = lab.path("cache");
    let filled =
        beside.begin(&format!("head -c 40M /dev/urandom > {0}; cat {0} > /dev/null", file.display())).wait();
    assert!(filled.unwrap().success());
    fs::File::open("/proc/swaps").unwrap().lock().unwrap();
    let line = "run mapanon --pages 12288 --references 150000 --pattern uniform --memory 32M --html none --name beside";
    let run = lab.begin(line, Stdio::piped());
    eventually("swap comes", || !lab.swaps().is_empty());
    // 40 MiB that are never given back: 16 of them and more must be in swap, and there is only the run's.
    let mut stranger = beside.begin("head -c 40M /dev/urandom | tail -c 40M | sleep 60");
    let output = run.wait_with_output().unwrap();
    let said = joined(&String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{output:?}");
    let name = beside.path.file_name().unwrap().to_str().unwrap();
    assert!(said.contains(&format!("{name} is at its memory limit and may swap to")), "{said}");
    assert!(said.contains("MiB of other cgroups were in the run's own swap when it ended"), "{said}");
    // Taken out of use it would not fit back: the kernel would kill in the stranger's cgroup.
    assert_eq!((beside.kills(), stranger.try_wait().unwrap()), (0, None), "{said}");
    assert!(said.contains("swapoff would cause an OOM kill"), "{said}");
    lab.shows("doctor --leftovers", &["swapoff"]);
    // Somebody without that journal is told of it too.
    let elsewhere =
        lab.command("doctor --leftovers").env("PAGELAB_STATE_DIR", lab.path("elsewhere")).output();
    let elsewhere = joined(&String::from_utf8_lossy(&elsewhere.unwrap().stdout));
    assert!(elsewhere.contains("no journal of this user's names it"), "{elsewhere}");
    assert!(elsewhere.contains(&format!("swapoff {}", lab.swaps()[0])), "{elsewhere}");
    // As soon as the stranger has ended, a start takes away what was left.
    beside.end();
    stranger.wait().unwrap();
    eventually("what was left is gone", || {
        lab.ok("patterns");
        lab.swaps().is_empty() && lab.leftovers().is_empty()
    });
    lab.nothing_is_left("after the stranger has ended");
}

/// Of two users, with notebooks and journals of their own.
fn two_runs_with_swap_take_turns() {
    let labs = [Lab::new(), Lab::new()];
    let line =
        "run mapanon --pages 10240 --references 40000 --pattern uniform --memory 32M --swap file --html none";
    let mut runs = labs.each_ref().map(|lab| lab.begin(line, Stdio::piped()));
    let mut seen = [false; 2];
    while runs.iter_mut().any(|run| run.try_wait().unwrap().is_none()) {
        let now = labs.each_ref().map(|lab| !lab.swaps().is_empty());
        // The first one's may have gone before the second one's came.
        assert!(now != [true, true] || labs[0].swaps().is_empty(), "two have swap at once");
        seen = [seen[0] | now[0], seen[1] | now[1]];
        std::thread::sleep(Duration::from_millis(1));
    }
    let said = runs.map(|run| {
        let output = run.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        joined(&String::from_utf8_lossy(&output.stdout))
    });
    assert_eq!(seen, [true, true], "each had swap of its own");
    let waited = said.iter().filter(|said| said.contains("waited for another run with swap to end"));
    assert!(waited.count() > 0, "{said:?}");
    for lab in &labs {
        lab.shows("show @1", &["swap.in", "faults.major"]);
        lab.nothing_is_left("after its turn");
    }
}

fn where_no_swap_file_can_be_the_default_is_zram() {
    let lab = Lab::new();
    let swap = |scratch: &str| {
        let line = "run mapanon --pages 4096 --memory 32M --dry-run --json";
        let output = lab.command(line).env("PAGELAB_SCRATCH_DIR", scratch).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let (memory, disk) = (swap("/dev/shm/pagelab-scratch"), swap(lab.path("scratch").to_str().unwrap()));
    assert!(memory.contains("a zram device of") && !memory.contains("a swap file of"), "{memory}");
    assert!(disk.contains("a swap file of"), "{disk}");
    assert!(disk.contains("other cgroups that reclaim may use this swap too"), "{disk}");
}
