//! Another machine's clock, over TCP: a question of a mark and a number, an answer of the same two
//! and the raw monotonic and the wall clock (ns, little-endian).
//!
//! Of many questions the one with the quickest answer counts: when it came, the other clock was
//! between "asked" and "answered", which is half its round trip of uncertainty at either end. An
//! answer without the question's mark and number comes from something else, and is an error. Each
//! comparison has a connection of its own, so that nobody needs to keep one that is silent: the
//! server ends those.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Questions in a comparison.
const QUESTIONS: u64 = 32;
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long a question may take to come, and how long one client is served.
const SILENCE: Duration = Duration::from_secs(5);
const LIFE: Duration = Duration::from_secs(60);
/// Clients at once; of more the oldest goes.
const CLIENTS: usize = 128;
/// The stack of a thread that answers one.
const STACK: usize = 64 << 10;
/// Begins every question and answer.
const MARK: u64 = u64::from_le_bytes(*b"PgLbClk2");

fn now(id: ClockId) -> i64 {
    let time = clock_gettime(id);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Another machine's clock.
#[derive(Debug)]
pub struct Reference(Vec<SocketAddr>);

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
    ///
    /// # Errors
    /// When the other clock did not go on meanwhile.
    pub fn drift(&self, later: &Self) -> io::Result<(f64, f64)> {
        let (here, there) = (later.here - self.here, later.there - self.there);
        if there <= 0.0 {
            return Err(wrong("its clock stopped or went backwards between two comparisons"));
        }
        Ok((here / there - 1.0, (self.error + later.error) / there))
    }
}

fn wrong(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

impl Reference {
    /// The clock served at `address`, HOST:PORT.
    ///
    /// # Errors
    /// When there is no such host.
    pub fn at(address: &str) -> io::Result<Self> {
        let found: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
        if found.is_empty() {
            return Err(io::Error::other("no such host; write HOST:PORT"));
        }
        Ok(Self(found))
    }

    /// The other clock now.
    ///
    /// # Errors
    /// When nobody answers within five seconds, or not as `pagelab clock serve` does.
    pub fn compare(&self) -> io::Result<Moment> {
        let mut stream = self.connect()?;
        let mut best: Option<Moment> = None;
        let mut before = 0;
        for number in 1..=QUESTIONS {
            let asked = now(ClockId::MonotonicRaw);
            stream.write_all(&words([MARK, number]))?;
            let mut answer = [0; 32];
            read_before(&mut stream, &mut answer, Instant::now() + TIMEOUT).map_err(unanswered)?;
            let answered = now(ClockId::MonotonicRaw);
            let word = |n: usize| u64::from_le_bytes(*answer[n * 8..].first_chunk().expect("eight bytes"));
            if (word(0), word(1)) != (MARK, number) {
                return Err(wrong("the server there is not 'pagelab clock serve'"));
            }
            let there = word(2).cast_signed();
            if there < before {
                return Err(wrong("its clock went backwards"));
            }
            before = there;
            let error = (answered - asked) as f64 / 2.0;
            if best.is_none_or(|best| error < best.error) {
                let wall = word(3).cast_signed() as f64 - (now(ClockId::Realtime) as f64 - error);
                best = Some(Moment { here: asked as f64 + error, there: there as f64, wall, error });
            }
        }
        Ok(best.expect("some questions"))
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let mut last = None;
        for address in &self.0 {
            match TcpStream::connect_timeout(address, TIMEOUT) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_write_timeout(Some(TIMEOUT))?;
                    return Ok(stream);
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| io::Error::other("no address")))
    }
}

/// What an answer that did not come means.
fn unanswered(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {} s", TIMEOUT.as_secs()))
        }
        io::ErrorKind::UnexpectedEof => {
            wrong("the server ended the connection: it is not 'pagelab clock serve', or has too many clients")
        }
        _ => error,
    }
}

fn words<const N: usize>(words: [u64; N]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Fills `bytes`, however slowly they come, before `deadline`.
fn read_before(stream: &mut TcpStream, bytes: &mut [u8], deadline: Instant) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut bytes[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => filled += read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Answers everybody who asks at `listener`, for ever: 128 clients at once, each for a minute at
/// most, and none that is silent for five seconds. Of more clients the oldest is sent away.
///
/// # Errors
/// When cannot accept another connection.
pub fn serve(listener: &TcpListener) -> io::Result<()> {
    let mut clients: VecDeque<(TcpStream, JoinHandle<()>)> = VecDeque::new();
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            // It went away, or too many files are open: neither is for ever.
            Err(e) if passes(&e) => {
                thread::sleep(Duration::from_millis(50));
                continue;
            }
            Err(e) => return Err(e),
        };
        clients.retain(|(_, thread)| !thread.is_finished());
        if clients.len() >= CLIENTS
            && let Some((oldest, _)) = clients.pop_front()
        {
            let _ = oldest.shutdown(Shutdown::Both);
        }
        let Ok(kept) = stream.try_clone() else { continue };
        let thread = thread::Builder::new().stack_size(STACK).spawn(move || {
            // A client that went away, or asks something else, is its own affair.
            let _ = answer(stream);
        });
        if let Ok(thread) = thread {
            clients.push_back((kept, thread));
        }
    }
}

/// Whether accepting may succeed later.
fn passes(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted)
        || matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(SILENCE))?;
    let end = Instant::now() + LIFE;
    let mut question = [0; 16];
    loop {
        read_before(&mut stream, &mut question, end.min(Instant::now() + SILENCE))?;
        if question[..8] != MARK.to_le_bytes() {
            return Err(wrong("no question"));
        }
        let times = [ClockId::MonotonicRaw, ClockId::Realtime].map(|id| now(id).cast_unsigned());
        stream.write_all(&[&question[..], &words(times)].concat())?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that does `with` every client what it wants; its address.
    fn server(with: impl Fn(TcpStream) + Send + 'static) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || listener.incoming().flatten().for_each(with));
        address
    }

    fn compare(address: &str) -> io::Result<Moment> {
        Reference::at(address).unwrap().compare()
    }

    #[test]
    fn foreign_replies_are_errors() {
        let banner = server(|mut s| {
            drop(s.write_all(b"SSH-2.0-OpenSSH_9.6p1 Debian and more than thirty-two bytes\r\n"))
        });
        assert_eq!(compare(&banner).unwrap_err().kind(), io::ErrorKind::InvalidData);
        let zeros = server(|mut s| drop(s.write_all(&[0; 4096])));
        assert_eq!(compare(&zeros).unwrap_err().kind(), io::ErrorKind::InvalidData);
        let echo = server(|mut s| {
            let mut question = [0; 16];
            while s.read_exact(&mut question).is_ok() && s.write_all(&question.repeat(2)).is_ok() {}
        });
        let error = compare(&echo);
        // An echo has the mark and the number; its clock is the mark, which never goes on.
        assert!(error.and_then(|first| first.drift(&compare(&echo)?)).is_err());
        let closed = server(drop);
        assert!(compare(&closed).is_err());
        let drip = server(|mut s| {
            while s.write_all(&[0]).is_ok() {
                thread::sleep(Duration::from_millis(400));
            }
        });
        assert!(compare(&drip).is_err());
    }

    #[test]
    fn silence_is_an_error_that_says_so() {
        let silent =
            server(|s| thread::sleep(TIMEOUT * 3 + Duration::from_secs(u64::from(s.ttl().is_err()))));
        let error = compare(&silent).unwrap_err();
        assert!(error.to_string().contains("no answer within 5 s"), "{error}");
    }

    #[test]
    fn silent_clients_do_not_keep_others_out() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || serve(&listener));
        let silent: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(&address).unwrap()).collect();
        let (first, later) = (compare(&address).unwrap(), compare(&address).unwrap());
        let (drift, error) = first.drift(&later).unwrap();
        assert!(drift.abs() <= error, "{drift} {error}");
        assert!(later.drift(&first).is_err(), "backwards");
        drop(silent);
    }
}
