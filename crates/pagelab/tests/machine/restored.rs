//! Guests that are saved and restored page by page: `trace=restored`.

use std::collections::HashSet;
use std::path::Path;

use crate::common::Lab;
use pagelab_testing::{CC, KERNELS, Test, tests};

pub fn tests() -> Vec<Test> {
    tests! {
        a_restored_guest_tells_the_pages_that_it_touches: KERNELS;
        a_program_survives_its_guests_restore: KERNELS, CC;
        what_cannot_be_restored_by_page_is_refused: KERNELS;
    }
}

/// The pages in a file, in order, and the size of the machine that its head states.
fn pages(path: &Path) -> (Vec<u32>, u32) {
    let text = std::fs::read_to_string(path).unwrap();
    let head = text.lines().find(|line| line.starts_with("# saved")).unwrap();
    let size = head.split(" of ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok()).unwrap();
    (text.lines().filter(|line| !line.starts_with('#')).map(|line| line.parse().unwrap()).collect(), size)
}

/// The load writes 4,000 pages once the machine runs again, so at least as many are touched.
fn a_restored_guest_tells_the_pages_that_it_touches() {
    let lab = Lab::new();
    let line = "run mapanon --pages 4000 --references 8000 --pattern linear --memory none --html none";
    let on = "--on kernel:NEW,accel=tcg,ram=256M,trace=restored,first=600,to=a.pages";
    lab.shows(&format!("{line} --repeat 2 --name r {on}"), &["pages written to a.pages", "--changed"]);
    let (touched, size) = pages(&lab.path("a.pages"));
    let distinct: HashSet<u32> = touched.iter().copied().collect();
    assert_eq!(distinct.len(), touched.len(), "each page once");
    assert!((4000..32_768).contains(&touched.len()), "{} of {size} pages", touched.len());
    assert!((65_536..70_000).contains(&size) && touched.iter().all(|&page| page < size), "{size} pages");
    assert_eq!(lab.kept("r").metric("faults.populate"), Some(4000.0));
    // The experiment prefetches the guest's pages. Without a change nothing is fetched in vain.
    let references = touched.len();
    lab.ok(&format!(
        "run restore --pattern trace:a.pages --pages {size} --references {references} --changed 0% \
         --prefetch none,recorded --html none --name p"
    ));
    let kept = lab.kept("p");
    assert_eq!(kept.cell("restore", "none", "faults"), references as f64);
    assert_eq!(kept.cell("restore", "recorded", "vain"), 0.0);
    assert_eq!(kept.metric("restore.vain.recorded"), Some(0.0));
}

/// The program fills memory, waits for a second, and compares every page.
fn a_program_survives_its_guests_restore() {
    let lab = Lab::new();
    let source = "
        #include <stdlib.h>
        #include <unistd.h>
        int main(void) {
            long pages = 1000, words = 512, *memory = aligned_alloc(4096, pages * 4096);
            for (long n = 0; n < pages * words; n++) memory[n] = n * 2654435761;
            sleep(1);
            for (long n = 0; n < pages * words; n++) if (memory[n] != n * 2654435761) return 9;
            return 0;
        }";
    lab.compile("fills", source, &[]);
    let on = "--on kernel:OLD,accel=tcg,cpus=2,trace=restored,after=0.5,first=600,to=b.pages";
    lab.ok(&format!("run command --memory none --html none --name c {on} -- ./fills grün"));
    assert_eq!(lab.kept("c").metric("command.status"), Some(0.0));
    let (touched, _) = pages(&lab.path("b.pages"));
    assert!(touched.len() >= 1000, "{}", touched.len());
    // The file is a trace although an argument is not ASCII.
    lab.shows("replay b.pages --memory 100p --on model:lru", &["format text"]);
}

fn what_cannot_be_restored_by_page_is_refused() {
    let lab = Lab::new();
    let line = "run mapanon --pages 1000 --references 1000 --memory none --html none --on kernel:NEW";
    std::fs::write(lab.path("there.pages"), "1\n").unwrap();
    for (options, wanted) in [
        ("accel=icount,trace=restored", "accel=tcg"),
        ("accel=tcg,trace=restored,machine=q35", "without machine="),
        ("accel=tcg,after=1", "after needs trace=restored"),
        ("accel=tcg,trace=restored,first=0", "first is a number"),
    ] {
        lab.refuses(&format!("{line},{options}"), 2, &[wanted]);
    }
    lab.refuses(
        &format!("{line},accel=tcg,trace=restored,to=there.pages"),
        3,
        &["would overwrite there.pages"],
    );
    // The load is over before the machine would be saved.
    let never = "accel=tcg,trace=restored,after=3600,to=never.pages";
    lab.refuses(&format!("{line},{never}"), 3, &["before the machine was saved", "smaller after="]);
    assert!(!lab.path("never.pages").exists());
}
