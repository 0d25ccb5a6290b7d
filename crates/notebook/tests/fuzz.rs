//! Notebooks of others, spoiled: what can be read is, the rest is an error or left out, and nothing panics.

use std::fs;
use std::path::Path;

use pagelab_notebook::{Notebook, export};
use pagelab_testing::fuzz;

fn read(path: &Path) {
    let Ok(notebook) = Notebook::open_existing(path) else { return };
    let _ = notebook.checked_entries();
    for run in notebook.list().unwrap_or_default() {
        if let Ok(run) = notebook.load(run.id) {
            export::export(&[run], export::Format::Json, std::io::sink()).unwrap();
        }
    }
}

#[test]
fn notebooks() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let good: Vec<Vec<u8>> =
        fs::read_dir(golden).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect();
    let folder = tempfile::tempdir().unwrap();
    let (foreign, own) = (folder.path().join("foreign.db"), folder.path().join("own.db"));
    fuzz::fuzz("notebooks", &good, |bytes| {
        for name in ["foreign.db", "foreign.db-wal", "foreign.db-shm", "own.db", "own.db-wal", "own.db-shm"] {
            let _ = fs::remove_file(folder.path().join(name));
        }
        fs::write(&foreign, bytes).unwrap();
        let imported = Notebook::open(&own).unwrap().import(&foreign);
        if let Ok(imported) = imported {
            // What was taken over is whole, whatever it came from.
            let own = Notebook::open_existing(&own).unwrap();
            let readable = own.list().unwrap();
            assert_eq!(readable.len(), imported.imported.len());
            readable.iter().for_each(|run| drop(own.load(run.id).unwrap()));
        }
        read(&foreign);
    });
}
