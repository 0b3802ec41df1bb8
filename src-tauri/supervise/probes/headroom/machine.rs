//! What Linux tells of itself in `/proc` and in the control groups: how many files, processes and how
//! much memory it would still give. It changes nothing; what cannot be read says nothing.

use super::least;
use rustix::process::{Resource, getrlimit};
use std::fs;
use std::path::{Path, PathBuf};

/// The processes of the user are counted when fewer than this many may be left.
const NEAR: u64 = 1_024;
/// Who has one of these is bound by no limit of processes: `CAP_SYS_ADMIN`, `CAP_SYS_RESOURCE`.
const UNBOUND: u64 = 1 << 21 | 1 << 24;

/// Where the system tells of itself.
pub(super) struct Machine {
    proc: PathBuf,
    groups: PathBuf,
}

impl Machine {
    pub(super) fn this() -> Machine {
        Machine { proc: "/proc".into(), groups: "/sys/fs/cgroup".into() }
    }

    /// Files that all processes together may still open.
    pub(super) fn files(&self) -> Option<u64> {
        let text = self.read("sys/fs/file-nr")?;
        let mut numbers = text.split_whitespace().map(|number| number.parse::<u64>().ok());
        let (open, max) = (numbers.next()??, numbers.nth(1)??);
        Some(max.saturating_sub(open))
    }

    /// Processes and threads that this user may still start: no more than the whole machine, this
    /// user's limit and the groups of this process allow.
    pub(super) fn processes(&self) -> Option<u64> {
        let running = self.running();
        let of_user = getrlimit(Resource::Nproc).current;
        let of_user = of_user.and_then(|limit| self.of_user(limit, running));
        let max = ["sys/kernel/threads-max", "sys/kernel/pid_max"];
        let max = max.iter().filter_map(|file| self.read(file)?.trim().parse::<u64>().ok()).min();
        let of_machine = max.zip(running).map(|(max, running)| max.saturating_sub(running));
        let of_groups = self.left_in_groups("pids", |group| {
            let max = number(&group.join("pids.max"))?;
            Some(max.saturating_sub(number(&group.join("pids.current"))?))
        });
        least(least(of_user, of_machine), of_groups)
    }

    /// Memory that is available, within the groups of this process, in mebibytes.
    pub(super) fn memory_mib(&self) -> Option<u64> {
        let of_machine =
            field(&self.read("meminfo")?, "MemAvailable:")?.parse::<u64>().ok()?.checked_mul(1_024);
        let of_groups = self.left_in_groups("memory", |group| {
            let max = number(&group.join("memory.max"))?;
            let used = number(&group.join("memory.current"))?;
            let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
            // file pages that nobody used lately are given back when they are needed
            let idle = field(&stat, "inactive_file").and_then(|bytes| bytes.parse().ok());
            Some(max.saturating_sub(used.saturating_sub(idle.unwrap_or(0))))
        });
        Some(least(of_machine, of_groups)? / (1_024 * 1_024))
    }

    /// What the limit leaves to this user, or less: far from it, everybody's processes are taken for
    /// this user's, for counting them means a walk through all.
    fn of_user(&self, limit: u64, running: Option<u64>) -> Option<u64> {
        let status = self.read("self/status")?;
        let user = field(&status, "Uid:")?;
        if self.is_unbound(&status, user) {
            return None;
        }
        let at_least = running.map(|running| limit.saturating_sub(running));
        if let Some(far) = at_least.filter(|left| *left >= NEAR) {
            return Some(far);
        }
        Some(limit.saturating_sub(self.threads_of(user)?))
    }

    /// Root and who may set limits aside, where they are that of the machine and not of a container's
    /// own users.
    fn is_unbound(&self, status: &str, user: &str) -> bool {
        let map = self.read("self/uid_map").unwrap_or_default();
        let of_machine = map.split_whitespace().eq(["0", "0", "4294967295"]);
        let capable = field(status, "CapEff:").and_then(|set| u64::from_str_radix(set, 16).ok());
        of_machine && (user == "0" || capable.is_some_and(|set| set & UNBOUND != 0))
    }

    /// All threads of the machine.
    fn running(&self) -> Option<u64> {
        let text = self.read("loadavg")?;
        text.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
    }

    /// All threads of the processes whose real user this is.
    fn threads_of(&self, user: &str) -> Option<u64> {
        let is_process = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
        let mut threads = 0;
        for entry in fs::read_dir(&self.proc).ok()?.flatten() {
            if !entry.file_name().to_str().is_some_and(is_process) {
                continue;
            }
            // one that has ended meanwhile does not count
            let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
            if field(&status, "Uid:") == Some(user) {
                threads += field(&status, "Threads:").and_then(|n| n.parse().ok()).unwrap_or(1);
            }
        }
        Some(threads)
    }

    /// The least that one of this process's groups leaves: its own or one that it is part of.
    fn left_in_groups(&self, controller: &str, left: impl Fn(&Path) -> Option<u64>) -> Option<u64> {
        let (root, own) = self.group(controller)?;
        own.ancestors().filter_map(|group| left(&root.join(group))).min()
    }

    /// Where the groups of a controller are, and the path of this process's own below it: in the
    /// controller's own hierarchy (version 1), else in the one of all (version 2).
    fn group(&self, controller: &str) -> Option<(PathBuf, PathBuf)> {
        let text = self.read("self/cgroup")?;
        let lines = || text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
        let own = lines().find(|(names, _)| names.split(',').any(|name| name == controller));
        let (root, path) = match own {
            Some((_, path)) => (self.groups.join(controller), path),
            None => (self.groups.clone(), lines().find(|(names, _)| names.is_empty())?.1),
        };
        Some((root, path.trim_start_matches('/').into()))
    }

    fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.proc.join(file)).ok()
    }
}

/// The first word behind the name of a line.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next())
}

/// The number in a file; `None` where it says that there is no limit.
fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// A machine that tells this.
    fn machine(files: &[(&str, &str)]) -> (TempDir, Machine) {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = home.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let machine =
            Machine { proc: home.path().join("proc"), groups: home.path().join("groups") };
        (home, machine)
    }

    fn status(user: u32, threads: u32, capable: &str) -> String {
        format!("Name:\tx\nUid:\t{user}\t0\t0\t0\nThreads:\t{threads}\nCapEff:\t{capable}\n")
    }

    const NOBODYS: &str = "0000000000000000";
    const MACHINE_MAP: &str = "         0          0 4294967295\n";

    #[test]
    fn the_limit_of_a_user_is_counted_against_only_where_it_may_be_near() {
        let (mine, other) = (status(7, 30, NOBODYS), status(8, 500, NOBODYS));
        let (_home, machine) = machine(&[
            ("proc/self/status", &mine),
            ("proc/self/uid_map", MACHINE_MAP),
            ("proc/10/status", &mine),
            ("proc/11/status", &other),
            ("proc/12/status", &status(7, 1, NOBODYS)),
            ("proc/driver/status", &mine),
        ]);
        for (limit, running, left) in [
            (5_000, Some(531), 4_469),
            (531 + NEAR, Some(531), NEAR),
            (530 + NEAR, Some(531), 530 + NEAR - 31),
            (100, Some(531), 69),
            (31, None, 0),
            (7, None, 0),
        ] {
            assert_eq!(machine.of_user(limit, running), Some(left), "{limit} {running:?}");
        }
    }

    #[test]
    fn who_is_bound_by_no_limit_of_processes_is_short_of_none() {
        for (user, capable, map, bound) in [
            (7, NOBODYS, MACHINE_MAP, true),
            (0, NOBODYS, MACHINE_MAP, false),
            (7, "0000000001000000", MACHINE_MAP, false),
            (7, "0000000000200000", MACHINE_MAP, false),
            (7, "00000000fedfffff", MACHINE_MAP, true),
            // root of a container is a user like any other
            (0, "000001ffffffffff", "0 100000 65536\n", true),
        ] {
            let own = status(user, 3, capable);
            let (_home, machine) = machine(&[
                ("proc/self/status", &own),
                ("proc/self/uid_map", map),
                ("proc/9/status", &own),
            ]);
            let left = machine.of_user(10, None);
            assert_eq!(left, bound.then_some(7), "{user} {capable} {map}");
        }
    }

    #[test]
    fn the_tightest_of_all_groups_counts() {
        let (_home, machine) = machine(&[
            ("proc/self/cgroup", "4:memory,hugetlb:/old\n0::/a/b\n"),
            ("groups/a/b/pids.max", "max\n"),
            ("groups/a/b/pids.current", "10\n"),
            ("groups/a/pids.max", "60\n"),
            ("groups/a/pids.current", "50\n"),
            ("groups/pids.max", "900\n"),
            ("groups/pids.current", "700\n"),
        ]);
        assert_eq!(machine.processes(), Some(10));
        assert_eq!(machine.memory_mib(), None, "nothing is told");
        let (_home, machine) = self::machine(&[
            ("proc/self/cgroup", "11:pids:/c\n0::/a\n"),
            ("proc/loadavg", "0.10 0.20 0.30 3/950 77\n"),
            ("proc/sys/kernel/threads-max", "9000\n"),
            ("proc/sys/kernel/pid_max", "1000\n"),
            ("groups/pids/c/pids.max", "70\n"),
            ("groups/pids/c/pids.current", "3\n"),
        ]);
        assert_eq!(machine.processes(), Some(50), "of the machine's own");
    }

    #[test]
    fn memory_is_what_machine_and_group_have_with_what_they_can_give_back() {
        let mib = 1_024 * 1_024;
        let (max, used) = (900 * mib, 500 * mib);
        let stat = format!("anon 1\nfile 2\ninactive_file {}\n", 100 * mib);
        let all = [
            ("proc/meminfo", "MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable:    716800 kB\n"),
            ("proc/self/cgroup", "0::/a\n"),
            ("groups/a/memory.max", &max.to_string()),
            ("groups/a/memory.current", &used.to_string()),
            ("groups/a/memory.stat", &stat),
        ];
        let (_home, machine) = machine(&all);
        assert_eq!(machine.memory_mib(), Some(500));
        let (_home, machine) = self::machine(&all[..2]);
        assert_eq!(machine.memory_mib(), Some(700));
    }

    #[test]
    fn files_are_those_of_the_whole_machine() {
        let (_home, machine) = machine(&[("proc/sys/fs/file-nr", "752\t0\t1000\n")]);
        assert_eq!(machine.files(), Some(248));
    }

    #[test]
    fn this_machine_tells_of_itself() {
        let machine = Machine::this();
        assert!(machine.files().is_some_and(|left| left > 0));
        assert!(machine.memory_mib().is_some_and(|left| left > 0));
        assert!(machine.processes().is_some_and(|left| left > 0));
        let own = fs::read_to_string("/proc/self/status").unwrap();
        let user = field(&own, "Uid:").unwrap();
        assert!(machine.threads_of(user).is_some_and(|threads| threads > 0));
    }
}
