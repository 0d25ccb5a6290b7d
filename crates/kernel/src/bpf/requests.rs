//! Requests that wait for a block device, from `block:block_rq_insert` to `block_rq_issue`: the sums
//! that kstat kept of a device's wait queue and Linux does not.
//!
//! A request is known by its device and first sector. `block_bio_frontmerge` moves that; one that
//! is merged into another (`block_rq_merge`) waits no longer. A request that is issued without
//! having been inserted did not wait.

use std::collections::HashMap;

use pagelab_counters::views::iostat::Wait;

use super::assembler::*;
use super::map::{Full, Map};
use super::program::{Program, Tracepoint};
use super::{TraceError, now};

/// Requests that may wait at a time, and devices; of more, the newest are left out.
const QUEUED: u32 = 16_384;
const DEVICES: u32 = 256;

/// The words of a device's value, as offsets in bytes: time of all requests waiting, how many wait,
/// time with any, since when.
const WAITED: i16 = 0;
const WAITING: i16 = 8;
const BUSY: i16 = 16;
const SINCE: i16 = 24;
const WORDS: usize = 4;

/// The frame: a request's key (device, nothing, sector), its device's key, a time, a new device.
const REQUEST: i16 = -16;
const DEVICE: i16 = -24;
const TIME: i16 = -32;
const NEW: i16 = -64;

/// A request that waits so long was lost sight of.
const LOST: u64 = 60_000_000_000;

/// Watches the queues of the machine's block devices for as long as it lives.
#[derive(Debug)]
pub struct Requests {
    queued: Map<4, 1>,
    devices: Map<1, WORDS>,
    _programs: Vec<Program>,
}

impl Requests {
    /// Begins.
    ///
    /// # Errors
    /// When the kernel lacks what it takes or the caller the rights.
    pub fn start() -> Result<Self, TraceError> {
        let (queued, devices) = (Map::new(Full::Refuses, QUEUED)?, Map::new(Full::Refuses, DEVICES)?);
        let maps = (queued.number(), devices.number());
        let programs = vec![
            leaves(maps, Tracepoint("block:block_rq_issue"))?,
            leaves(maps, Tracepoint("block:block_rq_merge"))?,
            moves(maps)?,
            enters(maps)?,
        ];
        Ok(Self { queued, devices, _programs: programs })
    }

    /// What the devices with a queue of requests had waiting since the start, those that wait now
    /// included. A device without such a queue (a partition, a mapper's) is absent.
    pub fn sample(&self) -> HashMap<String, Wait> {
        let now = now();
        let mut waiting: HashMap<u32, u64> = HashMap::new();
        for key in self.queued.keys() {
            let Some([since]) = self.queued.get(key) else { continue };
            let age = now.saturating_sub(since);
            if age > LOST {
                self.forget(key);
            } else {
                *waiting.entry(key[0]).or_default() += age;
            }
        }
        let mut found: HashMap<String, Wait> = queues().map(|name| (name, Wait::default())).collect();
        for key in self.devices.keys() {
            let Some(value) = self.devices.get(key) else { continue };
            let word = |offset: i16| value[offset as usize / 8];
            let lasting = if word(SINCE) == 0 { 0 } else { now.saturating_sub(word(SINCE)) };
            if let Some(wait) = name_of(key[0]).and_then(|name| found.get_mut(&name)) {
                wait.waited = word(WAITED) + waiting.get(&key[0]).copied().unwrap_or(0);
                wait.busy = word(BUSY) + lasting;
            }
        }
        found
    }

    /// Leaves a request out whose end was not seen.
    fn forget(&self, request: [u32; 4]) {
        self.queued.remove(request);
        if let Some(mut value) = self.devices.get([request[0]]) {
            let waiting = &mut value[WAITING as usize / 8];
            *waiting = waiting.saturating_sub(1);
            if *waiting == 0 {
                value[SINCE as usize / 8] = 0;
            }
            self.devices.put([request[0]], value);
        }
    }
}

/// The devices that have queues of requests.
fn queues() -> impl Iterator<Item = String> {
    let devices = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    devices.filter(|d| d.path().join("mq").is_dir()).filter_map(|d| d.file_name().into_string().ok())
}

/// A device's name from the kernel's number for it.
fn name_of(device: u32) -> Option<String> {
    let (major, minor) = (device >> 20, device & 0xf_ffff);
    let place = std::fs::read_link(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    Some(place.file_name()?.to_str()?.to_owned())
}

/// R7 = the device, R8 = the sector, both on the frame as keys.
fn keys(program: &mut Assembler, point: Tracepoint) -> Result<(), TraceError> {
    program.load(R7, R1, point.field("dev")?).load(R8, R1, point.field("sector")?);
    program.set(R0, 0).store_word(FRAME, REQUEST, R7).store_word(FRAME, REQUEST + 4, R0);
    program.store(FRAME, REQUEST + 8, R8).store_word(FRAME, DEVICE, R7);
    Ok(())
}

fn enters((queued, devices): (i32, i32)) -> Result<Program, TraceError> {
    let point = Tracepoint("block:block_rq_insert");
    let mut program = Assembler::default();
    keys(&mut program, point)?;
    program.call(CLOCK).copy(R9, R0).store(FRAME, TIME, R9);
    program.put_if_absent(queued, REQUEST, TIME);
    program.jump_if(R0, If::Not, 0, "end");
    program.ask(MAP_LOOKUP, devices, DEVICE);
    program.jump_if(R0, If::Not, 0, "found");
    for word in 0..WORDS as i16 {
        program.store_value(FRAME, NEW + word * 8, 0);
    }
    program.put_if_absent(devices, DEVICE, NEW);
    program.ask(MAP_LOOKUP, devices, DEVICE);
    program.jump_if(R0, If::Equal, 0, "end").label("found").copy(R7, R0);
    program.set(R1, 1).atomic_fetch_add(R7, WAITING, R1).jump_if(R1, If::Not, 0, "end").store(R7, SINCE, R9);
    point.run(program)
}

fn leaves((queued, devices): (i32, i32), point: Tracepoint) -> Result<Program, TraceError> {
    let mut program = Assembler::default();
    keys(&mut program, point)?;
    program.call(CLOCK).copy(R9, R0);
    program.ask(MAP_LOOKUP, queued, REQUEST);
    program.jump_if(R0, If::Equal, 0, "end").load(R8, R0, (0, 8));
    program.ask(MAP_DELETE, queued, REQUEST);
    program.ask(MAP_LOOKUP, devices, DEVICE);
    program.jump_if(R0, If::Equal, 0, "end").copy(R7, R0);
    program.copy(R1, R9).subtract(R1, R8).atomic_add(R7, WAITED, R1);
    // The last one that waited.
    program.set(R1, -1).atomic_fetch_add(R7, WAITING, R1).jump_if(R1, If::Not, 1, "end");
    program.load(R8, R7, (SINCE as usize, 8)).jump_if(R8, If::Equal, 0, "end");
    program.subtract(R9, R8).atomic_add(R7, BUSY, R9).store_value(R7, SINCE, 0);
    point.run(program)
}

fn moves((queued, _): (i32, i32)) -> Result<Program, TraceError> {
    let point = Tracepoint("block:block_bio_frontmerge");
    let mut program = Assembler::default();
    program.load(R6, R1, point.field("nr_sector")?);
    keys(&mut program, point)?;
    // The request began where what is put before it ends.
    program.add(R6, R8).store(FRAME, REQUEST + 8, R6);
    program.ask(MAP_LOOKUP, queued, REQUEST);
    program.jump_if(R0, If::Equal, 0, "end").load(R9, R0, (0, 8)).store(FRAME, TIME, R9);
    program.ask(MAP_DELETE, queued, REQUEST);
    program.store(FRAME, REQUEST + 8, R8);
    program.put_if_absent(queued, REQUEST, TIME);
    point.run(program)
}
