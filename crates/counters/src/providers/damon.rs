//! `damon:N:contextC.schemeS:*` and `damon:N:kdamond:*`: the data access monitor and what its schemes
//! did, from /sys/kernel/mm/damon/admin.

use crate::root::Root;
use crate::sink::Sink;
use crate::value::{Kind, Unit};

const ADMIN: &str = "sys/kernel/mm/damon/admin/kdamonds";

pub fn read(root: &Root, sink: &mut Sink<'_>) {
    for number in root.list_numbers(ADMIN) {
        let folder = format!("{ADMIN}/{number}");
        if let Some(mut group) = sink.group(number, "kdamond") {
            group.text("state", root.line(&format!("{folder}/state")).as_deref());
            let pid = root.line(&format!("{folder}/pid")).and_then(|line| line.parse::<i64>().ok());
            group.gauge("pid", pid.filter(|pid| *pid >= 0), Unit::None);
        }
        for context in root.list_numbers(&format!("{folder}/contexts")) {
            for scheme in root.list_numbers(&format!("{folder}/contexts/{context}/schemes")) {
                let Some(mut group) = sink.group(number, &format!("context{context}.scheme{scheme}")) else {
                    continue;
                };
                let stats = format!("{folder}/contexts/{context}/schemes/{scheme}/stats");
                for file in root.list(&stats) {
                    // sz_* are bytes of address space, the others regions and times a quota was met.
                    let unit = if file.starts_with("sz_") { Unit::Bytes } else { Unit::Count };
                    if let Some(value) = root.number(&format!("{stats}/{file}")) {
                        group.add(file, value, unit, Kind::Counter);
                    }
                }
            }
        }
    }
}
