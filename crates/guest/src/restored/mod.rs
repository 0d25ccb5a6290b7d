//! `trace=restored`: saves the machine while the load runs, restores it page by page, and writes the
//! pages that it then touches to a file, in the order of their first touch.
//!
//! The file is text with one page number per line, which the experiment `restore` replays. On x86-64
//! up to 3 GiB, page N is the guest-physical address N × 4096.

mod saved;
mod server;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use pagelab_experiment::build::note;
use pagelab_experiment::observation::Level;
use pagelab_experiment::{Failure, Observation, Recorder, Result, environment};

pub use self::saved::Saved;
use self::server::{Touched, serve};
use crate::options::Restore;

/// A saved machine, its file, and the line over which QEMU asks for its pages.
type Begun = (Saved, File, UnixStream);

/// One repetition in a machine that is saved and restored while the load runs.
pub struct Restored {
    when: Restore,
    server: Option<(JoinHandle<io::Result<Touched>>, u32)>,
}

fn restoring(error: &io::Error) -> Failure {
    Failure::system("restoring the guest page by page", error)
}

impl Restored {
    /// One that is restored as `when` says.
    pub fn new(when: Restore) -> Self {
        Self { when, server: None }
    }

    /// Polls while the load runs, `elapsed` after its start. `restore` saves the machine and begins
    /// to restore it; it is called once, when it is due.
    ///
    /// # Errors
    /// When `restore` fails, or the server of pages has.
    pub fn poll(&mut self, elapsed: Duration, restore: impl FnOnce() -> io::Result<Begun>) -> Result<()> {
        match &self.server {
            None if elapsed >= self.when.after => {
                let (saved, file, line) = restore().map_err(|e| restoring(&e))?;
                let (pages, first) = (saved.pages(), self.when.first);
                let thread = Builder::new()
                    .name("pages".into())
                    .spawn(move || serve(&saved, &file, line, first))
                    .map_err(|e| restoring(&e))?;
                self.server = Some((thread, pages));
                Ok(())
            }
            Some((thread, _)) if thread.is_finished() => self.join().map(drop),
            _ => Ok(()),
        }
    }

    /// The touched pages, and the number of pages of the machine. Waits until QEMU has ended.
    fn join(&mut self) -> Result<(Touched, u32)> {
        let Some((thread, pages)) = self.server.take() else {
            let after = self.when.after.as_secs_f64();
            return Err(Failure::unsupported(
                format!("the load ended before the machine was saved, {after} s after it began"),
                "choose a smaller after=, or a longer load",
            ));
        };
        let touched = thread.join().unwrap_or_else(|_| Err(io::Error::other("its thread has ended")));
        Ok((touched.map_err(|e| restoring(&e))?, pages))
    }

    /// Writes the pages to a new file at `path`, once the machine has ended. In a later repetition,
    /// `earlier` has the pages of the first one, which are compared instead.
    ///
    /// # Errors
    /// When the load ended too early, pages could not be served, or the file cannot be written.
    pub fn finish(
        mut self,
        path: &PathBuf,
        command: &str,
        earlier: Option<&[u32]>,
        recorder: &mut dyn Recorder,
    ) -> Result<Vec<u32>> {
        let (touched, pages) = self.join()?;
        let (after, recorded) = (self.when.after.as_secs_f64(), touched.recorded.as_secs_f64());
        let count = touched.pages.len();
        let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let text = format!(
            "{count} of {pages} pages touched in the first {recorded:.1} s after the restore, half of them in {:.1} s; \
             {:.1} MiB to read, {} pages of zeros",
            touched.half.as_secs_f64(),
            mebibytes(touched.bytes),
            count as u64 - touched.bytes / saved::PAGE_SIZE,
        );
        note(recorder, Level::Info, text)?;
        let text = match earlier {
            Some(earlier) => {
                let now: HashSet<u32> = touched.pages.iter().copied().collect();
                let missing = earlier.iter().filter(|page| !now.contains(page)).count();
                let share = 100.0 * missing as f64 / earlier.len().max(1) as f64;
                format!(
                    "{share:.1}% of the recorded pages were not touched again (for --changed of run restore)"
                )
            }
            None => {
                let shown = path.display().to_string();
                // Formats are recognised by ASCII characters alone.
                let command: String =
                    command.chars().map(|c| if matches!(c, ' '..='~') { c } else { '?' }).collect();
                let head = format!(
                    "# The pages that a restored guest touched, in the order of their first touch\n# {command}\n\
                     # saved {after} s after the load began; recorded for {recorded:.1} s; {count} of {pages} pages of 4096 bytes\n"
                );
                let write = || -> io::Result<()> {
                    let lines: String = touched.pages.iter().map(|page| format!("{page}\n")).collect();
                    let mut file = File::create_new(path)?;
                    let written =
                        file.write_all(head.as_bytes()).and_then(|()| file.write_all(lines.as_bytes()));
                    if written.is_err() {
                        let _ = fs::remove_file(path);
                    }
                    written
                };
                write().map_err(|e| Failure::system(format!("writing {shown}"), &e))?;
                let text = format!(
                    "pages written to {shown}; compare orders of prefetching with \
                     pagelab run restore --pattern trace:{shown} --pages {pages} --references {count}"
                );
                let seen = [(environment::TRACE_FILE.to_owned(), shown)].into();
                recorder.observe(Observation::Environment(seen))?;
                text
            }
        };
        note(recorder, Level::Info, text)?;
        Ok(touched.pages)
    }
}
