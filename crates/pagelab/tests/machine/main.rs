//! Tests of the program that say what they need of the machine: see crates/testing. One file alone:
//! `cargo test -p pagelab --test machine guest::`.

mod backings;
mod book;
mod bounds;
#[path = "../common/mod.rs"]
mod common;
mod compressed;
mod counters;
mod evictions;
mod experiments;
mod formats;
mod gate;
mod guest;
mod honours;
mod hostile;
mod huge_pages;
mod in_guest;
mod interrupts;
mod mechanisms;
mod memory;
mod neighbour;
mod nodes;
mod notebook;
mod own_swap;
mod page_cache;
mod pager;
mod programs;
mod restored;
mod safety;
mod settings;
mod shortage;
mod site;
mod trace;
mod window;
mod writeback;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::SIGINT;
use signal_hook::flag::register_conditional_shutdown;

fn main() -> ExitCode {
    // As the first process of a guest.
    if let Some(code) = in_guest::first() {
        return code;
    }
    if let Some(code) = page_cache::reader() {
        return code;
    }
    // A shell has what runs in its background ignore Ctrl-C, and so its children; those of one that
    // listens do not.
    register_conditional_shutdown(SIGINT, 130, Arc::new(AtomicBool::new(true))).unwrap();
    let files = [
        backings::tests(),
        book::tests(),
        bounds::tests(),
        compressed::tests(),
        counters::tests(),
        evictions::tests(),
        experiments::tests(),
        formats::tests(),
        gate::tests(),
        guest::tests(),
        honours::tests(),
        hostile::tests(),
        huge_pages::tests(),
        interrupts::tests(),
        mechanisms::tests(),
        memory::tests(),
        neighbour::tests(),
        nodes::tests(),
        notebook::tests(),
        own_swap::tests(),
        page_cache::tests(),
        pager::tests(),
        programs::tests(),
        restored::tests(),
        safety::tests(),
        settings::tests(),
        shortage::tests(),
        site::tests(),
        trace::tests(),
        window::tests(),
        writeback::tests(),
    ];
    pagelab_testing::run(files.concat())
}
