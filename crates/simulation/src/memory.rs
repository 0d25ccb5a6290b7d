//! A simulated memory that can be asked for its pages between references.

use pagelab_model::paging::{Machine, OutOfMemory, System};
use pagelab_model::policy::{Policy, PolicyKind};
use pagelab_model::systems::SystemKind;

/// The memory of one address space, under a policy or a system.
pub struct Memory(Kind);

enum Kind {
    Policy(Box<dyn Policy>),
    System(Box<Machine>, Box<dyn System>),
}

impl Memory {
    /// Creates an empty memory for the pages `0..pages`, with `frames` frames under the policy `name`,
    /// or `limit` frames under the system `name`; both at least 1. A system may hold unmapped pages
    /// and keep frames free. `None` if there is no such model, or if the policy needs the future or
    /// does not know its pages.
    pub fn named(name: &str, pages: u32, frames: u32, limit: u32) -> Option<Self> {
        if let Some(system) = SystemKind::named(name) {
            let configuration = system.configuration();
            let machine = Box::new(configuration.machine(pages, limit));
            return Some(Self(Kind::System(machine, configuration.build(pages, limit))));
        }
        let kind: PolicyKind = name.parse().ok()?;
        let policy = (!kind.needs_future()).then(|| kind.build(pages, frames, None))?;
        policy.contains(0).is_some().then_some(Self(Kind::Policy(policy)))
    }

    /// References a page.
    ///
    /// # Errors
    /// If the system cannot free a frame.
    ///
    /// # Panics
    /// If there is no such page.
    pub fn reference(&mut self, page: u32, write: bool) -> Result<(), OutOfMemory> {
        match &mut self.0 {
            Kind::Policy(policy) => {
                policy.reference(page);
                Ok(())
            }
            Kind::System(machine, system) => machine.reference(system.as_mut(), page, write).map(|_| ()),
        }
    }

    /// Whether a reference to this page would be a hit.
    pub fn contains(&self, page: u32) -> bool {
        match &self.0 {
            Kind::Policy(policy) => policy.contains(page) == Some(true),
            Kind::System(machine, _) => machine.mapped(page),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_holds_the_pages_that_its_policy_keeps() {
        for name in ["lru", "fifo", "linux-lru"] {
            let mut memory = Memory::named(name, 500, 100, 100).unwrap();
            (0..500).for_each(|page| memory.reference(page, true).unwrap());
            let held = (0..500).filter(|&page| memory.contains(page)).count();
            assert!((1..=100).contains(&held) && memory.contains(499), "{name}: {held}");
        }
        assert!(["opt", "ws:10", "nothing"].iter().all(|name| Memory::named(name, 10, 5, 5).is_none()));
    }
}
