//! `pagelab policies`: the replacement policies with their sources, and how they stand beside independent simulators.

use std::process::ExitCode;

use anyhow::Result;
use pagelab_model::conformance::{Conformance, conformance};
use pagelab_model::policy::PolicyKind;
use pagelab_model::sized::SizedKind;
use pagelab_report::text;
use serde_json::json;

use crate::context::Context;
use crate::output::{print_json, say};

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(before_help = "Examples:\n  pagelab policies\n  pagelab policies --conformance\n")]
pub struct Arguments {
    /// At how many points each policy has exactly the misses that an independent simulator counted
    #[arg(long)]
    conformance: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints the policies, or their conformance.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    if arguments.conformance {
        return print_conformance(&conformance(), arguments.json, context);
    }
    if arguments.json {
        let one = |one: &pagelab_model::policy::Described| json!({"name": one.form, "help": one.help, "source": one.source});
        let mut list: Vec<_> = PolicyKind::catalogue().iter().map(one).collect();
        let sized = |[name, help, source]: [&str; 3]| json!({"name": name, "help": help, "source": source});
        list.extend(by_size().map(sized));
        return print_json("policies", list.into());
    }
    let policies = PolicyKind::catalogue().iter().map(|one| [one.form, &one.help, one.source]);
    let cells = |row: [&str; 3]| row.map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = policies.chain(by_size()).map(cells).collect();
    say!("{}", text::table(&["policy", "what it is", "source"], &rows, &context.style));
    Ok(ExitCode::SUCCESS)
}

/// The policies that rank objects by their sizes, which pages do not have.
pub fn by_size() -> impl Iterator<Item = [&'static str; 3]> {
    [SizedKind::Gdsf, SizedKind::Lhd].into_iter().map(SizedKind::described)
}

/// Prints how many of the counts that are built in are equal to what is counted here.
fn print_conformance(list: &[Conformance], json: bool, context: &Context) -> Result<ExitCode> {
    let equal = |one: &Conformance| one.points as usize - one.different.len();
    if json {
        let list: Vec<_> = list
            .iter()
            .map(|one| {
                let different: Vec<_> = one
                    .different
                    .iter()
                    .map(|(pattern, frames, ours, theirs)| {
                        json!({"pattern": pattern, "frames": frames, "misses": ours, "authority": theirs})
                    })
                    .collect();
                json!({
                    "policy": one.policy.to_string(),
                    "authority": one.authority,
                    "points": one.points,
                    "equal": equal(one),
                    "left_out": one.left_out,
                    "different": different,
                })
            })
            .collect();
        return print_json("conformance", list.into());
    }
    let row = |one: &Conformance| {
        let left_out = if one.left_out == 0 { text::DASH.to_owned() } else { one.left_out.to_string() };
        let points = format!("{} of {}", equal(one), one.points);
        vec![one.name.to_owned(), one.authority.to_owned(), points, left_out]
    };
    let rows: Vec<Vec<String>> = list.iter().map(row).collect();
    let same = list.iter().filter(|one| one.different.is_empty()).count();
    let of = list.len();
    say!("{same} of {of} policies have the authority's misses at every point");
    say!("{}", text::table(&["policy", "authority", "points equal", "left out"], &rows, &context.style));
    say!("A point is a generated stream and a number of frames. Left out: where the");
    say!("segments of slru are not of one size, for which the authority has another");
    say!("definition. Policies without a row are held, in the tests, to plain twins");
    say!("written from their papers.");
    Ok(ExitCode::SUCCESS)
}
