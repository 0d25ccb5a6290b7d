//! The target `kernel:PATH`.

use pagelab_experiment::environment;
use std::env::consts::ARCH;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use pagelab_caches::Geometry;
use pagelab_experiment::build::note;
use pagelab_experiment::declaration::Refusal;
use pagelab_experiment::experiments::Load;
use pagelab_experiment::observation::Level;
use pagelab_experiment::{
    Experiment, Failure, FailureKind, Observation, Performer, Recorder, Result, Setting,
};
use pagelab_kernel::lifetime::in_memory;
use pagelab_live::harness::message::Message;
use pagelab_live::set_up::refuse_beyond_half;

use crate::console;
use crate::counted::counted;
use crate::disks::Disks;
use crate::first_program;
use crate::image::{Image, Machine};
use crate::init::{BOOTING, JOB, Job, MODULES};
use crate::initramfs::{Archive, Content, foreign, program};
use crate::machine::{self, Running, Start, kvm_is_there};
use crate::modules::{self, FILES, WANTED};
use crate::monitor::Monitor;
use crate::options::{Accel, Options, Trace};
use crate::page_maps::PageMaps;
use crate::restored::Restored;
use crate::root::Root;
use crate::shell::{self, Shell};
use crate::snapshot::{self, Key, Snapshot};
use crate::tracing::{self, Tracing};

/// The phase in which a guest boots: milliseconds gone, of an unknown number.
pub const BOOT: &str = "boot";
/// How often the recorder is asked whether to go on.
const POLL: Duration = Duration::from_millis(50);
/// How long a guest on the host's own processor may take to boot before it is taken for one that never will.
const KVM_TIMEOUT: Duration = Duration::from_secs(20);
/// The memory that keeping a guest may take.
const SNAPSHOT_MEMORY: u64 = 512 << 20;
/// QEMU's own memory beside the guest's.
pub(crate) const QEMU: u64 = 128 << 20;

/// A kernel image as a target.
#[derive(Clone, Debug)]
pub struct Guest {
    pub(crate) image: Image,
    pub(crate) options: Options,
    /// Whether the host's own processor has failed to boot this image.
    without_kvm: bool,
    /// Repetitions that were begun.
    begun: u32,
    /// What the user's programs find, once that is planned.
    root: Option<Arc<Root>>,
    /// The pages that the first repetition touched, where that is traced.
    touched: Option<Vec<u32>>,
}

/// How a performance in one machine ended.
enum Ended {
    Whole(Result<()>),
    /// No message came at all, for this reason.
    NeverBooted {
        why: String,
        panicked: bool,
    },
    /// The machine that was kept could not be brought back.
    NotRestored,
}

impl Guest {
    /// The image at `path` with its options.
    ///
    /// # Errors
    /// A sentence: no image, or impossible options.
    pub fn new(path: &Path, pairs: &[(String, String)]) -> Result<Self, Refusal> {
        let mut options = Options::parse(pairs)?;
        let image = Image::open(path).map_err(|e| e.to_string())?;
        if options.init.is_none() && image.machine.name().0 != ARCH {
            options.init = first_program::beside(image.machine);
        }
        Ok(Self { image, options, without_kvm: false, begun: 0, root: None, touched: None })
    }

    /// The same, with `root` for the user's programs.
    pub(crate) fn with_root(&self, root: Option<Arc<Root>>) -> Self {
        Self { root, ..self.clone() }
    }

    fn boot(
        &mut self,
        accel: Accel,
        experiment: &Experiment,
        setting: &Setting,
        recorder: &mut dyn Recorder,
    ) -> Result<Ended> {
        let io = |what: &str| {
            let what = what.to_owned();
            move |e: std::io::Error| Failure::system(what, &e)
        };
        refuse_beyond_half(self.options.ram.saturating_add(QEMU))?;
        let disks = Disks::new(experiment, setting, self.image.page_size)?;
        // A guest that counts instructions has it either way, so that whether they are traced changes no figure.
        let repeats = self.options.trace.is_some_and(Trace::repeats);
        let disks = match accel == Accel::Icount || repeats {
            true => disks.with_trace()?,
            false => disks,
        };
        // The references of one repetition are those of all.
        let wanted = self.options.trace.filter(|&trace| trace.repeats());
        let wanted = wanted.filter(|&trace| trace != Trace::On || self.begun == 1);
        let start = |trace| Tracing::start(trace, &self.image, &self.options, experiment);
        let tracing = wanted.map(start).transpose()?;
        let key = Key::new(&self.image, &self.options, accel, &disks, self.root.as_ref());
        let kept = snapshot::find(&key);
        let modules = self.modules(disks.files.is_some())?;
        let (_, line) = machine::lines(self.image.machine);
        let job = Job {
            experiment: experiment.clone(),
            setting: setting.clone(),
            modules: modules.iter().map(|m| m.name.clone()).collect(),
            line: line.to_owned(),
            trace_device: disks.trace.map(str::to_owned),
            traced: u8::from(tracing.is_some()),
            counted: accel == Accel::Icount,
            repetition: self.begun.saturating_sub(1),
            root: self.root.as_ref().map(|root| root.place()),
            shell: None,
            swap_device: disks.swap.map(str::to_owned),
            files_device: disks.files.map(str::to_owned),
        };
        let hand_in = || -> std::io::Result<File> {
            let mut file = in_memory("pagelab-job")?;
            file.write_all(&serde_json::to_vec(&job)?)?;
            Ok(file)
        };
        let handed = hand_in().map_err(io("writing the guest's job"))?;
        let initramfs = match &kept {
            Some(snapshot) => Arc::clone(&snapshot.initramfs),
            None => Arc::new(self.initramfs(&job, modules)?),
        };
        let start = Start {
            initramfs: &initramfs,
            job: &handed,
            disks: &disks.list,
            monitored: self.can_be_kept(accel),
            tracer: tracing.as_ref().map(Tracing::tracer),
            state: kept.as_ref().map(|snapshot| &snapshot.state),
        };
        let started = Running::start(&self.image, start, &self.options, accel);
        if started.is_err() && kept.is_some() {
            snapshot::forget(&key);
            return Ok(Ended::NotRestored);
        }
        let mut running = started.map_err(|e| self.not_started(&e))?;
        let (begun, begins) = if kept.is_some() { ("restored", "restore") } else { ("booted", BOOT) };
        recorder.observe(Observation::Environment(
            [(environment::GUEST_BEGUN.to_owned(), begun.to_owned())].into(),
        ))?;
        // A program of the user's may wait for anything.
        let waits = disks.waits() || matches!(experiment.declaration().load(), Load::Program(_));
        if waits && accel == Accel::Icount {
            let text = "waiting takes no instructions, but the guest's clock runs on: figures that include \
                waiting for a disk or of a program are a dash (swap=zram has no disk)";
            note(recorder, Level::Info, text)?;
        }
        let mut maps = PageMaps::of(experiment)?;
        let complete = |observation| maps.complete(observation);
        let mut restored =
            (self.options.trace == Some(Trace::Restored)).then(|| Restored::new(self.options.restore));
        let during = |elapsed, running: &mut Running| {
            restored.as_mut().map_or(Ok(()), |restored| {
                restored.poll(elapsed, || running.begin_again(&self.image, start, &self.options, accel))
            })
        };
        let stopped = |running: &mut Running| keep(running, &key, &initramfs);
        let ended = self.forward(&mut running, (accel, begins), (waits, complete), recorder, stopped, during);
        let shown = running.console();
        let (_, said) = running.end();
        let last = || {
            let lines = console::last_lines(&shown);
            let lines = if lines.is_empty() { "(nothing)".to_owned() } else { lines };
            let said = if said.is_empty() { String::new() } else { format!("\nQEMU: {said}") };
            format!("its console's last lines:\n  {lines}{said}")
        };
        let result = match ended {
            Forwarded::Finished(Ok(())) => {
                let told = disks.trace.and_then(|_| disks.list.last());
                let seen = tracing.zip(told).map_or(Ok(()), |(tracing, told)| tracing.finish(told, recorder));
                Ended::Whole(seen.and_then(|()| self.keep_touched(restored, experiment, recorder)))
            }
            Forwarded::Finished(result) => Ended::Whole(result),
            Forwarded::Interrupted => Ended::Whole(Err(Failure::interrupted())),
            Forwarded::Recorder(error) => Ended::Whole(Err(error)),
            Forwarded::Silent { booted: false } => {
                Ended::NeverBooted { why: format!("the kernel did not boot; {}", last()), panicked: false }
            }
            Forwarded::Silent { booted: true } => Ended::Whole(Err(Failure::new(
                FailureKind::TimedOut { seconds: self.options.timeout.as_secs() },
                format!(
                    "the guest was silent for {} s and was ended; {}",
                    self.options.timeout.as_secs(),
                    last()
                ),
            ))),
            Forwarded::Gone { booted: false } if console::panicked(&shown) => {
                let why = format!("the kernel panicked while booting; {}", last());
                Ended::NeverBooted { why, panicked: true }
            }
            Forwarded::Gone { booted: true } if console::panicked(&shown) => Ended::Whole(Err(Failure::new(
                FailureKind::GuestDied,
                format!("the kernel panicked; {}", last()),
            ))),
            Forwarded::Gone { booted: false } => {
                let why = format!("the guest ended before it booted; {}", last());
                Ended::NeverBooted { why, panicked: false }
            }
            Forwarded::Gone { booted: true } => Ended::Whole(Err(Failure::new(
                FailureKind::GuestDied,
                format!("the guest ended during the experiment; {}", last()),
            ))),
        };
        if !matches!(&result, Ended::Whole(Err(failure)) if failure.kind == FailureKind::Recorder) {
            recorder.observe(Observation::Log("console".into(), console::clean(&shown)))?;
        }
        Ok(result)
    }

    /// Writes or compares what the guest touched once it was `restored`.
    fn keep_touched(
        &mut self,
        restored: Option<Restored>,
        experiment: &Experiment,
        recorder: &mut dyn Recorder,
    ) -> Result<()> {
        let Some(restored) = restored else { return Ok(()) };
        let path = tracing::path(&self.image, &self.options, experiment);
        let command = format!("pagelab run {experiment} --on kernel:{}", self.image.path.display());
        let pages = restored.finish(&path, &command, self.touched.as_deref(), recorder)?;
        self.touched.get_or_insert(pages);
        Ok(())
    }

    /// The modules that a guest needs, with those for a disk of files where it has one.
    fn modules(&self, files: bool) -> Result<Vec<modules::Module>> {
        let folder = self.options.modules.clone().or_else(|| self.image.modules());
        let wanted: Vec<&str> = WANTED.iter().chain(FILES.iter().filter(|_| files)).copied().collect();
        folder
            .map_or(Ok(Vec::new()), |folder| modules::load(&folder, &wanted))
            .map_err(|e| Failure::system("reading the kernel's modules", &e))
    }

    /// What a guest boots from to do `job`.
    fn initramfs(&self, job: &Job, modules: Vec<modules::Module>) -> Result<File> {
        let program = match &self.options.init {
            Some(init) => foreign(init, self.image.machine),
            None => program(),
        };
        let program = program.map_err(|e| Failure::system("reading the guest's first program", &e))?;
        let pack = || -> std::io::Result<File> {
            let mut archive = Archive::new(in_memory("pagelab-initramfs")?)?;
            for (path, content) in &program {
                archive.add(path, content)?;
            }
            for module in modules {
                archive.add(&Path::new(MODULES).join(module.name), &Content::File(module.content))?;
            }
            archive.add(Path::new(JOB), &Content::File(serde_json::to_vec(job)?))?;
            self.root.iter().try_for_each(|root| root.pack(&mut archive))?;
            archive.finish()
        };
        pack().map_err(|e| Failure::system("making the initramfs", &e))
    }

    fn not_started(&self, error: &std::io::Error) -> Failure {
        let name = machine::program(self.image.machine);
        match error.kind() {
            std::io::ErrorKind::NotFound => Failure::unsupported(
                format!("{name} is not installed"),
                "install it: apt-get install qemu-system-x86 (or qemu-system-arm)",
            ),
            _ => Failure::system(format!("starting {name}"), error),
        }
    }

    /// Boots the machine with a shell on this terminal, and waits for its end.
    ///
    /// # Errors
    /// When there is no shell for it, or it cannot be booted.
    pub fn shell(&self) -> Result<()> {
        let name = format!("kernel:{}", self.image.path.display());
        self.bootable(&name)?;
        let (load, root) = shell::plan(&self.options, &self.image, &name)?;
        refuse_beyond_half(self.memory(Some(&root)))?;
        let modules = self.modules(false)?;
        let (terminal, line) = machine::lines(self.image.machine);
        let job = Job {
            experiment: Experiment::Command(load.clone()),
            setting: Setting::default(),
            modules: modules.iter().map(|module| module.name.clone()).collect(),
            line: line.to_owned(),
            counted: false,
            repetition: 0,
            trace_device: None,
            traced: 0,
            root: Some(root.place()),
            shell: Some(Shell { words: load.program, terminal: Path::new("/dev").join(terminal) }),
            swap_device: None,
            files_device: None,
        };
        let guest = self.with_root(Some(Arc::new(root)));
        let initramfs = guest.initramfs(&job, modules)?;
        let accel = match self.options.accel {
            Accel::Auto if kvm_is_there() => Accel::Kvm,
            Accel::Auto => Accel::Tcg,
            asked => asked,
        };
        let booted = |accel| machine::on_terminal(&self.image, &initramfs, &self.options, accel);
        let ended = match booted(accel) {
            // KVM is there and does not work, as inside many virtual machines.
            Err(error) if falls_back(self.options.accel, accel, &error) => booted(Accel::Tcg),
            ended => ended,
        };
        ended.map_err(|e| self.not_started(&e))
    }

    fn forward(
        &self,
        running: &mut Running,
        (accel, begins): (Accel, &str),
        (waits, mut complete): (bool, impl FnMut(Observation) -> Result<Observation>),
        recorder: &mut dyn Recorder,
        stopped: impl Fn(&mut Running) -> Result<()>,
        mut during: impl FnMut(Duration, &mut Running) -> Result<()>,
    ) -> Forwarded {
        let mut booted = false;
        let mut begun: Option<Instant> = None;
        // Until the experiment begins in it.
        let mut boot = Some(Instant::now());
        let mut heard = Instant::now();
        loop {
            if recorder.interrupted() {
                return Forwarded::Interrupted;
            }
            if let Some(since) = boot {
                recorder.progress(begins, since.elapsed().as_millis() as u64, 0);
            }
            match running.messages.recv_timeout(POLL) {
                Ok(Ok(Some(message))) => {
                    heard = Instant::now();
                    booted = true;
                    let still =
                        matches!(&message, Message::Progress(phase, ..) if BOOTING.contains(&phase.as_str()));
                    if let Some(since) = boot.take_if(|_| !still) {
                        begun = Some(Instant::now());
                        let took = format!("{:.1} s", since.elapsed().as_secs_f64());
                        let seen = Observation::Environment(
                            [(environment::GUEST_BEGUN_AFTER.to_owned(), took)].into(),
                        );
                        if let Err(error) = recorder.observe(seen) {
                            return Forwarded::Recorder(error.into());
                        }
                    }
                    match message {
                        Message::Observation(observation) => {
                            let observation = match complete(observation) {
                                Ok(observation) => observation,
                                Err(failure) => return Forwarded::Finished(Err(failure)),
                            };
                            let observation = match accel {
                                Accel::Icount => counted(observation, waits),
                                _ => Some(observation),
                            };
                            if let Some(Err(error)) = observation.map(|seen| recorder.observe(seen)) {
                                return Forwarded::Recorder(error.into());
                            }
                        }
                        Message::Progress(phase, done, total) => recorder.progress(&phase, done, total),
                        Message::Done => return Forwarded::Finished(Ok(())),
                        Message::Failed(failure) => return Forwarded::Finished(Err(failure)),
                    }
                }
                Ok(Ok(None)) | Err(RecvTimeoutError::Disconnected) => return Forwarded::Gone { booted },
                Ok(Err(error)) => {
                    return Forwarded::Finished(Err(Failure::new(
                        FailureKind::GuestDied,
                        "the connection to the guest broke",
                    )
                    .because(&error)));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if running.monitor.as_mut().is_some_and(Monitor::stopped) {
                if let Err(failure) = stopped(running) {
                    return Forwarded::Finished(Err(failure));
                }
                heard = Instant::now();
            }
            if let Some(Err(failure)) = begun.map(|since| during(since.elapsed(), running)) {
                return Forwarded::Finished(Err(failure));
            }
            let timeout = if accel == Accel::Kvm && !booted {
                KVM_TIMEOUT.min(self.options.timeout)
            } else {
                self.options.timeout
            };
            if heard.elapsed() > timeout {
                return Forwarded::Silent { booted };
            }
        }
    }

    /// Whether the machine can be stopped and kept at rest: an emulated one of the usual kind, whose boot is most of a
    /// repetition.
    pub(crate) fn can_be_kept(&self, accel: Accel) -> bool {
        matches!(accel, Accel::Tcg | Accel::Icount)
            && self.image.machine == Machine::X86_64
            && self.options.machine.is_none()
            && self.options.qemu.is_empty()
    }

    fn describe(&self, accel: Accel) -> Observation {
        let entry = |key: &str, value: String| (key.to_owned(), value);
        Observation::Environment(
            [
                entry(environment::GUEST_IMAGE, self.image.path.display().to_string()),
                entry(environment::GUEST_ACCEL, accel.to_string()),
                entry(environment::GUEST_CPUS, self.options.cpus.to_string()),
                entry(environment::GUEST_RAM, self.options.ram.to_string()),
            ]
            .into_iter()
            .chain(
                machine::version(machine::program(self.image.machine))
                    .map(|v| entry(environment::GUEST_QEMU, v)),
            )
            .chain(
                (!self.options.append.is_empty())
                    .then(|| entry(environment::GUEST_APPEND, self.options.append.clone())),
            )
            .chain(self.root.iter().map(|root| entry(environment::GUEST_PROGRAMS, root.described())))
            .chain(
                (self.options.trace == Some(Trace::Cache)).then(|| {
                    entry(environment::GUEST_CORE, format!("Skylake server: {}", Geometry::SKYLAKE))
                }),
            )
            .collect(),
        )
    }
}

/// Keeps a machine that has stopped itself at rest, and lets it go on.
fn keep(running: &mut Running, key: &Key, initramfs: &Arc<File>) -> Result<()> {
    let Some(monitor) = &mut running.monitor else { return Ok(()) };
    let save = |monitor: &mut Monitor| -> std::io::Result<Snapshot> {
        // A guest at rest has used some 150 MiB of its memory.
        refuse_beyond_half(SNAPSHOT_MEMORY).map_err(std::io::Error::other)?;
        let state = in_memory("pagelab-snapshot")?;
        monitor.save(&state)?;
        Ok(Snapshot { key: key.clone(), state, initramfs: Arc::clone(initramfs) })
    };
    // Where it cannot be kept, the next one boots.
    if let Ok(snapshot) = save(monitor) {
        snapshot::keep(snapshot);
    }
    monitor.go_on().map_err(|e| Failure::system("letting the guest go on", &e))
}

/// How the forwarding of messages ended.
enum Forwarded {
    Finished(Result<()>),
    Interrupted,
    Recorder(Failure),
    Silent { booted: bool },
    Gone { booted: bool },
}

/// Whether QEMU is to be started again without KVM: it was chosen by pagelab, and QEMU was started
/// and failed.
fn falls_back(asked: Accel, tried: Accel, error: &std::io::Error) -> bool {
    asked == Accel::Auto && tried == Accel::Kvm && error.kind() == std::io::ErrorKind::Other
}

impl Performer for Guest {
    fn perform(
        &mut self,
        experiment: &Experiment,
        setting: &Setting,
        recorder: &mut dyn Recorder,
    ) -> Result<()> {
        let accel = match self.options.accel {
            Accel::Auto if !self.without_kvm && self.options.trace.is_none() && kvm_is_there() => Accel::Kvm,
            Accel::Auto => Accel::Tcg,
            asked => asked,
        };
        self.begun += 1;
        recorder.observe(self.describe(accel))?;
        let mut ended = self.boot(accel, experiment, setting, recorder)?;
        if matches!(ended, Ended::NotRestored) {
            ended = self.boot(accel, experiment, setting, recorder)?;
        }
        if let (Ended::NeverBooted { .. }, Accel::Auto, Accel::Kvm) = (&ended, self.options.accel, accel) {
            self.without_kvm = true;
            let text = "the kernel does not boot with KVM on this host; it runs translated (accel=tcg)";
            note(recorder, Level::Info, text)?;
            recorder.observe(self.describe(Accel::Tcg))?;
            ended = self.boot(Accel::Tcg, experiment, setting, recorder)?;
        } else if let (Ended::NeverBooted { why, panicked: true }, Accel::Tcg, 2..) =
            (&ended, accel, self.options.cpus)
        {
            // QEMU translates each CPU in a thread of its own. A CPU may run an int3 that the
            // kernel has already replaced: reported for QEMU 8.0 (LKML, July 2023, "qemu-x86_64
            // booting with 8.0.0 stil see int3"), seen with QEMU 7.2 and Debian's 6.12.
            note(recorder, Level::Warning, format!("{why}\nIt was booted once more."))?;
            ended = self.boot(Accel::Tcg, experiment, setting, recorder)?;
        }
        match ended {
            Ended::Whole(result) => result,
            Ended::NotRestored => {
                Err(Failure::new(FailureKind::NeverBooted, "the guest can neither be restored nor booted"))
            }
            Ended::NeverBooted { why, .. } => Err(Failure::new(FailureKind::NeverBooted, why)),
        }
    }
}
