//! `pagelab export --listen`: the kernel's counters for Prometheus, over HTTP.
//!
//! A scrape reads the counters then and there; scrapes within [`FRESH`] share one reading, so that
//! many clients cost what one does. Whoever can reach the port is bounded: the head of a request in
//! size and time, a connection in time (one request each; a body is not read), and their number (of
//! too many the oldest goes). Without a selector everything is served but single threads and
//! processes, whose coming and going would make a new time series each.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use pagelab_counters::{Provider, Selection, Tree, Unit, openmetrics};
use pagelab_experiment::MetricId;
use pagelab_experiment::experiments::Need;
use pagelab_experiment::metrics::{NEED_LIMIT, NEED_MEMORY};
use pagelab_notebook::Notebook;

use crate::context::Context;
use crate::failure::usage;
use crate::interrupt::Interrupt;
use crate::output::{REACHABLE, remark};
use crate::recording;
use crate::ticker::Extra;

/// Between two polls for the user's wish to end, and after an error of the listener.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long a reading of the counters is served.
const FRESH: Duration = Duration::from_millis(200);
/// Timeout of the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of a head, and headers, at most.
const MAX_HEAD: usize = 16 << 10;
const MAX_HEADERS: usize = 64;
/// Timeout of a connection, its answer taken.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Connections at once, each with a thread.
const MAX_CONNECTIONS: usize = 512;
const STACK: usize = 1 << 20;
/// The gauges of a need, and the metrics that they show.
const NEEDS: [(&str, MetricId); 2] = [("memory", NEED_MEMORY), ("limit", NEED_LIMIT)];
/// The type of short answers.
const PLAIN: &str = "text/plain; charset=utf-8";

/// Serves on the first of `addresses` that can be had until the user ends it.
pub fn serve(
    addresses: &[SocketAddr],
    selectors: &[String],
    extra: &Extra,
    context: &Context,
) -> Result<ExitCode> {
    let tree = extra.add(Tree::live())?.with(needs(context.notebook.clone()));
    let page = Arc::new(Page { selection: selection(&tree, selectors)?, tree, last: Mutex::default() });
    let interrupt = Interrupt::listen()?;
    let listener = TcpListener::bind(addresses).with_context(|| {
        let all: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
        format!("cannot listen on {}", all.join(" or "))
    })?;
    if !context.quiet {
        let at = listener.local_addr()?;
        remark!("serving http://{at}/metrics until Ctrl-C");
        if !at.ip().is_loopback() {
            remark!("warning: {} {at}, without a password; use localhost to prevent that", REACHABLE.0);
        }
    }
    // The threads end with the process.
    thread::Builder::new().spawn(move || accept(&listener, &page)).context("the server cannot be started")?;
    while !interrupt.requested() {
        thread::sleep(POLL_INTERVAL);
    }
    Ok(ExitCode::SUCCESS)
}

/// The newest measurements of `pagelab need`, one for each cgroup or process, from the notebook.
fn needs(notebook: PathBuf) -> Provider {
    Provider::new("need", "misc", "runs of pagelab need in the notebook", move |_, sink| {
        let Ok(notebook) = Notebook::open_existing(&notebook) else { return };
        let mut newest = BTreeMap::new();
        for summary in notebook.list().unwrap_or_default() {
            if let Some(need) = summary.header.experiment.parameters::<Need>().filter(|_| summary.done > 0) {
                newest.insert(need.of.clone(), summary.id);
            }
        }
        for (of, run) in newest {
            let Some(mut group) = sink.group(0, &of) else { continue };
            let Ok(run) = notebook.load(run) else { continue };
            let Some(last) = run.done().last() else { continue };
            for (name, metric) in NEEDS {
                let value = last.observations.metric(metric).map(|bytes| bytes.max(0.0) as u64);
                group.gauge(name, value, Unit::Bytes);
            }
        }
    })
}

fn selection(tree: &Tree, selectors: &[String]) -> Result<Selection> {
    let all: Vec<&str> = tree.providers().iter().filter(|p| p.class != "process").map(|p| p.module).collect();
    let operands = if selectors.is_empty() { all } else { selectors.iter().map(String::as_str).collect() };
    let selection = Selection::parse(operands).map_err(|e| usage(e.to_string()))?;
    match recording::unmatched(tree, selectors) {
        Some(selector) => {
            Err(usage(format!("no counter matches '{selector}'\nhint: 'pagelab stat -l' lists all")))
        }
        None => Ok(selection),
    }
}

/// Takes connections, each to a thread.
fn accept(listener: &TcpListener, page: &Arc<Page>) {
    let mut open: VecDeque<Weak<TcpStream>> = VecDeque::new();
    loop {
        // A client that went away, or too many open files: neither is for ever.
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(POLL_INTERVAL);
            continue;
        };
        open.retain(|stream| stream.strong_count() > 0);
        if open.len() >= MAX_CONNECTIONS
            && let Some(oldest) = open.pop_front().and_then(|stream| stream.upgrade())
        {
            let _ = oldest.shutdown(Shutdown::Both);
        }
        let (stream, page) = (Arc::new(stream), Arc::clone(page));
        open.push_back(Arc::downgrade(&stream));
        // A scraper that went away, or is too slow, is its own affair, and so is one for which
        // there is no thread.
        let _ = thread::Builder::new().stack_size(STACK).spawn(move || connection(&stream, &page));
    }
}

/// Answers one request.
fn connection(stream: &TcpStream, page: &Page) -> io::Result<()> {
    let begun = Instant::now();
    let answer = match head(stream, begun + HEAD_TIMEOUT)? {
        Ok((method, path)) => answer(&method, &path, page),
        Err(status) => response(status, PLAIN, "no request that is understood\n", true),
    };
    let mut rest = answer.as_bytes();
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left(begun + TIMEOUT)?))?;
        let written = (&mut &*stream).write(rest)?;
        rest = &rest[written..];
    }
    Ok(())
}

/// The method and the path of a request, or the status that refuses it.
fn head(stream: &TcpStream, deadline: Instant) -> io::Result<Result<(String, String), &'static str>> {
    let (mut bytes, mut part) = (Vec::new(), [0; 2048]);
    loop {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&bytes) {
            Ok(httparse::Status::Complete(_)) => {
                let [method, target] = [request.method, request.path].map(Option::unwrap_or_default);
                let path = target.split('?').next().unwrap_or_default();
                return Ok(Ok((method.to_owned(), path.to_owned())));
            }
            Err(httparse::Error::TooManyHeaders) => return Ok(Err("431 Request Header Fields Too Large")),
            Err(_) => return Ok(Err("400 Bad Request")),
            Ok(httparse::Status::Partial) if bytes.len() >= MAX_HEAD => {
                return Ok(Err("431 Request Header Fields Too Large"));
            }
            Ok(httparse::Status::Partial) => {}
        }
        stream.set_read_timeout(Some(left(deadline)?))?;
        match (&mut &*stream).read(&mut part)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => bytes.extend_from_slice(&part[..read]),
        }
    }
}

/// The time to the deadline.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
    left.ok_or_else(|| io::ErrorKind::TimedOut.into())
}

fn answer(method: &str, path: &str, page: &Page) -> String {
    let body = method != "HEAD";
    match (method, path) {
        ("GET" | "HEAD", "/metrics") => response("200 OK", openmetrics::CONTENT_TYPE, &page.text(), body),
        ("GET" | "HEAD", "/") => {
            response("200 OK", PLAIN, "pagelab: the kernel's counters are at /metrics\n", body)
        }
        ("GET" | "HEAD", _) => response("404 Not Found", PLAIN, "see /metrics\n", body),
        _ => response("405 Method Not Allowed\r\nallow: GET, HEAD", PLAIN, "only GET\n", body),
    }
}

fn response(status: &str, kind: &str, text: &str, body: bool) -> String {
    let length = text.len();
    let text = if body { text } else { "" };
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{text}"
    )
}

/// What is served.
struct Page {
    tree: Tree,
    selection: Selection,
    /// The last reading, and when it was made.
    last: Mutex<Option<(Instant, Arc<str>)>>,
}

impl Page {
    /// The counters now.
    fn text(&self) -> Arc<str> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, text)) = last.as_ref()
            && at.elapsed() < FRESH
        {
            return Arc::clone(text);
        }
        let text: Arc<str> = openmetrics::render(self.tree.read(&self.selection).samples()).into();
        *last = Some((Instant::now(), Arc::clone(&text)));
        text
    }
}
