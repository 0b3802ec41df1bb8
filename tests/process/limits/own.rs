//! The app's own limit of open files goes up at its start, and no child gets to see that.

use super::alone::{User, alone};
use crate::rig::Rig;
use crate::supervisor::rig::Ground;
use omniscio_lib::supervise::probes::claude_version;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

#[test]
fn the_app_raises_its_own_limit_and_its_children_have_the_old_one() {
    alone(User::Same, || {
        let limit = |current, maximum| Rlimit { current: Some(current), maximum: Some(maximum) };
        setrlimit(Resource::Nofile, limit(300, 1_000)).unwrap();
        let ask = "ulimit -Sn; ulimit -Hn";
        assert_eq!(Rig::start(ask).rest().text(), "300\n1000\n");

        let ground = Ground::new();
        // a second app in one process does not take the raised limit for the old one
        for _ in 0..2 {
            let app = ground.start();
            assert_eq!(getrlimit(Resource::Nofile), limit(1_000, 1_000));
            assert_eq!(Rig::start(ask).rest().text(), "300\n1000\n");
            app.quit();
        }

        // a helper program
        let script = ground.home.path().join("cli");
        let text = "#!/bin/sh\necho $(ulimit -Sn).$(ulimit -Hn)\n";
        let mut write = Command::new("/bin/sh");
        write.args(["-c", r#"printf %s "$1" > "$0""#]).arg(&script).arg(text);
        assert!(write.status().unwrap().success());
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let said = claude_version(&script, &[], crate::rig::LONG).unwrap();
        assert_eq!(said, "300.1000");
    });
}
