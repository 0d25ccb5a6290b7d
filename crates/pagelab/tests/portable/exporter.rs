//! The exporter under attack: whoever can reach its port can neither stop it, nor fill its memory,
//! nor keep a scrape waiting.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::common::Lab;

/// An exporter on a port of its own.
struct Exporter {
    child: Child,
    address: String,
    _lab: Lab,
}

impl Exporter {
    fn start() -> Self {
        Self::of(Lab::new(), "vmstat pressure meminfo")
    }

    /// One that serves what is selected.
    fn of(lab: Lab, selected: &str) -> Self {
        let mut child = lab.begin(&format!("export --listen 127.0.0.1:0 {selected}"), Stdio::null());
        let mut said = String::new();
        let stderr = child.stderr.as_mut().unwrap();
        while !said.contains("/metrics") {
            let mut byte = [0];
            assert_eq!(stderr.read(&mut byte).unwrap(), 1, "{said}");
            said.push(char::from(byte[0]));
        }
        let address = said.split("http://").nth(1).unwrap().trim_end_matches("/metrics").to_owned();
        Self { child, address, _lab: lab }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    /// Sends this, gives what comes back.
    fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        // It may answer and close before it has read all.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// A whole scrape.
    fn scrape(&self) {
        let text = self.ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("# EOF\n"), "{text}");
    }

    /// Its resident memory, bytes.
    fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

#[test]
fn slow_clients_and_those_that_read_nothing_keep_no_scrape_waiting() {
    let exporter = Exporter::start();
    exporter.scrape();
    let slow: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = exporter.connect();
            stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: ").unwrap();
            stream
        })
        .collect();
    exporter.scrape();
    // It was not answered after they were given up.
    let waits = |mut client: &TcpStream| {
        client.set_nonblocking(true).unwrap();
        client.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    };
    assert!(slow.iter().any(waits), "the scrape waited for all of them");
    // Requests by the hundred, whose answers nobody takes.
    let request = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".repeat(500);
    let greedy: Vec<TcpStream> = (0..50)
        .map(|_| {
            let mut stream = exporter.connect();
            let _ = stream.set_nonblocking(true);
            let _ = stream.write_all(request.as_bytes());
            stream
        })
        .collect();
    for _ in 0..5 {
        exporter.scrape();
    }
    // More than it has places for: the newest are served.
    let more: Vec<TcpStream> = (0..500).map(|_| exporter.connect()).collect();
    exporter.scrape();
    drop((slow, greedy, more));
}

#[test]
fn no_request_is_too_much() {
    let mut exporter = Exporter::start();
    exporter.scrape();
    let before = exporter.resident();
    for size in ["18446744073709551615", "9223372036854775807", "1000000000000", "-1", "x"] {
        exporter.ask(&format!("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\nabc"));
        exporter.ask(&format!("GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\nabc"));
    }
    let chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabc";
    exporter.ask(chunked);
    let long = "y".repeat(32 << 20);
    let refused = [
        format!("GET /metrics HTTP/1.1\r\nHost: x\r\nX: {long}\r\n\r\n"),
        format!("GET /{long} HTTP/1.1\r\nHost: x\r\n\r\n"),
        format!("GET /metrics HTTP/1.1\r\nHost: x\r\n{}\r\n", "A: b\r\n".repeat(1_000_000)),
        long,
    ];
    for request in refused {
        assert!(!exporter.ask(&request).starts_with("HTTP/1.1 200"));
    }
    for garbage in [
        "\r\n\r\n",
        "GET\r\n\r\n",
        "\0\0\0\0\r\n\r\n",
        "GET /metrics HTTP/9.9\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        exporter.ask(garbage);
    }
    assert!(exporter.ask("PUT /metrics HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 405"));
    assert!(exporter.ask("GET /x HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 404"));
    let head = exporter.ask("HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
    exporter.scrape();
    let grown = exporter.resident().saturating_sub(before);
    assert!(grown < 16 << 20, "{grown} bytes more");
    assert!(exporter.child.try_wait().unwrap().is_none());
}

#[test]
fn ten_thousand_requests_take_no_memory() {
    let exporter = Exporter::start();
    let ask = |times: u32| {
        for _ in 0..times {
            assert!(exporter.ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").ends_with("# EOF\n"));
        }
    };
    ask(1000);
    let before = exporter.resident();
    ask(10_000);
    let grown = exporter.resident().saturating_sub(before);
    assert!(grown < 4 << 20, "{grown} bytes more after 10,000 requests");
}

#[test]
fn it_ends_whoever_is_connected() {
    let mut exporter = Exporter::start();
    let open: Vec<TcpStream> = (0..100).map(|_| exporter.connect()).collect();
    let interrupted =
        std::process::Command::new("kill").args(["-INT", &exporter.child.id().to_string()]).status();
    assert!(interrupted.unwrap().success());
    assert!(exporter.child.wait().unwrap().success());
    drop(open);
}

/// Counters that a user adds himself are served, and each scrape reads them anew.
#[test]
fn a_users_own_counters_are_served() {
    let lab = Lab::new();
    let own = lab.path("own");
    std::fs::create_dir(&own).unwrap();
    let write = |value: u32| {
        let text = format!("# TYPE depth gauge\ndepth{{queue=\"a\"}} {value}\n");
        std::fs::write(own.join("app.prom"), text).unwrap();
    };
    write(7);
    let exporter = Exporter::of(lab, "--extra own extra");
    let scrape = || exporter.ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let first = scrape();
    assert!(
        first.starts_with("HTTP/1.1 200") && first.contains("pagelab_extra_depth{series=\"queue=a\"} 7\n"),
        "{first}"
    );
    write(8);
    // Scrapes within a fifth of a second are served the same.
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(scrape().contains("pagelab_extra_depth{series=\"queue=a\"} 8\n"), "{}", scrape());
}
