//! Where a recorded trace is: a path, or an open file of Python's, such as fsspec gives for a URL.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pagelab_reference::trace::{Options, Reader};
use pagelab_simulation::Watch;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::watch;

/// Bytes that are asked of an open file at a time: a request to a store takes milliseconds.
const REQUEST: usize = 4 << 20;

/// What errors call an open file.
pub const OPEN: &str = "(an open file)";

/// An open file of Python's.
pub struct Open {
    file: Py<PyAny>,
    left: Vec<u8>,
    at: usize,
    /// What it raised first: a decompressor between it and the reader reports something else.
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl Open {
    fn call<T>(&self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> io::Result<T> {
        Python::attach(|py| call(self.file.bind(py))).map_err(|raised| {
            let error = io::Error::other(raised.to_string());
            self.raised.lock().expect("no thread panics while it holds the lock").get_or_insert(raised);
            error
        })
    }
}

impl Read for Open {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.left.len() {
            let read = self.call(|file| {
                let bytes = file.call_method1("read", (REQUEST,))?;
                Ok(bytes.cast_into::<PyBytes>().map_err(PyErr::from)?.as_bytes().to_vec())
            });
            (self.left, self.at) = (read?, 0);
        }
        let count = buffer.len().min(self.left.len() - self.at);
        buffer[..count].copy_from_slice(&self.left[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

impl Seek for Open {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (offset, whence) = match to {
            SeekFrom::Start(byte) => (byte as i64, 0),
            // The file is ahead by what is left.
            SeekFrom::Current(bytes) => (bytes - (self.left.len() - self.at) as i64, 1),
            SeekFrom::End(bytes) => (bytes, 2),
        };
        let gone = self.call(|file| file.call_method1("seek", (offset, whence))?.extract::<u64>());
        (self.left, self.at) = (Vec::new(), 0);
        gone
    }
}

/// Where a trace is: a path, or an open file with `read`, `seek` and `tell`.
pub enum Source {
    Path(PathBuf),
    Open(Open, u64),
}

impl Source {
    /// The one that an argument means.
    pub fn of(argument: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(path) = argument.extract::<PathBuf>() {
            return Ok(Self::Path(path));
        }
        let length: u64 = argument.call_method1("seek", (0, 2))?.extract()?;
        argument.call_method1("seek", (0,))?;
        let (file, raised) = (argument.clone().unbind(), Arc::default());
        Ok(Self::Open(Open { file, left: Vec::new(), at: 0, raised }, length))
    }

    /// Works on it as [`watch::during`] does.
    ///
    /// # Errors
    /// As there; what an open file raised, as it is.
    pub fn during<T: Send>(
        self,
        py: Python<'_>,
        name: &str,
        work: impl FnOnce(Self, &dyn Watch) -> anyhow::Result<T> + Send,
    ) -> PyResult<T> {
        let raised = match &self {
            Self::Path(_) => Arc::default(),
            Self::Open(file, _) => Arc::clone(&file.raised),
        };
        let result = watch::during(py, name, |watch| work(self, watch));
        let raised = raised.lock().expect("no thread panics while it holds the lock").take();
        result.map_err(|error| raised.unwrap_or(error))
    }

    /// Opens it.
    pub fn reader(self, options: &Options) -> anyhow::Result<Reader> {
        Ok(match self {
            Self::Path(path) => Reader::open(&path, options)?,
            Self::Open(file, length) => Reader::of(Path::new(OPEN), Box::new(file), length, options)?,
        })
    }
}
