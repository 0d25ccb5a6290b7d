//! What a performer says to the recorder's side, one message a frame of [`crate::harness::wire`].

use std::io::{Read, Write};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;

use pagelab_experiment::{Failure, Observation, Recorder, RecorderError, Result};
use serde::{Deserialize, Serialize};

use crate::harness::wire;

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Message {
    /// Something was seen.
    Observation(Observation),
    /// How far the performance is; see [`Recorder::progress`].
    Progress(String, u64, u64),
    /// The experiment was performed wholly. The last message.
    Done,
    /// It was not. The last message.
    Failed(Failure),
}

/// The performer's recorder: sends everything as messages.
#[derive(Debug)]
pub struct Sender<W>(pub W);

impl<W: Write> Sender<W> {
    /// Sends the last message.
    ///
    /// # Errors
    /// When the line fails.
    pub fn finish(&mut self, result: Result<()>) -> Result<(), wire::WireError> {
        let last = match result {
            Ok(()) => Message::Done,
            Err(failure) => Message::Failed(failure),
        };
        wire::write(&mut self.0, &last)
    }
}

impl<W: Write> Recorder for Sender<W> {
    fn observe(&mut self, observation: Observation) -> Result<(), RecorderError> {
        wire::write(&mut self.0, &Message::Observation(observation)).map_err(RecorderError::new)
    }

    /// A progress message that cannot be sent is dropped: the next observation will fail as well.
    fn progress(&mut self, phase: &str, done: u64, total: u64) {
        let _ = wire::write(&mut self.0, &Message::Progress(phase.to_owned(), done, total));
    }

    /// The other side ends this process when the user interrupts.
    fn interrupted(&self) -> bool {
        false
    }
}

/// What came over a line: a message, its end, or what was wrong with it.
pub type Received = Result<Option<Message>, wire::WireError>;

/// Reads messages in a thread of its own until the end of `input` or the first error.
///
/// # Errors
/// When there can be no thread.
pub fn listen(
    mut input: impl Read + Send + 'static,
) -> std::io::Result<(Receiver<Received>, JoinHandle<()>)> {
    let (sender, messages) = mpsc::channel();
    let reading = std::thread::Builder::new().spawn(move || {
        loop {
            let received = receive(&mut input);
            let more = matches!(received, Ok(Some(_)));
            if sender.send(received).is_err() || !more {
                return;
            }
        }
    })?;
    Ok((messages, reading))
}

/// Reads the next message; `None` at the end of the input.
///
/// # Errors
/// See [`wire::read`].
pub fn receive(input: &mut impl Read) -> Result<Option<Message>, wire::WireError> {
    wire::read(input)
}
