//! The host target end to end: a worker process, a memory limit, real paging. Needs root; without
//! it every test says so in one line and passes.
//!
//! Run one with `cargo test -p pagelab-live --test host -- NAME`.

use std::process::ExitCode;

use pagelab_experiment::experiments::{Paging, Touch};
use pagelab_experiment::{Experiment, Observation, Observations, Recorder, RecorderError, Setting, Target};
use pagelab_live::{Host, worker};

/// Keeps everything in memory.
#[derive(Default)]
struct Memory {
    seen: Observations,
    progress: Vec<(String, u64, u64)>,
    interrupt_in: Option<&'static str>,
}

impl Recorder for Memory {
    fn observe(&mut self, observation: Observation) -> Result<(), RecorderError> {
        self.seen.add(observation);
        Ok(())
    }

    fn progress(&mut self, phase: &str, done: u64, total: u64) {
        self.progress.push((phase.to_owned(), done, total));
    }

    fn interrupted(&self) -> bool {
        let phase = self.progress.last().map(|p| p.0.as_str());
        self.interrupt_in.is_some() && phase == self.interrupt_in
    }
}

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(worker::ARGUMENT) {
        return pagelab_live::worker_main();
    }
    let mut memory = Memory::default();
    let paging = Paging { pages: 12288, references: 1_000_000, touch: Touch::Page, ..Paging::default() };
    let r = Host::new().perform(&Experiment::Mapanon(paging), &Setting::default(), &mut memory);
    println!("{r:?}");
    let s = &memory.seen;
    println!("{:#?}", s.environment);
    for m in &s.metrics {
        println!("{} {:?}", m.name, m.value);
    }
    for h in &s.histograms {
        println!("{} {} {} {}", h.name, h.count(), h.min, h.max);
    }
    println!("{:?}", s.notes);
    println!(
        "{} windows, {} pages, {} counters",
        s.tables[0].numbers("time").unwrap().len(),
        s.pages.len(),
        s.counters.len()
    );
    ExitCode::SUCCESS
}
