//! Plan, then perform: a target says what it will do before anything is set up.
//!
//! [`Target::plan`](crate::Target::plan) takes a [`Request`] and gives a [`Plan`], which has every condition that
//! will be in force and where it came from, or [`Unsupported`], which names what the target does not honour. Only
//! a plan is performed, and only its conditions reach the notebook: a record never names a condition that was
//! not in force.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::experiments::{Bounds, Dishonoured, Experiment, Tasks};
use crate::failure::{Failure, RecorderError};
use crate::observation::{Level, Note, Observation};
use crate::recorder::Recorder;
use crate::setting::{Limit, Setting, Value};

/// What is to be performed, and under which conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// What is to be done.
    pub experiment: Experiment,
    /// The conditions that were asked for: each is honoured, or the request is refused.
    pub asked: Setting,
    /// The conditions that are usual where nothing was asked for: those that a target does not honour are left
    /// out, and its record says so.
    pub usual: Setting,
}

impl Request {
    /// `experiment` under what was asked for alone.
    pub fn new(experiment: Experiment, asked: Setting) -> Self {
        Self { experiment, asked, usual: Setting::default() }
    }
}

/// Where a condition came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The user asked for it.
    Asked,
    /// pagelab's own choice where nothing was asked for.
    Default,
    /// The target has it so.
    Target,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Asked => "asked",
            Self::Default => "default",
            Self::Target => "target",
        })
    }
}

/// A condition in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// The key of [`Setting`]; `set PATH` for a file of the kernel's.
    pub name: String,
    /// The value.
    pub value: String,
    /// Where it came from.
    pub origin: Origin,
}

impl Condition {
    /// A condition.
    pub fn new(name: impl Into<String>, value: impl Into<String>, origin: Origin) -> Self {
        Self { name: name.into(), value: value.into(), origin }
    }
}

/// What a target does not honour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The experiment.
    Experiment,
    /// This parameter of the experiment, or its value.
    Parameter(String),
    /// This condition (a key of [`Setting`]), alone or beside the others.
    Condition(String),
    /// Anything on this machine, as it is: a privilege, memory, disk, an image.
    Machine,
}

/// Why a target will not perform a request. Nothing was set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Unsupported {
    /// What is not honoured.
    pub what: What,
    /// The target.
    pub target: String,
    /// Why, as a clause that follows the target's name: `does not have …`.
    pub why: String,
    /// What to do instead.
    pub remedy: String,
    /// The targets that honour it.
    pub honoured_by: Vec<String>,
}

impl Unsupported {
    /// Without targets that honour it.
    pub fn new(
        target: impl Into<String>,
        what: What,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { what, target: target.into(), why: why.into(), remedy: remedy.into(), honoured_by: Vec::new() }
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, target, why, remedy, honoured_by } = self;
        match what {
            What::Experiment => write!(f, "{target} does not perform this experiment: it {why}")?,
            What::Parameter(name) if name == "program" => write!(f, "{target} {why}")?,
            What::Parameter(name) => write!(f, "{target} does not honour --{name}: it {why}")?,
            What::Condition(name) => write!(f, "{target} does not honour {name}: it {why}")?,
            What::Machine => write!(f, "{target} {why}")?,
        }
        if !remedy.is_empty() {
            write!(f, "; {remedy}")?;
        }
        if honoured_by.is_empty() { Ok(()) } else { write!(f, " (honoured by {})", honoured_by.join(", ")) }
    }
}

impl From<Unsupported> for Failure {
    fn from(unsupported: Unsupported) -> Self {
        let remedy = unsupported.remedy.clone();
        Self::unsupported(Unsupported { remedy: String::new(), ..unsupported }.to_string(), remedy)
    }
}

/// What a performance will need.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Needs {
    /// Memory at once, in bytes: the load inside its limit, and the buffers beside it.
    pub memory: u64,
    /// Disk at once, in bytes.
    pub disk: u64,
    /// Processes and threads of the load at once, where the target starts any.
    pub tasks: Option<Tasks>,
    /// Privileges and programs, each with what it is for.
    pub privileges: Vec<String>,
    /// About how long a repetition takes, in seconds, where that can be told.
    pub seconds: Option<f64>,
}

/// What a target will do: nothing is set up yet.
pub struct Plan {
    /// The experiment, with what depends on the conditions settled.
    pub experiment: Experiment,
    /// The conditions that the performance sets up.
    pub setting: Setting,
    /// Every condition that will be in force, and where it came from.
    pub conditions: Vec<Condition>,
    /// The target's base page size in bytes.
    pub page_size: u64,
    /// Frames that the load may have, where there is a limit.
    pub frames: Option<u64>,
    /// Whether every repetition gives the same figures.
    pub deterministic: bool,
    /// What it will need.
    pub needs: Needs,
    /// What it will change on the machine, and undo, a line each.
    pub changes: Vec<String>,
    /// Remarks that go into the record: usual conditions that are left out, and why.
    pub notes: Vec<Note>,
    performer: Box<dyn Performer>,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("experiment", &self.experiment)
            .field("conditions", &self.conditions)
            .finish_non_exhaustive()
    }
}

/// Performs what was planned.
pub trait Performer {
    /// Performs `experiment` once under `setting` and gives everything it sees to `recorder`.
    ///
    /// # Errors
    /// See [`Failure`]. Whatever was set up is undone in every case.
    fn perform(
        &mut self,
        experiment: &Experiment,
        setting: &Setting,
        recorder: &mut dyn Recorder,
    ) -> Result<(), Failure>;
}

impl Plan {
    /// What `performer` will do of `settled`, on a target with pages of `page_size` bytes.
    pub fn new(settled: Settled, page_size: u64, performer: Box<dyn Performer>) -> Self {
        let Settled { experiment, setting, conditions, notes } = settled;
        let frames = setting.limit().map(|limit| limit.pages(page_size));
        Self {
            experiment,
            setting,
            conditions,
            page_size,
            frames,
            deterministic: false,
            needs: Needs::default(),
            changes: Vec::new(),
            notes,
            performer,
        }
    }

    /// Has `performer` perform it instead, which gives the same.
    pub fn perform_by(&mut self, performer: Box<dyn Performer>) {
        self.performer = performer;
    }

    /// Performs it once.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn perform(&mut self, recorder: &mut dyn Recorder) -> Result<(), Failure> {
        for note in &self.notes {
            recorder.observe(Observation::Note(note.clone())).map_err(|e: RecorderError| Failure::from(e))?;
        }
        self.performer.perform(&self.experiment, &self.setting, recorder)
    }
}

/// A request whose conditions are settled: each is honoured.
#[derive(Clone, Debug, PartialEq)]
pub struct Settled {
    /// The experiment, with what depends on the memory limit settled.
    pub experiment: Experiment,
    /// The conditions to set up.
    pub setting: Setting,
    /// Those, and where each came from.
    pub conditions: Vec<Condition>,
    /// What was left out of the usual conditions, and why.
    pub notes: Vec<Note>,
}

impl Settled {
    /// Settles `request` on `target`, which honours a condition or says why not. Sizes that nobody
    /// asked for follow the limit that was meant and `bounds`, whose own limit is not looked at.
    ///
    /// # Errors
    /// When parameters contradict one another, or a condition that was asked for is not honoured.
    pub fn new(
        request: &Request,
        target: &str,
        page_size: u64,
        bounds: Bounds,
        honours: impl Fn(&Value) -> Result<(), Dishonoured>,
    ) -> Result<Self, Unsupported> {
        let consistent = |experiment: &Experiment| match experiment.declaration().contradiction() {
            Some((parameter, why, remedy)) => {
                Err(Unsupported::new(target, What::Parameter(parameter.to_owned()), why, remedy))
            }
            None => Ok(()),
        };
        consistent(&request.experiment)?;
        let mut setting = Setting::default();
        let mut conditions = Vec::new();
        let mut notes = Vec::new();
        let asked = request.asked.values();
        let is_asked = |key: &str| asked.iter().any(|other| other.key() == key);
        let usual = request.usual.values().into_iter().filter(|value| !is_asked(value.key()));
        let usual = usual.map(|value| (value, Origin::Default));
        for (value, origin) in asked.iter().cloned().map(|value| (value, Origin::Asked)).chain(usual) {
            if let Value::Memory(Limit::Of(size)) = &value
                && size.bytes(page_size) < page_size
            {
                let why = format!("has pages of {page_size} bytes, and {size} is less than one");
                let what = What::Condition(value.to_string());
                return Err(Unsupported::new(target, what, why, format!("did you mean {size}M?")));
            }
            if let Err((why, remedy)) = honours(&value) {
                if origin == Origin::Asked {
                    let what = What::Condition(value.to_string());
                    return Err(Unsupported::new(target, what, why, remedy));
                }
                let text = format!("{value}, which is usual, is not in force: {target} {why}; {remedy}");
                notes.push(Note { level: Level::Info, text });
                continue;
            }
            let (name, text) = value.recorded();
            conditions.push(Condition::new(name, text, origin));
            setting.put(value);
        }
        // The sizes that depend on a limit are those of the limit that was meant, also where it is not in force:
        // the same references are made on every target.
        let limit = Setting { memory: request.asked.memory.or(request.usual.memory), ..Setting::default() };
        let limit = limit.limit().map(|size| size.bytes(page_size));
        let experiment = request.experiment.settled(&Bounds { limit, ..bounds });
        consistent(&experiment)?;
        Ok(Self { experiment, setting, conditions, notes })
    }

    /// Adds a condition that the target has by itself, where no other of that name is in force.
    pub fn also(&mut self, name: &str, value: impl Into<String>, origin: Origin) {
        if !self.conditions.iter().any(|condition| condition.name == name) {
            self.conditions.push(Condition::new(name, value, origin));
        }
    }

    /// Sets a condition that pagelab chooses.
    pub fn choose(&mut self, value: Value) {
        let (name, text) = value.recorded();
        self.also(&name, text, Origin::Default);
        self.setting.put(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::{Clock, Vmtest};

    fn setting(text: &[(&str, &str)]) -> Setting {
        let mut setting = Setting::default();
        text.iter().for_each(|(key, value)| assert_eq!(setting.apply(key, value), Ok(true)));
        setting
    }

    #[test]
    fn what_is_asked_is_honoured_or_refused_and_what_is_usual_is_left_out() {
        let only_memory = |value: &Value| match value {
            Value::Memory(_) => Ok(()),
            _ => Err(("has none".to_owned(), "leave it out".to_owned())),
        };
        let request = Request {
            experiment: Experiment::Clock(Clock::default()),
            asked: setting(&[("memory", "8M")]),
            usual: setting(&[("memory", "64M"), ("swap", "file")]),
        };
        let settled = Settled::new(&request, "model:x", 4096, Bounds::default(), only_memory).unwrap();
        assert_eq!(settled.setting.to_string(), "memory=8M");
        assert_eq!(settled.conditions, [Condition::new("memory", "8M", Origin::Asked)]);
        assert_eq!(settled.notes.len(), 1);
        let request = Request { asked: setting(&[("thp", "never")]), ..request };
        let refused = Settled::new(&request, "model:x", 4096, Bounds::default(), only_memory).unwrap_err();
        assert_eq!(refused.what, What::Condition("thp=never".into()));
        assert_eq!(refused.to_string(), "model:x does not honour thp=never: it has none; leave it out");
    }

    #[test]
    fn sizes_follow_the_limit_that_was_meant() {
        let request = Request {
            experiment: Experiment::Vmtest(Vmtest::default()),
            asked: Setting::default(),
            usual: setting(&[("memory", "8M")]),
        };
        let none = |_: &Value| Err(("has none".to_owned(), String::new()));
        let settled = Settled::new(&request, "model:x", 4096, Bounds::default(), none).unwrap();
        let Experiment::Vmtest(vmtest) = settled.experiment else { panic!("another experiment") };
        assert_eq!(vmtest.sizes, Some(Vmtest::sizes_for(Some(8 << 20))));
    }
}
