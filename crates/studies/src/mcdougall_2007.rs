//! McDougall 2007: time in a guest whose processors' counters are not in step, and whether the rules of
//! the live `clock` experiment would have noticed.

use pagelab_experiment::experiments::{Clock, Suspicion};
use pagelab_experiment::{Experiment, Run};
use pagelab_model::clocks::{Binding, Guest, Step};

use crate::claim::{
    Axis, Claim, Column, Parameter, Plot, Series, Split, Standing, Study, Table, Tolerance, Verdict,
};
use crate::here::{self, Live};
use crate::published::{Sheet, sheet};
use crate::{Options, StudyError};

const NAME: &str = "mcdougall-2007";
const PUBLISHED: Sheet = sheet!("mcdougall-clock.csv");
/// The published readings of the two clocks are up to this far apart where nothing is wrong: the first
/// call of each is slower.
const SLACK: f64 = 50e-6;
const RUNS: u64 = 200;
const STEPS: u32 = 18;

struct Row {
    machine: String,
    second: u32,
    step: Step,
}

/// Machine, second; µs that passed by `gettimeofday` and by `gethrtime`.
type Printed = (String, u32, f64, f64);

fn published() -> Result<Vec<Row>, StudyError> {
    let rows: Vec<Printed> = PUBLISHED.rows()?;
    let seconds = |us: f64| us / 1e6;
    Ok(rows
        .into_iter()
        .map(|(machine, second, wall, counter)| {
            let step = Step { wall: seconds(wall), counter: seconds(counter) };
            Row { machine, second, step }
        })
        .collect())
}

/// The guest of the published readings. The counters' distances are those of its jumps.
fn guest(rows: &[Row]) -> Guest {
    let of = |machine: &'static str| rows.iter().filter(move |row| row.machine == machine);
    let jump = of("guest").map(|row| row.step.counter).fold(0.0, f64::max) - 1.01;
    let lost = 1.01 - of("guest-numanode").map(|row| row.step.counter).fold(f64::INFINITY, f64::min);
    Guest { between_nodes: jump, within_node: lost, ..Guest::UNBOUND }
}

/// What many runs of a configuration show.
struct Shown {
    suspect: f64,
    early: f64,
    runs_with_jump: f64,
    longest: f64,
    shortest: f64,
    mean_true: f64,
}

fn show(guest: &Guest, seed: u64) -> Shown {
    let mut shown = Shown {
        suspect: 0.0,
        early: 0.0,
        runs_with_jump: 0.0,
        longest: 0.0,
        shortest: f64::INFINITY,
        mean_true: 0.0,
    };
    let (mut steps, mut fine) = (0.0, 0.0);
    for run in 0..RUNS {
        let mut late = false;
        for step in guest.steps(STEPS, seed + run) {
            let found = step.suspicions(SLACK);
            steps += 1.0;
            shown.suspect += f64::from(u8::from(!found.is_empty()));
            shown.early += f64::from(u8::from(found.contains(&Suspicion::Early)));
            late |= found.contains(&Suspicion::Late);
            shown.longest = shown.longest.max(step.counter);
            shown.shortest = shown.shortest.min(step.counter);
            if found.is_empty() {
                fine += 1.0;
                shown.mean_true += step.counter;
            }
        }
        shown.runs_with_jump += f64::from(u8::from(late)) / RUNS as f64;
    }
    shown.suspect /= steps;
    shown.early /= steps;
    shown.mean_true /= fine;
    shown
}

/// The study.
///
/// # Errors
/// When the published figures cannot be read.
pub fn study(options: &Options) -> Result<Study, StudyError> {
    let rows = published()?;
    let mut claims = Vec::new();
    let flags = flags(&rows, &mut claims);
    let free = guest(&rows);
    let cases = [
        ("not bound", free),
        ("bound to a node", Guest { binding: Binding::Node, ..free }),
        ("bound to a core", Guest { binding: Binding::Core, ..free }),
        ("not bound, counters not trusted", Guest { trusts_counters: false, ..free }),
        (
            "bound to a node, counters not trusted",
            Guest { binding: Binding::Node, trusts_counters: false, ..free },
        ),
        (
            "bound to a core, counters not trusted",
            Guest { binding: Binding::Core, trusts_counters: false, ..free },
        ),
        ("not bound, counters in step", Guest { between_nodes: 0.0, within_node: 0.0, ..free }),
    ];
    let mut table = Table::new(
        format!("{RUNS} runs of {STEPS} sleeps of a second"),
        "guest",
        vec![
            Column::new("steps called suspect", "%", 1),
            Column::new("steps that ended early", "%", 1),
            Column::new("runs with a jump", "%", 0),
            Column::new("shortest step", "s", 3),
            Column::new("longest step", "s", 3),
            Column::new("mean of the others", "s", 4),
        ],
    );
    let shown: Vec<Shown> = cases.iter().map(|(_, guest)| show(guest, options.seed)).collect();
    for ((name, _), s) in cases.iter().zip(&shown) {
        let figures = [
            100.0 * s.suspect,
            100.0 * s.early,
            100.0 * s.runs_with_jump,
            s.shortest,
            s.longest,
            s.mean_true,
        ];
        table.row(*name, figures.map(Some));
    }
    shapes(&mut claims, &rows, &shown);
    Ok(Study {
        name: NAME,
        title: "Time in a guest on cores whose time stamp counters are not in step",
        source: "Richard McDougall, weblog, 28 March 2007",
        claims,
        parameters: parameters(&free),
        here: here(&options.here, &rows, &cases, &shown),
        tables: vec![flags, table],
        plots: vec![plot(&rows, &cases[..3], options.seed)],
        notes: vec![
            "One published step is not explained: bound to a node, gettimeofday passed 4.97 s while \
             gethrtime passed 0.94 s. In the model both clocks rest on the same base. Something else set \
             the wall clock there, such as a time daemon."
                .into(),
            "The size of the jumps is taken from the published rows; that they go forward only, that bound \
             to a node steps end early, and that a core or another timer cures all, is the model's."
                .into(),
        ],
    })
}

pub(crate) fn live() -> Vec<Live> {
    vec![Live::free("clock", Experiment::Clock(Clock { steps: 5, ..Clock::default() }))]
}

/// The published machines, the modelled guests and this machine.
fn here(runs: &[Run], rows: &[Row], cases: &[(&str, Guest)], shown: &[Shown]) -> Table {
    let live = live();
    let columns = vec![
        Column::new("shortest step", "s", 4),
        Column::new("longest step", "s", 4),
        Column::new("two clocks apart, at most", "µs", 1),
        Column::new("steps called suspect", "%", 1),
    ];
    let mut table = here::table(NAME, &live, runs, "a sleep of a second", columns);
    for machine in ["reference", "guest", "guest-numanode", "guest-fixed"] {
        let steps: Vec<&Step> =
            rows.iter().filter(|row| row.machine == machine).map(|row| &row.step).collect();
        let of = |pick: fn(f64, f64) -> f64, value: fn(&Step) -> f64| {
            steps.iter().map(|step| value(step)).reduce(pick)
        };
        let suspect = steps.iter().filter(|step| !step.suspicions(SLACK).is_empty()).count();
        table.row(
            format!("published, {machine}"),
            [
                of(f64::min, |step| step.wall.min(step.counter)),
                of(f64::max, |step| step.wall.max(step.counter)),
                of(f64::max, |step| (step.wall - step.counter).abs() * 1e6),
                Some(100.0 * suspect as f64 / steps.len() as f64),
            ],
        );
    }
    for ((name, _), shown) in cases.iter().zip(shown).take(3) {
        let figures = [Some(shown.shortest), Some(shown.longest), None, Some(100.0 * shown.suspect)];
        table.row(format!("model, {name}"), figures);
    }
    let seen = live[0].seen(runs).and_then(|seen| seen.table("clock"));
    let of = |pick: fn(f64, f64) -> f64| {
        let clocks = ["realtime", "monotonic"].iter().filter_map(|clock| seen?.numbers(clock));
        clocks.flatten().flatten().copied().reduce(pick).map(|ns| ns / 1e9)
    };
    let metric = |name: &str| live[0].metric(runs, name);
    let steps = seen.and_then(|seen| seen.numbers("realtime")).map(<[_]>::len);
    let suspect = metric("clock.jumps").zip(steps).map(|(jumps, steps)| 100.0 * jumps / steps as f64);
    let apart = metric("clock.step.worst").map(|ns| ns / 1e3);
    table.row("here", [of(f64::min), of(f64::max), apart, suspect]);
    table
}

/// The rules tried on every published row.
fn flags(rows: &[Row], claims: &mut Vec<Claim>) -> Table {
    let mut table = Table::new(
        "The rules of the clock experiment on the published rows (1: holds)",
        "machine and second",
        vec![
            Column::new("gettimeofday", "s", 3),
            Column::new("gethrtime", "s", 3),
            Column::new("apart", "", 0),
            Column::new("early", "", 0),
            Column::new("late", "", 0),
        ],
    );
    for row in rows {
        let found = row.step.suspicions(SLACK);
        let has = |suspicion| Some(f64::from(u8::from(found.contains(&suspicion))));
        table.row(
            format!("{} {}", row.machine, row.second),
            [
                Some(row.step.wall),
                Some(row.step.counter),
                has(Suspicion::Apart),
                has(Suspicion::Early),
                has(Suspicion::Late),
            ],
        );
    }
    for (machine, printed) in
        [("reference", ""), ("guest", "2"), ("guest-numanode", "1, 2, 7, 8, 14"), ("guest-fixed", "")]
    {
        let seconds: Vec<String> = rows
            .iter()
            .filter(|row| row.machine == machine && !row.step.suspicions(SLACK).is_empty())
            .map(|row| row.second.to_string())
            .collect();
        let found = seconds.join(", ");
        let say = |seconds: &str| if seconds.is_empty() { "none".to_owned() } else { seconds.to_owned() };
        claims.push(Claim::words(
            NAME,
            format!("{machine}: seconds whose time is wrong"),
            "",
            Some(&say(printed)),
            say(&found),
            if found == printed { Verdict::Reproduced } else { Verdict::Not },
            Split::HeldOut,
        ));
    }
    table
}

fn shapes(claims: &mut Vec<Claim>, rows: &[Row], shown: &[Shown]) {
    let [free, node, core] = [&shown[0], &shown[1], &shown[2]];
    let fine = |machine: &str| {
        let steps: Vec<f64> = rows
            .iter()
            .filter(|row| row.machine == machine && row.step.suspicions(SLACK).is_empty())
            .map(|row| row.step.counter)
            .collect();
        steps.iter().sum::<f64>() / steps.len() as f64
    };
    claims.push(Claim::figure(
        NAME,
        "one core: a sleep of a second and a tick",
        "s",
        fine("guest-fixed"),
        core.mean_true,
        Tolerance::Share(0.005),
        Split::HeldOut,
    ));
    let mut words = |what: &str, published: &str, model: String, verdict: bool, split| {
        let verdict = if verdict { Verdict::Reproduced } else { Verdict::Not };
        claims.push(Claim::words(NAME, what, "", Some(published), model, verdict, split));
    };
    words(
        "not bound: both clocks jump forward together",
        "177 s in one step of 18",
        format!(
            "up to {:.0} s; {:.0} % of runs of 18 steps have a jump",
            free.longest,
            100.0 * free.runs_with_jump
        ),
        free.longest > 100.0 && free.runs_with_jump > 0.5,
        Split::Fitted,
    );
    words(
        "bound to a node: steps end early, no jump of minutes",
        "0.939 s and 0.989 s",
        format!("down to {:.3} s, {:.1} % of steps early", node.shortest, 100.0 * node.early),
        node.early > 0.0 && node.longest < 2.0,
        Split::Fitted,
    );
    words(
        "bound to a node: gettimeofday and gethrtime part",
        "4.97 s against 0.94 s",
        "never".into(),
        false,
        Split::HeldOut,
    );
    words(
        "one core, counters not used: time is true",
        "1.005 to 1.010 s",
        format!("{:.3} to {:.3} s", shown[5].shortest, shown[5].longest),
        shown[5].suspect == 0.0,
        Split::HeldOut,
    );
}

fn plot(rows: &[Row], cases: &[(&str, Guest)], seed: u64) -> Plot {
    let machines = [
        ("reference", "not virtual"),
        ("guest", cases[0].0),
        ("guest-numanode", cases[1].0),
        ("guest-fixed", cases[2].0),
    ];
    let mut series: Vec<Series> = machines
        .into_iter()
        .map(|(machine, name)| Series {
            name: format!("published, {name}"),
            published: true,
            points: rows
                .iter()
                .filter(|row| row.machine == machine)
                .enumerate()
                .map(|(index, row)| (index as f64, row.step.counter))
                .collect(),
        })
        .collect();
    // Of the runs the first in which time jumps where it may.
    let jumps = |seed: &u64| cases[0].1.steps(STEPS, *seed).iter().any(|step| step.counter > 100.0);
    let seed = (seed..seed + RUNS).find(jumps).unwrap_or(seed);
    series.extend(cases.iter().map(|(name, guest)| Series {
        name: (*name).to_owned(),
        published: false,
        points: guest.steps(STEPS, seed).iter().enumerate().map(|(n, s)| (n as f64, s.counter)).collect(),
    }));
    Plot {
        title: "A sleep of a second, by gethrtime".into(),
        x: Axis { label: "step", log: false },
        y: Axis { label: "seconds told", log: true },
        series,
    }
}

fn parameters(guest: &Guest) -> Vec<Parameter> {
    let fitted = |on: &str| Standing::Fitted { on: on.to_owned() };
    let assumed = |why| Standing::Assumed { why };
    let parameter = |name, value, unit, standing| Parameter { name, value, unit, standing };
    vec![
        parameter("counters of two nodes apart", guest.between_nodes, "s", fitted("the row of 177 s")),
        parameter(
            "counters of a node apart, at most",
            guest.within_node,
            "s",
            fitted("the shortest step bound to a node"),
        ),
        parameter("moves of a virtual processor", guest.moves, "/s", assumed("a few in 18 s; not published")),
        parameter("nodes", f64::from(guest.nodes), "", assumed("the smallest that has any")),
        parameter("cores of a node", f64::from(guest.cores), "", assumed("usual in 2007")),
        parameter("tick", 10.0, "ms", Standing::Documented { source: "Solaris, 100 Hz" }),
        parameter(
            "readings apart, at most",
            SLACK * 1e6,
            "µs",
            assumed("the first calls are slower; added to the rule's 100 µs"),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_the_guest_of_the_published_rows() {
        let (here, target) = (guest(&published().unwrap()), Guest::UNBOUND);
        assert!((here.between_nodes - target.between_nodes).abs() < 1e-4, "{here:?}");
        assert!((here.within_node - target.within_node).abs() < 1e-4, "{here:?}");
    }
}
