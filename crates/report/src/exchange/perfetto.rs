//! A Perfetto trace: every numeric column of the tables over time as a counter track, one group a repetition.
//!
//! The tables with a column `time` are those: the windows of a run over a reference stream, and the counters that
//! `record` and runs on the host look at. A repetition begins at 0. Of a run in instructions an instruction is drawn as
//! a nanosecond, and the group's name says so.
//!
//! Messages and field numbers: protos/perfetto/trace/perfetto_trace.proto of Perfetto; only the fields used here.

use std::io::Write;

use pagelab_experiment::Run;
use pagelab_experiment::observation::{Column, Table, Unit};
use pagelab_experiment::tables::windows;
use prost::Message;

use super::{ExchangeError, nothing, symbol};

#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<Packet>,
}

#[derive(Clone, PartialEq, Message)]
struct Packet {
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
    #[prost(uint64, optional, tag = "5")]
    parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    counter: Option<CounterDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct CounterDescriptor {
    #[prost(string, optional, tag = "6")]
    unit_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(int32, optional, tag = "9")]
    kind: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    track_uuid: Option<u64>,
    #[prost(double, optional, tag = "44")]
    double_counter_value: Option<f64>,
}

/// `TrackEvent.Type.TYPE_COUNTER`.
const COUNTER: i32 = 4;
/// The one writer of all packets.
const SEQUENCE: u32 = 1;

pub(super) fn write(runs: &[Run], to: &mut impl Write) -> Result<(), ExchangeError> {
    let mut drawn = Drawn { packets: Vec::new(), tracks: 0 };
    for run in runs {
        for repetition in run.done() {
            for table in &repetition.observations.tables {
                let Some(times) = times(table) else { continue };
                let group = group(run, repetition.number, table);
                drawn.table(&group, times, table);
            }
        }
    }
    if drawn.packets.is_empty() {
        let remedy = "mapanon and mapfile have windows, 'pagelab record' has counters";
        return Err(nothing(runs, "nothing was seen over time", remedy));
    }
    // In the order of time, as a recorder would have written them; descriptors come first.
    drawn.packets.sort_by_key(|packet| packet.timestamp);
    let trace = Trace { packet: drawn.packets };
    Ok(to.write_all(&trace.encode_to_vec())?)
}

fn times(table: &Table) -> Option<&Column> {
    let of_time = |c: &&Column| matches!(c.unit, Some(Unit::Nanoseconds | Unit::Instructions));
    table.column(windows::TIME).filter(of_time)
}

fn group(run: &Run, number: u32, table: &Table) -> String {
    let name = &run.header.name;
    let of = if run.repetitions.len() == 1 { String::new() } else { format!(", repetition {number}") };
    let scale = match times(table).and_then(|column| column.unit) {
        Some(Unit::Instructions) => " (1 ns is 1 instruction)",
        _ => "",
    };
    format!("{name}{of}: {}{scale}", table.name)
}

struct Drawn {
    packets: Vec<Packet>,
    tracks: u64,
}

impl Drawn {
    fn table(&mut self, group: &str, times: &Column, table: &Table) {
        let Some(times) = times.numbers() else { return };
        let parent = self.track(group, None, None);
        for column in table.columns.iter().filter(|column| column.name != windows::TIME.name) {
            let Some(values) = column.numbers() else { continue };
            let track = self.track(&column.name, Some(parent), Some(column.unit.map_or("", symbol)));
            for (time, value) in times.iter().zip(values) {
                // What was not measured has no point.
                let (Some(time), Some(value)) = (time, value) else { continue };
                self.packets.push(Packet {
                    timestamp: Some(*time as u64),
                    trusted_packet_sequence_id: Some(SEQUENCE),
                    track_event: Some(TrackEvent {
                        kind: Some(COUNTER),
                        track_uuid: Some(track),
                        double_counter_value: Some(*value),
                    }),
                    track_descriptor: None,
                });
            }
        }
    }

    /// A new track; with a unit it is a counter's.
    fn track(&mut self, name: &str, parent: Option<u64>, unit: Option<&str>) -> u64 {
        self.tracks += 1;
        self.packets.push(Packet {
            timestamp: None,
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_event: None,
            track_descriptor: Some(TrackDescriptor {
                uuid: Some(self.tracks),
                name: Some(name.to_owned()),
                parent_uuid: parent,
                counter: unit.map(|unit| CounterDescriptor {
                    unit_name: Some(unit.to_owned()).filter(|unit| !unit.is_empty()),
                }),
            }),
        });
        self.tracks
    }
}
