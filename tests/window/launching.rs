//! Launches as a person sees them: in line, red at once where no try can help, relaunched until they
//! succeed where the machine is short of something, and after the app itself died. Every failure is a
//! real one of the system.

use crate::driver::{Window, key};
use crate::ground::Ground;
use crate::page::{COMPOSER, NOTES, PILL, PILL_TIP, Row, STRIP};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const FAILED: &str = "Launch failed — Retry tries again now.";
const GOES_ON: &str =
    "It keeps being relaunched in the background — Retry tries again immediately.";
const HICCUP: &str =
    "Launch hiccup — the machine looks busy. Keeping at it until this session is back…";
const TASK: &str = "Find the race in the token refresh and fix it, with a test that fails first.";
const ANSWER: &str = "The check now runs inside the lock, and the test passes.";

fn ground() -> Ground {
    let mut ground = Ground::new();
    ground.account("default", &[&format!("say {ANSWER}")]);
    ground
}

/// The labels that the only row has shown so far, in order.
async fn labels(window: &Window) -> Vec<String> {
    let mut labels: Vec<String> =
        window.watched().await.into_iter().map(|seen| seen.label).collect();
    labels.dedup();
    labels
}

/// A launch that cannot succeed: red at once, in these words, until it can.
async fn red_at_once(ground: &Ground, window: &Window, reason: &str, words: &[&str]) {
    window.start_session(&ground.project(), TASK).await;
    let row = window.row("a red row", |row| row.label == "Error").await;
    assert_eq!(row.section, "Interrupted");
    assert!(row.said.contains(&format!("Error, {reason}. ")), "{}", row.said);
    assert!(row.said.ends_with(" C retries."), "{}", row.said);
    let strip = window.content(STRIP).await;
    for words in words {
        assert!(strip.contains(words) && row.tip.contains(words), "{words}: {strip}, {}", row.tip);
    }
    window.until_content(PILL, "Retry").await;
    assert_eq!(window.content(PILL_TIP).await, FAILED);
    assert_eq!(window.run(NOTES).await, json!([]), "nothing was tried again");
    assert_eq!(labels(window).await.last().map(String::as_str), Some("Error"));
    assert_eq!(ground.launches(), "");
}

/// Retry, once the launch can succeed.
async fn retry(window: &Window) {
    window.click(PILL).await;
    window.read(ANSWER).await;
    window.row("its end", |row| row.label == "Your turn").await;
    window.until_content(STRIP, "").await;
}

// proves: RT-25, RS-07, UI-12
#[tokio::test]
async fn a_cli_that_is_gone_is_red_at_once_and_retry_finds_it_again() {
    let ground = ground();
    let window = ground.open().await;
    window.ready().await;
    window.watch_row().await;
    fs::rename(ground.at("cli"), ground.at("elsewhere")).unwrap();
    let words = ["No such file or directory (os error 2)", "There is no Claude CLI at"];
    red_at_once(&ground, &window, "No such file or directory", &words).await;
    // where it looked: in the strip as the person writes it, in full where one points at
    assert!(window.content(STRIP).await.contains("Claude CLI at ~/cli. Install it"));
    let cli = ground.at("cli").display().to_string();
    assert!(window.row("the row", |_| true).await.tip.contains(&cli));
    window.picture_for_docs("launch-error.png").await;
    fs::rename(ground.at("elsewhere"), ground.at("cli")).unwrap();
    retry(&window).await;
}

// proves: RT-25, RS-07, UI-12
#[tokio::test]
async fn a_cli_that_may_not_run_is_red_at_once_and_says_what_to_do() {
    let ground = ground();
    let window = ground.open().await;
    window.ready().await;
    window.watch_row().await;
    let allow = |mode| fs::set_permissions(ground.at("cli"), Permissions::from_mode(mode)).unwrap();
    allow(0o644);
    let words = ["Permission denied (os error 13)", "may not be run", "chmod +x"];
    red_at_once(&ground, &window, "Permission denied", &words).await;
    allow(0o755);
    retry(&window).await;
}

/// The app may open no more files than it has open, and a few: too few for a launch. What the web view
/// takes meanwhile is allowed for, or it would stand still before any launch could be told of.
struct Shortage {
    app: Pid,
    before: Rlimit,
    over: Arc<AtomicBool>,
    follows: JoinHandle<()>,
}

impl Shortage {
    const LEFT: usize = 5;

    fn begin(ground: &Ground) -> Shortage {
        let process = ground.app_process().unwrap();
        let limits = fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
        let mut values = line.unwrap().split_whitespace().map(|value| value.parse().ok());
        let before = Rlimit { current: values.next().unwrap(), maximum: values.next().unwrap() };
        let app = Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
        let open = move || {
            let names = fs::read_dir(format!("/proc/{process}/fd")).unwrap().flatten();
            let numbers = names.filter_map(|name| name.file_name().to_str()?.parse().ok());
            numbers.collect::<BTreeSet<u64>>()
        };
        let limit = move |open: &BTreeSet<u64>| {
            let few = (0..).filter(|number| !open.contains(number)).nth(Shortage::LEFT);
            let short = Rlimit { current: few, maximum: before.maximum };
            prlimit(Some(app), Resource::Nofile, short).unwrap();
        };
        limit(&open());
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let follows = thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                let earlier = open();
                thread::sleep(Duration::from_millis(100));
                // what a launch opens and closes again is not the web view's
                limit(&open().intersection(&earlier).copied().collect());
            }
        });
        Shortage { app, before, over, follows }
    }

    fn end(self) {
        self.over.store(true, Ordering::Relaxed);
        self.follows.join().unwrap();
        prlimit(Some(self.app), Resource::Nofile, self.before).unwrap();
    }
}

// proves: A-14, RS-15, RS-16, RS-17, UI-11
#[tokio::test]
async fn a_launch_that_the_machine_has_no_room_for_is_tried_until_it_succeeds() {
    let mut ground = ground();
    // nothing is held back: the system itself refuses
    ground.limits.headroom_descriptors = 0;
    ground.limits.relaunch_max_ms = 2_000;
    ground.limits.cannot_launch_ms = 15_000;
    let window = ground.open().await;
    window.ready().await;
    window.watch_row().await;
    window.fill_dialog(&ground.project(), TASK).await;
    let shortage = Shortage::begin(&ground);
    window.press(&[key::CONTROL, key::ENTER]).await;

    // a person is told in time, and it goes on
    let row = window.row("a red row", |row| row.label == "Can't launch yet").await;
    assert_eq!((row.section.as_str(), row.state.as_str()), ("Interrupted", "cannot_launch"));
    assert!(row.said.contains("Can't launch yet, Too many open files. "), "{}", row.said);
    let next = |row: &Row| row.tip.contains("; attempt ") && row.tip.contains(", next in ");
    window.row("the next try", next).await;
    let strip = format!("return document.querySelector('{STRIP}')?.textContent ?? ''");
    let next_try = |strip: &Value| {
        let strip = strip.as_str()?;
        (strip.contains("Too many open files (os error 24); next try in ")).then_some(())
    };
    window.until("the next try", &strip, next_try).await;
    window.until_content(PILL, "Retry").await;
    assert_eq!(window.content(PILL_TIP).await, GOES_ON);
    assert_eq!(window.text("[data-section=Interrupted] .section-count").await, "1");
    window.picture_for_docs("cannot-launch.png").await;

    // until then it only came back, with one line that says so
    let told = window.until_audited(&row.session, ("can't launch yet", ""), 1).await[0].at.0;
    let mut before = window.watched().await;
    before.retain(|seen| seen.at < told);
    let other = before.iter().find(|seen| {
        let loud = !seen.pill.is_empty() || !seen.strip.is_empty();
        loud || seen.label != "Coming back…" || seen.section != "Running"
    });
    assert_eq!(other, None);
    assert_eq!(window.run(NOTES).await[0], HICCUP);

    // Retry can be pressed; one that fails as well leaves it where it is
    let inert = format!("return document.querySelector('{PILL}').ariaDisabled");
    let ready = |inert: &Value| (inert == "false").then_some(());
    window.until("a pill to press", &inert, ready).await;
    window.press(&[key::ESCAPE]).await;
    window.press(&['c']).await;
    window.nothing_refused().await;
    let tenth = "Still relaunching this session… (attempt 10)";
    let tenth_is_told = |notes: &Value| notes.as_array()?.contains(&json!(tenth)).then_some(());
    window.until(tenth, NOTES, tenth_is_told).await;
    assert_eq!(ground.launches(), "");

    shortage.end();
    window.read(ANSWER).await;
    window.row("its end", |row| row.label == "Your turn").await;
    let mut shown = labels(&window).await;
    shown.retain(|label| label != "Running");
    assert_eq!(shown, ["Coming back…", "Can't launch yet", "Your turn"]);
    assert_eq!(window.run(NOTES).await, json!([HICCUP, tenth]), "a line now and then");
}

#[tokio::test]
async fn sessions_that_start_together_say_their_place_in_line_and_all_come_up() {
    let mut ground = Ground::new();
    ground.limits.starting_max = 1;
    ground.limits.spawn_slots = 1;
    (ground.limits.handshake_ms, ground.limits.handshake_busy_ms) = (600_000, 600_000);
    for (project, _, done) in TASKS {
        ground.account(project, &[&format!("say {done}")]);
        fs::create_dir(ground.at(project)).unwrap();
    }
    // the first one begins and does not get on
    let start = ground.at("claude-billing-api/fake-start");
    fs::write(&start, "freeze").unwrap();
    let window = ground.open().await;
    window.ready().await;
    window.watch_row().await;
    for (project, text, _) in TASKS {
        let folder = ground.at(project).display().to_string();
        window.create(&folder, project, text).await;
    }
    let places = ["1st", "2nd", "3rd"];
    let waits = |rows: &[Row]| {
        let said = places.map(|place| format!("Coming back…, starting soon, {place} in line. "));
        rows.len() == 4 && rows[1..].iter().zip(said).all(|(row, said)| row.said.contains(&said))
    };
    let rows = window.rows("a line", waits).await;
    for (row, place) in rows[1..].iter().zip(places) {
        assert_eq!(row.tip, format!("Starting soon, {place} in line"));
        assert_eq!(row.section, "Running");
    }
    let first = &rows[0];
    assert!(first.said.contains(". Coming back…. "), "{}", first.said);
    window.click(&format!("[data-testid=row][data-session='{}']", first.session)).await;
    window.click(COMPOSER).await;
    window.picture_for_docs("starting-soon.png").await;
    assert_eq!(ground.launches().matches("-p --input-format").count(), 1);

    // it is stopped: the others come up, and it after them
    fs::remove_file(start).unwrap();
    let stop = json!({ "command": { "command": "stop", "session": first.session } });
    window.invoke("command", &stop).await.unwrap();
    let answered = |rows: &[Row]| rows.iter().filter(|row| row.label == "Your turn").count();
    window.rows("three answers", |rows| answered(rows) == 3).await;
    window.until_content(PILL, "Continue").await;
    window.click(PILL).await;
    window.rows("four answers", |rows| answered(rows) == 4).await;
    let red = window.watched().await.into_iter().find(|seen| seen.section == "Interrupted");
    assert_eq!(red, None);
}

/// A morning's work: project and account, first message, its answer.
const TASKS: [(&str, &str, &str); 4] = [
    ("billing-api", "Fix the token refresh race", "The race is fixed."),
    ("ledger", "Migrate the queries to sqlx 0.9", "The queries are moved."),
    ("images", "Build the arm64 image as well", "The image is built."),
    ("website", "Write the notes of release 1.4", "The notes are written."),
];

// proves: CR-01, CR-04, RT-18
#[tokio::test]
async fn after_the_apps_own_death_each_session_is_back_where_it_belongs() {
    let mut ground = Ground::new();
    // what was stopped is not yet over when the app dies
    ground.limits.interrupt_grace_ms = 60_000;
    for (account, script) in ACCOUNTS {
        ground.account(account, script);
    }
    let window = ground.open().await;
    window.ready().await;
    for (account, _) in ACCOUNTS {
        window.create(&ground.project(), account, account).await;
        let title = |row: &&Row| row.title == account;
        let begun = |rows: &[Row]| {
            let row = rows.iter().find(title);
            row.is_some_and(|row| row.label == "Running" || row.label == "Your turn")
        };
        window.rows("its start", begun).await;
    }
    let settled = |rows: &[Row]| rows.iter().filter(|row| row.label == "Your turn").count() == 1;
    let rows = window.rows("the answer", settled).await;
    let stopped = rows.iter().find(|row| row.title == "stopped").unwrap().session.clone();
    let stop = json!({ "command": { "command": "stop", "session": stopped } });
    window.invoke("command", &stop).await.unwrap();
    assert_eq!(window.view(&stopped).await["row"]["replay"]["stopped"], json!(true));

    let app = ground.app_process().unwrap();
    kill_process(Pid::from_raw(i32::try_from(app).unwrap()).unwrap(), Signal::KILL).unwrap();
    Ground::until_ended(app);
    drop(window);

    let window = ground.open().await;
    let wanted = [("stopped", "Suspended"), ("answered", "Your turn"), ("cut-off", "Your turn")];
    let back = |rows: &[Row]| {
        let shown: BTreeSet<_> = rows.iter().map(|row| (&*row.title, &*row.label)).collect();
        shown == BTreeSet::from(wanted)
    };
    let rows = window.rows("all where they belong", back).await;
    let suspended = rows.iter().find(|row| row.session == stopped).unwrap();
    assert_eq!(suspended.section, "Interrupted");
    assert!(suspended.said.contains("Suspended, by an app restart. "), "{}", suspended.said);
    window.click(&format!("[data-testid=row][data-session='{stopped}']")).await;
    window.until_content(PILL, "Continue").await;
    assert!(window.content(STRIP).await.contains("By an app restart."));

    window.press(&['c']).await;
    window.read("It goes on from here.").await;
    let all_answered = |rows: &[Row]| rows.iter().all(|row| row.label == "Your turn");
    window.rows("no other one", all_answered).await;
    assert_eq!(ground.messages("Please continue."), 1);
    let cut_off = rows.iter().find(|row| row.title == "cut-off").unwrap();
    window.until_audited(&cut_off.session, ("crash-resume", "starting"), 1).await;
}

/// One session each, named for what it does before the app dies.
const ACCOUNTS: [(&str, &[&str]); 3] = [
    ("answered", &["say All of it is here."]),
    ("cut-off", &["partial The first half; hang", "say Both halves are here."]),
    ("stopped", &["freeze", "say It goes on from here."]),
];
