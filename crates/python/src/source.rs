//! Where a recorded trace is: a path, or an open file of Python's, such as fsspec gives for a URL.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use pagelab_reference::trace::{Options, Reader};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Bytes that are asked of an open file at a time: a request to a store takes milliseconds.
const REQUEST: usize = 4 << 20;

/// What errors call an open file.
pub const OPEN: &str = "(an open file)";

/// An open file of Python's.
pub struct Open {
    file: Py<PyAny>,
    left: Vec<u8>,
    at: usize,
}

impl Read for Open {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.left.len() {
            let read = Python::attach(|py| {
                let bytes = self.file.bind(py).call_method1("read", (REQUEST,))?;
                Ok::<_, PyErr>(bytes.cast_into::<PyBytes>().map_err(PyErr::from)?.as_bytes().to_vec())
            });
            (self.left, self.at) = (read.map_err(io::Error::other)?, 0);
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
        let gone =
            Python::attach(|py| self.file.bind(py).call_method1("seek", (offset, whence))?.extract::<u64>());
        (self.left, self.at) = (Vec::new(), 0);
        gone.map_err(io::Error::other)
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
        Ok(Self::Open(Open { file: argument.clone().unbind(), left: Vec::new(), at: 0 }, length))
    }

    /// Opens it.
    pub fn reader(self, options: &Options) -> anyhow::Result<Reader> {
        Ok(match self {
            Self::Path(path) => Reader::open(&path, options)?,
            Self::Open(file, length) => Reader::of(Path::new(OPEN), Box::new(file), length, options)?,
        })
    }
}
