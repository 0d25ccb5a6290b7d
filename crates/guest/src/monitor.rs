//! QEMU's monitor (QMP): the machine is stopped, kept in a file, brought back and let go on through it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long QEMU may take for an answer.
const ANSWER: Duration = Duration::from_secs(20);
/// How long it may take to write or read a machine.
const COPY: Duration = Duration::from_secs(120);
/// Between two samples whether it is done.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Bytes a second at which a machine is written: no bound.
const UNBOUNDED: u64 = 1 << 40;

/// The line to QEMU.
pub struct Monitor {
    line: UnixStream,
    said: Receiver<Value>,
    stopped: bool,
}

impl Monitor {
    /// Begins to speak over `line`.
    ///
    /// # Errors
    /// When QEMU is gone.
    pub fn new(line: UnixStream) -> io::Result<Self> {
        let (say, said) = channel();
        let lines = BufReader::new(line.try_clone()?).lines();
        // It ends with QEMU.
        std::thread::Builder::new().spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Ok(value) = serde_json::from_str(&line)
                    && say.send(value).is_err()
                {
                    break;
                }
            }
        })?;
        let mut new = Self { line, said, stopped: false };
        new.ask("qmp_capabilities", &json!({}))?;
        Ok(new)
    }

    /// Whether the machine has stopped since this was last asked.
    pub fn stopped(&mut self) -> bool {
        while let Ok(said) = self.said.try_recv() {
            self.note(&said);
        }
        std::mem::take(&mut self.stopped)
    }

    fn note(&mut self, said: &Value) {
        self.stopped |= said["event"] == "STOP";
    }

    /// Writes the stopped machine to `file`.
    ///
    /// # Errors
    /// What QEMU says.
    pub fn save(&mut self, file: &File) -> io::Result<()> {
        self.ask("migrate-set-parameters", &json!({ "max-bandwidth": UNBOUNDED }))?;
        self.ask("migrate", &json!({ "uri": format!("exec:cat > {}", path(file)) }))?;
        self.until(|monitor| {
            let state = monitor.ask("query-migrate", &json!({}))?;
            match state["status"].as_str() {
                // The machine itself is told a moment later; until then it cannot go on.
                Some("completed") => {
                    let machine = monitor.ask("query-status", &json!({}))?;
                    Ok(machine["status"] != "finish-migrate")
                }
                Some("failed" | "cancelled") => Err(io::Error::other(state["error-desc"].to_string())),
                _ => Ok(false),
            }
        })
    }

    /// Brings the machine in `file` back, stopped as it was; this one was started to wait for it.
    ///
    /// # Errors
    /// What QEMU says.
    pub fn restore(&mut self, file: &File) -> io::Result<()> {
        self.ask("migrate-incoming", &json!({ "uri": format!("exec:cat < {}", path(file)) }))?;
        self.until(|monitor| {
            let state = monitor.ask("query-status", &json!({}))?;
            Ok(state["status"] != "inmigrate")
        })
    }

    /// Restores a machine page by page over `line`, which QEMU has inherited. QEMU lets it run as
    /// soon as its devices are there.
    ///
    /// # Errors
    /// What QEMU says.
    pub fn restore_by_page(&mut self, line: &UnixStream) -> io::Result<()> {
        let by_page = json!([{ "capability": "postcopy-ram", "state": true }]);
        self.ask("migrate-set-capabilities", &json!({ "capabilities": by_page }))?;
        self.ask("migrate-incoming", &json!({ "uri": format!("fd:{}", line.as_raw_fd()) })).map(drop)
    }

    /// Stops the machine.
    ///
    /// # Errors
    /// What QEMU says.
    pub fn stop(&mut self) -> io::Result<()> {
        self.ask("stop", &json!({}))?;
        self.stopped();
        Ok(())
    }

    /// Lets the machine go on.
    ///
    /// # Errors
    /// What QEMU says.
    pub fn go_on(&mut self) -> io::Result<()> {
        self.ask("cont", &json!({})).map(drop)
    }

    fn until(&mut self, mut done: impl FnMut(&mut Self) -> io::Result<bool>) -> io::Result<()> {
        let begun = Instant::now();
        while !done(self)? {
            if begun.elapsed() > COPY {
                return Err(io::ErrorKind::TimedOut.into());
            }
            sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    fn ask(&mut self, command: &str, arguments: &Value) -> io::Result<Value> {
        let text = json!({ "execute": command, "arguments": arguments }).to_string();
        self.line.write_all(format!("{text}\n").as_bytes())?;
        loop {
            let gone = |_| io::Error::other(format!("QEMU gives no answer to {command}"));
            let said = self.said.recv_timeout(ANSWER).map_err(gone)?;
            if let Some(error) = said.get("error") {
                return Err(io::Error::other(format!("{command}: {}", error["desc"])));
            }
            if let Some(answer) = said.get("return") {
                return Ok(answer.clone());
            }
            self.note(&said);
        }
    }
}

/// The file, as a program that QEMU starts finds it: with this process.
fn path(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A QEMU that gives these answers, one a question; the questions.
    fn qemu(line: UnixStream, answers: &'static [&'static str]) -> std::thread::JoinHandle<Vec<String>> {
        std::thread::spawn(move || {
            let mut lines = BufReader::new(line.try_clone().unwrap()).lines();
            let mut line = line;
            line.write_all(b"{\"QMP\": {}}\n").unwrap();
            let answer = |answer: &&str| {
                let asked = lines.next().unwrap().unwrap();
                line.write_all(format!("{answer}\n").as_bytes()).unwrap();
                asked
            };
            answers.iter().map(answer).collect()
        })
    }

    #[test]
    fn answers_and_events_are_distinguished() {
        let (here, there) = UnixStream::pair().unwrap();
        let qemu = qemu(
            there,
            &[
                "{\"return\": {}}",
                "{\"event\": \"STOP\"}\n{\"return\": {}}",
                "{\"error\": {\"desc\": \"no\"}}",
            ],
        );
        let mut monitor = Monitor::new(here).unwrap();
        assert!(!monitor.stopped());
        monitor.go_on().unwrap();
        assert!(monitor.stopped() && !monitor.stopped(), "once");
        assert!(monitor.go_on().unwrap_err().to_string().contains("no"));
        let asked = qemu.join().unwrap();
        assert!(asked[0].contains("qmp_capabilities") && asked[1].contains("cont"), "{asked:?}");
    }

    /// QEMU says that the copy is complete before the machine may go on.
    #[test]
    fn a_machine_is_saved_once_it_can_go_on() {
        let (here, there) = UnixStream::pair().unwrap();
        const DONE: &str = "{\"return\": {\"status\": \"completed\"}}";
        let qemu = qemu(
            there,
            &[
                "{\"return\": {}}",
                "{\"return\": {}}",
                "{\"return\": {}}",
                "{\"return\": {\"status\": \"active\"}}",
                DONE,
                "{\"return\": {\"status\": \"finish-migrate\"}}",
                DONE,
                "{\"return\": {\"status\": \"postmigrate\"}}",
            ],
        );
        Monitor::new(here).unwrap().save(&File::open("/dev/null").unwrap()).unwrap();
        let asked = qemu.join().unwrap();
        assert!(asked[7].contains("query-status"), "{asked:?}");
    }
}
