//! `pagelab export --listen`: the kernel's counters for Prometheus, over HTTP.
//!
//! A scrape reads the counters then and there; scrapes within [`FRESH`] share one reading, so that many
//! clients cost what one does. Whoever can reach the port is bounded: the head of a request in size and time,
//! a connection in time (one request each; a body is not read), and their number (of too many the oldest
//! goes). Without a selector everything is served but single threads and processes, whose coming and going
//! would make a new time series each.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use pagelab_counters::{Selection, Tree, openmetrics};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::context::Context;
use crate::failure::usage;
use crate::interrupt::Interrupt;
use crate::output::remark;
use crate::ticker::Extra;

/// How often a wait looks whether the user wants to end.
const LOOK: Duration = Duration::from_millis(250);
/// How long a reading of the counters is served.
const FRESH: Duration = Duration::from_millis(200);
/// How long the head of a request may take to come.
const HEAD: Duration = Duration::from_secs(5);
/// The most bytes of a head, and the most headers.
const HEAD_BYTES: usize = 16 << 10;
const HEADERS: usize = 64;
/// How long a connection may last, its answer taken.
const LIFE: Duration = Duration::from_secs(20);
/// Connections at once.
const CONNECTIONS: usize = 512;

/// Serves on the first of `addresses` that can be had until the user ends it.
pub fn serve(
    addresses: &[SocketAddr],
    selectors: &[String],
    extra: &Extra,
    context: &Context,
) -> Result<ExitCode> {
    let tree = extra.add(Tree::live())?;
    let page = Arc::new(Page { selection: selection(&tree, selectors)?, tree, last: Mutex::default() });
    let interrupt = Interrupt::listen()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .context("the server cannot be started")?;
    runtime.block_on(async {
        let listener = TcpListener::bind(addresses).await;
        let listener = listener.with_context(|| {
            let all: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
            format!("{} cannot be listened on", all.join(" or "))
        })?;
        if !context.quiet {
            let at = listener.local_addr()?;
            remark!("serving http://{at}/metrics until Ctrl-C");
            if !at.ip().is_loopback() {
                remark!("{at} can be reached from other machines, without a password");
            }
        }
        accept(&listener, &page, &interrupt).await;
        Ok(ExitCode::SUCCESS)
    })
}

fn selection(tree: &Tree, selectors: &[String]) -> Result<Selection> {
    let all: Vec<&str> =
        tree.providers().iter().filter(|p| p.class() != "process").map(|p| p.module()).collect();
    let operands = if selectors.is_empty() { all } else { selectors.iter().map(String::as_str).collect() };
    Selection::parse(operands).map_err(|e| usage(e.to_string()))
}

/// Takes connections until the user ends it.
async fn accept(listener: &TcpListener, page: &Arc<Page>, interrupt: &Interrupt) {
    let mut open: VecDeque<AbortHandle> = VecDeque::new();
    while !interrupt.requested() {
        let stream = match timeout(LOOK, listener.accept()).await {
            Err(_) => continue,
            Ok(Ok((stream, _))) => stream,
            // A client that went away, or too many open files: neither is for ever.
            Ok(Err(_)) => {
                sleep(LOOK / 5).await;
                continue;
            }
        };
        open.retain(|task| !task.is_finished());
        if open.len() >= CONNECTIONS
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        let page = Arc::clone(page);
        let task = tokio::spawn(async move {
            // A scraper that went away, or is too slow, is its own affair.
            let _ = timeout(LIFE, connection(stream, page)).await;
        });
        open.push_back(task.abort_handle());
    }
}

/// Answers one request.
async fn connection(stream: TcpStream, page: Arc<Page>) -> hyper::Result<()> {
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEADERS)
        .keep_alive(false)
        .serve_connection(
            TokioIo::new(stream),
            service_fn(move |request| {
                let page = Arc::clone(&page);
                async move { Ok::<_, Infallible>(answer(&request, &page).await) }
            }),
        )
        .await
}

async fn answer(request: &Request<Incoming>, page: &Arc<Page>) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match request.uri().path() {
        "/metrics" => match page.text().await {
            Some(text) => {
                let mut response = Response::new(Full::new(text));
                let kind = HeaderValue::from_static(openmetrics::CONTENT_TYPE);
                response.headers_mut().insert(CONTENT_TYPE, kind);
                response
            }
            None => plain(StatusCode::INTERNAL_SERVER_ERROR, "the counters cannot be read\n"),
        },
        "/" => plain(StatusCode::OK, "pagelab: the kernel's counters are at /metrics\n"),
        _ => plain(StatusCode::NOT_FOUND, "see /metrics\n"),
    }
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// What is served.
struct Page {
    tree: Tree,
    selection: Selection,
    /// The last reading, and when it was made.
    last: Mutex<Option<(Instant, Bytes)>>,
}

impl Page {
    /// The counters now; None where reading them failed.
    async fn text(self: &Arc<Self>) -> Option<Bytes> {
        let mut last = self.last.lock().await;
        if let Some((at, text)) = last.as_ref()
            && at.elapsed() < FRESH
        {
            return Some(text.clone());
        }
        // In a thread of its own: slow files of the kernel hold up nobody's connection.
        let page = Arc::clone(self);
        let read = move || Bytes::from(openmetrics::render(page.tree.read(&page.selection).samples()));
        let text = tokio::task::spawn_blocking(read).await.ok()?;
        *last = Some((Instant::now(), text.clone()));
        Some(text)
    }
}
