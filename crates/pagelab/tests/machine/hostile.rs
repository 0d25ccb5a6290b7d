//! What others can put in pagelab's way: names that a terminal would obey, links and devices where
//! a file is to be written, outputs that cannot be written.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, lchown, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::{Lab, joined};
use pagelab_testing::{LIMITS, ROOT, TMPFS, Test, tests};

pub fn tests() -> Vec<Test> {
    tests! {
        a_hostile_process_name_is_shown_and_not_obeyed;
        a_hostile_cgroup_name_is_shown_and_not_obeyed;
        a_hostile_run_of_somebody_elses_notebook_is_shown_and_not_obeyed;
        a_mount_whose_name_is_no_text_hides_no_cgroup: LIMITS, TMPFS;
        root_is_not_advised_to_run_as_root_with_read_only_sys: LIMITS;
        outputs_leave_links_fifos_and_neighbours_as_they_are;
        a_device_that_is_named_as_an_output_stays_one: ROOT;
        a_link_that_another_user_planted_where_everybody_may_is_refused: ROOT;
        a_program_gets_its_arguments_byte_by_byte;
        an_output_that_cannot_be_written_is_no_panic;
        a_limit_on_the_size_of_files_is_an_error;
        a_fifo_is_no_kernel_image;
        recovery_keeps_no_command_waiting;
        a_journal_that_names_other_peoples_things_is_not_followed;
        a_folder_that_others_may_write_is_refused_with_a_way_on: LIMITS;
    }
}

/// A name that clears the screen, begins a line and says something else there.
const NAME: &str = "\u{1b}[2J\nfake\u{9b}1m";

/// Nothing in it acts on a terminal.
fn assert_plain(what: &str, text: &str) {
    let acts = |c: char| c.is_control() && c != '\n' && c != '\t';
    assert!(!text.contains(acts), "{what}: {:?}", text.split('\n').find(|line| line.contains(acts)));
    assert!(!text.lines().any(|line| line.trim_start().starts_with("fake")), "{what}: a forged line\n{text}");
}

/// A process of that name, until it is dropped.
struct Hostile(Child);

impl Hostile {
    fn start() -> Self {
        let script = format!("printf '%s' '{NAME}' > /proc/$$/comm; echo; read x");
        let mut shell = Command::new("sh");
        let mut child =
            shell.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = [0];
        child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        let comm = fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap();
        assert!(comm.starts_with("\u{1b}[2J\nfake"), "{comm:?}");
        Self(child)
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn a_hostile_process_name_is_shown_and_not_obeyed() {
    let hostile = Hostile::start();
    let pid = hostile.0.id();
    let lab = Lab::new();
    for view in [
        format!("stat process:{pid}"),
        format!("stat -p process:{pid}"),
        format!("stat -l process:{pid}"),
        format!("stat --json process:{pid}"),
        format!("prstat -p {pid} 0.05 1"),
        format!("prstat -m -p {pid} 0.05 1"),
        format!("prstat -p {pid} --json 0.05 1"),
        "memstat --by process -n 5000".to_owned(),
        "memstat --by process -n 5000 --json".to_owned(),
    ] {
        for color in ["never", "always"] {
            let text = lab.ok(&format!("{view} --color {color}"));
            assert!(text.contains("u001b[2J"), "{view}: it is there: {text}");
            assert_plain(&view, &text);
        }
    }
    // What it shows can be asked for.
    lab.shows(&format!("stat -l process:{pid}:*u001b*fake*:state"), &["state"]);
    // Kept, and shown from there.
    lab.ok(&format!("record process:{pid}::rss --count 2 --interval 0.05 --name seen"));
    for view in ["show seen --all", "show seen --json", "list", "export seen", "compare seen seen --all"] {
        assert_plain(view, &lab.ok(view));
    }
    let page = lab.ok("report seen -o -");
    assert!(page.contains("u001b[2J") && !page.contains(['\u{1b}', '\u{9b}']), "the page has no such bytes");
}

fn a_hostile_cgroup_name_is_shown_and_not_obeyed() {
    let lab = Lab::new();
    let machine = lab.path("machine");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../counters/tests/fixtures/adapted-cgroup2");
    assert!(Command::new("cp").arg("-r").arg(fixture).arg(&machine).status().unwrap().success());
    let root = machine.join("sys/fs/cgroup");
    let group = fs::read_dir(&root).unwrap().flatten().find(|e| e.path().is_dir()).unwrap().path();
    fs::rename(group, root.join(NAME)).unwrap();
    for view in [
        "stat cgroup",
        "stat -p cgroup",
        "stat --json cgroup",
        "memstat --by cgroup",
        "memstat --by cgroup --json",
    ] {
        let text = lab.ok(&format!("{view} --root machine"));
        assert!(text.contains("u001b[2J"), "{view}: it is there: {text}");
        assert_plain(view, &text);
    }
}

fn a_hostile_run_of_somebody_elses_notebook_is_shown_and_not_obeyed() {
    let lab = Lab::new();
    lab.ok("run mapanon --on model:lru --on model:opt --pages 8 --references 20 --memory 4p --html none --name x");
    let notebook = rusqlite::Connection::open(lab.path("pagelab.db")).unwrap();
    let hostile = |sql: &str| notebook.execute(sql, [NAME]).unwrap();
    hostile("UPDATE run SET name = ?1, batch = ?1, started = ?1, pagelab = ?1 WHERE id = 1");
    hostile("UPDATE environment SET value = ?1 WHERE name = 'model.name'");
    hostile("UPDATE note SET text = ?1");
    hostile(
        "INSERT INTO metric (repetition, name, unit, better, value) SELECT id, ?1, 'count', 'lower', 1.0 FROM repetition",
    );
    hostile(
        "INSERT INTO counter (repetition, source, name, before, after) SELECT id, 'vmstat', ?1, 0, 1 FROM repetition",
    );
    for view in [
        "list",
        "list --json",
        "show 1",
        "show 1 --all",
        "show 1 --json",
        "compare 1 2 --all",
        "compare 1 2 --json",
        "export 1",
    ] {
        let output = lab.output(view);
        assert!(output.status.success(), "{view}");
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("u001b[2J"), "{view}: it is there: {text}");
        assert_plain(view, &text);
    }
    let text = lab.ok("--notebook other.db import pagelab.db");
    assert!(!text.contains('\u{1b}') && !text.contains('\u{9b}'), "{text:?}");
    // And what cannot be read is no way round it.
    hostile("UPDATE run SET target = ?1");
    for view in ["list", "list --json"] {
        assert!(!lab.ok(view).contains('\u{1b}'));
    }
    assert!(!lab.fails("show 1", 3).contains('\u{1b}'));
    let mut named = lab.command("run mapanon --on model:lru --pages 8 --references 20 --html none --name");
    let named = named.arg(NAME).output().unwrap();
    assert!(!named.status.success() && !String::from_utf8_lossy(&named.stderr).contains('\u{1b}'));
}

/// Anybody who may mount something of their own chooses a name that every process reads among the
/// mounts.
fn a_mount_whose_name_is_no_text_hides_no_cgroup() {
    let lab = Lab::new();
    let script = r#"d=$(printf 'm\033[2J\377'); mkdir "$d" && mount -t tmpfs none "$d" && exec "$0" "$@""#;
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_pagelab")]);
    command.args([
        "run",
        "mapanon",
        "--pages",
        "8",
        "--references",
        "20",
        "--memory",
        "16M",
        "--html",
        "none",
    ]);
    let output = command.current_dir(lab.folder.path()).env("PAGELAB_STATE_DIR", lab.path("state")).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn root_is_not_advised_to_run_as_root_with_read_only_sys() {
    let lab = Lab::new();
    for condition in ["--memory 16M", "--memory none --thp always", "--memory none --thp never"] {
        let script = format!(
            "for d in $(cut -d' ' -f2 /proc/self/mounts | grep ^/sys); do mount -o remount,bind,ro $d; done
             exec '{}' run mapanon --pages 8 --references 20 --html none --dry-run {condition}",
            env!("CARGO_BIN_EXE_pagelab")
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script]).current_dir(lab.folder.path());
        let output = command.env("PAGELAB_STATE_DIR", lab.path("state")).output().unwrap();
        let error = joined(&String::from_utf8_lossy(&output.stderr));
        assert!(error.contains("mount it writable") && !error.contains("as root"), "{condition}: {error}");
        assert_eq!(output.status.code(), Some(2), "{condition}: {error}");
    }
}

/// Every way to write the file `name`.
fn outputs(name: &str) -> [String; 3] {
    [
        format!("report x -o {name}"),
        format!("export x -o {name}"),
        format!("run mapanon --on model:lru --pages 8 --references 20 --memory 4p --html {name}"),
    ]
}

fn outputs_leave_links_fifos_and_neighbours_as_they_are() {
    let lab = Lab::new();
    lab.ok("run mapanon --on model:lru --pages 8 --references 20 --memory 4p --html none --name x");
    // A neighbour that is the user's own, and one that somebody planted.
    fs::write(lab.path("victim"), "precious").unwrap();
    fs::write(lab.path("a.new"), "mine").unwrap();
    symlink("victim", lab.path("b.new")).unwrap();
    for name in ["a", "b"] {
        outputs(name).iter().for_each(|command| drop(lab.ok(command)));
        assert!(fs::metadata(lab.path(name)).unwrap().len() > 1000);
    }
    assert_eq!(fs::read_to_string(lab.path("a.new")).unwrap(), "mine");
    assert_eq!(fs::read_to_string(lab.path("victim")).unwrap(), "precious");
    assert!(fs::symlink_metadata(lab.path("b.new")).unwrap().is_symlink());

    assert!(Command::new("mkfifo").arg(lab.path("fifo")).status().unwrap().success());
    for command in outputs("fifo") {
        let mut reader = Command::new("cat").arg(lab.path("fifo")).stdout(Stdio::piped()).spawn().unwrap();
        lab.ok(&command);
        let mut text = String::new();
        reader.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        reader.wait().unwrap();
        assert!(
            text.len() > 1000 && fs::metadata(lab.path("fifo")).unwrap().file_type().is_fifo(),
            "{command}"
        );
    }
    lab.refuses("report x -o /dev/full", 3, &["No space left"]);
    assert!(fs::metadata("/dev/full").unwrap().file_type().is_char_device());
    assert!(lab.ok("report x -o -").starts_with("<!DOCTYPE html>"));
    // What is open already: a pipe, a file that goes on, what a shell has opened for `-o >(...)`.
    assert!(lab.ok("report x -q -o /dev/stdout").starts_with("<!DOCTYPE html>"));
    fs::write(lab.path("log"), "before\n").unwrap();
    let log = fs::OpenOptions::new().append(true).open(lab.path("log")).unwrap();
    let status = lab.command("export x -q -o /dev/fd/1").stdout(log).status().unwrap();
    assert!(status.success() && fs::read_to_string(lab.path("log")).unwrap().starts_with("before\n{"));
    assert!(lab.ok("export x --format csv -o -").starts_with("run,"));
    let left =
        fs::read_dir(lab.folder.path()).unwrap().flatten().map(|e| e.file_name().into_string().unwrap());
    let left: Vec<_> = left.filter(|name| name.contains("pagelab-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

fn a_device_that_is_named_as_an_output_stays_one() {
    let lab = Lab::new();
    lab.ok("run mapanon --on model:lru --pages 8 --references 20 --memory 4p --html none --name x");
    let null = lab.path("null");
    assert!(Command::new("mknod").arg(&null).args(["c", "1", "3"]).status().unwrap().success());
    symlink("null", lab.path("link")).unwrap();
    for command in ["null", "link"].into_iter().flat_map(outputs) {
        lab.ok(&command);
        assert!(fs::symlink_metadata(&null).unwrap().file_type().is_char_device(), "{command}");
        assert!(fs::symlink_metadata(lab.path("link")).unwrap().is_symlink(), "{command}");
    }
}

fn a_link_that_another_user_planted_where_everybody_may_is_refused() {
    let lab = Lab::new();
    lab.ok("run mapanon --on model:lru --pages 8 --references 20 --memory 4p --html none --name x");
    let victim = lab.path("victim");
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    for shared in [lab.path("shared"), memory.path().join("shared")] {
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
        fs::write(&victim, "precious").unwrap();
        let link = shared.join("page.html");
        symlink(&victim, &link).unwrap();
        lchown(&link, Some(12_345), None).unwrap();
        let folder = shared.join("pages");
        symlink(lab.folder.path(), &folder).unwrap();
        lchown(&folder, Some(12_345), None).unwrap();
        let stream = "uniform --pages 40 --references 400";
        let others = [
            format!("reduce {stream} --memory 8p --force -o {}", link.display()),
            format!("convert {stream} --to text -o {}", link.display()),
            format!("report x -o {}/page.html", folder.display()),
            format!("man {}", folder.display()),
            format!("fixture {}/machine vmstat", folder.display()),
        ];
        for command in outputs(link.to_str().unwrap()).into_iter().chain(others) {
            let output = lab.output(&command);
            assert!(!output.status.success(), "{command}");
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(error.contains("another user"), "{command}: {error}");
        }
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        // Nor is a notebook made behind one.
        let (notebook, made) = (shared.join("n.db"), lab.path("made"));
        symlink(&made, &notebook).unwrap();
        lchown(&notebook, Some(12_345), None).unwrap();
        let run = "run mapanon --on model:lru --pages 8 --references 20 --memory 4p --html none";
        for notebook in [notebook, folder.join("made")] {
            for command in [run, "list"] {
                let error = joined(&lab.fails(&format!("--notebook {} {command}", notebook.display()), 3));
                assert!(error.contains("another user") && !made.exists(), "{command}: {error}");
            }
        }
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o755)).unwrap();
        lab.ok(&format!("report x -o {}", link.display()));
        assert!(fs::metadata(&victim).unwrap().len() > 1000, "a link in one's own folder is followed");
    }
}

fn a_program_gets_its_arguments_byte_by_byte() {
    let lab = Lab::new();
    let odd = OsStr::from_bytes(b"a\xff'\xc3 b\xc3\xa9");
    let program = ["sh", "-c", "printf %s \"$1\" >got", "sh"].map(OsStr::new);
    let run =
        lab.command("run command --memory none --html none --name x -q --").args(program).arg(odd).status();
    assert!(run.unwrap().success());
    assert_eq!(fs::read(lab.path("got")).unwrap(), odd.as_bytes());
    // The record has them, as a shell reads them.
    assert!(joined(&lab.ok("show x")).contains("$'a\\xff\\'\\xc3 bé'"), "{}", lab.ok("show x"));
    assert_eq!(lab.command("").arg(odd).status().unwrap().code(), Some(2));
}

fn an_output_that_cannot_be_written_is_no_panic() {
    let lab = Lab::new();
    lab.ok("run mapanon --on model:lru --pages 8 --references 20 --memory 4p --html none --name x");
    let full = || Stdio::from(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    // Remarks have nowhere to go.
    for (command, status) in
        [("show nothing", 3), ("list", 0), ("record --count 0", 2), ("import absent.db", 3)]
    {
        let output = lab.command(command).stderr(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{command}");
    }
    for command in ["list", "list --json", "show x", "stat vmstat", "prstat 0.05 1", "report x -o -"] {
        let output = lab.command(command).stdout(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{command}");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            error.contains("cannot be written") && error.matches("No space left").count() == 1,
            "{command}: {error}"
        );
        let both = lab.command(command).stdout(full()).stderr(full()).output().unwrap();
        assert_eq!(both.status.code(), Some(3), "{command}");
    }
    for closed in ["2>&-", "1>&- 2>&-"] {
        let script = format!("'{}' show nothing {closed}", env!("CARGO_BIN_EXE_pagelab"));
        let status =
            Command::new("sh").args(["-c", &script]).current_dir(lab.folder.path()).status().unwrap();
        assert_eq!(status.code(), Some(3), "{closed}");
    }
}

fn a_limit_on_the_size_of_files_is_an_error() {
    let lab = Lab::new();
    lab.ok("run mapanon --on model:lru --pages 8 --references 20 --memory 4p --html none --name x");
    let limited = |command: &str| {
        let script = format!("ulimit -f 8; exec '{}' {command}", env!("CARGO_BIN_EXE_pagelab"));
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &script])
            .current_dir(lab.folder.path())
            .env("PAGELAB_STATE_DIR", lab.path("state"));
        let output = shell.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, error) = limited("report x -o page.html");
    assert_eq!(status, Some(3), "{error}");
    assert!(error.contains("File too large") && !lab.path("page.html").exists(), "{error}");
    let (status, error) =
        limited("run mapanon --on model:lru --pages 4096 --references 90000 --html none --name y");
    assert_eq!(status, Some(3), "{error}");
    assert!(!error.contains("INSERT") && error.contains("limit"), "{error}");
    lab.shows("list", &["x"]);
}

fn a_fifo_is_no_kernel_image() {
    let lab = Lab::new();
    assert!(Command::new("mkfifo").arg(lab.path("image")).status().unwrap().success());
    let mut command = lab.command("run mapanon --on kernel:image --html none");
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    let mut error = String::new();
    child.stderr.unwrap().read_to_string(&mut error).unwrap();
    assert!(error.contains("image"), "{error}");
    std::io::stdout().flush().unwrap();
}

/// A state folder with the journal of a dead pagelab that says this.
fn dead(lab: &Lab, line: &str) {
    let state = lab.path("state");
    fs::create_dir_all(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let text = format!("{{\"boot\":\"{}\",{line}}}\n", boot.trim());
    fs::write(state.join("pagelab-1-0.journal"), text).unwrap();
}

fn recovery_keeps_no_command_waiting() {
    let lab = Lab::new();
    dead(&lab, r#""undo":"remove-file","path":"/no/such/pagelab-1-0.data""#);
    // Another pagelab is at it, and stuck.
    let turn = fs::File::create(lab.path("state").join("restore.lock")).unwrap();
    turn.lock().unwrap();
    let output = lab.output("patterns");
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("still removing"));
    drop(turn);
    lab.ok("patterns");
    assert!(!lab.path("state").join("pagelab-1-0.journal").exists());
}

/// A block device of this machine's that pagelab did not make, in use as swap or not.
fn block_device() -> String {
    let devices = fs::read_dir("/dev").unwrap().flatten().map(|entry| entry.path());
    let block = |path: &std::path::PathBuf| fs::metadata(path).is_ok_and(|m| m.file_type().is_block_device());
    let found = devices.filter(|path| !path.to_string_lossy().contains("zram")).find(block);
    found.expect("a block device").display().to_string()
}

fn a_journal_that_names_other_peoples_things_is_not_followed() {
    let lab = Lab::new();
    let precious = lab.path("precious");
    fs::write(&precious, "x").unwrap();
    for line in [
        format!(r#""undo":"remove-file","path":"{}""#, precious.display()),
        format!(r#""undo":"restore","path":"{}","value":"gone""#, precious.display()),
        r#""undo":"remove-cgroup","path":"/sys/fs/cgroup/pagelab-1-0/../../../../tmp""#.to_owned(),
        r#""undo":"swap-off","path":"/swapfile""#.to_owned(),
        format!(r#""undo":"swap-off","path":"{}""#, block_device()),
    ] {
        dead(&lab, &line);
        let said = String::from_utf8(lab.output("patterns").stderr).unwrap();
        assert!(said.contains("left alone"), "{line}: {said}");
        assert_eq!(fs::read_to_string(&precious).unwrap(), "x", "{line}");
        assert!(lab.output("patterns").stderr.is_empty(), "{line}: it is told once");
    }
}

fn a_folder_that_others_may_write_is_refused_with_a_way_on() {
    for (folder, variable) in [("state", "PAGELAB_STATE_DIR"), ("scratch", "PAGELAB_SCRATCH_DIR")] {
        let lab = Lab::new();
        let taken = lab.path(folder);
        fs::create_dir(&taken).unwrap();
        fs::set_permissions(&taken, fs::Permissions::from_mode(0o777)).unwrap();
        let mut command = lab.command("run mapanon --pages 8 --references 20 --memory 16M --html none -q");
        let output = command.env(variable, &taken).output().unwrap();
        let error = joined(&String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(3), "{error}");
        assert!(error.contains("only this user can write") && error.contains(variable), "{folder}: {error}");
        assert_eq!(fs::read_dir(&taken).unwrap().count(), 0, "{folder}: nothing was written there");
    }
}
