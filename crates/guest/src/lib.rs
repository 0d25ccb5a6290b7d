//! Kernel images as targets: `kernel:PATH` boots the image in a virtual machine (QEMU) whose first
//! process is pagelab itself, performs the experiment there, and brings back what was seen.
//!
//! Nothing is prepared and nothing stays: the initramfs is made in memory, the scratch disks are files
//! without names, and the machine dies with pagelab however pagelab ends.

mod capabilities;
mod console;
mod counted;
mod disks;
mod elf;
mod first_program;
mod image;
mod init;
pub mod initramfs;
mod libraries;
mod machine;
pub mod modules;
mod monitor;
mod numa;
mod options;
mod page_maps;
mod plan;
mod quiet;
mod recording;
mod restored;
mod root;
mod shell;
mod snapshot;
mod target;
mod traced;
mod tracing;

pub use capabilities::of_any;
pub use image::{Image, ImageError};
pub use init::{JOB, init_main};
pub use options::{Accel, Options};
pub use target::{BOOT, Guest};
