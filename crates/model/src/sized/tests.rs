//! The policies over objects of different sizes: against their definitions over pages where all sizes are one, and against
//! lists written down plainly where they are not.

use super::*;
use crate::policy::PolicyKind;
use crate::replay::replay;
use pagelab_reference::rng::Rng;
use pagelab_reference::{Pattern, Stream};
use proptest::prelude::*;

fn misses(kind: SizedKind, requests: &[(u32, u64)], objects: u32, memory: u64) -> Vec<bool> {
    let mut replay = SizedReplay::new(kind, objects, memory);
    requests.iter().map(|&(object, bytes)| !replay.request(object, bytes)).collect()
}

#[test]
fn with_pages_of_one_byte_they_are_the_policies_over_pages() {
    for pattern in [Pattern::Zipf(0.8), Pattern::Drift(0.25), Pattern::Uniform] {
        let stream: Stream = pattern.stream(500, 20_000, 3).unwrap();
        for name in ["fifo", "lru", "clock", "sieve"] {
            for frames in [1, 7, 100, 499] {
                let mut sized = SizedReplay::new(name.parse().unwrap(), 500, frames.into());
                for &page in stream.references() {
                    sized.request(page, 1);
                }
                let kind: PolicyKind = name.parse().unwrap();
                assert_eq!(sized.counts().misses, replay(&stream, &kind, frames).misses, "{name} {frames}");
            }
        }
    }
}

/// Miss ratio and byte miss ratio in 2,000, 4,000, 20,000, 100,000, 500,000 and 1,000,000 bytes, as libCacheSim (commit
/// 6d3d368, object sizes counted) prints them for the requests below, written as oracleGeneral with the objects numbered from 1.
#[rustfmt::skip]
const COUNTED: &[(&str, [(&str, &str); 6])] = &[
    ("fifo", [("0.9960", "0.9989"), ("0.9967", "0.9977"), ("0.9837", "0.9851"), ("0.9220", "0.9254"), ("0.6615", "0.6680"), ("0.4133", "0.4196")]),
    ("lru", [("0.9960", "0.9989"), ("0.9968", "0.9977"), ("0.9838", "0.9851"), ("0.9201", "0.9245"), ("0.6404", "0.6481"), ("0.3636", "0.3688")]),
    ("clock", [("0.9959", "0.9989"), ("0.9968", "0.9977"), ("0.9836", "0.9851"), ("0.9179", "0.9225"), ("0.6282", "0.6367"), ("0.3519", "0.3583")]),
    ("sieve", [("0.9958", "0.9989"), ("0.9968", "0.9977"), ("0.9751", "0.9814"), ("0.8723", "0.8839"), ("0.5441", "0.5533"), ("0.2860", "0.2989")]),
    ("gdsf", [("0.9734", "0.9990"), ("0.9715", "0.9978"), ("0.9300", "0.9840"), ("0.8024", "0.9134"), ("0.4592", "0.5900"), ("0.2416", "0.3199")]),
];

#[test]
fn they_have_the_misses_of_an_independent_simulator() {
    let mut state = 1_u64;
    let requests: Vec<(u32, u64)> = (0..20_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let object = (state >> 33) % 1000 * ((state >> 13) % 1000) / 1000;
            (object as u32, 1 + object * 7919 % 5000)
        })
        .collect();
    for (name, wanted) in COUNTED {
        for (memory, wanted) in [2000, 4000, 20_000, 100_000, 500_000, 1_000_000].into_iter().zip(wanted) {
            let mut replay = SizedReplay::new(name.parse().unwrap(), 1000, memory);
            for &(object, bytes) in &requests {
                replay.request(object, bytes);
            }
            let counts = replay.counts();
            let ratio = format!("{:.4}", counts.misses as f64 / counts.requests as f64);
            let byte_ratio = format!("{:.4}", counts.byte_misses as f64 / counts.bytes as f64);
            assert_eq!((&ratio[..], &byte_ratio[..]), *wanted, "{name} in {memory} bytes");
        }
    }
}

#[test]
fn objects_may_come_as_the_trace_is_read() {
    let stream = Pattern::Zipf(0.8).stream(500, 20_000, 3).unwrap();
    for kind in SizedKind::all() {
        let mut whole = SizedReplay::new(kind, 500, 100_000);
        let mut grown = SizedReplay::new(kind, 0, 100_000);
        for requests in stream.references().chunks(77) {
            grown.grow(requests.iter().max().unwrap() + 1);
            for &object in requests {
                let bytes = 1 + u64::from(object) * 7919 % 5000;
                assert_eq!(grown.request(object, bytes), whole.request(object, bytes), "{kind}");
            }
        }
        assert_eq!(grown.counts(), whole.counts());
        assert!(grown.counts().misses > 500, "{kind}: objects went and came again");
    }
}

/// LHD keeps what is asked for often: fewer misses than FIFO, in bytes of different sizes.
#[test]
fn lhd_learns() {
    let stream = Pattern::Zipf(0.9).stream(5000, 200_000, 3).unwrap();
    let counts = |kind| {
        let mut replay = SizedReplay::new(kind, 5000, 500_000);
        for &object in stream.references() {
            replay.request(object, 100 + u64::from(object * 7919 % 1900));
        }
        replay.counts()
    };
    let (lhd, lru, fifo) = (counts(SizedKind::Lhd), counts(SizedKind::Lru), counts(SizedKind::Fifo));
    assert!(lhd.misses < lru.misses && lru.misses < fifo.misses, "{lhd:?} {lru:?} {fifo:?}");
}

#[test]
fn an_object_larger_than_the_memory_is_not_admitted() {
    for kind in SizedKind::all() {
        let mut replay = SizedReplay::new(kind, 3, 100);
        let hits: Vec<bool> = [(0, 60), (1, 101), (0, 60), (1, 101), (2, 100), (2, 100)]
            .map(|(o, b)| replay.request(o, b))
            .to_vec();
        let kept = if kind == SizedKind::Gdsf {
            vec![false, false, true, false, false, false]
        } else {
            vec![false, false, true, false, false, true]
        };
        assert_eq!(hits, kept, "{kind}");
        let counts = replay.counts();
        assert_eq!((counts.requests, counts.not_admitted), (6, 2), "{kind}");
        assert_eq!(counts.bytes, 60 + 101 + 60 + 101 + 200, "{kind}");
    }
    let error = "arc".parse::<SizedKind>().unwrap_err().to_string();
    assert!(error.contains("fifo, lru, clock, sieve, gdsf, lhd"), "{error}");
}

/// (object, bytes, bit or requests, time or priority)
type Plain = (u32, u64, u64, f64);

fn plain(kind: SizedKind, requests: &[(u32, u64)], memory: u64) -> Vec<bool> {
    let mut list: Vec<Plain> = Vec::new();
    let (mut clock, mut all) = (0.0, Vec::new());
    for &(object, bytes) in requests {
        if let Some(at) = list.iter().position(|one| one.0 == object) {
            all.push(false);
            let mut one = list[at];
            one.2 += 1;
            one.3 = clock + one.2 as f64 * 1e6 / one.1 as f64;
            list[at] = one;
            if matches!(kind, SizedKind::Lru | SizedKind::Gdsf) {
                list.remove(at);
                list.push(one);
            }
            continue;
        }
        all.push(true);
        if bytes > memory {
            continue;
        }
        let new = (object, bytes, 0, 0.0);
        let used = |list: &[Plain]| list.iter().map(|one| one.1).sum::<u64>();
        if kind == SizedKind::Gdsf {
            list.push((object, bytes, 1, clock + 1e6 / bytes as f64));
            while used(&list) > memory {
                let least = list.iter().map(|one| one.3).fold(f64::INFINITY, f64::min);
                let at = list.iter().position(|one| one.3 == least).unwrap();
                clock = list.remove(at).3;
            }
            continue;
        }
        while used(&list) + bytes > memory {
            let one = list.remove(0);
            if kind == SizedKind::Clock && one.2 > 0 {
                list.push((one.0, one.1, 0, 0.0));
            }
        }
        list.push(new);
    }
    all
}

proptest! {
    #[test]
    fn they_follow_their_definitions(seed: u64, memory in 1_u64..3000) {
        let mut rng = Rng::new(seed);
        let sizes: Vec<u64> = (0..50).map(|_| 1 + rng.below(400)).collect();
        let requests: Vec<(u32, u64)> = (0..800)
            .map(|_| {
                let most = 1 + rng.below(50);
                let object = rng.below(most) as u32;
                (object, sizes[object as usize])
            })
            .collect();
        for kind in [SizedKind::Fifo, SizedKind::Lru, SizedKind::Clock, SizedKind::Gdsf] {
            prop_assert_eq!(misses(kind, &requests, 50, memory), plain(kind, &requests, memory), "{}", kind);
        }
        for kind in SizedKind::all() {
            let mut replay = SizedReplay::new(kind, 50, memory);
            for &(object, bytes) in &requests {
                replay.request(object, bytes);
                prop_assert!(replay.used <= memory);
                prop_assert_eq!(replay.used, replay.resident.iter().sum::<u64>());
            }
        }
    }
}
