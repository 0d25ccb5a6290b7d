//! Looking at every task at once: its counters and, where the kernel accounts them, its delays. What
//! `prstat`, `doctor` and `top` share.

use std::collections::HashMap;

use anyhow::{Context as _, Result};
use pagelab_counters::views::prstat::{self, Moment, Row};
use pagelab_counters::{Selection, Tree};
use pagelab_live::bpf::TraceError;
use pagelab_live::bpf::tasks::Tasks;
use pagelab_live::taskstats::{Accounting, Exits, SWITCH, Taskstats};

/// Switches delay accounting on if asked to; whoever holds it must listen to signals, so that it is put
/// back.
pub fn accounting(wanted: bool) -> Result<Option<Accounting>> {
    let enable = || Accounting::enable().with_context(|| format!("{SWITCH} cannot be set: that needs root"));
    wanted.then(enable).transpose()
}

/// Looks at every task.
pub struct Watcher {
    tree: Tree,
    selection: Selection,
    taskstats: Result<Taskstats, String>,
    threads: bool,
    /// Whether the kernel is asked for each process as a whole.
    whole: bool,
    tracing: Option<Tasks>,
    exits: Option<Exits>,
}

impl Watcher {
    /// Watches the running machine: processes, or threads where their delays are wanted apart.
    pub fn live(selection: Selection, threads: bool) -> Self {
        let taskstats = Taskstats::open().map_err(|e| e.to_string());
        let exits = Exits::listen().ok();
        Self { tree: Tree::live(), selection, taskstats, threads, whole: false, tracing: None, exits }
    }

    /// Watches the processes of the running machine, each as a whole where the kernel accounts it, with a third of the
    /// files: `fewer` is read in place of `selection`, and rows are to be described ([`Watcher::describe`]).
    pub fn processes(selection: Selection, fewer: Selection) -> Self {
        let mut watcher = Self::live(selection, false);
        if let Ok(taskstats) = &mut watcher.taskstats
            && watcher.exits.is_some()
            && taskstats.names_processes()
        {
            watcher.selection = fewer;
            watcher.whole = true;
        }
        watcher
    }

    /// A recorded machine, which has no delays.
    pub fn recorded(tree: Tree, selection: Selection) -> Self {
        let taskstats = Err("a recorded machine has no delay accounting".to_owned());
        Self { tree, selection, taskstats, threads: false, whole: false, tracing: None, exits: None }
    }

    /// Counts from now on what only tracepoints tell.
    pub fn trace(&mut self) -> std::result::Result<(), TraceError> {
        self.tracing = Some(Tasks::start()?);
        Ok(())
    }

    /// The machine's counters.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Why no task has delays, with the remedy; None where tasks have them.
    pub fn why_no_delays(&self) -> Option<String> {
        match &self.taskstats {
            Err(why) => Some(why.clone()),
            Ok(_) if Accounting::is_on() == Some(false) => Some(
                "delay accounting is off: 'sysctl kernel.task_delayacct=1' or --enable-accounting, for processes \
                 that start from then on"
                    .to_owned(),
            ),
            Ok(_) => None,
        }
    }

    /// Reads of rows that are shown what they do not have yet.
    pub fn describe(&self, rows: &mut [Row]) {
        if self.whole {
            prstat::describe(self.tree.root(), rows);
        }
    }

    /// The tasks now.
    pub fn look(&mut self) -> Moment {
        // Before the rows are read: who ends in between is heard of the next time.
        let exits = self.exits.as_mut().map(Exits::take);
        let counters = self.tree.read(&self.selection);
        let mut delays = HashMap::new();
        let mut accounts = self.whole.then(HashMap::new);
        if let (Ok(taskstats), Some(accounts)) = (&mut self.taskstats, &mut accounts) {
            for (process, _, _) in counters.groups("process") {
                let Some((account, found)) = taskstats.whole(process) else { continue };
                accounts.insert(process, account);
                delays.extend(found.map(|d| (process, d)));
            }
        } else if let Ok(taskstats) = &mut self.taskstats {
            let module = if self.threads { "thread" } else { "process" };
            for (task, _, _) in counters.groups(module) {
                let found = if self.threads { taskstats.thread(task) } else { taskstats.process(task) };
                delays.extend(found.map(|d| (task, d)));
            }
        }
        let traced = self.tracing.as_ref().map(|tasks| {
            counters.groups("thread").map(|(thread, _, _)| (thread, tasks.thread(thread))).collect()
        });
        Moment { counters, delays, accounts, traced, exits }
    }
}
