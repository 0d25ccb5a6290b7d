//! Writes the page of plots, and opens it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use pagelab_analysis::findings::Assessment;
use pagelab_analysis::mechanisms::Matrix;
use pagelab_report::{Section, TextTable};

use crate::output::aside;

/// How long the program that opens a page may take to say that it cannot.
const OPENING: Duration = Duration::from_secs(3);

/// Whether a page is drawn, and where.
#[derive(clap::Args, Clone, Debug)]
pub struct Drawing {
    /// Draw the curves as a page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Draw the page, into a temporary file without --html, and open it in the browser
    #[arg(long)]
    plot: bool,
}

impl Drawing {
    /// Whether a page is drawn.
    pub fn wanted(&self) -> bool {
        self.plot || self.html.is_some()
    }

    /// Draws the sections where that is wanted, and opens the page; `json`: standard output is not for words.
    ///
    /// # Errors
    /// When the page cannot be written. That nothing opens it is only said.
    pub fn draw(&self, title: &str, sections: &[Section], json: bool) -> Result<()> {
        let file = match &self.html {
            Some(file) => file.clone(),
            None if self.plot => {
                let named = tempfile::Builder::new().prefix("pagelab-").suffix(".html").tempfile();
                named.and_then(|file| Ok(file.keep()?.1)).context("cannot create a temporary file")?
            }
            None => return Ok(()),
        };
        write_document(title, None, sections, &file)?;
        if self.plot {
            let said = match open(&file) {
                Ok(()) => format!("page: {}", file.display()),
                Err(why) => {
                    format!("the page {} was not opened: {why}; open it in a browser", file.display())
                }
            };
            aside(&said, json);
        }
        Ok(())
    }
}

/// Has the desktop open a file.
fn open(file: &Path) -> Result<(), String> {
    let mut command = Command::new("xdg-open");
    command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut opening = command.spawn().map_err(|error| format!("cannot run xdg-open ({error})"))?;
    let begun = Instant::now();
    while begun.elapsed() < OPENING {
        match opening.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("xdg-open ended with {status}")),
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    // It is the browser itself by now.
    Ok(())
}

/// Draws runs and what they say into `file`.
///
/// # Errors
/// When the file cannot be written.
pub fn write(assessment: &Assessment, file: &Path) -> Result<()> {
    put(&pagelab_report::page(assessment), file)
}

/// Draws finished sections into `file`, after a table of all of them where there is one.
///
/// # Errors
/// When the file cannot be written.
pub fn write_document(
    title: &str,
    overview: Option<&TextTable>,
    sections: &[Section],
    file: &Path,
) -> Result<()> {
    put(&pagelab_report::document(title, overview, sections), file)
}

/// Draws a matrix of switches and loads into `file`; `target`: what was measured.
///
/// # Errors
/// When the file cannot be written.
pub fn write_matrix(matrix: &Matrix, target: &str, file: &Path) -> Result<()> {
    put(&pagelab_report::page::mechanisms::page(matrix, target), file)
}

fn put(html: &str, file: &Path) -> Result<()> {
    crate::file::write(file, |out| Ok(out.write_all(html.as_bytes())?)).context("the page of plots")
}
