//! Programs of the user's in guests: brought with their libraries, or in a root of their own.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::common::Lab;
use pagelab_testing::{CC, KERNELS, Test, tests};
use serde_json::Value;

pub fn tests() -> Vec<Test> {
    tests! {
        a_program_with_its_libraries_runs_in_a_guest: KERNELS, CC;
        a_program_in_a_root_of_its_own_sees_that_root: KERNELS, CC;
        a_script_and_a_storm_find_what_they_call: KERNELS;
        a_kernel_is_judged_by_a_program_of_the_users: KERNELS, CC;
        a_shell_opens_in_a_guest: KERNELS;
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
