//! The policies on a real trace, against the misses that an independent simulator counted.

use super::{PolicyKind, opt::NextUse};
use std::collections::HashMap;

fn dense(bytes: &[u8]) -> (u32, Vec<u32>) {
    let mut ids = HashMap::new();
    let list = bytes.chunks_exact(24).map(|r| {
        let id = u64::from_le_bytes(r[4..12].try_into().unwrap());
        let next = ids.len() as u32;
        *ids.entry(id).or_insert(next)
    }).collect();
    (ids.len() as u32, list)
}

#[test]
fn dev() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces/");
    let bytes = std::fs::read(format!("{root}cloudPhysicsIO.oracleGeneral.bin")).unwrap();
    let (pages, list) = dense(&bytes);
    let future = NextUse::of(pages, &list);
    let table = std::fs::read_to_string(format!("{root}expected.csv")).unwrap();
    for line in table.lines().filter(|l| !l.starts_with('#')) {
        let f: Vec<&str> = line.split(',').collect();
        let name = match f[1] { "s3fifo" => "s3-fifo", "clockpro" => "clock-pro", "belady" => "opt", n => n };
        let kind: PolicyKind = name.parse().unwrap();
        let misses = kind.build(pages, f[2].parse().unwrap(), Some(&future)).misses(&list);
        let want: u64 = f[4].parse().unwrap();
        println!("{name:10} {:>6} {want:>7} {misses:>7} {:+}", f[2], misses as i64 - want as i64);
    }
}
