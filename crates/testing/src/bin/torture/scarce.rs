//! What others keep from pagelab: processes, /proc and /sys, a folder where nobody else plants links.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::kills::LOADS;
use crate::lab::Lab;
use pagelab_testing::random::Random;

/// A user that nobody else is; the torture's process makes it its own.
fn stranger() -> u32 {
    60_000 + std::process::id() % 5000
}

/// Loads, a small model and views, which may be refused and end by themselves.
fn line(lab: &Lab, random: &mut Random) -> String {
    let views = ["stat", "memstat", "doctor", "vmstat 0.05 2", "prstat 0.05 2", "iostat 0.05 2", "list"];
    let line = match random.below(4) {
        0 => random.of(&views).to_owned(),
        1 => "run mapanon --on model:lru --pages 900 --references 9000 --repeat 2 --html none".to_owned(),
        _ => random
            .of(&LOADS)
            .replace("sleep 20", "sleep 0.1")
            .replace("9000000", "90000")
            .replace("2000", "20"),
    };
    line.replace("SWAP", &format!("{}p", lab.swap_pages()))
}

/// `program words… pagelab line`, which has to end with a status of pagelab's own.
fn within(lab: &Lab, words: &[&str], program: &Path, line: &str) -> Result<Output, String> {
    let all = words.iter().map(OsStr::new).chain([program.as_os_str()]);
    let mut command = lab.command_of(all);
    command.args(line.split_whitespace());
    let shown = format!("{} {line}", words.join(" "));
    let output = lab.end(&shown, lab.spawn(&shown, &mut command)?)?;
    match output.status.code() {
        Some(0 | 2 | 3) => Ok(output),
        // A view that found memory short.
        Some(1) if line == "doctor" => Ok(output),
        _ => Err(format!("{shown}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr))),
    }
}

/// A cgroup for so many tasks, removed when dropped.
struct Tasks(PathBuf);

impl Tasks {
    fn new(most: u64) -> Result<Self, String> {
        let mounts = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].map(Path::new);
        let mount = mounts.into_iter().find(|mount| mount.join("cgroup.procs").exists());
        let mount = mount.ok_or("there is no hierarchy with the pids controller")?;
        let folder = mount.join(format!("torture-{}", std::process::id()));
        let made = fs::create_dir(&folder).and_then(|()| {
            let new = Self(folder);
            fs::write(new.0.join("pids.max"), most.to_string()).map(|()| new)
        });
        made.map_err(|e| format!("a cgroup with pids.max: {e}"))
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

/// From 2 to 6 tasks: of a cgroup's, then of a user's.
pub fn tasks(lab: &Lab, random: &mut Random) -> Result<(), String> {
    let most = 2 + random.below(5);
    if random.below(2) == 0 {
        let group = Tasks::new(most)?;
        let enter = format!("echo $$ >{}; exec \"$0\" \"$@\"", group.0.join("cgroup.procs").display());
        for _ in 0..3 {
            within(lab, &["sh", "-c", &enter], lab.program(), &line(lab, random))?;
        }
        return recovered(lab);
    }
    let user = stranger();
    let program = lab.path("pagelab");
    let copied =
        fs::hard_link(lab.program(), &program).or_else(|_| fs::copy(lab.program(), &program).map(drop));
    copied.map_err(|e| format!("pagelab for another user: {e}"))?;
    for place in ["", "state", "scratch"] {
        chown(lab.path(place), Some(user), Some(user)).map_err(|e| e.to_string())?;
    }
    let id = user.to_string();
    let (user, group, most) = (format!("--reuid={id}"), format!("--regid={id}"), format!("--nproc={most}"));
    let words = ["setpriv", &user, &group, "--clear-groups", "prlimit", &most];
    for _ in 0..3 {
        within(lab, &words, &program, &line(lab, random))?;
    }
    within(lab, &words[..4], &program, "patterns")?;
    lab.nothing_is_left()
}

fn recovered(lab: &Lab) -> Result<(), String> {
    lab.ok("patterns")?;
    lab.nothing_is_left()
}

/// Plans that would start more threads than any machine is asked for: refused, and nothing started.
pub fn bombs(lab: &Lab, random: &mut Random) -> Result<(), String> {
    let many = 40_000 + random.below(3_000_000_000);
    let few = 20_000 + random.below(40_000);
    for line in [
        format!("run faultscale --as processes --workers {many}"),
        format!("run faultscale --workers 1,{many}"),
        format!("run faultscale --work fork --workers {few}"),
        format!("run faultscale --work build --workers {few}"),
        format!("run faultscale --work build --workers 200 --copies {few} --cmd true"),
        format!("run forkstorm --copies {many}"),
        format!("run forkstorm --script /dev/null --copies {few}"),
        format!("run unmap --sharers {many}"),
        format!("run bandwidth --threads {many}"),
        format!("run vmtest --sizes 1M..{}G", 100_000 + few),
    ] {
        let output = lab.run(&format!("{line} --html none -q --memory none"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !matches!(output.status.code(), Some(2 | 3)) {
            return Err(format!("{line}: {}: {said}", output.status));
        }
        if let Some((pid, left)) = lab.processes().first() {
            return Err(format!("{line}: process {pid}: {left}"));
        }
    }
    match lab.path("pagelab.db").exists() && lab.ok("list")?.contains("run ") {
        true => Err("a refused run is in the notebook".to_owned()),
        false => Ok(()),
    }
}

/// Commands that write: FILE is a planted link to a file, FOLDER one to a folder.
const WRITERS: [&str; 22] = [
    "run mapanon --on model:lru --pages 8 --references 20 --html FILE",
    "run command --on model:lru --trace FILE --html none -- true",
    "report x -o FILE",
    "report x -o FOLDER/page.html",
    "export x -o FILE",
    "export x --format csv -o FILE",
    "export x --format parquet -o FILE",
    "export x --format perfetto -o FILE",
    "compare x x --junit FILE",
    "reproduce mcdougall-2007 --html FILE",
    "wss uniform --pages 40 --references 400 --html FILE",
    "replay uniform --pages 40 --references 400 --memory 8p --html FILE",
    "mrc uniform --pages 40 --references 400 --html FILE",
    "reduce uniform --pages 40 --references 400 --memory 8p --force -o FILE",
    "convert uniform --pages 40 --references 400 --to text --force -o FILE",
    "trace --force -o FILE -- true",
    "trace -o FOLDER/new.trace -- true",
    "fixture FOLDER",
    "man FOLDER",
    "--notebook FILE list",
    "--notebook FOLDER/new.db run mapanon --on model:lru --pages 8 --references 20 --html none",
    "--notebook FOLDER/new.db record --interval 0.01 --count 2",
];

/// No command writes through a link that another user has put into a folder where everybody may.
pub fn links(lab: &Lab, random: &mut Random) -> Result<(), String> {
    let error = |e: std::io::Error| format!("planting links: {e}");
    lab.ok("run mapanon --on model:lru --pages 8 --references 20 --html none --name x -q")?;
    let (shared, victim, folder) = (lab.path("shared"), lab.path("victim"), lab.path("precious"));
    fs::create_dir(&shared).map_err(error)?;
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).map_err(error)?;
    fs::create_dir(&folder).map_err(error)?;
    fs::write(&victim, "precious").map_err(error)?;
    let links = [(shared.join("file"), &victim), (shared.join("folder"), &folder)];
    for (link, to) in &links {
        symlink(to, link).map_err(error)?;
        lchown(link, Some(stranger()), None).map_err(error)?;
    }
    for _ in 0..6 {
        let line = random.of(&WRITERS);
        let line = line.replace("FILE", "shared/file").replace("FOLDER", "shared/folder");
        let output = lab.run(&line)?;
        let untouched = fs::read(&victim).is_ok_and(|text| text == b"precious");
        let empty = fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_none());
        if output.status.success() || !untouched || !empty {
            return Err(format!(
                "{line}: {}: the file is untouched: {untouched}, the folder: {empty}",
                output.status
            ));
        }
    }
    for (variable, line) in [("PAGELAB_STATE_DIR", LOADS[0]), ("PAGELAB_SCRATCH_DIR", LOADS[0])] {
        let mut command = lab.command(line.split_whitespace());
        command.env(variable, shared.join("folder"));
        let output = lab.end(line, lab.spawn(line, &mut command)?)?;
        if output.status.success() || fs::read_dir(&folder).map_err(error)?.next().is_some() {
            return Err(format!("{variable} is a planted link: {}", output.status));
        }
    }
    recovered(lab)
}

/// A machine without /proc, without /sys, or without either.
pub fn missing(lab: &Lab, random: &mut Random) -> Result<(), String> {
    let empty = lab.path("empty");
    fs::create_dir(&empty).map_err(|e| e.to_string())?;
    let hidden = [&["/sys"][..], &["/proc"], &["/sys", "/proc"]][random.below(3) as usize];
    let mounts = hidden.iter().map(|place| format!("mount --bind {} {place}; ", empty.display()));
    let script = format!("{}exec \"$0\" \"$@\"", mounts.collect::<String>());
    let possible = Command::new("unshare").args(["-m", "true"]).stderr(Stdio::null()).status();
    if !possible.is_ok_and(|status| status.success()) {
        return Err("a mount namespace cannot be made: run as root".to_owned());
    }
    for _ in 0..4 {
        within(lab, &["unshare", "-m", "sh", "-c", &script], lab.program(), &line(lab, random))?;
    }
    recovered(lab)
}
