//! `pagelab clock serve`: this machine's clock for `pagelab run clock --reference` on another.

use std::net::TcpListener;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use pagelab_live::experiments::clock::reference::serve;

use crate::output::say;

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(before_help = "Example:\n  pagelab clock serve 0.0.0.0:7071\n")]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand, Debug)]
enum Action {
    /// Serve this machine's clocks to any client, until interrupted
    #[command(
        before_help = "Examples:\n  pagelab clock serve               # to this machine\n  pagelab clock serve 0.0.0.0:7071  # to others, for run clock --reference\n"
    )]
    Serve {
        /// The address to listen on; who can reach it can read this machine's uptime and time
        #[arg(value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7071")]
        address: String,
    },
}

/// Serves until interrupted.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Action::Serve { address } = &arguments.action;
    let listener = TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    say!("serving the clock at {}", listener.local_addr()?);
    serve(&listener).context("cannot accept another connection")?;
    Ok(ExitCode::SUCCESS)
}
