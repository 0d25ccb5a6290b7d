//! `command` under the pager: a dynamically linked program, whose anonymous memory is paged while it runs.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use pagelab_confine::SetUp;
use pagelab_experiment::experiments::{Command, Declaration};
use pagelab_experiment::{Failure, FailureKind, Recorder, Result, words};
use pagelab_kernel::userfault::{Event, Userfault};
use pagelab_kernel::{spawn, waiting};
use pagelab_live::harness::library;
use pagelab_live::set_up::confine;

use crate::engine::{Engine, Tally};
use crate::policy::Chooser;
use crate::remote::{PAGE, Remote};

/// What the library tells, as the first of three words.
const RANGE: usize = 1;
const FORK: usize = 2;
const FORKED: usize = 3;

/// How long a wish to end may wait, and the end of the program to be seen.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Pages that a program may have mapped at least: an instruction and a system call need several at once.
pub const MAPPED: u32 = 64;

/// What came of it.
#[derive(Debug)]
pub struct Paged {
    /// How the program ended; `None`: it was stopped after its time.
    pub status: Option<ExitStatus>,
    /// From its start to its end.
    pub elapsed: Duration,
    /// What was done.
    pub tally: Tally,
    /// Most bytes of evicted pages.
    pub stored: u64,
    /// Pages that were paged.
    pub pages: u32,
    /// Ranges that the kernel would not have paged.
    pub unpaged: u32,
}

/// Where the library is that programs load.
pub fn library() -> Option<PathBuf> {
    library::find("PAGELAB_PRELOAD", "libpagelab_preload.so")
}

/// The file of a program, as the system looks for it.
pub fn found(program: &OsStr) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(program.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Whether `program` loads no library, where that can be told.
pub fn is_static(program: &Path) -> bool {
    const INTERPRETER: [u8; 4] = 3u32.to_ne_bytes();
    let Ok(bytes) = std::fs::read(program) else { return false };
    if !bytes.starts_with(b"\x7fELF\x02") {
        return false;
    }
    let word = |at: usize, count: usize| {
        let bytes = bytes.get(at..at + count).unwrap_or_default();
        bytes.iter().rev().fold(0usize, |word, &byte| word << 8 | usize::from(byte))
    };
    let (table, size, count) = (word(32, 8), word(54, 2), word(56, 2));
    !(0..count).any(|n| bytes.get(table + n * size..table + n * size + 4) == Some(&INTERPRETER))
}

/// A program that is killed and waited for when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn failed(doing: &'static str) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::system(doing, &error)
}

/// Runs the program of `command` with the pages that `policy` holds, `window` of them mapped at most.
///
/// # Errors
/// When it cannot be started, does not load the library, or the kernel refuses.
pub fn run(
    command: &Command,
    policy: Chooser<'static>,
    frames: u32,
    window: u32,
    recorder: &mut dyn Recorder,
) -> Result<Paged> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let lacks = || Failure::unsupported("libpagelab_preload.so is missing", "install it next to pagelab");
    let library = library().ok_or_else(lacks)?;
    let name = format!("pagelab-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let address = SocketAddr::from_abstract_name(&name).map_err(failed("naming a socket"))?;
    let listener = UnixListener::bind_addr(&address).map_err(failed("listening to the program"))?;
    listener.set_nonblocking(true).map_err(failed("listening to the program"))?;
    let (program, arguments) = command.program.split_first().ok_or_else(|| {
        Failure::unsupported(
            "there is no program to run",
            "write it after --: pagelab run command -- sort big.txt",
        )
    })?;
    let mut child = std::process::Command::new(words::unescaped(program));
    child.args(words::unescaped_all(arguments)).stdin(Stdio::null()).stdout(Stdio::null());
    child.env("LD_PRELOAD", library).env("PAGELAB_PAGER", &name);
    spawn::dies_with_caller(&mut child);
    // Nothing is limited here: what the program leaves behind is ended, too, by the next start after a kill -9.
    let load = command.footprint(PAGE as u64).total();
    let confinement = confine(&SetUp { load, ..SetUp::default() })?;
    confinement.mark(&mut child);
    let begun = Instant::now();
    let child = child.spawn().map_err(failed("starting the program"))?;
    let mut running = Running(child);
    let timeout = command.timeout.map(Duration::from_secs_f64);
    let most = Declaration::footprint(command, PAGE as u64).anonymous;
    let mut serving = match Serving::begin(&listener, &mut running.0, policy, frames, window, most, recorder)?
    {
        Ok(serving) => serving,
        Err(status) => {
            return Err(Failure::unsupported(
                format!(
                    "{program} does not load the library ({status}): it is static, set-user-ID, or uses \
                    another C library"
                ),
                "use a dynamically linked program, or model:POLICY with pagelab trace",
            ));
        }
    };
    let mut looked = Instant::now();
    let status = loop {
        match serving.step() {
            Ok(true) => {}
            Ok(false) => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => match ended(&mut running.0, Duration::from_millis(200))? {
                Some(status) => break Some(status),
                None => return Err(failed("paging the program")(error)),
            },
        }
        if serving.engine.store().bytes() > most {
            return Err(Failure::out_of_memory(most));
        }
        if looked.elapsed() >= POLL_INTERVAL || !serving.hears {
            looked = Instant::now();
            if let Some(status) = ended(&mut running.0, Duration::ZERO)? {
                break Some(status);
            }
            if timeout.is_some_and(|timeout| begun.elapsed() >= timeout) {
                break None;
            }
            recorder.check()?;
        }
    };
    let elapsed = begun.elapsed();
    drop(running);
    if status.is_none() {
        let seconds = elapsed.as_secs_f64();
        let kind = FailureKind::TimedOut { seconds: seconds.ceil() as u64 };
        return Err(Failure::new(kind, format!("{program} was stopped after {seconds:.2} s (--timeout)")));
    }
    let pages = serving.engine.space().count();
    Ok(Paged {
        status,
        elapsed,
        tally: *serving.engine.tally(),
        stored: serving.engine.store().peak(),
        pages,
        unpaged: serving.unpaged,
    })
}

/// How the program ended, waiting so long.
fn ended(child: &mut Child, most: Duration) -> Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        match child.try_wait().map_err(failed("waiting for the program"))? {
            None if begun.elapsed() < most => std::thread::sleep(Duration::from_millis(1)),
            other => return Ok(other),
        }
    }
}

/// A program's memory that is being paged.
struct Serving {
    engine: Engine<'static, Remote>,
    tells: UnixStream,
    /// Whether the library still tells.
    hears: bool,
    /// Pages that the engine has room for.
    room: u32,
    /// What is put back while the program forks.
    restored: Vec<u32>,
    unpaged: u32,
}

impl Serving {
    /// Waits for the library in the program; how that ended where it never came.
    fn begin(
        listener: &UnixListener,
        child: &mut Child,
        policy: Chooser<'static>,
        frames: u32,
        window: u32,
        most: u64,
        recorder: &mut dyn Recorder,
    ) -> Result<Result<Self, ExitStatus>> {
        let mut connections = Vec::new();
        while connections.len() < 2 {
            match listener.accept() {
                Ok((connection, _)) => connections.push(connection),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if let Some(status) = ended(child, Duration::from_millis(1))? {
                        return Ok(Err(status));
                    }
                    recorder.check()?;
                }
                Err(error) => return Err(failed("listening to the program")(error)),
            }
        }
        let (Some(helper), Some(tells)) = (connections.pop(), connections.pop()) else { unreachable!() };
        let handed = Userfault::handed(&tells).map_err(failed("taking the program's page faults"))?;
        let Some(events) = handed else {
            return match ended(child, Duration::from_secs(1))? {
                Some(status) => Ok(Err(status)),
                None => Err(Failure::unsupported(
                    "the program got no userfaultfd",
                    "run as root, or: sysctl vm.unprivileged_userfaultfd=1",
                )),
            };
        };
        let begin = || -> io::Result<Self> {
            let remote = Remote::new(child.id(), events, helper)?;
            // So many pages a program may have stored and resident; more are made room for.
            let room = ((most / PAGE as u64) as u32).clamp(1024, 1 << 20);
            let mut engine = Engine::new(remote, 0, frames, window, policy)?;
            engine.grow(room);
            Ok(Self { engine, tells, hears: true, room, restored: Vec::new(), unpaged: 0 })
        };
        begin().map(Ok).map_err(failed("taking the program's memory over"))
    }

    /// Waits a little for something to happen, and does all that is to be done; whether there was anything.
    fn step(&mut self) -> io::Result<bool> {
        let events = self.engine.space().events().as_fd();
        let (happened, told) = match self.hears {
            true => waiting::readable([events, self.tells.as_fd()], Some(POLL_INTERVAL))?.into(),
            false => (waiting::readable([events], Some(POLL_INTERVAL))?[0], false),
        };
        if !happened && !told {
            return Ok(true);
        }
        let mut did = self.serve()?;
        if told {
            did = true;
            let mut words = [0; 24];
            if self.tells.read_exact(&mut words).is_err() {
                self.hears = false;
                return Ok(true);
            }
            let [what, start, length] =
                [0, 8, 16].map(|at| usize::from_ne_bytes(words[at..at + 8].try_into().unwrap_or_default()));
            self.told(what, start, length)?;
            self.tells.write_all(&[1])?;
            // Events that were read for the answer wait in memory, where no descriptor shows them.
            self.serve()?;
        }
        Ok(did)
    }

    /// Serves every event; whether there was one.
    fn serve(&mut self) -> io::Result<bool> {
        let mut did = false;
        while let Some(event) = self.engine.space().happened()? {
            self.happened(event)?;
            did = true;
        }
        Ok(did)
    }

    /// The number of the page at this address, for which the engine has room.
    fn page(&mut self, address: usize) -> u32 {
        let page = self.engine.space().number(address);
        if page >= self.room {
            self.room = (page + 1).next_power_of_two();
            self.engine.grow(self.room);
        }
        page
    }

    fn happened(&mut self, event: Event) -> io::Result<()> {
        match event {
            Event::Fault { address, protected, .. } => {
                let page = self.page(address);
                let start = address & !(PAGE - 1);
                match (self.engine.is_mapped(page), protected) {
                    (true, true) => self.engine.space().events().protect(start, PAGE, false),
                    // It was put meanwhile, or was taken and is to be missed now.
                    (true, false) | (false, true) => self.engine.space().events().wake(start, PAGE),
                    (false, false) => self.engine.fault(page),
                }
            }
            Event::Gone { start, end } => {
                for page in self.engine.space().within(start, end) {
                    self.engine.forget(page);
                }
                Ok(())
            }
            // Renamed as it was read.
            Event::Moved { .. } => Ok(()),
        }
    }

    fn told(&mut self, what: usize, start: usize, length: usize) -> io::Result<()> {
        match what {
            RANGE => {
                let end = (start + length).next_multiple_of(PAGE);
                let start = start & !(PAGE - 1);
                if self.engine.space().events().register(start, end - start, true).is_err() {
                    self.unpaged += 1;
                    return Ok(());
                }
                for address in self.engine.space().present(start, end - start)? {
                    let page = self.page(address);
                    self.engine.adopt(page)?;
                }
                Ok(())
            }
            FORK => {
                self.restored = self.engine.restore()?;
                Ok(())
            }
            FORKED => {
                let restored = std::mem::take(&mut self.restored);
                self.engine.withdraw(&restored)
            }
            other => Err(io::Error::other(format!("the library says {other}"))),
        }
    }
}
