//! What a guest is asked to do, checked before it boots, and what it takes.

use std::env::consts::ARCH;
use std::sync::Arc;

use pagelab_experiment::experiments::{Backing, Load};
use pagelab_experiment::setting::{Mode, Thp, names};
use pagelab_experiment::{Origin, Plan, Request, Target, Unsupported, What};
use pagelab_live::plan;
use pagelab_live::set_up::refuse_beyond_half;

use crate::disks::Disks;
use crate::image::Machine;
use crate::machine;
use crate::numa::Nodes;
use crate::options::{Accel, Options, Trace};
use crate::root::Root;
use crate::target::{Guest, QEMU};
use crate::tracing;

impl Target for Guest {
    fn plan(&self, request: &Request) -> Result<Plan, Unsupported> {
        let name = format!("kernel:{}", self.image.path.display());
        let mut settled = plan::settle(request, &self.capabilities(&name))?;
        self.traceable(&name, request)?;
        let root = Root::of(&request.experiment, &self.options, &self.image, &name)?.map(Arc::new);
        let page_size = self.image.page_size;
        self.bootable(&name)?;
        let recording = matches!(self.options.trace, Some(Trace::On | Trace::Restored))
            .then(|| tracing::path(&self.image, &self.options, &settled.experiment));
        if let Some(path) = recording.as_ref().filter(|path| path.exists()) {
            let path = path.display();
            return Err(Unsupported::new(
                &name,
                What::Machine,
                format!("would overwrite {path}"),
                "remove it, or choose another name with to=FILE",
            ));
        }
        for (key, value, origin) in self.options.conditions() {
            settled.also(key, value, origin);
        }
        settled.also(names::MEMORY, "none", Origin::Target);
        if let (Some(folder), Some(_)) = (&self.options.root, &root) {
            settled.also(names::ROOT, folder.display().to_string(), Origin::Asked);
        }
        let memory = self.memory(root.as_deref());
        refuse_beyond_half(memory)
            .map_err(|failure| Unsupported::new(&name, What::Machine, failure.to_string(), ""))?;
        let mut plan = Plan::new(settled, page_size, Box::new(self.with_root(root)));
        plan.needs.memory = memory;
        plan.needs.disk = Disks::bytes(&plan.experiment, &plan.setting, page_size);
        plan.needs.tasks = Some(plan.experiment.declaration().tasks(page_size));
        plan::disk(&name, plan.needs.disk)?;
        plan.needs.privileges = vec![format!("{}: a virtual machine", machine::program(self.image.machine))];
        plan.changes = vec!["nothing on this machine; changes are made only in the guest".to_owned()];
        plan.changes.extend(recording.map(|path| format!("writes {}", path.display())));
        Ok(plan)
    }
}

impl Guest {
    /// Refuses an image for which there is no first program or no QEMU here.
    pub(crate) fn bootable(&self, name: &str) -> Result<(), Unsupported> {
        let machine = |why: String, remedy: String| Err(Unsupported::new(name, What::Machine, why, remedy));
        let (arch, _) = self.image.machine.name();
        if self.options.numa.as_ref().is_some_and(Nodes::any_slow) && self.image.machine != Machine::X86_64 {
            let what = What::Condition("numa".to_owned());
            let why = "can make a node slow only on x86";
            return Err(Unsupported::new(name, what, why, "leave @slow out"));
        }
        if self.options.init.is_none() && arch != ARCH {
            return machine(
                format!("is a kernel for {arch}, and this pagelab for {ARCH}"),
                format!(
                    "put a static pagelab for {arch} next to this one, as pagelab-{arch} (make {arch} builds one), or \
                     name it with init=PATH"
                ),
            );
        }
        let qemu = machine::program(self.image.machine);
        if !machine::installed(qemu) {
            let remedy = "install it: apt-get install qemu-system-x86 (or qemu-system-arm)".to_owned();
            return machine(format!("needs {qemu}, which is not installed"), remedy);
        }
        Ok(())
    }

    /// The host's memory that the machine takes. The packed root is in memory too, because the
    /// machine may boot again.
    pub(crate) fn memory(&self, root: Option<&Root>) -> u64 {
        let machine = self.options.ram.saturating_add(QEMU);
        // The saved machine, and a second QEMU.
        let restored = if self.options.trace == Some(Trace::Restored) { machine } else { 0 };
        machine.saturating_add(restored).saturating_add(root.map_or(0, Root::bytes))
    }

    /// Refuses to count what cannot be counted.
    fn traceable(&self, name: &str, request: &Request) -> Result<(), Unsupported> {
        let refuse = |why: &str, remedy: &str| {
            Err(Unsupported::new(name, What::Condition("trace".to_owned()), why, remedy))
        };
        let Options { accel, cpus, trace, .. } = &self.options;
        let declared = request.experiment.declaration();
        let references = matches!(declared.load(), Load::References(..));
        let counted = references || matches!(declared.load(), Load::Program(_));
        let huge = matches!(declared.load(), Load::References(_, Backing::Hugetlb));
        let large = |mode| matches!(mode, Mode::Always | Mode::Madvise);
        match trace {
            None => Ok(()),
            Some(Trace::Restored) if *accel != Accel::Tcg || !self.can_be_kept(*accel) => refuse(
                "saves only translated x86-64 machines of the usual kind",
                "use accel=tcg, without machine= and qemu=",
            ),
            Some(Trace::Restored) => Ok(()),
            Some(Trace::Functions) if !counted => {
                refuse("counts only mapanon, mapfile and command", "use --profile")
            }
            Some(Trace::Cache | Trace::On) if !references => {
                refuse("counts only mapanon and mapfile", "use --profile")
            }
            Some(Trace::On) if *accel != Accel::Icount => refuse(
                "records only where each instruction takes one tick of the clock, so that the recorder \
                changes nothing",
                "use accel=icount",
            ),
            Some(_) if *accel == Accel::Kvm || self.image.machine != Machine::X86_64 => {
                refuse("counts only on an emulated x86-64 CPU", "use accel=icount or accel=tcg")
            }
            Some(Trace::Cache) if *accel != Accel::Icount => refuse(
                "counts misses only with a clock of instructions and repeatable addresses",
                "use accel=icount",
            ),
            Some(Trace::Cache) if huge => refuse(
                "takes the load's pages for base pages, as QEMU does not tell the size of a translation",
                "use --backing anon, or trace=functions",
            ),
            Some(Trace::Cache) if request.asked.thp.iter().flat_map(Thp::modes).any(large) => refuse(
                "takes the load's pages for base pages, as QEMU does not tell the size of a translation",
                "use thp=never, or trace=functions",
            ),
            Some(_) if *cpus > 1 && *accel != Accel::Icount => refuse(
                "has a thread for each processor, which would count at once",
                "use accel=icount or cpus=1",
            ),
            Some(_) => Ok(()),
        }
    }
}
