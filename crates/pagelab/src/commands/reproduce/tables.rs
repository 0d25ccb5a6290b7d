//! A study in words: the cells of its claims, its score by role, its parameters, assumptions and ablations, as
//! tables for the terminal and for the page.

use pagelab_report::text::{self, DASH};
use pagelab_report::{Section, TextTable};
use pagelab_studies::claim::{Claim, Distance, Role, Score, Tolerance, Verdict, scores};
use pagelab_studies::ranges::SEARCHED;
use pagelab_studies::study::{Assumption, End, Range, Study};

/// A figure in its unit.
pub fn figure(number: f64, unit: &str) -> String {
    format!("{} {unit}", text::count(number)).trim_end().to_owned()
}

/// How far model and published are apart.
fn distance(claim: &Claim) -> String {
    match claim.distance {
        None => DASH.to_owned(),
        Some(Distance::Ratio(ratio)) => format!("× {ratio:.2}"),
        Some(Distance::Difference(difference)) => format!("{difference:+.3}"),
    }
}

/// How close the model was asked to come.
fn asked(claim: &Claim) -> String {
    let count = text::count;
    match claim.tolerance {
        Tolerance::Factor(factor) => format!("× {factor}"),
        Tolerance::Share(share) => format!("{}%", count(100.0 * share)),
        Tolerance::Difference(most) => format!("± {most}"),
        Tolerance::Range(from, to) => format!("{} to {}", count(from), count(to)),
        Tolerance::AtMost(limit) => format!("≤ {}", count(limit)),
        Tolerance::AtLeast(limit) => format!("≥ {}", count(limit)),
        Tolerance::Exact => "exact".to_owned(),
    }
}

/// The published figure or words.
pub fn published(claim: &Claim) -> String {
    match (&claim.words, claim.published) {
        (Some(words), _) => words.clone(),
        (None, Some(number)) => figure(number, &claim.unit),
        (None, None) => DASH.to_owned(),
    }
}

/// The cells of a claim.
fn row(claim: &Claim) -> Vec<String> {
    let detail = claim.detail.as_ref().map_or_else(String::new, |detail| format!(" ({detail})"));
    vec![
        claim.what.clone(),
        published(claim),
        figure(claim.model, &claim.unit) + &detail,
        distance(claim),
        asked(claim),
        role(claim).to_owned(),
        freedom(claim.freedom),
        verdict(claim),
    ]
}

/// What the published figure was to the model, or to other claims.
fn role(claim: &Claim) -> &'static str {
    match () {
        () if claim.role == Role::Identity => claim.role.name(),
        () if !claim.follows.is_empty() => "follows",
        () if claim.repeats.is_some() => "repeats",
        () => claim.role.name(),
    }
}

fn verdict(claim: &Claim) -> String {
    let marginal = if claim.marginal { ", marginal" } else { "" };
    format!("{}{marginal}", claim.verdict.name())
}

/// Degrees of freedom, to two digits.
fn freedom(freedom: f64) -> String {
    let rounded = (100.0 * freedom).round() / 100.0;
    format!("{rounded}")
}

/// The columns of a table of claims.
const HEADINGS: [&str; 8] = ["claim", "published", "model", "ratio", "tolerance", "role", "df", "verdict"];

/// A table of claims; of several papers with the paper before each, and without tolerance and
/// freedom, so that it fits.
pub fn claims(title: &str, claims: &[&Claim], papers: bool) -> TextTable {
    const FREEDOM: usize = 6;
    const TOLERANCE: usize = 4;
    let shown = |mut cells: Vec<String>, paper: &str| {
        if papers {
            cells.remove(FREEDOM);
            cells.remove(TOLERANCE);
            cells.insert(0, paper.to_owned());
        }
        cells
    };
    let cells = |claim: &&Claim| shown(row(claim), &claim.paper);
    let headings = shown(HEADINGS.map(str::to_owned).to_vec(), "paper");
    let mut table = TextTable::new(title, headings, claims.iter().map(cells));
    table.tones = claims.iter().map(|claim| claim.verdict.tone()).collect();
    if !papers {
        table.remarks.push(
            "df: degrees of freedom. What follows from other claims, repeats one, or is an identity has none and is \
             not counted."
                .into(),
        );
    }
    table
}

/// The claims that count and were not reproduced, or partly, with the distance and what is suspected.
pub fn missed(study: &Study) -> Option<TextTable> {
    let missed: Vec<&Claim> = study
        .claims
        .iter()
        .filter(|c| c.verdict != Verdict::Reproduced && c.role != Role::Identity)
        .collect();
    // One reason often holds for several: each is said once, below.
    let mut reasons: Vec<&str> = Vec::new();
    for why in missed.iter().filter_map(|claim| claim.suspected.as_deref()) {
        if !reasons.contains(&why) {
            reasons.push(why);
        }
    }
    let number = |claim: &Claim| {
        let place = reasons.iter().position(|why| claim.suspected.as_deref() == Some(why));
        place.map_or_else(|| DASH.to_owned(), |place| (place + 1).to_string())
    };
    let cells = |claim: &&Claim| {
        let [what, published, model, ratio, ..] = <[String; 8]>::try_from(row(claim)).expect("eight cells");
        vec![what, published, model, ratio, number(claim), claim.verdict.name().to_owned()]
    };
    let headings = ["claim", "published", "model", "ratio", "why", "verdict"];
    let mut table = TextTable::new("Claims not reproduced, or partly", headings, missed.iter().map(cells));
    table.remarks.push(
        "Why, as far as is suspected; a ratio with a sign is a difference, model less published:".into(),
    );
    table.remarks.extend(reasons.iter().zip(1..).map(|(why, number)| format!("{number}. {why}.")));
    table.tones = missed.iter().map(|claim| claim.verdict.tone()).collect();
    (!missed.is_empty()).then_some(table)
}

/// How many claims of each role were reproduced; what is not counted is said.
pub fn score(claims: &[&Claim]) -> String {
    let scores = scores(claims.iter().copied());
    let (given, counted): (Vec<&Score>, Vec<&Score>) =
        scores.iter().partition(|score| score.role == Role::Identity);
    let said = counted.iter().map(|score| {
        let mut more = Vec::new();
        if score.marginal > 0 {
            more.push(format!("{} marginally", score.marginal));
        }
        if score.partly > 0 {
            more.push(format!("{} more partly", score.partly));
        }
        if let Some(distance) = score.distance.filter(|_| score.role == Role::HeldOut) {
            more.push(format!("median distance {}", percent(distance)));
        }
        let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join(", ")) };
        let what = if score.role == Role::HeldOut { " distinct predictions" } else { "" };
        format!("{} {} of {}{what}{more}", score.role.name(), score.reproduced, score.claims)
    });
    let said: Vec<String> = said.collect();
    let dependent: usize = counted.iter().map(|score| score.dependent).sum();
    let given: usize = given.iter().map(|score| score.claims).sum();
    let uncounted = match (given, dependent) {
        (0, 0) => String::new(),
        _ => format!(
            " Not counted: {}, and {} that {}.",
            numbered(given, "identity", "identities"),
            numbered(dependent, "claim", "claims"),
            if dependent == 1 {
                "follows from others or repeats one"
            } else {
                "follow from others or repeat one"
            }
        ),
    };
    format!("Reproduced: {}.{uncounted}", said.join(", "))
}

fn numbered(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A share as percent, to two digits.
fn percent(share: f64) -> String {
    format!("{}%", text::count(100.0 * share))
}

/// The same by role, for a picture.
fn scored(study: &Study) -> Vec<pagelab_report::Score> {
    let counted = study.scores.iter().filter(|score| score.role != Role::Identity);
    let row = |score: &Score| {
        let not = score.claims - score.reproduced - score.partly;
        let of = |verdict: Verdict, count| (verdict.name(), verdict.tone(), count);
        let counts = vec![
            of(Verdict::Reproduced, score.reproduced),
            of(Verdict::Partly, score.partly),
            of(Verdict::Not, not),
        ];
        pagelab_report::Score { name: score.role.name().to_owned(), counts }
    };
    counted.map(row).collect()
}

/// What the model was given, where from, and how many of the reproduced predictions survive another
/// value of what was fitted.
pub fn parameters(study: &Study) -> TextTable {
    let survive = |constant: Option<&str>| {
        let found = study.sensitivity.iter().find(|sensitivity| Some(sensitivity.constant) == constant);
        found.map_or_else(|| DASH.to_owned(), |found| format!("{} of {}", found.survive, found.claims))
    };
    let rows = study.parameters.iter().map(|p| {
        let value = format!("{} {}", text::count(p.value), p.unit);
        let set = p.set.unwrap_or(DASH).to_owned();
        vec![p.name.to_owned(), set, value, survive(p.constant), p.standing.to_string()]
    });
    let mut table =
        TextTable::new("Parameters", ["parameter", "--set", "value", "survive ±10%", "from"], rows);
    if !study.sensitivity.is_empty() {
        table.remarks.push(
            "Survive ±10%: reproduced held-out claims that are still reproduced with 10% less and with 10% more of the \
             constant; a count changes by one at least."
                .into(),
        );
    }
    table
}

/// The assumed values that decide a verdict; none where there are none.
pub fn assumptions(study: &Study) -> Option<TextTable> {
    let row = |assumption: &Assumption| {
        let decides = assumption.decides.as_ref()?;
        let (from, to) = decides.holds;
        let decided = study.claims.iter().find(|claim| claim.id == decides.claim);
        let others: Vec<String> = decides.otherwise.iter().map(|&value| text::count(value)).collect();
        Some(vec![
            assumption.what.clone(),
            figure(assumption.value, &assumption.unit),
            decided.map_or_else(|| DASH.to_owned(), |claim| claim.what.clone()),
            format!("{} to {}", text::count(from), text::count(to)),
            others.join(", "),
        ])
    };
    let headings = ["assumed", "value", "decides", "same verdict", "another at"];
    let rows: Vec<Vec<String>> = study.assumptions.iter().filter_map(row).collect();
    (!rows.is_empty()).then(|| TextTable::new("Assumed values that decide a verdict", headings, rows))
}

/// The ranges that were asked for; none where they were not.
pub fn ranges(study: &Study) -> Option<TextTable> {
    let beyond = |end: &End| match &end.turns {
        None => "nothing turns".to_owned(),
        Some(turn) => {
            let others = match turn.others {
                0 => String::new(),
                others => format!(", and {others} more"),
            };
            format!("at {} {}: {}{others}", text::count(turn.at), turn.verdict.name(), turn.claim)
        }
    };
    let inside = |range: &Range| {
        let hold = range.tried - range.inside.len();
        match range.inside.first() {
            None => format!("{hold} of {}", range.tried),
            Some(turn) => format!(
                "{hold} of {}; at {} {}: {}",
                range.tried,
                text::count(turn.at),
                turn.verdict.name(),
                turn.claim
            ),
        }
    };
    let row = |range: &Range| {
        let ends = format!("{} to {}", text::count(range.from.at), text::count(range.to.at));
        vec![
            range.what.clone(),
            figure(range.value, &range.unit),
            ends,
            inside(range),
            beyond(&range.from),
            beyond(&range.to),
        ]
    };
    let headings = ["assumed", "value", "searched range", "verdicts hold inside", "below", "above"];
    let title = "Assumed values, and the range in which the verdicts hold";
    let mut table = TextTable::new(title, headings, study.ranges.iter().map(row));
    table.remarks.push(format!(
        "Searched from a {SEARCHED:.0}th to {SEARCHED:.0} times the value, one value at a time, in steps of a factor \
         of 1.4 and then to 2%; then at values inside."
    ));
    (!study.ranges.is_empty()).then_some(table)
}

/// The changes of the model under which claims fail.
pub fn ablations(study: &Study) -> TextTable {
    let row = |(name, what): (&String, &String)| {
        let own = |claim: &&Claim| claim.ablation.as_ref() == Some(name);
        let count = study.claims.iter().filter(own).count();
        vec![name.clone(), what.clone(), count.to_string()]
    };
    let headings = ["ablation", "what it takes away", "claims that must fail"];
    TextTable::new("Ablations (--without)", headings, study.ablations.iter().map(row))
}

/// The score of each study by role: reproduced claims of all that are counted.
pub fn by_role(studies: &[Study]) -> TextTable {
    let row = |study: &Study| {
        let of = |role: Role| study.scores.iter().find(|score| score.role == role && score.claims > 0);
        let dash = || DASH.to_owned();
        let reproduced =
            |role| of(role).map_or_else(dash, |score| format!("{} of {}", score.reproduced, score.claims));
        let distance = of(Role::HeldOut).and_then(|score| score.distance);
        let weakest = study.sensitivity.iter().min_by_key(|sensitivity| sensitivity.survive);
        vec![
            study.name.to_owned(),
            reproduced(Role::HeldOut),
            distance.map_or_else(dash, percent),
            weakest.map_or_else(dash, |found| format!("{} of {}", found.survive, found.claims)),
            reproduced(Role::Derived),
            reproduced(Role::Fitted),
            of(Role::Fitted).map_or_else(dash, |score| freedom(score.freedom)),
        ]
    };
    let headings = ["study", "held out", "distance", "survive ±10%", "derived", "fitted", "df"];
    let mut table = TextTable::new("Claims reproduced, by role", headings, studies.iter().map(row));
    table.remarks.push(
        "Held out: no parameter has seen the figure, and a model figure counts once. Distance: the median from the \
         published figures. Survive ±10%: reproduced held-out claims that stay so whichever fitted constant is 10% \
         less or more. Derived: a parameter was computed from the figure or its like. Fitted: a parameter was fitted \
         with it; df: such figures less constants. Identities, and claims that follow from others, are not counted."
            .to_owned(),
    );
    table
}

/// A study as a part of a page: its score, the claims that were not reproduced, the published graph with ours in it;
/// the rest folded.
pub fn section(study: &Study) -> Section {
    let all: Vec<&Claim> = study.claims.iter().collect();
    let mut tables: Vec<TextTable> = missed(study).into_iter().collect();
    tables.push(claims("Claims", &all, false));
    tables.extend(std::iter::once(&study.here).chain(&study.tables).map(TextTable::from));
    tables.push(parameters(study));
    tables.extend(assumptions(study));
    tables.extend(ranges(study));
    tables.push(ablations(study));
    Section {
        heading: study.name.to_owned(),
        answer: score(&all),
        score: scored(study),
        paragraphs: vec![format!("{}. {}", study.title, study.source)],
        bars: study.bars.clone(),
        ranges: Vec::new(),
        plots: study.plots.clone(),
        seen: Some(study.opening),
        tables,
        notes: study.notes.clone(),
    }
}
