//! What a child finds when it starts, and what a start that fails says.

use super::rig::{DRAIN, Rig, script};
use omniscio_lib::supervise::pty::{LaunchLine, SpawnStep, spawn};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

// proves: A-01
#[test]
fn stdout_alone_is_a_terminal_and_it_is_the_controlling_one() {
    let rig = Rig::start(
        "for fd in 0 1 2; do [ -t $fd ] && echo tty || echo pipe; done; \
         : < /dev/tty && echo controlled; set -- $(cat /proc/$$/stat); [ $6 = $$ ] && echo leader",
    );
    assert_eq!(rig.rest().text(), "pipe\ntty\npipe\ncontrolled\nleader\n");
}

// proves: A-01
#[test]
fn the_terminal_is_raw_and_wide() {
    let modes = Rig::start("stty -a <&1").rest().text();
    for mode in ["-echo", "-icanon", "-opost", "-isig", "-icrnl", "columns 10000"] {
        assert!(
            modes.split([' ', ';', '\n']).collect::<Vec<_>>().join(" ").contains(mode),
            "{mode}: {modes}"
        );
    }
}

// proves: A-01
#[test]
fn a_child_gets_three_descriptors_and_no_other_of_the_app() {
    // a descriptor that some library left open across exec
    let leak = fs::File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&leak, rustix::io::FdFlags::empty()).unwrap();
    let all = Rig::start("ls /proc/$$/fd").rest().text();
    assert_eq!(all.split_whitespace().collect::<Vec<_>>(), ["0", "1", "2"]);
}

#[test]
fn the_environment_and_the_folder_are_the_given_ones() {
    let rig =
        Rig::with_env("env | cut -d= -f1 | sort | grep -v -e _ -e PWD; pwd -P", &[("ONE", "1")]);
    let home = rig.home.path().canonicalize().unwrap();
    assert_eq!(rig.rest().text(), format!("ONE\nPATH\n{}\n", home.display()));
}

fn failure(line: &LaunchLine) -> (Option<i32>, SpawnStep) {
    let failed = spawn(line, DRAIN, |event| panic!("{event:?} of a start that failed"));
    let error = failed.err().expect("the start fails");
    assert!(error.message.contains("os error"), "{error}");
    (error.errno, error.step)
}

fn write_program(path: &Path, mode: u32, text: &str) {
    // by another process: a write handle inherited by a fork of another test would be ETXTBSY
    let write = "printf %s \"$1\" > \"$0\"";
    let mut shell = Command::new("/bin/sh");
    assert!(shell.args(["-c", write]).arg(path).arg(text).status().unwrap().success());
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_failed_start_tells_its_number_and_what_was_missing() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    write_program(&at("plain"), 0o644, "#!/bin/sh\n");
    write_program(&at("corrupt"), 0o755, "\u{1}\u{2}\u{3}");
    write_program(&at("lost"), 0o755, "#!/no/such/interpreter\n");
    let start = |program: &str, cwd: &str| {
        let mut line = script(&at(cwd), "", &[]);
        line.program = at(program);
        failure(&line)
    };
    assert_eq!(start("gone", "."), (Some(libc::ENOENT), SpawnStep::Exec));
    assert_eq!(start("lost", "."), (Some(libc::ENOENT), SpawnStep::Exec));
    assert_eq!(start("plain", "."), (Some(libc::EACCES), SpawnStep::Exec));
    assert_eq!(start("corrupt", "."), (Some(libc::ENOEXEC), SpawnStep::Exec));
    assert_eq!(start("lost", "no/such"), (Some(libc::ENOENT), SpawnStep::Folder));
    assert_eq!(start("lost", "plain"), (Some(libc::ENOTDIR), SpawnStep::Folder));
}
