//! Clients that mean no good: garbage, endless requests, silence, hundreds of connections.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::lab::{Lab, kill};
use pagelab_testing::random::Random;

/// How long an attack lasts.
const ATTACK: Duration = Duration::from_secs(3);
/// What a server may grow by meanwhile, bytes.
const GROWTH: u64 = 32 << 20;
/// How long an honest client may wait on a machine that does other things beside.
const ANSWER: Duration = Duration::from_secs(3);

/// Reads what a server says, up to this word, and gives what follows on the line.
fn said(child: &mut Child, stdout: bool, word: &str) -> Result<String, String> {
    let mut text = String::new();
    let mut byte = [0];
    loop {
        let read = match (stdout, &mut child.stdout, &mut child.stderr) {
            (true, Some(pipe), _) => pipe.read(&mut byte),
            (false, _, Some(pipe)) => pipe.read(&mut byte),
            _ => return Err("no pipe".into()),
        };
        if !matches!(read, Ok(1)) {
            return Err(format!("the server ended: {text}"));
        }
        text.push(char::from(byte[0]));
        if byte[0] == b'\n'
            && let Some((_, rest)) = text.split_once(word)
        {
            return Ok(rest.trim().to_owned());
        }
    }
}

fn resident(pid: u32) -> u64 {
    let pages = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let resident = pages.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    resident.unwrap_or(0) * rustix::param::page_size() as u64
}

fn connect(address: &str) -> Result<TcpStream, String> {
    let stream = TcpStream::connect(address).map_err(|e| format!("{address}: {e}"))?;
    let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
    let _ = stream.set_write_timeout(Some(Duration::from_millis(200)));
    Ok(stream)
}

/// Attacks until the time is over; those that are held open are held to the end.
fn attack(address: &str, random: &mut Random, honest: &dyn Fn() -> Result<(), String>) -> Result<(), String> {
    let begun = Instant::now();
    let mut open = Vec::new();
    while begun.elapsed() < ATTACK {
        let mut stream = connect(address)?;
        let bytes: Vec<u8> = match random.below(7) {
            0 => (0..random.below(9000)).map(|_| random.next() as u8).collect(),
            1 => format!("GET /metrics HTTP/1.1\r\nContent-Length: {}\r\n\r\n", random.next()).into(),
            2 => "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".repeat(300).into(),
            3 => format!("GET /{} HTTP/1.1\r\n", "x".repeat(random.below(90_000) as usize)).into(),
            4 => "A: b\r\n".repeat(random.below(9000) as usize).into(),
            5 => b"POST /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n".to_vec(),
            _ => Vec::new(),
        };
        let _ = stream.write_all(&bytes);
        if random.below(2) == 0 && open.len() < 400 {
            open.push(stream);
        }
        if random.below(40) == 0 {
            honest()?;
        }
    }
    honest()
}

fn attacked(
    lab: &Lab,
    (line, stdout, word): (&str, bool, &str),
    random: &mut Random,
    honest: impl Fn(&str) -> Result<(), String>,
) -> Result<(), String> {
    let mut server = lab.begin(line)?;
    let address = said(&mut server, stdout, word)?;
    let address = address.split('/').next().unwrap_or_default().to_owned();
    honest(&address)?;
    let before = resident(server.id());
    let result = attack(&address, random, &|| honest(&address));
    let grown = resident(server.id()).saturating_sub(before);
    kill(server.id(), Signal::INT);
    let ended = lab.end(line, server)?;
    result?;
    if grown > GROWTH {
        return Err(format!("{line}: grew by {grown} bytes"));
    }
    if ended.status.success() || ended.status.code().is_none() {
        Ok(())
    } else {
        Err(format!("{line}: {}", ended.status))
    }
}

pub fn exporter(lab: &Lab, random: &mut Random) -> Result<(), String> {
    attacked(lab, ("export --listen 127.0.0.1:0 vmstat meminfo", false, "http://"), random, |address| {
        let begun = Instant::now();
        let mut stream = connect(address)?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").map_err(|e| e.to_string())?;
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        match answer.ends_with("# EOF\n") && begun.elapsed() < ANSWER {
            true => Ok(()),
            false => Err(format!("a scrape of {} bytes took {:?}", answer.len(), begun.elapsed())),
        }
    })
}

pub fn clock(lab: &Lab, random: &mut Random) -> Result<(), String> {
    attacked(lab, ("clock serve 127.0.0.1:0", true, "serving the clock at "), random, |address| {
        let line = format!("run clock --steps 2 --reference {address} --memory none --html none -q");
        lab.ok(&line).map(drop)
    })
}
