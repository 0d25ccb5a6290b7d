//! Files: full disks, spoiled notebooks, traces and fixtures, hostile names and arguments, many writers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;

use crate::lab::{Lab, fill, kill};
use pagelab_testing::random::Random;

/// Runs that take a moment and fill a notebook.
const MODEL: &str =
    "run mapanon --on model:lru --on model:opt --pages 2048 --references 20000 --repeat 3 --html none -q";
const HOST: &str = "run mapanon --pages 1024 --references 9000 --memory 32M --repeat 2 --html none -q";

/// Commands that read a notebook.
const READERS: [&str; 11] = [
    "list",
    "list --check",
    "list --json",
    "show @1",
    "show 1 --all",
    "show 2 --json",
    "compare @2 @1 --all",
    "report @1 @2 -o page.html",
    "export @1 --format json -o run.json",
    "export @1 --format csv -o run.csv",
    "export @1 --format parquet -o run.parquet",
];

/// A file system of so many KiB, until it is dropped.
struct Disk(PathBuf);

impl Disk {
    fn mount(place: PathBuf, kib: u64) -> Result<Self, String> {
        fs::create_dir_all(&place).map_err(|e| e.to_string())?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={kib}k,mode=700"), "none"]).arg(&place);
        match mount.stderr(Stdio::null()).status() {
            Ok(status) if status.success() => Ok(Self(place)),
            _ => Err("a tmpfs cannot be mounted: run as root".into()),
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        for _ in 0..50 {
            let done = Command::new("umount").arg(&self.0).stderr(Stdio::null()).status();
            if done.is_ok_and(|status| status.success()) {
                return;
            }
            sleep(Duration::from_millis(20));
        }
    }
}

pub fn full_disk(lab: &Lab, random: &mut Random) -> Result<(), String> {
    let disk = Disk::mount(lab.path("disk"), 60 + random.below(1500))?;
    let line = match random.below(3) {
        0 => HOST.replace("run ", "--notebook disk/n.db run "),
        1 => "--notebook disk/n.db record --interval 0.01 --count 100".to_owned(),
        _ => {
            MODEL.replace("run ", "--notebook disk/n.db run ").replace("--html none", "--html disk/page.html")
        }
    };
    for _ in 0..6 {
        let output = lab.run(&line)?;
        if !matches!(output.status.code(), Some(0 | 3)) {
            return Err(format!("{line}: {}", output.status));
        }
    }
    // What was kept is readable, also with no room at all.
    let _filler = fill(&disk.0);
    let output = lab.run("--notebook disk/n.db list")?;
    if disk.0.join("n.db").exists() && !matches!(output.status.code(), Some(0 | 3)) {
        return Err(format!("list on a full disk: {}", output.status));
    }
    let _ = lab.run("--notebook disk/n.db report @1 -o disk/page.html")?;
    Ok(())
}

pub fn full_state(lab: &Lab, random: &mut Random) -> Result<(), String> {
    let disk = Disk::mount(lab.path("state"), 40 + random.below(20))?;
    let filler = fill(&disk.0);
    // Some of the journal's lines find room, or none does.
    let _ = filler.set_len(4096 * random.below(12));
    let _more = filler.sync_all();
    let _full = (random.below(2) == 0).then(|| fs::write(disk.0.join("more"), vec![0; 1 << 20]));
    let output = lab.run(HOST)?;
    if !matches!(output.status.code(), Some(0 | 3)) {
        return Err(format!("{HOST}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    for name in ["filler", "more"] {
        let _ = fs::remove_file(disk.0.join(name));
    }
    lab.ok("patterns")?;
    lab.nothing_is_left()
}

pub fn notebook(lab: &Lab, random: &mut Random) -> Result<(), String> {
    lab.ok(&MODEL.replace("--repeat 3", "--name a"))?;
    lab.ok("mrc zipf:0.9 --pages 500 --references 9000 --name b -q")?;
    lab.ok("record --interval 0.01 --count 3 -q --name c")?;
    let whole = fs::read(lab.path("pagelab.db")).map_err(|e| e.to_string())?;
    for _ in 0..4 {
        let mut bytes = whole.clone();
        random.spoil(&mut bytes);
        if random.below(3) == 0 {
            // Whole pages, as disks lose them.
            let page = 4096 * random.below(bytes.len() as u64 / 4096 + 1) as usize;
            let end = bytes.len().min(page + 4096);
            bytes[page.min(end)..end].fill(0);
        }
        fs::write(lab.path("pagelab.db"), &bytes).map_err(|e| e.to_string())?;
        for _ in 0..4 {
            lab.run(random.of(&READERS))?;
        }
        fs::write(lab.path("foreign.db"), &bytes).map_err(|e| e.to_string())?;
        lab.run("--notebook own.db import foreign.db")?;
        if lab.path("own.db").exists() {
            // What was taken over is whole, whatever it came from.
            lab.run("--notebook own.db list --check")?;
        }
        lab.run(&MODEL.replace("--repeat 3", "--name d"))?;
    }
    Ok(())
}

pub fn trace(lab: &Lab, random: &mut Random) -> Result<(), String> {
    let mut bytes = match random.below(6) {
        0 => (0..2000).flat_map(|n| format!("{}\n", n * 7 % 300).into_bytes()).collect(),
        1 => (0..2000).flat_map(|n| format!(" L {:08x},4\n", n * 64).into_bytes()).collect(),
        2 => (0..2000_u64).flat_map(|n| (n * 11 % 777).to_le_bytes()).collect(),
        3 => (0..900).flat_map(|n| format!("{n},host,0,Read,{},4096,9\n", n * 4096).into_bytes()).collect(),
        4 => (0..900).flat_map(|n| format!("time,page,op\n{n},{},w\n", n % 50).into_bytes()).collect(),
        _ => (0..500).flat_map(|_| random.next().to_le_bytes()).collect::<Vec<u8>>(),
    };
    random.spoil(&mut bytes);
    fs::write(lab.path("t"), &bytes).map_err(|e| e.to_string())?;
    if random.below(3) == 0 && Command::new("gzip").arg(lab.path("t")).status().is_ok() {
        let mut packed = fs::read(lab.path("t.gz")).unwrap_or_default();
        random.spoil(&mut packed);
        fs::write(lab.path("t"), packed).map_err(|e| e.to_string())?;
    }
    let formats =
        ["", "plain", "csv", "lackey", "u64", "u32", "oracle-general", "vscsi1", "vscsi2", "msr", "spc"];
    let format = random.of(&formats);
    let format = if format.is_empty() { String::new() } else { format!(" --format {format}") };
    for line in ["mrc t", "replay t --memory 10%", "wss t", "mrc t --sample 0.5"] {
        lab.run(&format!("{line}{format} --no-keep"))?;
    }
    lab.run("run mapanon --on model:lru --pages 300 --references 2000 --pattern trace:t --html none -q")?;
    Ok(())
}

pub fn fixture(lab: &Lab, random: &mut Random) -> Result<(), String> {
    lab.ok("fixture machine")?;
    let mut files = Vec::new();
    collect(&lab.path("machine"), &mut files);
    for _ in 0..3 {
        for _ in 0..=random.below(12) {
            let Some(path) = files.get(random.below(files.len() as u64) as usize) else { break };
            let Ok(mut bytes) = fs::read(path) else { continue };
            random.spoil(&mut bytes);
            let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o600));
            let _ = fs::write(path, bytes);
        }
        for view in
            ["stat", "stat -l vmstat", "vmstat", "memstat", "memstat --by process", "prstat", "iostat"]
        {
            lab.run(&format!("{view} --root machine"))?;
        }
    }
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&entry.path(), files),
            Ok(kind) if kind.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
}

pub fn names(lab: &Lab, random: &mut Random) -> Result<(), String> {
    let mut name: Vec<u8> = (0..15)
        .map(|_| [0x1b, b'[', b'2', b'J', b'\n', b'\r', 0x07, 0x9b, 0xc2, b'x'][random.below(10) as usize])
        .collect();
    name[0] = 0x1b;
    fs::write(lab.path("name"), &name).map_err(|e| e.to_string())?;
    // Only the shell itself may name itself.
    let script = "printf '%s' \"$(cat name)\" > /proc/$$/comm; sleep 30 & wait";
    let shell =
        Command::new("sh").args(["-c", script]).current_dir(lab.path("")).stdin(Stdio::null()).spawn();
    let mut shell = shell.map_err(|e| e.to_string())?;
    sleep(Duration::from_millis(100));
    let mut result = Ok(());
    for view in [
        "stat process:PID",
        "prstat -p PID 0.05 1",
        "memstat --by process -n 9000",
        "record process:PID::rss --count 2 --interval 0.05",
        "show @1 --all",
        "list",
        "doctor",
    ] {
        for json in ["", " --json"] {
            let line = format!("{}{json}", view.replace("PID", &shell.id().to_string()));
            let output = match lab.run(&line) {
                Ok(output) => output,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            };
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8_lossy(&text).into_owned();
            if let Some(c) = text.chars().find(|&c| c.is_control() && c != '\n' && c != '\t') {
                result = Err(format!("{line}: {c:?} reaches the terminal"));
            }
        }
    }
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", shell.id())).unwrap_or_default();
    for pid in children.split_whitespace().filter_map(|pid| pid.parse().ok()) {
        kill(pid, Signal::KILL);
    }
    let _ = shell.kill();
    let _ = shell.wait();
    result
}

/// Words of the grammar and what is none; no run is begun on this machine but in a plan.
const WORDS: [&str; 64] = [
    "run",
    "list",
    "show",
    "compare",
    "report",
    "export",
    "import",
    "replay",
    "mrc",
    "wss",
    "stat",
    "vmstat",
    "memstat",
    "prstat",
    "iostat",
    "experiments",
    "targets",
    "patterns",
    "explain",
    "completions",
    "mapanon",
    "vmtest",
    "forkstorm",
    "faultscale",
    "clock",
    "command",
    "--",
    "-",
    "--on",
    "host",
    "model:lru",
    "model:arc:p=0.5",
    "model:",
    "kernel:/dev/null",
    "kernel:/etc/hostname",
    "--memory",
    "1p",
    "0",
    "-1",
    "18446744073709551615",
    "1e308",
    "nan",
    "64M",
    "9999999999G",
    "10%",
    "--pages",
    "--references",
    "--repeat",
    "--json",
    "--pattern",
    "zipf:0.9",
    "zipf:",
    "trace:/dev/zero",
    "trace:/",
    "@1",
    "@0",
    "--set",
    "/proc/sys/vm/x=1",
    "--window",
    "--page-size",
    "--format",
    "\u{1b}[2J",
    "\u{202e}",
    "",
];

pub fn arguments(lab: &Lab, random: &mut Random) -> Result<(), String> {
    for _ in 0..8 {
        let mut words: Vec<&str> = (0..=random.below(7)).map(|_| random.of(&WORDS)).collect();
        if words.contains(&"run") {
            words.insert(words.iter().position(|word| *word == "run").unwrap_or(0) + 1, "--dry-run");
        }
        let child = lab.command(&words).spawn().map_err(|e| e.to_string())?;
        let pid = child.id();
        let watched = std::thread::spawn(move || {
            // What goes on for ever, as asked, is ended.
            sleep(Duration::from_millis(1500));
            kill(pid, Signal::INT);
        });
        let ended = lab.end(&words.join(" "), child);
        drop(watched);
        ended?;
    }
    Ok(())
}

pub fn writers(lab: &Lab, random: &mut Random) -> Result<(), String> {
    lab.ok(&MODEL.replace("--repeat 3", "--repeat 1"))?;
    let line = "run mapanon --on model:lru --pages 256 --references 2000 --repeat 5 --html none -q";
    let mut writers = Vec::new();
    for _ in 0..8 {
        writers.push((lab.begin(line)?, random.below(3) == 0));
    }
    sleep(Duration::from_millis(random.below(400)));
    let mut expected = 2;
    for (writer, killed) in &writers {
        if *killed {
            kill(writer.id(), Signal::KILL);
        }
    }
    for (writer, killed) in writers {
        let output = lab.end(line, writer)?;
        if output.status.success() {
            expected += 1;
        } else if !killed {
            return Err(format!("a writer: {}: {}", output.status, String::from_utf8_lossy(&output.stderr)));
        }
    }
    let listed = lab.ok("list --check")?;
    let whole = lab.ok("list --json")?.matches("\"done\": 5").count() + 2;
    if whole < expected { Err(format!("{whole} whole runs of {expected}: {listed}")) } else { Ok(()) }
}
