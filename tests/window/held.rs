//! A conversation that another program has open: it is not resumed, the row says where it is open, and
//! the person takes it over or goes on in a copy.

use crate::driver::{Window, key};
use crate::ground::{Ground, wait_for};
use crate::page::{COMPOSER, PILL};
use serde_json::json;
use std::fs;
use std::process::{Child, Command};

const STRIP: &str = "[data-testid=held-strip]";
const TAKE_OVER: &str = "[data-testid=take-over]";
const COPY: &str = "[data-testid=fork-held]";
const TOAST: &str = "[data-testid=toast]";

/// The first turn is answered, the second cut off, whatever comes then is answered.
const SCRIPT: [&str; 3] = [
    "say The migration has three steps, and the first one is done.",
    "partial The second step needs; kill",
    "say The second step is done as well.",
];
const FIRST: &str = "Migrate the queries to the new driver";
const SECOND: &str = "Go on with the second step";

/// A program outside of the app that says it has this conversation open, until the end of the test.
struct Other(Child);

impl Other {
    fn open(ground: &Ground, conversation: &str, script: &str) -> Other {
        let other = Other(Command::new("sh").args(["-c", script]).spawn().unwrap());
        let pid = other.0.id();
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let start = stat.rsplit(") ").next().unwrap().split(' ').nth(19).unwrap().to_owned();
        let told = json!({ "pid": pid, "sessionId": conversation, "procStart": start,
            "cwd": ground.project(), "kind": "interactive" });
        let sessions = ground.at("claude-default/sessions");
        fs::create_dir_all(&sessions).unwrap();
        fs::write(sessions.join(format!("{pid}.json")), told.to_string()).unwrap();
        other
    }

    fn ended(&mut self) -> Option<()> {
        self.0.try_wait().unwrap().map(|_| ())
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The app is cut off while another program has the conversation open.
async fn held(ground: &mut Ground, script: &str) -> (Window, Other) {
    ground.limits.hide_max_ms = 5_000;
    ground.account("default", &SCRIPT);
    let window = ground.open().await;
    window.start_session(&ground.project(), FIRST).await;
    let row = window.row("its end", |row| row.label == "Your turn").await;
    let view = window.view(&row.session).await;
    let conversation = view["row"]["cli_session_id"].as_str().unwrap().to_owned();
    let other = Other::open(ground, &conversation, script);
    window.type_into(COMPOSER, SECOND).await;
    window.press(&[key::ENTER]).await;
    window.find(STRIP).await;
    (window, other)
}

// proves: A-12
#[tokio::test]
async fn it_says_where_the_conversation_is_open_and_takes_it_over_on_a_click() {
    let mut ground = Ground::new();
    let (window, mut other) = held(&mut ground, "exec sleep 600").await;
    let strip = window.content(STRIP).await;
    let place = format!("Process {}, ~/project", other.0.id());
    for words in ["Open in another program", &place, "Take over", "Work on a copy"] {
        assert!(strip.contains(words), "{strip}");
    }
    let row = window.row("a red row", |row| row.label == "Paused").await;
    assert!(row.said.contains("Paused, open in another program. "), "{}", row.said);
    window.until_content(PILL, "Retry").await;
    window.picture_for_docs("open-elsewhere.png").await;
    assert_eq!(ground.launches().matches("--resume").count(), 0, "{}", ground.launches());
    assert!(other.ended().is_none(), "nobody ended it so far");

    window.click(TAKE_OVER).await;
    wait_for("the other program's end", || other.ended());
    window.read("The second step is done as well.").await;
    window.row("its end", |row| row.label == "Your turn").await;
    window.until_content(STRIP, "").await;
    assert!(ground.launches().contains("--resume"), "{}", ground.launches());
}

// proves: A-12
#[tokio::test]
async fn a_program_that_stays_is_told_and_the_copy_leaves_it_alone() {
    let mut ground = Ground::new();
    ground.limits.term_grace_ms = 500;
    let stays = "trap '' TERM; while :; do sleep 0.1; done";
    let (window, mut other) = held(&mut ground, stays).await;
    window.click(TAKE_OVER).await;
    let busy = format!("return document.querySelector('{TAKE_OVER}').ariaDisabled");
    let told = window.text(TOAST).await;
    assert!(told.contains("The other program did not end."), "{told}");
    window.until("two ways again", &busy, |busy| (busy == "false").then_some(())).await;
    assert!(other.ended().is_none());

    window.click(COPY).await;
    window.read("The second step is done as well.").await;
    window.row("its end", |row| row.label == "Your turn").await;
    assert!(ground.launches().contains("--fork-session"), "{}", ground.launches());
    assert!(other.ended().is_none(), "a copy needs nobody's end");
}
