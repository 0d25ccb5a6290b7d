//! The long form as Parquet, one row group for each repetition.

use std::io::Write;
use std::sync::Arc;

use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::parser::parse_message_type;
use pagelab_experiment::Run;

use super::long::{self, Row};

const SCHEMA: &str = "message pagelab {
    REQUIRED BYTE_ARRAY run (UTF8);
    REQUIRED INT64 repetition;
    REQUIRED BYTE_ARRAY outcome (UTF8);
    REQUIRED BYTE_ARRAY kind (UTF8);
    REQUIRED BYTE_ARRAY name (UTF8);
    OPTIONAL BYTE_ARRAY item (UTF8);
    OPTIONAL INT64 row;
    OPTIONAL BYTE_ARRAY unit (UTF8);
    OPTIONAL DOUBLE value;
    OPTIONAL BYTE_ARRAY text (UTF8);
}";

pub(super) fn write(runs: &[Run], to: &mut (impl Write + Send)) -> Result<()> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut file = SerializedFileWriter::new(to, schema, Arc::new(WriterProperties::new()))?;
    for run in runs {
        for repetition in &run.repetitions {
            let rows = long::rows(run, repetition);
            if !rows.is_empty() {
                let mut group = file.next_row_group()?;
                columns(&mut group, &rows)?;
                group.close()?;
            }
        }
    }
    file.close()?;
    Ok(())
}

fn columns<W: Write + Send>(group: &mut SerializedRowGroupWriter<'_, W>, rows: &[Row]) -> Result<()> {
    texts(group, rows, |r| Some(&r.run), REQUIRED)?;
    column::<Int64Type, _>(group, rows.iter().map(|r| Some(r.repetition)), REQUIRED)?;
    texts(group, rows, |r| Some(r.outcome), REQUIRED)?;
    texts(group, rows, |r| Some(r.kind), REQUIRED)?;
    texts(group, rows, |r| Some(&r.name), REQUIRED)?;
    texts(group, rows, |r| r.item.as_deref(), OPTIONAL)?;
    column::<Int64Type, _>(group, rows.iter().map(|r| r.row), OPTIONAL)?;
    texts(group, rows, |r| r.unit.as_deref(), OPTIONAL)?;
    column::<DoubleType, _>(group, rows.iter().map(|r| r.value), OPTIONAL)?;
    texts(group, rows, |r| r.text.as_deref(), OPTIONAL)
}

const REQUIRED: bool = false;
const OPTIONAL: bool = true;

fn texts<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Row],
    text: impl Fn(&Row) -> Option<&str>,
    optional: bool,
) -> Result<()> {
    column::<ByteArrayType, _>(group, rows.iter().map(|r| text(r).map(ByteArray::from)), optional)
}

/// Writes the next column; absent cells are null (definition level 0).
fn column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    cells: impl Iterator<Item = Option<T::T>>,
    optional: bool,
) -> Result<()> {
    let cells: Vec<Option<T::T>> = cells.collect();
    let levels: Vec<i16> = cells.iter().map(|c| i16::from(c.is_some())).collect();
    let values: Vec<T::T> = cells.into_iter().flatten().collect();
    let missing = || ParquetError::General("the schema has fewer columns than a row".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(&values, optional.then_some(&levels), None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::RowAccessor;
    use pagelab_experiment::metrics;
    use pagelab_experiment::{
        Experiment, Observation, Outcome, Repetition, RunHeader, Setting, TargetSpec, experiments::Paging,
    };

    #[test]
    fn a_reader_finds_the_figures() {
        let mut observations = pagelab_experiment::Observations::default();
        observations.add(Observation::Metric(metrics::TIME_ELAPSED.figure(Some(12.5))));
        observations.add(Observation::Metric(metrics::TIME_USER.figure(None)));
        let header = RunHeader {
            name: "first".into(),
            batch: String::new(),
            experiment: Experiment::Mapanon(Paging::default()),
            target: TargetSpec::host(),
            setting: Setting::default(),
            conditions: Vec::new(),
            deterministic: false,
            started: String::new(),
            pagelab: String::new(),
        };
        let repetition =
            Repetition { number: 3, started: String::new(), outcome: Outcome::Done, observations };
        let run = Run { id: 1, header, repetitions: vec![repetition] };
        let mut file = tempfile::tempfile().unwrap();
        write(&[run], &mut file).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].get_string(0).unwrap(), "first");
        assert_eq!(rows[0].get_long(1).unwrap(), 3);
        assert_eq!(rows[0].get_string(4).unwrap(), "time.elapsed");
        assert_eq!(rows[0].get_double(8).unwrap(), 12.5);
        assert!(rows[1].get_double(8).is_err(), "what was not measured is null");
    }
}
