//! Launches that cannot succeed by themselves: red at once, with the system's words and what to do.

use super::alone::{User, alone, stand_in};
use super::rig::{
    HELLO, Shortage, create, limit_descriptors, notes, until_watched, watched, watched_config,
};
use crate::supervisor::rig::{App, Ground};
use omniscio_core::id::SessionId;
use omniscio_core::session::{SessionRow, Status};
use omniscio_lib::supervise::supervisor::Cli;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

fn until_red(app: &App, session: SessionId) -> SessionRow {
    let row = app.until_row(session, "error", |view| view.row.status == Status::Error);
    assert_eq!(row.pending, None);
    row
}

fn file(path: &Path, mode: u32, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

// proves: RS-06, RS-07
#[test]
fn what_no_retry_mends_is_red_after_one_launch_and_says_what_to_do() {
    alone(User::Same, || {
        let ground = Ground::new();
        let at = |name: &str| ground.home.path().join(name);
        file(&at("plain"), 0o644, "#!/bin/sh\n");
        file(&at("corrupt"), 0o755, "\u{1}\u{2}\u{3}");
        file(&at("lost"), 0o755, "#!/no/such/node\n");
        for (program, errno, said, advice) in [
            ("gone", libc::ENOENT, "No such file or directory (os error 2)", "Install it"),
            ("lost", libc::ENOENT, "No such file or directory (os error 2)", "/no/such/node"),
            ("plain", libc::EACCES, "Permission denied (os error 13)", "chmod +x"),
            ("corrupt", libc::ENOEXEC, "Exec format error (os error 8)", "for this machine"),
        ] {
            let mut config = watched_config(&ground);
            config.cli = Cli::Fixed { program: at(program), args: Vec::new() };
            let app = App::start(config);
            let session = app.create(&ground, HELLO);
            let words = until_red(&app, session).words.unwrap();
            let place = at(program).display().to_string();
            for part in [said, advice, &place] {
                assert!(words.contains(part), "{part}: {words}");
            }
            assert_eq!(watched(|watched| watched.failed[&session].clone()), [Some(errno)]);
            assert_eq!(watched(|watched| watched.spawns[&session]), 1, "{program}");
            assert_eq!(notes(&app, session), Vec::<String>::new(), "{program}");
        }
    });
}

// proves: RS-07, RS-08
#[test]
fn a_program_that_goes_while_the_machine_is_short_is_red_as_soon_as_that_is_seen() {
    alone(User::Same, || {
        limit_descriptors(200);
        let ground = Ground::new();
        let program = ground.home.path().join("cli");
        symlink(stand_in(), &program).unwrap();
        let mut config = watched_config(&ground);
        config.cli = Cli::Fixed { program: program.clone(), args: Vec::new() };
        let app = App::start(config);
        let held = Shortage::of_descriptors();
        let session = create(&app, &ground, 1)[0];
        until_watched("three failures", |watched| {
            watched.failed.get(&session).is_some_and(|failed| failed.len() >= 3)
        });
        fs::remove_file(&program).unwrap();
        drop(held);

        until_red(&app, session);
        let failed = watched(|watched| watched.failed[&session].clone());
        let (last, before) = failed.split_last().unwrap();
        assert_eq!(*last, Some(libc::ENOENT));
        assert!(before.iter().all(|errno| *errno == Some(libc::EMFILE)), "{failed:?}");
        assert_eq!(watched(|watched| watched.spawns[&session]), failed.len());
    });
}
