//! Machine-readable output: one JSON object with its schema's version.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};

/// The version of every JSON form that pagelab prints; it grows when a field changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// Prints `{"schema_version": …, KEY: VALUE}`.
pub fn print_json(key: &str, value: Value) -> Result<ExitCode> {
    let mut object = json!({ "schema_version": SCHEMA_VERSION });
    object[key] = value;
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &object).map_err(std::io::Error::from)?;
    writeln!(out)?;
    Ok(ExitCode::SUCCESS)
}
