//! Programs of the user's in guests: brought with their libraries, or in a root of their own.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::common::Lab;
use crate::shortage::WITH_DAMON;
use pagelab_testing::{CC, KERNELS, Test, tests};
use serde_json::Value;

pub fn tests() -> Vec<Test> {
    tests! {
        a_program_with_its_libraries_runs_in_a_guest: KERNELS, CC;
        a_program_in_a_root_of_its_own_sees_that_root: KERNELS, CC;
        a_script_and_a_storm_find_what_they_call: KERNELS;
        a_kernel_is_judged_by_a_program_of_the_users: KERNELS, CC;
        a_shell_opens_in_a_guest: KERNELS;
        the_need_of_a_running_cgroup_is_what_it_uses: KERNELS, CC;
        the_need_of_a_running_process_is_at_least_what_it_uses: CC;
        damon_samples_the_need_that_accessed_bits_have: KERNELS, CC;
        a_process_that_ends_meanwhile_is_an_error;
        what_does_not_run_has_no_need;
    }
}

/// `fill MIB`, `end STATUS`, `read FILE TEXT`: 0 where the file begins with the text; `word W`: 1
/// where the kernel's command line has the word.
const SOURCE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int count, char **words) {
  char text[4096] = "";
  const char *what = words[1];
  if (!strcmp(what, "fill")) {
    size_t size = (size_t)atoi(words[2]) << 20;
    char *bytes = malloc(size);
    for (int round = 0; round < 2; round++)
      for (size_t at = 0; at < size; at += 4096) bytes[at] = (char)(round + 1);
    return bytes[size - 4096] == 2 ? 0 : 1;
  }
  if (!strcmp(what, "end")) {
    fprintf(stderr, "the end is wanted\n");
    return atoi(words[2]);
  }
  FILE *file = fopen(!strcmp(what, "word") ? "/proc/cmdline" : words[2], "r");
  if (!file) return 9;
  fread(text, 1, sizeof text - 1, file);
  if (!strcmp(what, "word")) return strstr(text, words[2]) != NULL;
  return strncmp(text, words[3], strlen(words[3])) != 0;
}
"#;

/// The program, made in the lab's folder.
fn compile(lab: &Lab, name: &str, linked: &[&str]) -> PathBuf {
    lab.compile(name, SOURCE, linked)
}

fn metric(run: &Value, repetition: usize, name: &str) -> Option<f64> {
    let metrics = &run["repetitions"][repetition]["metrics"];
    assert!(metrics.get(name).is_some(), "no {name} in {run}");
    metrics[name]["value"].as_f64()
}

fn a_program_with_its_libraries_runs_in_a_guest() {
    let lab = Lab::new();
    compile(&lab, "fill", &[]);
    let line = "run command --memory 8M --html none --json -q --repeat 2";
    let result = lab.json(&format!("{line} --on kernel:NEW,accel=icount -- ./fill fill 16"));
    let run = &result["result"]["runs"][0];
    for repetition in [0, 1] {
        assert_eq!(metric(run, repetition, "command.status"), Some(0.0));
        // 16 MiB, twice through half as much.
        assert!(metric(run, repetition, "swap.out").unwrap() > 2048.0);
        assert!((6e6..9e6).contains(&metric(run, repetition, "memory.charged.peak").unwrap()));
        // 4,096 first touches in the kernel alone take a thousand instructions each.
        assert!(metric(run, repetition, "time.cpu").unwrap() > 4e6);
        // It may have waited, which takes no instructions.
        assert_eq!(metric(run, repetition, "time.elapsed"), None);
    }
    let begun = |repetition: usize| run["repetitions"][repetition]["environment"]["guest.begun"].clone();
    assert_eq!((begun(0), begun(1)), ("booted".into(), "restored".into()));
    let line = "run command --keep --name ended --memory none --html none";
    let line = format!("{line} --on kernel:NEW,accel=tcg -- ./fill end 3");
    lab.refuses(&line, 3, &["exit status: 3", "the end is wanted"]);
    let console = std::fs::read_to_string(lab.path("ended-1.console")).unwrap();
    assert!(console.lines().count() > 1, "{console}");
}

fn a_program_in_a_root_of_its_own_sees_that_root() {
    let lab = Lab::new();
    let program = compile(&lab, "static", &["-static"]);
    for folder in ["root", "root/bin", "root/etc"] {
        std::fs::create_dir(lab.path(folder)).unwrap();
    }
    std::fs::rename(program, lab.path("root/bin/see")).unwrap();
    std::fs::write(lab.path("root/etc/marker"), "inside").unwrap();
    // Out of the root it would lead to another file.
    std::os::unix::fs::symlink("/etc/marker", lab.path("root/link")).unwrap();
    let on = format!("--on kernel:NEW,accel=tcg,root={}", lab.path("root").display());
    let line = "run command --memory none --html none --json -q";
    let result = lab.json(&format!("{line} {on} -- see read /link inside"));
    let environment = &result["result"]["runs"][0]["repetitions"][0]["environment"];
    assert!(environment["guest.programs"].as_str().unwrap().starts_with("2 files, "), "{environment}");
}

fn a_script_and_a_storm_find_what_they_call() {
    let lab = Lab::new();
    let script = lab.path("script");
    std::fs::write(
        &script,
        "#!/bin/sh\nset -e\ntest \"$(seq 5 | sort -r | head -n 1)\" = 5\ncat beside > /tmp/copy\n",
    )
    .unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(lab.path("beside"), "text\n").unwrap();
    let line = "--memory none --html none --json -q";
    let on = "--on kernel:NEW,accel=tcg";
    lab.json(&format!("run command {line} {on} -- ./script"));
    let storm = lab.json(&format!("run forkstorm --script beside --forks 25 --copies 1 {line} {on}"));
    assert!(metric(&storm["result"]["runs"][0], 0, "forks.rate").unwrap() > 0.0);
}

/// A self-test that fails where the kernel's command line has a word: the bad kernel.
fn a_kernel_is_judged_by_a_program_of_the_users() {
    let lab = Lab::new();
    compile(&lab, "selftest", &["-static"]);
    let line = "run command --allow-failure --memory none --html none -q --name good";
    lab.ok(&format!("{line} --on kernel:NEW,accel=icount -- ./selftest word broken"));
    let image = pagelab_testing::kernels()[1].display().to_string();
    let judge = |append: &str| {
        let line = "bisect-run --metric command.status --worse-than good";
        let line = format!("{line} --kernel {image} --option append={append}");
        let ended = lab.output(&line);
        println!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        ended.status.code()
    };
    assert_eq!(judge("whole"), Some(0));
    assert_eq!(judge("broken"), Some(1));
}

/// The root has this machine's own shell, with the libraries that it says it needs.
fn a_shell_opens_in_a_guest() {
    use std::io::{Read, Write};
    let lab = Lab::new();
    let root = lab.path("root");
    let said = Command::new("ldd").arg("/bin/sh").output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let libraries = said.split_whitespace().filter(|word| word.starts_with('/'));
    for path in libraries.chain(["/bin/sh"]) {
        let place = root.join(path.trim_start_matches('/'));
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::copy(path, place).unwrap();
    }
    std::fs::write(root.join("marker"), "inside the root\n").unwrap();
    // KVM that is there and does not work, as inside many virtual machines: QEMU aborts.
    let path = std::env::var_os("PATH").unwrap();
    let qemu =
        std::env::split_paths(&path).map(|folder| folder.join("qemu-system-x86_64")).find(|q| q.is_file());
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *'-accel kvm'*) echo tried >>tried; kill -ABRT $$;; esac\nexec {} \"$@\"\n",
        qemu.unwrap().display()
    );
    std::fs::create_dir(lab.path("bin")).unwrap();
    let made_up = lab.path("bin/qemu-system-x86_64");
    std::fs::write(&made_up, script).unwrap();
    std::fs::set_permissions(&made_up, std::fs::Permissions::from_mode(0o755)).unwrap();
    let folders = std::iter::once(lab.path("bin")).chain(std::env::split_paths(&path));
    let mut child = lab
        .command("run --shell --on kernel:NEW,root=root")
        .env("PATH", std::env::join_paths(folders).unwrap())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut shown = Vec::new();
    // What is typed before there is a shell is lost, as on any serial line.
    while !shown.ends_with(b"# ") {
        let mut byte = [0];
        assert_eq!(output.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&shown));
        shown.extend(byte);
    }
    input.write_all(b"read line < /marker; echo \"<$line>\"; read release < /proc/sys/kernel/osrelease; echo \"[$release]\"; pagelab explain knee; exit\n").unwrap();
    output.read_to_end(&mut shown).unwrap();
    assert!(child.wait().unwrap().success());
    let shown = String::from_utf8_lossy(&shown);
    assert!(shown.contains("<inside the root>") && shown.contains("[6."), "{shown}");
    assert!(shown.contains("\nknee: "), "{shown}");
    let kvm = std::fs::File::options().read(true).write(true).open("/dev/kvm").is_ok();
    assert_eq!(lab.path("tried").exists(), kvm, "KVM is tried where it is");
}

/// `hot HOT COLD SECONDS`: writes COLD MiB once, says "ready", and writes HOT MiB again and again.
const HOT: &str = r#"
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int main(int count, char **words) {
  size_t hot = strtoul(words[1], 0, 10) << 20, cold = strtoul(words[2], 0, 10) << 20;
  char *used = malloc(hot), *unused = malloc(cold);
  time_t end = time(0) + atoi(words[3]);
  for (size_t at = 0; at < cold; at += 4096) unused[at] = (char)(at >> 12);
  if (write(1, "ready\n", 6) != 6) return 1;
  do {
    for (size_t at = 0; at < hot; at += 4096) used[at]++;
    usleep(200000);
  } while (time(0) < end);
  return count;
}
"#;

/// Loaded by a program, it hides memory.reclaim from it, as on Linux before 5.19.
const HIDE: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
int statx(int folder, const char *path, int flags, unsigned mask, struct statx *found) {
  size_t length = path ? strlen(path) : 0;
  if (length > 14 && !strcmp(path + length - 14, "memory.reclaim")) { errno = ENOENT; return -1; }
  int (*real)(int, const char *, int, unsigned, struct statx *) = dlsym(RTLD_NEXT, "statx");
  return real(folder, path, flags, mask, found);
}
"#;

/// 24 MiB are used and 48 are not, with and without memory.reclaim; memory.high is restored even
/// after a kill -9. A cgroup that is removed meanwhile, one without memory controller, and one that
/// this user may not write are errors.
fn the_need_of_a_running_cgroup_is_what_it_uses() {
    let lab = Lab::new();
    lab.compile("hot", HOT, &["-static"]);
    lab.compile("hide.so", HIDE, &["-shared", "-fPIC"]);
    let own = Command::new("strip").arg("-o").arg(lab.path("pl")).arg(env!("CARGO_BIN_EXE_pagelab")).status();
    assert!(own.unwrap().success());
    let script = "#!/bin/sh
set -e
echo +memory > /sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/web /sys/fs/cgroup/old /sys/fs/cgroup/gone /sys/fs/cgroup/empty /sys/fs/cgroup/old/inner state
export PAGELAB_STATE_DIR=state
sh -c 'echo 0 > /sys/fs/cgroup/web/cgroup.procs; exec ./hot 24 48 600' &
web=$!
sh -c 'echo 0 > /sys/fs/cgroup/old/cgroup.procs; exec ./hot 24 48 600' &
sleep 6
high=/sys/fs/cgroup/old/memory.high
./pl need web --for 90 --html none >web &
first=$!
LD_PRELOAD=./hide.so ./pl need old --for 90 --html none >old
wait $first
read -r line <web; echo \"<$line>\" >&2
read -r line <old; echo \"<$line>\" >&2
read -r value <$high; echo \"<high $value>\" >&2
sh -c 'echo 0 > /sys/fs/cgroup/gone/cgroup.procs; exec sleep 5' &
./pl need $web --for 20 --html none >alone &
first=$!
LD_PRELOAD=./hide.so ./pl need old --for 20 --html none &
second=$!
sleep 1
./pl need gone --for 20 --html none &
third=$!
sleep 4
kill -9 $second
echo 50000000 >$high
./pl list
read -r value <$high; echo \"<high $value>\" >&2
sleep 2
rmdir /sys/fs/cgroup/gone
wait $third || echo \"<status $?>\" >&2
wait $first
read -r line <alone; echo \"<$line>\" >&2
./pl need old/inner --for 12 --html none || echo \"<inner $?>\" >&2
setpriv --reuid=65534 ./pl need web --for 12 --html none || echo \"<nobody $?>\" >&2
./pl need / --for 20 --html none || echo \"<root $?>\" >&2
./pl need empty --for 20 --html none || echo \"<empty $?>\" >&2
exit 9
";
    std::fs::write(lab.path("script"), script).unwrap();
    std::fs::set_permissions(lab.path("script"), PermissionsExt::from_mode(0o755)).unwrap();
    let line = "run command --html none --memory 200M --swap file --swap-size 128M";
    let on = "--on kernel:NEW,accel=tcg,append=psi=1,file=hot,file=pl";
    // What a program that fails has printed is part of the error.
    let said = lab.refuses(&format!("{line} {on} -- ./script"), 3, &[]);
    let needs: Vec<f64> = said
        .split("<web needs ")
        .chain(said.split("<old needs ").skip(1))
        .skip(1)
        .map(|rest| {
            // "24.2 MiB", "about 24.2 MiB", or "at most 24.2 MiB" if the search ran out of time.
            let figure = rest.trim_start_matches("about ").trim_start_matches("at most ").split(' ').next();
            figure.and_then(|mib| mib.parse().ok()).expect(&said)
        })
        .collect();
    assert_eq!(needs.len(), 3, "by name, by the process that is alone in it, by memory.high: {said}");
    // The first as it was found, the second by the next start after a kill.
    assert_eq!(said.matches("<high max>").count(), 2, "{said}");
    assert!(said.contains("old/inner has no memory controller") && said.contains("<inner 3>"), "{said}");
    assert!(
        said.contains("cannot write /sys/fs/cgroup/web/memory.reclaim") && said.contains("<nobody 3>"),
        "{said}"
    );
    assert!(needs.iter().all(|need| (24.0..24.0 * 1.1).contains(need)), "{said}");
    assert!(said.contains("the cgroup /sys/fs/cgroup/gone was removed"), "{said}");
    assert!(said.contains("<status 3>"), "{said}");
    assert!(
        said.contains("the cgroup /sys/fs/cgroup/empty has no processes") && said.contains("<empty 3>"),
        "{said}"
    );
    assert!(
        said.contains("/sys/fs/cgroup is the root of all cgroups") && said.contains("<root 2>"),
        "{said}"
    );
}

/// Of 40 MiB 16 are used.
fn the_need_of_a_running_process_is_at_least_what_it_uses() {
    let lab = Lab::new();
    let program = lab.compile("hot", HOT, &["-static"]);
    let mut hot = Command::new(program);
    let mut hot = hot.args(["16", "24", "600"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    // From now on the 24 MiB are not used.
    let mut ready = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(hot.stdout.take().unwrap()), &mut ready)
        .unwrap();
    assert_eq!(ready, "ready\n");
    let found = lab.json(&format!("need {} --for 12 --json --html need.html", hot.id()));
    hot.kill().unwrap();
    hot.wait().unwrap();
    let ages = found["need"]["ages"].as_array().unwrap();
    let of = |age: &Value, what: &str| age[what].as_f64().unwrap() / 1_048_576.0;
    let last = ages.last().unwrap();
    assert_eq!(ages.iter().map(|age| age["seconds"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 4, 8, 12]);
    assert!(
        (16.0..17.0).contains(&of(last, "private_bytes")) && of(last, "lower_bound_bytes") <= 16.5,
        "{last}"
    );
    assert!(of(last, "upper_bound_bytes") >= 16.0 && of(last, "resident_bytes") >= 40.0, "{last}");
    let page = std::fs::read_to_string(lab.path("need.html")).unwrap();
    for title in ["Referenced memory by age", "Private memory by the time since its last reference"] {
        assert!(page.contains(title), "{title}: {page}");
    }
    assert_eq!(found["need"]["method"]["by"], "accessed-bits");
    // The memory that was written once is in the last class.
    let classes = found["need"]["histogram"].as_array().unwrap();
    assert!(of(&classes[0], "private_bytes") >= 15.5, "{classes:?}");
    assert!((23.5..26.0).contains(&of(classes.last().unwrap(), "private_bytes")), "{classes:?}");
    // It is kept.
    lab.shows("list", &["need"]);
    lab.shows("show @1", &["need.memory", "needs at least"]);
    lab.ok("report @1 -o kept.html");
    let page = std::fs::read_to_string(lab.path("kept.html")).unwrap();
    assert!(page.contains("need: memory") && page.contains("needs at least"), "{page}");
    let kept = lab.json("export @1 --format json");
    assert!(kept.to_string().contains("need.memory"), "{kept}");
}

/// Of a program that uses 24 MiB and does not use 48, in a guest. DAMON is set up for it, and
/// undone after the measurement, an interrupt, and a kill -9; a kdamond of somebody else's is left
/// alone.
fn damon_samples_the_need_that_accessed_bits_have() {
    const SCRIPT: &str = r#"
tell() {
  text=
  while read -r line && test -n "$line"; do text="$text $line"; done <answer
  echo "<$text>" >&2
}
NEED 24 100000000 2 48 &
program=$!
sleep 4
PAGELAB need $program --for 12 --max-stall 50% --html none -q >answer 2>&1 || { cat answer >&2; exit 11; }
tell
PAGELAB need $program --for 12 --max-stall 0.01% --html none -q >answer 2>&1 || { cat answer >&2; exit 12; }
tell
test "$(cat $kdamonds/nr_kdamonds)" = 0 || exit 13
undone PAGELAB need $program --for 60 --max-stall 0.01% --html none -q
echo 1 >$kdamonds/nr_kdamonds
PAGELAB need $program --for 12 --max-stall 0.01% --html none -q >answer 2>&1 || { cat answer >&2; exit 14; }
tell
test "$(cat $kdamonds/nr_kdamonds)" = 1 || exit 15
echo 0 >$kdamonds/nr_kdamonds
(sleep 3; kill -9 $program) &
PAGELAB need $program --for 12 --max-stall 0.01% --html none -q >answer 2>&1
tell
test "$(cat $kdamonds/nr_kdamonds)" = 0 || exit 16
exit 9
"#;
    const BARE: [&str; 4] = ["-static", "-nostdlib", "-nostartfiles", "-fno-stack-protector"];
    const TWINS: &str = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../live/tests/twins");
    let lab = Lab::new();
    let source = include_str!("../../../live/tests/twins/need.c");
    let need = lab.compile("need", source, &[&[TWINS], &BARE[..]].concat());
    let script = format!("{WITH_DAMON}{SCRIPT}")
        .replace("PAGELAB ", concat!(env!("CARGO_BIN_EXE_pagelab"), " "))
        .replace("NEED ", &format!("{} ", need.display()));
    let line = "run command --memory none --html none --on kernel:NEW,accel=tcg,ram=2G -- sh -c";
    let output = lab.command(line).arg(script).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
    assert!(said.contains("exit status: 9"), "{said}");
    let mib = |text: &str| text.trim_start().split(' ').next().and_then(|mib| mib.parse::<f64>().ok());
    let after = |line: &str, words: &str| {
        line.split_once(words).and_then(|(_, rest)| mib(rest)).unwrap_or_else(|| panic!("{words}: {said}"))
    };
    let lines: Vec<&str> = said.split('<').skip(1).filter_map(|rest| Some(rest.split_once('>')?.0)).collect();
    let [bits, damon, in_use, ended] = lines[..] else { panic!("{lines:?}: {said}") };
    for line in [bits, in_use] {
        assert!((23.5..25.5).contains(&after(line, "needs at least ")), "{line}");
    }
    assert!(bits.contains("accessed bits") && !bits.contains("DAMON"), "{bits}");
    assert!(in_use.contains("this machine has DAMON in use already"), "{in_use}");
    assert!(damon.contains("DAMON sampled "), "{damon}");
    let [size, low, high] =
        ["needs at least ", "interval from ", " MiB to "].map(|words| after(damon, words));
    assert!((23.0..25.0).contains(&size) && low > 22.5 && low <= 24.0 && high >= 24.0, "{damon}");
    assert!(ended.contains("ended"), "{ended}");
}

/// Whether or not its parent has asked how it ended.
fn a_process_that_ends_meanwhile_is_an_error() {
    let lab = Lab::new();
    for is_reaped in [true, false] {
        let mut short = Command::new("sleep").arg("3").spawn().unwrap();
        let id = short.id();
        let reaped = is_reaped.then(|| std::thread::spawn(move || short.wait().unwrap()));
        lab.refuses(&format!("need {id} --for 12 --html none"), 3, &[&format!("the process {id} ended")]);
        assert!(reaped.is_none_or(|thread| thread.join().unwrap().success()));
    }
}

fn what_does_not_run_has_no_need() {
    let lab = Lab::new();
    lab.refuses(
        "need 4000000000 --for 12",
        3,
        &["cannot read process 4000000000", "check that it is running"],
    );
    lab.refuses("need --for 12 -- true", 2, &["--for <SECONDS>"]);
    lab.refuses("need 1 --max-memory 1G", 2, &["--max-memory"]);
    lab.refuses("need web --max-stall 0%", 2, &["from 0.01% to 50%"]);
    let no_such = lab.output("need no-such-cgroup");
    assert_ne!(no_such.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&no_such.stderr).contains("hint: "));
}
