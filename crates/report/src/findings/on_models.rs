//! One program on several targets, in words and as a table: the kernel's major faults beside the models'.

use pagelab_analysis::finding::{Finding, ProgramFaults, What};
use pagelab_experiment::Size;
use pagelab_experiment::observation::Unit;

use super::spread;
use crate::table::TextTable;
use crate::text::{DASH, count, ratio, value};

/// What the two counts do not share.
const CONDITIONS: [&str; 4] = [
    "Models play the references of the program recorded once under QEMU, whose libraries may choose other code: every page \
     alike, read on demand and alone; the first reference to a page is a minor fault.",
    "The kernel tells files from anonymous memory: a file's page is dropped without swap, costs no fault where others keep it \
     in the page cache, and its first reference is a major fault where they do not.",
    "Its limit also pays for page tables, and for cached pages of files that the program reads with system calls; what the \
     kernel copies for the program (read, write) is in no recording.",
    "Swap is read in clusters and files are read ahead: one major fault can bring several pages (pages swapped in), and \
     pages that came so are minor faults.",
];

/// The sentence.
pub fn sentence(finding: &Finding, program: &str, limit: Option<Size>, sides: &[ProgramFaults]) -> String {
    let limit = limit.map_or_else(String::new, |limit| format!(" at {limit}"));
    let models = |but: &str| -> Vec<String> {
        let others = sides.iter().filter(|side| !side.measured && side.target != but);
        others.map(|side| format!("{} {}", name(side), count(side.major.value))).collect()
    };
    let Some(measured) = sides.iter().find(|side| side.measured) else {
        return format!("{program}{limit}: major faults of {}", models("").join(", "));
    };
    let range = spread(&measured.major).map_or_else(String::new, |spread| format!(" ({spread})"));
    let mut text = format!("{program}{limit}: {} major faults{range}", count(measured.major.value));
    let others = models("model:opt");
    if !others.is_empty() {
        text += &format!("; on its recorded references {}", others.join(", "));
    }
    if let Some(opt) = finding.figure("opt") {
        text += &match finding.figure("avoidable") {
            Some(share) => format!(
                "; OPT (offline optimum) would have had {:.0}% fewer ({})",
                share.value * 100.0,
                count(opt.value)
            ),
            None => format!(
                "; OPT (offline optimum, a page a fault) {}: the kernel has fewer, by what its count does not share",
                count(opt.value)
            ),
        };
    }
    text
}

/// Every target's faults; nothing of other findings.
pub fn table(finding: &Finding) -> Option<TextTable> {
    let What::ProgramOnModels { program, limit, sides } = &finding.what else { return None };
    let opt = finding.figure("opt").map(|figure| figure.value).filter(|&faults| faults > 0.0);
    let shown = |figure: &Option<pagelab_analysis::finding::Figure>, unit: Unit| {
        figure.as_ref().map_or_else(|| DASH.to_owned(), |figure| value(Some(figure.value), unit))
    };
    let row = |side: &ProgramFaults| {
        let range = spread(&side.major).unwrap_or_default();
        vec![
            name(side).to_owned(),
            count(side.major.value),
            range.split(", n =").next().unwrap_or_default().to_owned(),
            opt.map_or_else(|| DASH.to_owned(), |opt| ratio(side.major.value / opt)),
            shown(&side.swapped_in, Unit::Pages),
            shown(&side.minor, Unit::Count),
        ]
    };
    let limit = limit.map_or_else(|| "without a memory limit".to_owned(), |limit| format!("with {limit}"));
    let title = format!("Major faults of {program} {limit}");
    let headings = ["target", "major faults", "min … max", "to OPT", "swapped in", "minor faults"];
    let remarks = CONDITIONS.map(str::to_owned).to_vec();
    Some(TextTable { remarks, ..TextTable::new(title, headings, sides.iter().map(row)) })
}

fn name(side: &ProgramFaults) -> &str {
    side.target.strip_prefix("model:").unwrap_or(&side.target)
}
