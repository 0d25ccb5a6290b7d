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
            None if measured.major.value < opt.value => format!(
                "; OPT (offline optimum, paging on demand) would have had {}: the counts differ as listed below \
                 the table of major faults",
                count(opt.value)
            ),
            None => "; OPT (offline optimum) would have had none either".to_owned(),
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
            side.error.filter(|times| times.is_finite()).map_or_else(|| DASH.to_owned(), ratio),
            shown(&side.swapped_in, Unit::Pages),
            shown(&side.minor, Unit::Count),
        ]
    };
    let limit = limit.map_or_else(|| "without a memory limit".to_owned(), |limit| format!("with {limit}"));
    let title = format!("Major faults of {program} {limit}");
    let headings =
        ["target", "major faults", "min … max", "to OPT", "kernel to model", "swapped in", "minor faults"];
    let remarks = std::iter::once(prediction(sides)).chain(CONDITIONS.map(str::to_owned)).collect();
    Some(TextTable { remarks, ..TextTable::new(title, headings, sides.iter().map(row)) })
}

/// For which models and limits the prediction is known to hold.
fn prediction(sides: &[ProgramFaults]) -> String {
    let of = |wanted: bool| {
        let these = sides.iter().filter(|side| side.predicts() == Some(wanted));
        these.map(name).collect::<Vec<_>>().join(", ")
    };
    let unknown = "for other limits and programs the error of a model is unknown.";
    match (of(true), of(false)) {
        (good, bad) if good.is_empty() && bad.is_empty() => {
            "Whether a model is within a factor of two of the kernel is unknown: no kernel's major faults were \
             measured under this limit."
                .to_owned()
        }
        (good, bad) if bad.is_empty() => {
            format!("Within a factor of two of the kernel's major faults under this limit: {good}; {unknown}")
        }
        (good, bad) if good.is_empty() => {
            format!("Not within a factor of two of the kernel's major faults under this limit: {bad}; {unknown}")
        }
        (good, bad) => format!(
            "Within a factor of two of the kernel's major faults under this limit: {good}; not: {bad}; {unknown}"
        ),
    }
}

fn name(side: &ProgramFaults) -> &str {
    side.target.strip_prefix("model:").unwrap_or(&side.target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_analysis::finding::{Figure, Severity};
    use pagelab_experiment::metrics::FAULTS_MAJOR;

    fn side(target: &str, error: Option<f64>) -> ProgramFaults {
        let major = Figure::over(FAULTS_MAJOR, Unit::Count, FAULTS_MAJOR.statistic, &[100.0]).unwrap();
        let measured = target == "host";
        ProgramFaults { target: target.to_owned(), measured, major, minor: None, swapped_in: None, error }
    }

    /// The sentence where the kernel had `kernel` faults and OPT `opt`, none of which was
    /// avoidable.
    fn told(kernel: f64, opt: f64) -> String {
        let major =
            |faults| Figure::over(FAULTS_MAJOR, Unit::Count, FAULTS_MAJOR.statistic, &[faults]).unwrap();
        let sides = [
            ProgramFaults { major: major(kernel), ..side("host", None) },
            ProgramFaults { major: major(opt), ..side("model:opt", None) },
        ];
        let what = What::ProgramOnModels { program: "sort".to_owned(), limit: None, sides: sides.to_vec() };
        let figures = vec![major(kernel), Figure { name: "opt".to_owned(), ..major(opt) }];
        let finding =
            Finding { what, run: "a".to_owned(), severity: Severity::Info, figures, evidence: Vec::new() };
        sentence(&finding, "sort", None, &sides)
    }

    #[test]
    fn a_kernel_with_fewer_faults_than_opt_has_a_reason_and_one_without_faults_needs_none() {
        assert!(told(50.0, 75.0).contains("would have had 75: the counts differ"), "{}", told(50.0, 75.0));
        let none = told(0.0, 0.0);
        assert!(none.ends_with("0 major faults; OPT (offline optimum) would have had none either"), "{none}");
    }

    #[test]
    fn a_prediction_is_good_where_it_was_checked_and_unknown_elsewhere() {
        let (lru, mglru) = (side("model:lru", Some(1.9)), side("model:linux-mglru", Some(0.01)));
        let told = prediction(&[side("host", None), lru.clone(), mglru.clone()]);
        assert!(told.contains("this limit: lru; not: linux-mglru; for other limits"), "{told}");
        assert!(prediction(&[mglru]).starts_with("Not within a factor of two"));
        assert!(prediction(&[lru]).contains("unknown"));
        assert!(prediction(&[side("model:lru", None)]).starts_with("Whether a model"));
    }
}
