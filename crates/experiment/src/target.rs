//! Targets: what an experiment is done to, how one is named, and the two traits that join a
//! performance to whoever takes its observations.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::as_text::as_text;
use crate::declaration::{Refusal, closest};
use crate::plan::{Plan, Request, Unsupported};
use crate::setting::Setting;

/// What kind of target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// The running kernel.
    Host,
    /// A kernel image, booted in a virtual machine (QEMU).
    Kernel(String),
    /// A modelled system or policy, with its parameters behind further colons.
    Model(String),
    /// A policy of a model's that pages real memory, with its parameters behind further colons.
    Pager(String),
}

/// A target by name, with options: `host`, `host,memory=64M`, `kernel:PATH,append="a b"`,
/// `model:lru`. The options that are settings are folded into the run's [`Setting`] by
/// [`TargetSpec::setting`]; the others are the target's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TargetSpec {
    /// The kind.
    pub kind: TargetKind,
    /// The options, in the order given.
    pub options: Vec<(String, String)>,
}

/// A text that names no target.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "unknown target '{text}'{problem}\nhint: write host, kernel:PATH, model:NAME or pager:POLICY, with options as in host,memory=64M"
)]
pub struct TargetSpecError {
    text: String,
    /// What follows the name.
    problem: String,
}

impl TargetSpec {
    /// The running kernel without options.
    pub fn host() -> Self {
        Self { kind: TargetKind::Host, options: Vec::new() }
    }

    /// Splits the options: the setting that results from `base` and this target's options, and the
    /// options that are no settings.
    ///
    /// # Errors
    /// A sentence when a setting has an impossible value.
    pub fn setting(&self, base: &Setting) -> Result<(Setting, Vec<(String, String)>), Refusal> {
        let mut setting = base.clone();
        let mut own = Vec::new();
        for (key, value) in &self.options {
            if !setting.apply(key, value)? {
                own.push((key.clone(), value.clone()));
            }
        }
        Ok((setting, own))
    }
}

impl FromStr for TargetSpec {
    type Err = TargetSpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong =
            |problem: &str| TargetSpecError { text: text.to_owned(), problem: format!(": {problem}") };
        let mut parts = split_outside_quotes(text).ok_or_else(|| wrong("a quote is not closed"))?.into_iter();
        let name = parts.next().unwrap_or_default();
        let kind = match name.split_once(':') {
            None if name == "host" => TargetKind::Host,
            Some(("kernel", path)) if !path.is_empty() => TargetKind::Kernel(path.to_owned()),
            Some(("model", model)) if !model.is_empty() => TargetKind::Model(model.to_owned()),
            Some(("pager", policy)) if !policy.is_empty() => TargetKind::Pager(policy.to_owned()),
            _ => {
                let forms = ["host", "kernel:PATH", "model:NAME", "pager:POLICY"];
                let meant = closest(&name, forms).map(|form| format!(" (did you mean '{form}'?)"));
                return Err(TargetSpecError { text: text.to_owned(), problem: meant.unwrap_or_default() });
            }
        };
        let options = parts
            .map(|part| match part.split_once('=') {
                Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
                _ => Err(wrong(&format!("the option '{part}' is not KEY=VALUE"))),
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { kind, options })
    }
}

/// Splits at commas outside double quotes, and drops the quotes; `None` when one is not closed.
fn split_outside_quotes(text: &str) -> Option<Vec<String>> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => parts.push(String::new()),
            _ => parts.last_mut()?.push(c),
        }
    }
    (!quoted).then_some(parts)
}

impl TargetSpec {
    /// The same for a line that has little room: a kernel by its file's name.
    pub fn brief(&self) -> String {
        let file = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let kind = match &self.kind {
            TargetKind::Kernel(path) => TargetKind::Kernel(file(path)),
            kind => kind.clone(),
        };
        Self { kind, options: self.options.clone() }.to_string()
    }

    /// The same without a kernel's file and without the options that are settings:
    /// `kernel,accel=icount`.
    pub fn machine(&self) -> String {
        let own = self.setting(&Setting::default()).map_or_else(|_| self.options.clone(), |(_, own)| own);
        let is_kernel = matches!(self.kind, TargetKind::Kernel(_));
        let kind = if is_kernel { TargetKind::Host } else { self.kind.clone() };
        let shown = Self { kind, options: own }.to_string();
        if is_kernel { shown.replacen("host", "kernel", 1) } else { shown }
    }
}

impl fmt::Display for TargetSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |text: &str| if text.contains(',') { format!("\"{text}\"") } else { text.to_owned() };
        match &self.kind {
            TargetKind::Host => f.write_str("host")?,
            TargetKind::Kernel(path) => write!(f, "kernel:{}", quoted(path))?,
            TargetKind::Model(name) => write!(f, "model:{}", quoted(name))?,
            TargetKind::Pager(policy) => write!(f, "pager:{}", quoted(policy))?,
        }
        self.options.iter().try_for_each(|(key, value)| write!(f, ",{key}={}", quoted(value)))
    }
}

as_text!(TargetSpec);

/// What experiments are done to.
pub trait Target {
    /// What it will do of `request`: nothing is set up yet, nothing is written.
    ///
    /// # Errors
    /// What it does not honour, by itself or on this machine.
    fn plan(&self, request: &Request) -> Result<Plan, Unsupported>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn targets_as_people_write_them() {
        let spec: TargetSpec = r#"kernel:/boot/vmlinuz,append="a=1, b",memory=64M"#.parse().unwrap();
        assert_eq!(spec.kind, TargetKind::Kernel("/boot/vmlinuz".into()));
        assert_eq!(spec.options[0], ("append".into(), "a=1, b".into()));
        assert_eq!(spec.to_string().parse::<TargetSpec>().unwrap(), spec);
        assert_eq!(spec.brief(), r#"kernel:vmlinuz,append="a=1, b",memory=64M"#);
        assert_eq!(spec.machine(), r#"kernel,append="a=1, b""#);
        let host: TargetSpec = "host,memory=64M".parse().unwrap();
        assert_eq!(host.machine(), "host");
        let (setting, own) = spec.setting(&Setting::default()).unwrap();
        assert_eq!(setting.to_string(), "memory=64M");
        assert_eq!(own, [("append".to_owned(), "a=1, b".to_owned())]);
        for text in ["", "hots", "kernel:", "host,thp", "host,\"x"] {
            assert!(text.parse::<TargetSpec>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_setting_cannot_leave_sys_and_proc() {
        let mut setting = Setting::default();
        assert!(setting.apply("set", "/sys/kernel/mm/lru_gen/enabled=y").unwrap());
        for value in ["/etc/passwd=x", "/sys/../etc/passwd=x", "/sys/x"] {
            assert!(setting.apply("set", value).is_err(), "{value}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text: String) {
            let _ = text.parse::<TargetSpec>();
        }
    }
}
