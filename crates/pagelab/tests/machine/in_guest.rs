//! A test file inside a kernel of its own: its tests are performed there as root, with the memory
//! controller of the version of cgroups that is asked for, whatever this machine has.
//!
//! The test file is the first process of the guest ([`first`]) and then runs itself again, with the
//! names of its tests. What it needs of programs and libraries is packed from this machine.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use pagelab_guest::initramfs::{Archive, Content};
use pagelab_guest::modules;
use pagelab_kernel::init;

/// What the tests start.
const PROGRAMS: [&str; 13] = [
    "sh", "grep", "sleep", "mkdir", "kill", "mount", "umount", "unshare", "cat", "wc", "expr", "setsid",
    "true",
];
/// Where the guest finds what it is to do: the version of cgroups, where programs are, the modules,
/// the tests.
const WORK: &str = "/tests-to-perform";
/// Where its modules are.
const MODULES: &str = "/modules";
/// Where it says what came of it.
const LINE: &str = "/dev/ttyS1";
/// What ends that.
const STATUS: &str = "the tests ended with";
/// Bytes of its disk.
const DISK: u64 = 2 << 30;
/// How long it may take.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Runs `tests` of the calling test file on the kernel `image`; returns their output.
///
/// # Panics
/// When one fails, or the guest does not end.
pub fn run_tests(image: &Path, cgroup: u32, tests: &[&str]) -> String {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let place = |name: &str| folder.path().join(name);
    pack(image, cgroup, tests, &place("initramfs"));
    File::create(place("disk")).unwrap().set_len(DISK).unwrap();
    let made = Command::new("mke2fs").args(["-q", "-F", "-t", "ext4", "-m", "0"]).arg(place("disk")).status();
    assert!(made.unwrap().success(), "mke2fs (apt-get install e2fsprogs)");
    let mut qemu = Command::new("qemu-system-x86_64");
    qemu.args([
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-no-reboot",
        "-machine",
        "pc",
        "-cpu",
        "max",
    ])
    // One thread for both CPUs: with two, a CPU may run an int3 that the kernel has already
    // replaced, and panic (LKML, July 2023: "qemu-x86_64 booting with 8.0.0 stil see int3").
    .args(["-smp", "2", "-m", "1200", "-accel", "tcg,thread=single"])
    .args(["-append", "console=ttyS0 panic=-1 reboot=t loglevel=4 mitigations=off"])
    .arg("-kernel")
    .arg(image)
    .arg("-initrd")
    .arg(place("initramfs"))
    .args(["-serial", &format!("file:{}", place("console").display())])
    .args(["-serial", &format!("file:{}", place("said").display())])
    .args([
        "-drive",
        &format!("file={},format=raw,if=none,id=disk,cache.no-flush=on", place("disk").display()),
    ])
    .args(["-device", "virtio-blk-pci,drive=disk"])
    .stdin(Stdio::null());
    let (mut qemu, begun) = (qemu.spawn().unwrap(), Instant::now());
    while qemu.try_wait().unwrap().is_none() {
        if begun.elapsed() > TIMEOUT {
            let _ = qemu.kill();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let read = |name: &str| String::from_utf8_lossy(&fs::read(place(name)).unwrap_or_default()).into_owned();
    let said = read("said");
    let whole = said.contains(&format!("{STATUS} exit status: 0"));
    assert!(whole, "on {} with cgroup {cgroup}:\n{said}\n{}", image.display(), read("console"));
    said
}

/// Packs the calling test file, pagelab, the programs, what they are linked with, and the modules.
fn pack(image: &Path, cgroup: u32, tests: &[&str], to: &Path) {
    let mut archive = Archive::new(File::create(to).unwrap()).unwrap();
    let own = std::env::current_exe().unwrap();
    let pagelab = PathBuf::from(env!("CARGO_BIN_EXE_pagelab"));
    let path = std::env::var_os("PATH").unwrap();
    let program = |name: &&str| {
        let mut places = std::env::split_paths(&path).map(|folder| folder.join(name));
        places.find(|place| place.is_file()).unwrap_or_else(|| panic!("no {name}"))
    };
    let mut files: Vec<PathBuf> = PROGRAMS.iter().map(program).collect();
    let mut libraries = Vec::new();
    for file in files.iter().chain([&own, &pagelab]) {
        let output = Command::new("ldd").arg(file).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        libraries.extend(text.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from));
    }
    libraries.sort();
    libraries.dedup();
    files.append(&mut libraries);
    for file in &files {
        archive.add(file, &Content::File(fs::read(file).unwrap())).unwrap();
    }
    archive.add(Path::new("/init"), &Content::File(stripped(&own, to))).unwrap();
    archive.add(&pagelab, &Content::File(stripped(&pagelab, to))).unwrap();
    // In each package of a kernel: boot/vmlinuz-RELEASE, lib/modules/RELEASE.
    let name = image.file_name().unwrap().to_string_lossy().into_owned();
    let release = name.strip_prefix("vmlinuz-").unwrap();
    let folders =
        ["lib/modules", "usr/lib/modules"].map(|f| image.parent().unwrap().join("..").join(f).join(release));
    let folder = folders.iter().find(|folder| folder.is_dir()).expect("modules");
    let wanted: Vec<&str> = modules::WANTED.iter().chain(modules::FILES).copied().collect();
    let mut names = Vec::new();
    for module in modules::load(folder, &wanted).unwrap() {
        archive.add(&Path::new(MODULES).join(&module.name), &Content::File(module.content)).unwrap();
        names.push(module.name);
    }
    // The kernel gives its first process no PATH, and pagelab looks for programs as a shell does.
    let work = format!("{cgroup}\n{}\n{}\n{}\n", path.display(), names.join(" "), tests.join(" "));
    archive.add(Path::new(WORK), &Content::File(work.into_bytes())).unwrap();
    archive.finish().unwrap();
}

/// The program without what only a debugger reads.
fn stripped(program: &Path, beside: &Path) -> Vec<u8> {
    let to = beside.with_extension("stripped");
    let done = Command::new("strip").arg("-o").arg(&to).arg(program).status();
    fs::read(if done.is_ok_and(|status| status.success()) { &to } else { program }).unwrap()
}

/// Performs the tests, where this is the first process of a guest that [`run_tests`] began.
pub fn first() -> Option<ExitCode> {
    if std::process::id() != 1 || !Path::new(WORK).exists() {
        return None;
    }
    init::mount_all();
    // Where PATH finds the shell elsewhere, a program may still call it by its own name.
    let _ = std::os::unix::fs::symlink("usr/bin", "/bin");
    // Where it is tried whether a file system can be mounted.
    fs::create_dir_all("/mnt").unwrap();
    let work = fs::read_to_string(WORK).unwrap();
    let [cgroup, path, modules, tests] = &work.lines().collect::<Vec<_>>()[..] else { panic!("{work}") };
    for module in modules.split_whitespace() {
        if let Err(error) = init::load_module(&Path::new(MODULES).join(module)) {
            eprintln!("the module {module}: {error}");
        }
    }
    let program = Path::new(env!("CARGO_BIN_EXE_pagelab"));
    let mut packed = File::open(program).unwrap();
    init::mount_files(Path::new("/dev/vda")).unwrap();
    // The disk may be mounted over the directory that holds pagelab.
    if !program.exists() {
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        std::io::copy(&mut packed, &mut File::create(program).unwrap()).unwrap();
        fs::set_permissions(program, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let run = |line: &str| {
        let mut words = line.split_whitespace();
        let status = Command::new(words.next().unwrap()).args(words).status();
        assert!(status.is_ok_and(|status| status.success()), "{line}");
    };
    // pagelab may have been packed into a folder below it.
    run("umount /tmp");
    if *cgroup == "1" {
        let root = "/sys/fs/cgroup";
        run(&format!("umount {root}"));
        run(&format!("mount -t tmpfs none {root}"));
        run(&format!("mkdir {root}/memory"));
        run(&format!("mount -t cgroup -o memory none {root}/memory"));
    }
    let line = || fs::OpenOptions::new().write(true).open(LINE).unwrap();
    let mut status = Ok(ExitStatus::default());
    for test in tests.split_whitespace() {
        status = Command::new("/proc/self/exe")
            .args([test, "--exact", "--test-threads=1"])
            .env("PAGELAB_TEST_REQUIRE", "root,limits,tmpfs")
            .env("HOME", "/")
            .env("PATH", path)
            .stdin(Stdio::null())
            .stdout(line())
            .stderr(line())
            .status();
        if !status.as_ref().is_ok_and(ExitStatus::success) {
            break;
        }
    }
    let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
    writeln!(line(), "\n{STATUS} {status}").unwrap();
    std::thread::sleep(Duration::from_millis(200));
    init::restart();
    Some(ExitCode::FAILURE)
}
