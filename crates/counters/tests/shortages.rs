//! Machines that were recorded in a shortage, by kernel and version of the control groups, at two
//! moments: golden text of every view. (How they were recorded: fixtures/README.md.)

use std::path::{Path, PathBuf};
use std::process::Command;

use pagelab_counters::views::prstat::Moment;
use pagelab_counters::views::{Width, doctor, iostat, memstat, prstat, vmstat};
use pagelab_counters::{Root, Selection, Snapshot, Tree};

const MACHINES: [&str; 3] = ["linux-6.1-cgroup1", "linux-6.1-cgroup2", "linux-6.12-cgroup2"];

/// A machine's two moments, unpacked.
struct Recorded {
    folder: tempfile::TempDir,
}

impl Recorded {
    fn unpack(machine: &str) -> Self {
        let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{machine}.tar.gz"));
        let folder = tempfile::tempdir().unwrap();
        let status =
            Command::new("tar").arg("xzf").arg(&archive).arg("-C").arg(folder.path()).status().unwrap();
        assert!(status.success(), "{}", archive.display());
        Self { folder }
    }

    fn tree(&self, moment: &str) -> Tree {
        let path: PathBuf = self.folder.path().join(moment);
        Tree::new(Root::new(path))
    }

    /// What is selected, at the time since boot when it was recorded.
    fn read(&self, moment: &str, selection: &Selection) -> Snapshot {
        let tree = self.tree(moment);
        let uptime = tree.read(&Selection::parse(["system:0:clock:uptime"]).unwrap());
        let at_ns = uptime.number("system", 0, "clock", "uptime").unwrap() as u64;
        Snapshot::new(at_ns, tree.read(selection).samples().to_vec())
    }

    fn both(&self, selection: &Selection) -> [Snapshot; 2] {
        ["first", "later"].map(|moment| self.read(moment, selection))
    }
}

#[test]
fn every_view_of_a_shortage() {
    for machine in MACHINES {
        let recorded = Recorded::unpack(machine);
        let page_size = recorded.tree("first").root().page_size();
        let mut text = String::new();

        let [first, later] = recorded.both(&vmstat::selection());
        let row = vmstat::Row::between(Some(&first), &later, page_size, None);
        text += &format!(
            "{}\n{}\n\n",
            vmstat::heading(vmstat::Layout::default()),
            row.line(vmstat::Layout::default())
        );
        assert!(row.sr.unwrap() > 100.0 && row.epi.is_none(), "{machine}: {row:?}");

        let devices =
            recorded.both(&iostat::selection()).map(|counters| iostat::Moment { counters, waits: None });
        text += &iostat::heading(Width::Whole, false);
        for row in iostat::rows(Some(&devices[0]), &devices[1]) {
            text += &format!("\n{}", row.line(Width::Whole, false));
        }

        let now = recorded.read("first", &memstat::selection());
        text += &format!("\n\n{}\n", memstat::table(&memstat::lines(&now), page_size));
        let groups = recorded.read("first", &memstat::cgroup_selection());
        for holder in memstat::by_cgroup(&groups) {
            text += &format!("{}\n", holder.line(Width::Whole));
        }

        let [before, now] =
            recorded.both(&prstat::selection()).map(|counters| Moment { counters, ..Moment::default() });
        text += &format!("\n{}\n", prstat::microstate_heading(false, Width::Whole));
        let rows = prstat::rows(&before, &now, false);
        rows.iter().for_each(|row| text += &format!("{}\n", row.microstates("root", Width::Whole)));
        text += &format!("\n{}\n", prstat::summary_heading(false));
        rows.iter().for_each(|row| text += &format!("{}\n", row.summary("root", Width::Whole)));
        insta::assert_snapshot!(format!("views_{machine}"), text);
    }
}

#[test]
fn the_doctor_names_the_recorded_shortage() {
    for machine in MACHINES {
        let recorded = Recorded::unpack(machine);
        let page_size = recorded.tree("first").root().page_size();
        let [before, now] =
            recorded.both(&doctor::selection()).map(|counters| Moment { counters, ..Moment::default() });
        let shares = recorded.read("first", &doctor::share_selection(&now.counters));
        let report = doctor::examine(&before, &now, &shares, page_size);
        assert_eq!(report.verdict.level, doctor::Level::Short, "{machine}");
        assert_eq!(report.verdict.limited[0].path, "/shortage", "{machine}");
        assert!(report.waiting.iter().any(|w| w.row.command == "dd"), "{machine}: {:?}", report.waiting);
        insta::assert_snapshot!(format!("doctor_{machine}"), format!("{report:#?}"));
    }
}
