//! The published figures: the CSV files of `published/`, embedded, each row read by its columns' names.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use crate::error::StudyError;

/// A file of published figures.
#[derive(Clone, Copy, Debug)]
pub struct Sheet {
    /// Its name in `published/`.
    pub file: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// A file of `published/` as a [`Sheet`].
macro_rules! sheet {
    ($file:literal) => {
        $crate::published::Sheet {
            file: $file,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/published/", $file)),
        }
    };
}
pub(crate) use sheet;

impl Sheet {
    /// Every row as texts by the columns' names.
    ///
    /// # Errors
    /// When the file is torn.
    pub fn records(&self) -> Result<Vec<BTreeMap<String, String>>, StudyError> {
        self.rows()
    }

    /// Every row; lines that begin with `#` are comments.
    ///
    /// # Errors
    /// When a row has not the fields of `T`.
    pub fn rows<T: DeserializeOwned>(&self) -> Result<Vec<T>, StudyError> {
        let mut reader = csv::ReaderBuilder::new()
            .comment(Some(b'#'))
            .trim(csv::Trim::All)
            .from_reader(self.text.as_bytes());
        reader.deserialize().collect::<Result<_, _>>().map_err(|error| self.wrong(error.to_string()))
    }

    /// What is wrong with this file.
    pub fn wrong(&self, what: impl Into<String>) -> StudyError {
        StudyError::Published { file: self.file, what: what.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_skip_comments_and_refuse_torn_lines() {
        let sheet = |text| Sheet { file: "t.csv", text };
        let read = sheet("# a comment\na,b\n1, 2\n3,4\n").rows::<(u32, f64)>();
        assert_eq!(read.unwrap(), vec![(1, 2.0), (3, 4.0)]);
        for torn in ["a,b\n1,2\n3\n", "a,b\n1,x\n"] {
            let error = sheet(torn).rows::<(u32, f64)>().unwrap_err().to_string();
            assert!(error.starts_with("published/t.csv: "), "{error}");
        }
    }
}
