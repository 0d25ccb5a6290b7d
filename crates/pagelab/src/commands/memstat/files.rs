//! `pagelab memstat --files`: the files and directories that fill the page cache.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use pagelab_counters::Tree;
use pagelab_counters::views::files::{self, Looked};
use pagelab_kernel::cached_files::{Order, look};
use serde_json::json;

use crate::context::Context;
use crate::failure::usage;
use crate::output::{print_json, sentences};
use crate::terminal;

/// The width of the widest table, in columns.
const WHOLE: usize = 140;

/// Prints the largest directories and files below `directories`. Without directories, it takes the
/// files that processes have open or mapped, and those below the working directory.
pub fn run(
    directories: &[PathBuf],
    frames: bool,
    rows: usize,
    json: bool,
    context: &Context,
) -> Result<ExitCode> {
    let of_processes = directories.is_empty();
    let directories = if of_processes { vec![std::env::current_dir()?] } else { directories.to_vec() };
    let order = Order { directories, of_processes, frames, keep: rows };
    let mut looked = look(&order).map_err(|error| usage(format!("--files {error}")))?;
    let machine = files::machine(&Tree::live().read(&files::selection()));
    let directories = looked.largest_directories(rows);
    if json {
        return print_json("page_cache", object(&mut looked, &directories, machine)?);
    }
    let width = terminal::width(WHOLE);
    let mut out = crate::output::stdout();
    write!(out, "{}", files::table("DIRECTORY", &directories, width))?;
    write!(out, "\n{}\n", files::table("FILE", looked.files(), width))?;
    drop(out);
    for line in looked.account(machine) {
        sentences(&line, "", "", &context.style);
    }
    if of_processes {
        let hint = "These are the files that processes have open or mapped, and those below the working \
                    directory. 'memstat --files /' shows all files.";
        sentences(hint, "", "", &context.style);
    }
    Ok(ExitCode::SUCCESS)
}

fn object(
    looked: &mut Looked,
    directories: &[files::Row],
    machine: Option<f64>,
) -> Result<serde_json::Value> {
    let files = serde_json::to_value(looked.files())?;
    Ok(json!({
        "looked_at": looked.looked_at,
        "with_pages": looked.with_pages,
        "total": looked.total,
        "machine": machine,
        "directories": directories,
        "files": files,
        "left_out": looked.left_out,
    }))
}
