//! How the policies stand beside authorities: at how many points (stream × frames) a policy has
//! exactly the misses that an independent simulator counted.
//!
//! `patterns.csv`, `patterns_2025.csv`, `patterns_2026.csv` and `patterns_authors.csv` hold those
//! counts for generated streams, which are the same on every machine, and say how they were made;
//! so the comparison needs nothing but the program.

use std::collections::HashMap;

use crate::policy::PolicyKind;
use crate::replay::replay;
use pagelab_reference::{Pattern, Stream};

/// Who counted, and what.
const TABLES: [(&str, &str); 4] = [
    ("libCacheSim (October 2024)", include_str!("policy/patterns.csv")),
    ("libCacheSim (May 2025)", include_str!("policy/patterns_2025.csv")),
    ("libCacheSim (August 2026)", include_str!("policy/patterns_2026.csv")),
    ("its authors' program", include_str!("policy/patterns_authors.csv")),
];

/// One policy beside the authority.
#[derive(Clone, Debug, PartialEq)]
pub struct Conformance {
    /// The policy as the table names it, with the parameters that are not its defaults.
    pub name: &'static str,
    /// The policy with its parameters.
    pub policy: PolicyKind,
    /// Who counted.
    pub authority: &'static str,
    /// Points that were compared.
    pub points: u32,
    /// Points that were left out, for the authority's definition is another there.
    pub left_out: u32,
    /// Where the misses differ: (pattern, frames, misses here, misses there).
    pub different: Vec<(String, u32, u64, u64)>,
}

/// Compares every policy of the tables, in their order.
///
/// # Panics
/// When a table that is built into the program cannot be read.
pub fn conformance() -> Vec<Conformance> {
    let mut list: Vec<Conformance> = Vec::new();
    let mut made: HashMap<[&str; 4], Stream> = HashMap::new();
    let lines =
        TABLES.iter().flat_map(|&(authority, table)| table.lines().map(move |line| (authority, line)));
    for (authority, line) in lines.filter(|(_, line)| !line.starts_with('#')) {
        // The policy stands in the middle, for its parameters may have commas.
        let [pattern, pages, references, seed, rest] = line.splitn(5, ',').collect::<Vec<_>>()[..] else {
            panic!("seven fields: {line}")
        };
        let [misses, frames, policy] = rest.rsplitn(3, ',').collect::<Vec<_>>()[..] else {
            panic!("seven fields: {line}")
        };
        let number = |text: &str| text.parse::<u64>().unwrap_or_else(|e| panic!("{line}: {e}"));
        let stream = made.entry([pattern, pages, references, seed]).or_insert_with(|| {
            let parsed: Pattern = pattern.parse().unwrap_or_else(|e| panic!("{line}: {e}"));
            let made = parsed.stream(number(pages), number(references), number(seed));
            made.unwrap_or_else(|e| panic!("{line}: {e}"))
        });
        assert_eq!(
            (u64::from(stream.pages()), stream.len() as u64),
            (number(pages), number(references)),
            "{line}"
        );
        let kind: PolicyKind = policy.parse().unwrap_or_else(|e| panic!("{line}: {e}"));
        let at = list.iter().position(|one| one.policy == kind && one.authority == authority).unwrap_or_else(
            || {
                list.push(Conformance {
                    name: policy,
                    policy: kind.clone(),
                    authority,
                    points: 0,
                    left_out: 0,
                    different: Vec::new(),
                });
                list.len() - 1
            },
        );
        let one = &mut list[at];
        let frames = number(frames) as u32;
        // Where the segments are not of one size, libCacheSim drops pages from the remainder on a hit.
        if matches!(kind, PolicyKind::Slru { segments } if !frames.is_multiple_of(u32::from(segments))) {
            one.left_out += 1;
            continue;
        }
        let (ours, theirs) = (replay(stream, &kind, frames).misses, number(misses));
        one.points += 1;
        if ours != theirs {
            one.different.push((pattern.to_owned(), frames, ours, theirs));
        }
    }
    list
}
