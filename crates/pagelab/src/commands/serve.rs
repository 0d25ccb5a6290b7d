//! `pagelab export --listen`: the kernel's counters for Prometheus, over HTTP.
//!
//! One thread answers one scrape at a time: a scrape reads the counters then and there. Without a
//! selector everything is served but single threads and processes, whose coming and going would make
//! a new time series each.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, anyhow};
use pagelab_counters::{Selection, Tree, openmetrics};
use tiny_http::{Header, Method, Request, Response, Server};

use crate::context::Context;
use crate::failure::usage;
use crate::interrupt::Interrupt;

/// How often a wait looks whether the user wants to end.
const LOOK: Duration = Duration::from_millis(250);

/// Serves until the user ends it.
pub fn serve(address: SocketAddr, selectors: &[String], context: &Context) -> Result<ExitCode> {
    let selection = selection(selectors)?;
    let interrupt = Interrupt::listen()?;
    let server = Server::http(address).map_err(|e| anyhow!("{address} cannot be listened on: {e}"))?;
    if !context.quiet {
        let at = server.server_addr();
        eprintln!("pagelab: serving http://{at}/metrics until Ctrl-C");
        if !address.ip().is_loopback() {
            eprintln!("pagelab: {at} can be reached from other machines, without a password");
        }
    }
    let tree = Tree::live();
    while !interrupt.requested() {
        if let Some(request) = server.recv_timeout(LOOK)? {
            // A scraper that went away is its own affair.
            let _ = answer(request, &tree, &selection);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn selection(selectors: &[String]) -> Result<Selection> {
    let tree = Tree::live();
    let all: Vec<&str> =
        tree.providers().iter().filter(|p| p.class() != "process").map(|p| p.module()).collect();
    let operands = if selectors.is_empty() { all } else { selectors.iter().map(String::as_str).collect() };
    Selection::parse(operands).map_err(|e| usage(e.to_string()))
}

fn answer(request: Request, tree: &Tree, selection: &Selection) -> std::io::Result<()> {
    if !matches!(request.method(), Method::Get | Method::Head) {
        return request.respond(Response::from_string("only GET\n").with_status_code(405));
    }
    match request.url().split('?').next() {
        Some("/metrics") => {
            let text = openmetrics::render(tree.read(selection).samples());
            request.respond(Response::from_string(text).with_header(content_type(openmetrics::CONTENT_TYPE)))
        }
        Some("/") => {
            request.respond(Response::from_string("pagelab: the kernel's counters are at /metrics\n"))
        }
        _ => request.respond(Response::from_string("see /metrics\n").with_status_code(404)),
    }
}

fn content_type(value: &str) -> Header {
    Header::from_bytes("Content-Type", value).expect("a constant header is well formed")
}
