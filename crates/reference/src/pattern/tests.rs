use super::*;
use proptest::prelude::*;

fn generated() -> Vec<Pattern> {
    [
        "smooth-sin",
        "smooth-sin-0.6",
        "smooth-sin-random",
        "linear",
        "uniform",
        "zipf:0.9",
        "drift",
        "drift:0.1",
        "phases:zipf:0.9x3+linear@20-60+smooth-sin-random@0-50x2",
    ]
    .iter()
    .map(|t| t.parse().unwrap())
    .collect()
}

#[test]
fn text_form_survives_a_round_trip() {
    for pattern in generated() {
        assert_eq!(pattern.to_string().parse::<Pattern>().unwrap(), pattern);
    }
    let trace: Pattern = "trace:/tmp/a:b.txt".parse().unwrap();
    assert_eq!(trace, Pattern::Trace("/tmp/a:b.txt".into()));
}

#[test]
fn bad_text_says_what_is_wanted() {
    for (text, wanted) in [
        ("sine", "smooth-sin-random"),
        ("zipf", "zipf:S"),
        ("zipf:NaN", "zipf:S"),
        ("drift:2", "drift:SHARE"),
        ("linear:3", "has no parameter"),
        ("trace:", "trace:FILE"),
    ] {
        let error = text.parse::<Pattern>().unwrap_err().to_string();
        assert!(error.contains(wanted), "{text}: {error}");
    }
}

fn made(text: &str, pages: u64, references: u64) -> Vec<u32> {
    let pattern: Pattern = text.parse().unwrap();
    pattern.stream(pages, references, 1).unwrap().references().to_vec()
}

#[test]
fn phases_follow_each_other_on_their_parts() {
    let list = made("phases:linear@0-20+linear@80-100x2", 10, 9);
    assert_eq!(list, [0, 1, 0, 8, 9, 8, 9, 8, 9]);
    // A part smaller than a page has one page.
    assert_eq!(made("phases:linear@99-100+linear", 3, 4), [2, 2, 0, 1]);
}

#[test]
fn a_phase_is_the_pattern_on_its_part() {
    let list = made("phases:zipf:0.9x3+uniform@50-100", 1000, 4000);
    assert_eq!(list[..3000], made("zipf:0.9", 1000, 3000));
    let uniform: Pattern = "uniform".parse().unwrap();
    let second = uniform.stream(500, 1000, 2).unwrap();
    assert!(list[3000..].iter().zip(second.references()).all(|(page, own)| page - 500 == *own));
}

#[test]
fn bad_phases_say_what_is_wrong() {
    for (text, wanted) in [
        ("phases:", "unknown pattern"),
        ("phases:linear+", "unknown pattern"),
        ("phases:linear@50-20", "PATTERN@FROM-TO"),
        ("phases:linear@0-101", "PATTERN@FROM-TO"),
        ("phases:linearx0", "PATTERN@FROM-TO"),
        ("phases:trace:a", "cannot be a phase"),
        ("phases:phases:linear", "cannot be a phase"),
    ] {
        let error = text.parse::<Pattern>().unwrap_err().to_string();
        assert!(error.contains(wanted), "{text}: {error}");
    }
    let many = format!("phases:{}", ["linear"; MAX_PHASES + 1].join("+"));
    assert!(many.parse::<Pattern>().unwrap_err().to_string().contains("at most 20"));
}

proptest! {
    #[test]
    fn bounds_cover_all_references(weights in prop::collection::vec(1..=MAX_WEIGHT, 1..=MAX_PHASES), n: u32) {
        let phases: Vec<Phase> = weights
            .iter()
            .map(|&weight| Phase { pattern: Pattern::Linear, part: (0, 100), weight })
            .collect();
        let bounds = bounds(&phases, n.into());
        prop_assert!(bounds.is_sorted() && bounds[0] == 0);
        prop_assert_eq!(bounds[phases.len()], u64::from(n));
    }

    #[test]
    fn every_stream_has_the_length_asked_for_and_stays_in_its_region(
        pages in 1u64..3000, references in 1u64..20_000, seed: u64,
    ) {
        for pattern in generated() {
            let stream = pattern.stream(pages, references, seed).unwrap();
            prop_assert_eq!(stream.len() as u64, references, "{}", pattern);
            prop_assert!(stream.references().iter().all(|&p| u64::from(p) < pages));
            prop_assert_eq!(&stream, &pattern.stream(pages, references, seed).unwrap());
            let mut blocks = pattern.blocks(pages, references, seed, &mut unwatched).unwrap();
            let mut list = Vec::new();
            while blocks.left() > 0 {
                list.extend_from_slice(blocks.next(1 + seed as usize % 700).unwrap());
            }
            prop_assert_eq!(stream.references(), &list);
            prop_assert!(blocks.next(5).unwrap().is_empty());
        }
    }
}

#[test]
fn who_waits_for_a_stream_may_end_it_at_every_step() {
    for (text, pages, references) in
        [("linear", 100, 5 << 20), ("zipf:0.9", 3 << 20, 1), ("smooth-sin-random", 100, 3 << 20)]
    {
        let pattern: Pattern = text.parse().unwrap();
        let mut steps = 0;
        let mut count = |_| {
            steps += 1;
            Ok(())
        };
        pattern.stream_with(pages, references, 1, &mut count).unwrap();
        assert!(steps > 2, "{text}: {steps}");
        for last in 0..steps {
            let mut step = 0;
            let mut end = |_| {
                step += 1;
                if step > last { Err(Stopped) } else { Ok(()) }
            };
            let made = pattern.stream_with(pages, references, 1, &mut end);
            assert!(matches!(made, Err(PatternError::Stopped(_))), "{text}: {last}");
        }
    }
}

/// FNV-1a over the little-endian page numbers: the published streams must never change.
fn fingerprint(text: &str) -> u64 {
    let stream = text.parse::<Pattern>().unwrap().stream(1000, 20_000, 1).unwrap();
    stream
        .references()
        .iter()
        .flat_map(|p| p.to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}

#[test]
fn the_streams_are_the_same_bit_for_bit_for_ever() {
    let all: Vec<String> =
        generated().iter().map(|p| format!("{p} {:016x}", fingerprint(&p.to_string()))).collect();
    assert_eq!(all, include_str!("../fingerprints.txt").lines().collect::<Vec<_>>());
}
