//! Tests of the program that need nothing of the machine. One file alone:
//! `cargo test -p pagelab --test portable golden::`.

#[path = "../common/mod.rs"]
mod common;
mod documents;
mod exporter;
mod golden;
mod grammar;
mod refusals;
mod reproduce;
mod streams;
mod terminal;
