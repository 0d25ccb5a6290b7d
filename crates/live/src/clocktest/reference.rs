//! Another machine's clock, over TCP: one byte asks, sixteen answer (the raw monotonic and the wall
//! clock, ns, little-endian).
//!
//! Of many questions the one with the quickest answer counts: when it came, the other clock was
//! between "asked" and "answered", which is half its round trip of uncertainty at either end.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Questions in a comparison.
const QUESTIONS: u32 = 32;
/// How long an answer may take, and how long a client may stay silent.
const PATIENCE: Duration = Duration::from_secs(5);
const SILENCE: Duration = Duration::from_secs(3600);
/// Clients at once.
const CLIENTS: usize = 64;

fn now(id: ClockId) -> i64 {
    let time = clock_gettime(id);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// A connection to another machine's clock.
#[derive(Debug)]
pub struct Reference(TcpStream);

/// The other clock at one moment of this one.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// This machine's raw clock, in the middle of the quickest exchange, ns.
    pub here: f64,
    /// The other's, ns.
    pub there: f64,
    /// The other's wall clock less this machine's, ns.
    pub wall: f64,
    /// Half the round trip: what `there` may be wrong by, ns.
    pub error: f64,
}

impl Moment {
    /// The drift of this machine's clock against the other's until `later`, and what it may be wrong
    /// by; both as a share.
    pub fn drift(&self, later: &Self) -> (f64, f64) {
        let (here, there) = (later.here - self.here, later.there - self.there);
        (here / there - 1.0, (self.error + later.error) / there.abs())
    }
}

impl Reference {
    /// Connects to `address`, HOST:PORT.
    ///
    /// # Errors
    /// When nobody answers there within five seconds.
    pub fn connect(address: &str) -> io::Result<Self> {
        let mut last = io::Error::other("no such host; write HOST:PORT");
        for address in address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(PATIENCE))?;
                    return Ok(Self(stream));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The other clock now.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn compare(&mut self) -> io::Result<Moment> {
        let mut best: Option<Moment> = None;
        for _ in 0..QUESTIONS {
            let asked = now(ClockId::MonotonicRaw);
            self.0.write_all(&[1])?;
            let mut answer = [0; 16];
            self.0.read_exact(&mut answer)?;
            let answered = now(ClockId::MonotonicRaw);
            let word = |at: usize| i64::from_le_bytes(answer[at..at + 8].try_into().expect("eight bytes"));
            let error = (answered - asked) as f64 / 2.0;
            if best.is_none_or(|best| error < best.error) {
                let wall = word(8) as f64 - (now(ClockId::Realtime) as f64 - error);
                best = Some(Moment { here: asked as f64 + error, there: word(0) as f64, wall, error });
            }
        }
        Ok(best.expect("some questions"))
    }
}

/// Answers everybody who asks at `listener`, for ever; 64 clients at once, each may be silent for an
/// hour.
///
/// # Errors
/// When no further connection can be accepted.
pub fn serve(listener: &TcpListener) -> io::Result<()> {
    let clients = Arc::new(AtomicUsize::new(0));
    loop {
        let (stream, _) = listener.accept()?;
        if clients.fetch_add(1, Ordering::AcqRel) >= CLIENTS {
            clients.fetch_sub(1, Ordering::AcqRel);
            continue;
        }
        let clients = Arc::clone(&clients);
        std::thread::spawn(move || {
            let _ = answer(stream);
            clients.fetch_sub(1, Ordering::AcqRel);
        });
    }
}

fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENCE))?;
    let mut asked = [0; 1];
    loop {
        stream.read_exact(&mut asked)?;
        let mut answer = [0; 16];
        answer[..8].copy_from_slice(&now(ClockId::MonotonicRaw).to_le_bytes());
        answer[8..].copy_from_slice(&now(ClockId::Realtime).to_le_bytes());
        stream.write_all(&answer)?;
    }
}
