//! Looking at every task at once: its counters and, where the kernel accounts them, its delays. What
//! `prstat`, `doctor` and `top` share.

use std::collections::HashMap;

use anyhow::{Context as _, Result};
use pagelab_confine::Accounting;
use pagelab_counters::views::prstat::{self, Account, Delays, Moment, Row};
use pagelab_counters::{Selection, Snapshot, Tree};
use pagelab_kernel::bpf::TraceError;
use pagelab_kernel::bpf::tasks::Tasks;
use pagelab_kernel::settings::DELAY_ACCOUNTING as SWITCH;
use pagelab_kernel::taskstats::{Exits, Taskstats};

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
    /// What was seen of the processes last, where those that have not run since are not read again.
    last: Option<Last>,
    tracing: Option<Tasks>,
    exits: Option<Exits>,
}

impl Watcher {
    /// Watches the running machine: processes, or threads where their delays are wanted apart.
    pub fn live(selection: Selection, threads: bool) -> Self {
        let taskstats = Taskstats::open().map_err(|e| e.to_string());
        let exits = Exits::listen().ok();
        Self {
            tree: Tree::live(),
            selection,
            taskstats,
            threads,
            whole: false,
            last: None,
            tracing: None,
            exits,
        }
    }

    /// Reads no file of a process that has not run since the previous sample. Its sizes and its
    /// state are older until [`Watcher::describe`] updates them: for views that show only described
    /// rows.
    pub fn leaving_idle(mut self) -> Self {
        self.last = self.whole.then(Last::default);
        self
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
        Self {
            tree,
            selection,
            taskstats,
            threads: false,
            whole: false,
            last: None,
            tracing: None,
            exits: None,
        }
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

    /// Reads of rows that are shown what they do not have yet, their cgroup where it is wanted.
    pub fn describe(&self, rows: &mut [Row], cgroups: bool) {
        if self.whole {
            prstat::describe(self.tree.root(), rows, cgroups);
        }
    }

    /// The tasks now.
    pub fn sample(&mut self) -> Moment {
        // Before the rows are read: who ends in between is heard of the next time.
        let exits = self.exits.as_mut().map(Exits::take);
        let mut delays = HashMap::new();
        let (counters, accounts) = match (&mut self.taskstats, &mut self.last) {
            (Ok(taskstats), Some(last)) => {
                let accounts = accounted(self.tree.root().list_numbers("proc"), taskstats, &mut delays);
                (last.sample(&self.tree, &self.selection, &accounts), Some(accounts))
            }
            (Ok(taskstats), None) if self.whole => {
                let counters = self.tree.read(&self.selection);
                let processes = counters.groups("process").map(|(process, _, _)| process);
                let accounts = accounted(processes, taskstats, &mut delays);
                (counters, Some(accounts))
            }
            (taskstats, _) => {
                let counters = self.tree.read(&self.selection);
                let module = if self.threads { "thread" } else { "process" };
                for (task, _, _) in counters.groups(module) {
                    let Ok(taskstats) = &mut *taskstats else { break };
                    let found = if self.threads { taskstats.thread(task) } else { taskstats.process(task) };
                    delays.extend(found.map(|d| (task, d)));
                }
                (counters, None)
            }
        };
        let traced = self.tracing.as_ref().map(|tasks| {
            counters.groups("thread").map(|(thread, _, _)| (thread, tasks.thread(thread))).collect()
        });
        Moment { counters, delays, accounts, traced, exits }
    }
}

/// What the kernel accounts of these processes, and their delays.
fn accounted(
    processes: impl IntoIterator<Item = u64>,
    taskstats: &mut Taskstats,
    delays: &mut HashMap<u64, Delays>,
) -> HashMap<u64, Account> {
    let mut accounts = HashMap::new();
    for process in processes {
        let Some((account, found)) = taskstats.whole(process) else { continue };
        accounts.insert(process, account);
        delays.extend(found.map(|d| (process, d)));
    }
    accounts
}

/// The processes at the look before.
#[derive(Default)]
struct Last {
    counters: Snapshot,
    accounts: HashMap<u64, Account>,
}

impl Last {
    /// The counters of `selection` now, of processes that have not run since as they were.
    fn sample(&mut self, tree: &Tree, selection: &Selection, accounts: &HashMap<u64, Account>) -> Snapshot {
        let idle = |process: &u64| self.accounts.get(process) == accounts.get(process);
        let (mut idle, ran): (Vec<u64>, Vec<u64>) = accounts.keys().partition(|process| idle(process));
        // At the first look every process has run.
        let now = if idle.is_empty() {
            tree.read(selection)
        } else {
            tree.read(&selection.of_instances("process", &ran))
        };
        // In order they are merged and not sorted.
        idle.sort_unstable();
        let known = idle.iter().flat_map(|&process| self.counters.instance("process", process));
        self.counters = Snapshot::new(now.at_ns, now.samples().iter().chain(known).cloned().collect());
        self.accounts.clone_from(accounts);
        self.counters.clone()
    }
}
