//! Ends that nobody chose: kill -9 of the parent, the worker, all of them, of the recovery; Ctrl-C at any moment.

use std::collections::BTreeMap;
use std::process::Child;
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::lab::{Lab, kill};
use pagelab_testing::random::Random;

/// Loads that need a worker: SWAP is a size that is the lab's own.
pub const LOADS: [&str; 23] = [
    "run mapanon --pages 12288 --references 600000 --pattern uniform --memory 32M --swap file --html none -q",
    "run mapanon --pages 12288 --references 600000 --pattern uniform --memory 32M --swap zram --swap-size SWAP --html none -q",
    "run mapanon --pages 12288 --references 600000 --memory 16M --swap none --html none -q",
    "run mapanon --pages 2048 --references 9000000 --memory none --set /proc/sys/vm/stat_interval=3 --html none -q",
    "run mapanon --pages 2048 --references 9000000 --memory 32M --set /proc/sys/vm/dirty_bytes=4294967296 --html none -q",
    "run mapfile --pages 8192 --references 300000 --memory 16M --html none -q",
    "run vmtest --seconds 0.3 --memory 32M --html none -q",
    "run forkstorm --forks 20000 --html none -q",
    "run forkstorm --script script --forks 2000 --memory none --html none -q",
    "run faultscale --seconds 0.5 --html none -q",
    "run fileread --seconds 0.3 --memory 32M --html none -q",
    "run seqread --seconds 0.3 --memory 32M --html none -q",
    "run clock --steps 30 --html none -q",
    "run latency --loads 100000 --memory 32M --html none -q",
    "run unmap --rounds 50 --sharers 2 --html none -q",
    "run mremap --rounds 50 --html none -q",
    "run populate --rounds 50 --sharers 2 --html none -q",
    "run bandwidth --sizes 4M,8M --threads 1,2 --rounds 5 --html none -q",
    "run ksm --pages 4096 --html none -q",
    "run oom --memory 32M --html none -q",
    "run command --memory 32M --html none -q -- sleep 20",
    "run command --memory none --html none -q -- setsid sleep 20",
    "need --max-memory 64M --html none -q -- sleep 0.05",
];

/// Loads of a guest, for what this machine does not perform: IMAGE is a kernel's.
const GUESTS: [&str; 4] = [
    "run neighbour --on kernel:IMAGE,accel=tcg --html none -q",
    "run tier --on kernel:IMAGE,accel=tcg,numa=256M+512M@slow --html none -q",
    "run reclaim --on kernel:IMAGE,accel=tcg --html none -q",
    "run fragment --on kernel:IMAGE,accel=tcg --html none -q",
];

/// Commands without one.
const OTHERS: [&str; 12] = [
    "run --html none -q",
    "reproduce --on host",
    "record --interval 0.01",
    "export --listen 127.0.0.1:0",
    "clock serve 127.0.0.1:0",
    "prstat --enable-accounting 0.1",
    "doctor --watch 1",
    "wss uniform --pages 300000 --references 9000000",
    "mrc uniform --pages 300000 --references 9000000",
    "replay zipf:0.9 --pages 300000 --references 9000000 --on lru --on linux-lru --on opt --memory 10% --memory 50%",
    "run mapanon --on model:arc --on model:opt --pages 100000 --references 9000000 --html none -q",
    "run mapanon --repeat 50 --on model:lru --pages 1000 --references 9000 --html none -q",
];

/// Processes that were killed, by the command or experiment that they performed.
pub static KILLED: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());

/// Kills processes of `line`, and counts those that were there.
fn kill_of(line: &str, pids: impl IntoIterator<Item = u32>) {
    let killed = pids.into_iter().filter(|&pid| kill(pid, Signal::KILL)).count();
    let mut words = line.split_whitespace().skip_while(|word| *word == "run");
    let name = words.next().unwrap_or_default();
    let name = if name.starts_with('-') { "suite" } else { name };
    *KILLED.lock().expect("no thread panics with it").entry(name.to_owned()).or_default() += killed as u64;
}

/// A load: one in ten is a guest's, where there is a kernel for it.
fn load(lab: &Lab, random: &mut Random) -> String {
    let guest = random.below(10) == 0;
    if let (true, Some(image)) = (guest, pagelab_testing::kernels().pop()) {
        return random.of(&GUESTS).replace("IMAGE", &image.display().to_string());
    }
    random.of(&LOADS).replace("SWAP", &format!("{}p", lab.swap_pages()))
}

fn any(lab: &Lab, random: &mut Random) -> String {
    if random.below(3) > 0 { load(lab, random) } else { random.of(&OTHERS).to_owned() }
}

/// A moment: often in the middle of the set-up, sometimes late.
fn moment(random: &mut Random) -> Duration {
    let most = [30, 120, 500, 1800][random.below(4) as usize];
    Duration::from_micros(random.below(1000 * most))
}

/// Begins one and waits for a moment.
fn begun(lab: &Lab, line: &str, random: &mut Random) -> Result<Child, String> {
    let child = lab.begin(line)?;
    sleep(moment(random));
    Ok(child)
}

/// How many starts a recovery may take on a machine that does other things beside: a start gives it a second.
const STARTS: u32 = 15;

/// The next start removes what was left, or says that it needs more than its second; and the notebook is whole.
fn recovered(lab: &Lab) -> Result<(), String> {
    for _ in 0..STARTS {
        let output = lab.run("patterns")?;
        if !String::from_utf8_lossy(&output.stderr).contains("still removing") {
            break;
        }
    }
    lab.nothing_is_left()?;
    if lab.path("pagelab.db").exists() {
        lab.ok("list")?;
    }
    Ok(())
}

pub fn parent(lab: &Lab, random: &mut Random) -> Result<(), String> {
    let line = any(lab, random);
    let child = begun(lab, &line, random)?;
    kill_of(&line, [child.id()]);
    let _ = lab.end(&line, child)?;
    recovered(lab)
}

pub fn worker(lab: &Lab, random: &mut Random) -> Result<(), String> {
    let line = load(lab, random);
    let child = begun(lab, &line, random)?;
    let workers: Vec<u32> = lab
        .processes()
        .into_iter()
        .filter(|(_, line)| line.contains("__worker"))
        .map(|(pid, _)| pid)
        .collect();
    let none = workers.is_empty();
    kill_of(&line, workers);
    if none || line.starts_with("need") || line.contains("sleep") {
        // It has none yet, or another would follow, or it ends by itself late. A shell's background job ignores
        // SIGINT until pagelab listens to it.
        kill(child.id(), Signal::TERM);
    }
    let _ = lab.end(&line, child)?;
    // Without a next start.
    lab.nothing_is_left()
}

pub fn all(lab: &Lab, random: &mut Random) -> Result<(), String> {
    let line = any(lab, random);
    let child = begun(lab, &line, random)?;
    let mut processes = lab.processes();
    if random.below(2) == 0 {
        processes.reverse();
    }
    kill_of(&line, processes.into_iter().map(|(pid, _)| pid));
    kill(child.id(), Signal::KILL);
    let _ = lab.end(&line, child)?;
    recovered(lab)
}

pub fn recovery(lab: &Lab, random: &mut Random) -> Result<(), String> {
    let line = load(lab, random);
    let child = begun(lab, &line, random)?;
    kill_of(&line, [child.id()]);
    let _ = lab.end(&line, child)?;
    for _ in 0..=random.below(4) {
        let next = lab.begin("patterns")?;
        sleep(Duration::from_micros(random.below(25_000)));
        kill_of("recovery", [next.id()]);
        let _ = lab.end("patterns", next)?;
    }
    recovered(lab)
}

/// How long commands went on after Ctrl-C.
pub static ENDS: Mutex<Vec<Duration>> = Mutex::new(Vec::new());

/// What is a failure. A worker that waits for a disk that others keep busy cannot be killed before it is served, so
/// that this is more than the second of a machine of one's own; how many took longer than that is printed.
const MAX_DELAY: Duration = Duration::from_secs(10);

pub fn interrupt(lab: &Lab, random: &mut Random) -> Result<(), String> {
    let line = any(lab, random);
    let child = begun(lab, &line, random)?;
    let (pid, pressed) = (child.id(), Instant::now());
    for _ in 0..=random.below(4) {
        kill(pid, [Signal::INT, Signal::TERM, Signal::HUP][random.below(3) as usize]);
        sleep(Duration::from_millis(random.below(40)));
    }
    let _ = lab.end(&line, child)?;
    let took = pressed.elapsed();
    ENDS.lock().expect("no thread panics with it").push(took);
    if took > MAX_DELAY {
        return Err(format!("{line}: went on for {took:?} after Ctrl-C"));
    }
    lab.nothing_is_left()?;
    recovered(lab)
}
