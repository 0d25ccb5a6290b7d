//! `build`: a parallel compilation, as Dillon's was.
//!
//! The sources are one file that pagelab writes; a macro makes as many different units of it. `jobs`
//! compilers run at once in each of the copies of the build. What is compiled is thrown away. With
//! `--cmd` the command is run instead, `{jobs}` replaced, as many copies at once.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use pagelab_experiment::experiments::Faultscale;
use pagelab_experiment::{Failure, Recorder, Result};
use pagelab_kernel::lifetime::die_with_parent;
use pagelab_kernel::rusage;

use super::Point;
use crate::harness::context::ExecutionContext;
use crate::harness::failure::failed;

/// Functions of a unit: about a tenth of a second for a compiler.
const FUNCTIONS: u32 = 120;
/// Between two samples at the compilers.
const POLL_INTERVAL: Duration = Duration::from_micros(500);

/// Builds once with `jobs` jobs in each copy. An operation is a unit, or the command.
pub(super) fn build(
    faultscale: &Faultscale,
    jobs: u32,
    context: &ExecutionContext,
    recorder: &mut dyn Recorder,
) -> Result<Point> {
    run(faultscale, jobs, faultscale.sources.max(1), context, recorder, || {})
}

/// A smaller build to take lock events in: one unit for each job. A command is not repeated.
pub(super) fn sample(
    faultscale: &Faultscale,
    jobs: u32,
    context: &ExecutionContext,
    recorder: &mut dyn Recorder,
    look: impl FnMut(),
) -> Result<Point> {
    run(faultscale, jobs, faultscale.sources.clamp(1, jobs), context, recorder, look)
}

fn run(
    faultscale: &Faultscale,
    jobs: u32,
    units: u32,
    context: &ExecutionContext,
    recorder: &mut dyn Recorder,
    mut look: impl FnMut(),
) -> Result<Point> {
    let source = match &faultscale.cmd {
        Some(_) => None,
        None => Some(write_source(context)?),
    };
    let copies = faultscale.copies.clamp(1, 1024);
    let (used, begun) = (rusage::children(), Instant::now());
    let mut crews: Vec<Crew> = (0..copies).map(|_| Crew { running: Vec::new(), next: 0 }).collect();
    loop {
        let mut running = 0;
        for crew in &mut crews {
            match (&faultscale.cmd, source) {
                (Some(cmd), _) => crew.go_on(1, 1, |_| shell(&cmd.replace("{jobs}", &jobs.to_string())))?,
                (None, Some(source)) => crew.go_on(jobs, units, |unit| compiler(source, unit))?,
                (None, None) => {}
            }
            running += crew.running.len();
        }
        if running == 0 {
            break;
        }
        look();
        recorder.check()?;
        std::thread::sleep(POLL_INTERVAL);
    }
    let each = if faultscale.cmd.is_some() { 1 } else { units };
    Ok(Point {
        workers: jobs,
        operations: f64::from(each) * f64::from(copies),
        elapsed: begun.elapsed(),
        used: rusage::children() - used,
        times: None,
        waits: 0.0,
        calls: 0.0,
        mappings: None,
    })
}

/// One copy of the build; its compilers are ended when it is dropped.
struct Crew {
    running: Vec<Child>,
    next: u32,
}

impl Crew {
    /// Takes notice of those that ended and starts others while there are units.
    fn go_on(&mut self, jobs: u32, units: u32, start: impl Fn(u32) -> Command) -> Result<()> {
        let mut ended: Option<ExitStatus> = None;
        self.running.retain_mut(|child| match child.try_wait() {
            Ok(Some(status)) => {
                if !status.success() {
                    ended = Some(status);
                }
                false
            }
            _ => true,
        });
        if let Some(status) = ended {
            return Err(Failure::program("a command of the build", status));
        }
        while self.running.len() < jobs as usize && self.next < units {
            let mut command = start(self.next);
            die_with_parent(&mut command);
            let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
            let name = command.get_program().to_string_lossy().into_owned();
            self.running.push(child.map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => Failure::unsupported(
                    format!("the compiler {name} is not installed"),
                    "install a C compiler, name one in CC, or give --cmd",
                ),
                _ => failed(&format!("starting {name}"))(error),
            })?);
            self.next += 1;
        }
        Ok(())
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for child in &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn compiler(source: &Path, unit: u32) -> Command {
    let mut command = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    command
        .args(["-x", "c", "-O1", "-pipe", "-c", "-o", "/dev/null"])
        .arg(format!("-DUNIT={unit}"))
        .arg(source);
    command
}

fn shell(text: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", text]);
    command
}

/// Writes the source to the scratch file.
fn write_source(context: &ExecutionContext) -> Result<&Path> {
    let path = context.scratch("faultscale --work build")?;
    std::fs::write(path, source()).map_err(failed(&format!("writing {}", path.display())))?;
    Ok(path)
}

/// A C source whose functions differ from unit to unit by the macro UNIT.
fn source() -> String {
    let mut text = String::from("#define J(a, b) a##b\n#define N(a, b) J(a, b)\n");
    for f in 0..FUNCTIONS {
        let _ = write!(
            text,
            "int N(f{f}_, UNIT)(int *a, int n) {{\n  int s = UNIT * {f} + {f};\n  for (int i = 0; i < n; i++) {{\n    switch ((a[i] + s) % 7) {{\n    case 0: s += a[i] * {m}; break;\n    case 1: s ^= a[i] << {k}; break;\n    case 2: s -= a[(i * {m}) % n]; break;\n    case 3: a[i] = s / (i + {m}); break;\n    default: s = s * {m} + i;\n    }}\n  }}\n  return s;\n}}\n",
            m = f % 13 + 2,
            k = f % 5 + 1,
        );
    }
    text
}
