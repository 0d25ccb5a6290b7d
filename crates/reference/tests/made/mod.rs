//! Traces of objects, made of their numbers.

/// When the object of each request is requested next, counted from 0; -1 for never.
fn next(objects: &[u64], at: usize) -> i64 {
    objects[at + 1..].iter().position(|other| *other == objects[at]).map_or(-1, |n| (at + 1 + n) as i64)
}

/// oracleGeneral, whose links count from `base`; each object has these bytes.
pub fn oracle_general(objects: &[u64], base: i64, size: u32) -> Vec<u8> {
    let record = |(n, object): (usize, &u64)| {
        let link = Some(next(objects, n)).filter(|link| *link >= 0).map_or(-1, |link| link + base);
        [&(n as u32 / 3).to_le_bytes()[..], &object.to_le_bytes(), &size.to_le_bytes(), &link.to_le_bytes()]
            .concat()
    };
    objects.iter().enumerate().flat_map(record).collect()
}

/// lcs, of objects of 512 bytes that are set.
pub fn lcs(version: u64, objects: &[u64]) -> Vec<u8> {
    let mut bytes = vec![0; 8192];
    let magic = 0x1234_5678_9abc_def0_u64;
    for (at, number) in [(0, magic), (8, version), (16, objects.len() as u64), (8184, magic)] {
        bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
    }
    for (n, object) in objects.iter().enumerate() {
        bytes.extend((n as u32).to_le_bytes());
        bytes.extend(object.to_le_bytes());
        bytes.extend(&512_u64.to_le_bytes()[..if version == 3 { 8 } else { 4 }]);
        // The operation and the tenant, and the time to live.
        bytes.extend(&[3, 0, 0, 0, 9, 0, 0, 0][..4 * (version as usize - 1).min(2)]);
        bytes.extend(next(objects, n).to_le_bytes());
    }
    bytes
}
