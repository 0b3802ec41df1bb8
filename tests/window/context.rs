//! A full context and a turn that stops mid-task, as a person sees them: what heals by itself without a
//! word in the inbox, what waits for the person, and the ways on from there.

use crate::driver::{Window, key};
use crate::ground::Ground;
use crate::page::{COMPOSER, NOTES, PILL, Row, STRIP, SWITCH_BANNER};
use serde_json::{Value, json};

const TASK: &str = "Find the race in the token refresh and fix it.";
/// From here on the session's agent is known to print its marker.
const READY: &str = r"say <!-- omniscio:final-message -->\nI have read the project and am ready.";
const STOPS: &str = r#"say I start with where the token is read and who holds the lock.; tool Read {"file_path":"src/auth/session.rs"}; say Both callers refresh at the same time. Next I move the check."#;
const FIXED: &str = r"say <!-- omniscio:final-message -->\nThe check runs inside the lock now.";
const FULL: &str = r#"usage 185000 of 200000; say I read the whole history of the file first.; tool Read {"file_path":"src/auth/session.rs"}; empty"#;

const AUTO_CONTINUE: &str = "[data-testid=setting-autoContinueMidTaskEnabled]";
const SHOW_HIDDEN: &str = "[data-testid=setting-showInterruptions]";
const HIDDEN: &str = "[data-testid=hidden-row]";
const BOUNDARY: &str = "[data-testid=boundary]";
const GIVE_UP: &str = "[data-testid=give-up]";
const FRESH: &str = "[data-testid=fresh-session]";
const FORK: &str = "[data-testid=fork-session]";
const NUMBER: &str = "[data-testid=context] .meter-number";

// proves: AC-01, UI-10, RT-16, RT-13
#[tokio::test]
async fn a_mid_task_stop_is_orange_and_c_continues_it() {
    let mut ground = Ground::new();
    ground.account("default", &[READY, STOPS, FIXED]);
    let window = ground.open().await;
    window.start_session(&ground.project(), "Get ready.").await;
    window.row("its first answer", |row| row.label == "Your turn").await;
    window.say(TASK).await;
    let row = window.row("a stalled row", |row| row.label == "Stalled?").await;
    assert_eq!((row.section.as_str(), row.tip.as_str()), ("Needs You", "Stopped mid-task"));
    assert!(row.said.contains("Stalled?, stopped mid-task. Project project."), "{}", row.said);
    assert!(row.said.ends_with("C continues."), "{}", row.said);
    let dot = "const dot = document.querySelector('[data-testid=row] .shape').dataset;
        return [dot.tone, dot.state, dot.shape];";
    assert_eq!(window.run(dot).await, json!(["orange-400", "stalled", "open-diamond"]));
    window.until_content(PILL, "Continue").await;
    let strip = window.content(STRIP).await;
    assert!(strip.starts_with("Stalled?Stopped mid-task.Continue"), "{strip}");
    let red = "return document.querySelector('[data-testid=strip]').classList.contains('red')";
    assert_eq!(window.run(red).await, json!(false));
    assert!(!window.has(SWITCH_BANNER).await && !window.has(FRESH).await);
    window.picture_for_docs("stalled.png").await;

    // in the composer it is a letter
    window.type_into(COMPOSER, "c").await;
    window.clear(COMPOSER).await;
    assert_eq!(ground.messages("Please continue."), 0);
    window.press(&[key::ESCAPE]).await;
    window.press(&['c']).await;
    window.read("inside the lock now.").await;
    window.row("its end", |row| row.label == "Your turn").await;
    assert_eq!(ground.messages("Please continue."), 1, "the person's own message");
}

// proves: AC-02, ST-03
#[tokio::test]
async fn with_auto_continue_on_it_goes_on_by_itself_and_enters_no_inbox() {
    let mut ground = Ground::new();
    ground.account("default", &[READY, STOPS, FIXED]);
    let window = ground.open().await;
    window.ready().await;
    assert_eq!(window.switch(AUTO_CONTINUE, "false").await, "true");
    window.start_session(&ground.project(), "Get ready.").await;
    window.row("its first answer", |row| row.label == "Your turn").await;
    window.watch_row().await;
    window.say(TASK).await;
    window.read("inside the lock now.").await;
    window.row("its end", |row| row.label == "Your turn").await;
    let shown = ["Needs You: Your turn", "Running: Running", "Needs You: Your turn"];
    assert_eq!(window.shown().await, shown);

    // what it was sent stays out of sight, unless one asks for it
    assert!(!window.has(HIDDEN).await);
    assert_eq!(window.run(NOTES).await, json!([]));
    window.switch(SHOW_HIDDEN, "false").await;
    let hidden = window.text(HIDDEN).await;
    assert!(hidden.contains("Please continue.") && hidden.contains("hidden · "), "{hidden}");
    assert_eq!(ground.messages("Please continue."), 0, "not the person's own message");
}

// proves: CS-11, CS-12, CS-32, UI-24, UI-26
#[tokio::test]
async fn a_full_context_heals_within_a_running_row() {
    let mut ground = Ground::new();
    let compacts = format!("compact 4000; pause 500; {FIXED}");
    ground.account("default", &[FULL, &compacts]);
    let window = ground.open().await;
    window.ready().await;
    window.watch_row().await;
    window.start_session(&ground.project(), TASK).await;
    window.read("inside the lock now.").await;
    window.row("its end", |row| row.label == "Your turn").await;
    let shown = ["Running: Coming back…", "Running: Running", "Needs You: Your turn"];
    let seen = window.shown().await;
    assert!(seen == shown || seen == shown[1..], "{seen:?}");
    assert!(window.watched().await.iter().all(|seen| seen.strip.is_empty()));

    assert_eq!(window.run(NOTES).await, json!(["Auto-recovering…"]));
    assert_eq!(window.content(BOUNDARY).await, "Conversation compacted");
    for quiet in [HIDDEN, GIVE_UP, PILL] {
        assert!(!window.has(quiet).await, "{quiet}");
    }
    window.until_content(NUMBER, "2 %").await;
    window.picture_for_docs("auto-recovered.png").await;
}

// proves: CS-15, CS-16, CS-17
#[tokio::test]
async fn a_context_that_stays_full_offers_a_fresh_session() {
    let mut ground = Ground::new();
    ground.account("default", &[FULL; 4]);
    let window = ground.open().await;
    window.start_session(&ground.project(), TASK).await;
    let given_up = |row: &Row| row.said.contains("Your turn, may need a fresh session. ");
    let old = window.row("a given-up row", given_up).await;
    assert_eq!((old.section.as_str(), old.tip.as_str()), ("Needs You", "May need a fresh session"));
    let sentence = "This session couldn't finish on its own — may need a fresh session.";
    window.until_content(GIVE_UP, sentence).await;
    assert_eq!(window.run(NOTES).await, json!(vec!["Auto-recovering…"; 3]), "and no generic line");
    let strip = window.content(STRIP).await;
    assert_eq!(strip, "Your turnMay need a fresh session.Start a fresh session");
    assert!(!window.has(PILL).await && !window.has(SWITCH_BANNER).await);
    let tag = "return document.querySelector('[data-testid=row] .tag').textContent";
    assert_eq!(window.run(tag).await, json!("92 %"));
    assert!(!window.has(FORK).await, "no turn was good, so there is nothing to copy");

    ground.account("default", &["say A fresh start with the same task."]);
    window.click(FRESH).await;
    window.read("A fresh start with the same task.").await;
    let rows = window.rows("both", |rows| rows.len() == 2).await;
    let open =
        window.run("return document.querySelector('[data-testid=panel]').dataset.session").await;
    assert_ne!(open, json!(old.session));
    let first = window.content("[data-testid=operator]").await;
    assert!(first.starts_with("This conversation continues an earlier one"), "{first}");
    assert!(first.contains("I read the whole history") && first.ends_with(TASK), "{first}");
    assert!(!window.has(FRESH).await && !ground.launches().contains("--model"));
    let kept = rows.iter().find(|row| row.session == old.session).unwrap();
    assert!(given_up(kept) && kept.tip == old.tip, "it stays as it is: {kept:#?}");
}

// proves: CS-15
#[tokio::test]
async fn a_fork_has_the_last_message_in_its_composer_and_sends_nothing_by_itself() {
    let mut ground = Ground::new();
    ground.account("default", &[READY, FULL, FULL, FULL, FULL, FIXED]);
    let window = ground.open().await;
    window.start_session(&ground.project(), "Get ready.").await;
    window.row("its first answer", |row| row.label == "Your turn").await;
    window.say(TASK).await;
    let given_up = |row: &Row| row.said.contains("Your turn, may need a fresh session. ");
    let old = window.row("a given-up row", given_up).await;
    let strip = "Your turnMay need a fresh session.ForkStart a fresh session";
    window.until_content(STRIP, strip).await;
    window.picture_for_docs("fresh-session.png").await;

    let launches = ground.launches();
    // by the keyboard, as any button
    window.run(&format!("document.querySelector('{FORK}').focus()")).await;
    window.press(&[key::ENTER]).await;
    let draft = format!(
        "const field = document.querySelector('{COMPOSER}');
        return document.activeElement === field ? field.value : null"
    );
    window.until("the draft", &draft, |text| (*text == json!(TASK)).then_some(())).await;
    let rows = window.rows("both", |rows| rows.len() == 2).await;
    let copy = rows.iter().find(|row| row.session != old.session).unwrap();
    assert!(copy.said.contains("Your turn, a copy; waits for your message. "), "{}", copy.said);
    let open =
        window.run("return document.querySelector('[data-testid=panel]').dataset.session").await;
    assert_eq!(open, json!(copy.session));
    let note = window.run(NOTES).await;
    let says = "This is a copy of “Get ready.” as it stood before its last message. ";
    assert!(note[0].as_str().is_some_and(|note| note.starts_with(says)), "{note}");
    assert!(!window.has(FRESH).await && !window.has(FORK).await && !window.has(PILL).await);
    assert_eq!((ground.launches(), ground.messages(TASK)), (launches, 1), "nothing was sent");

    window.clear(COMPOSER).await;
    window.say("Fix the token refresh.").await;
    window.read("inside the lock now.").await;
    let (launches, last) = (ground.launches(), "--fork-session");
    let last = launches.lines().rfind(|line| line.contains(last)).unwrap_or_default();
    assert!(last.contains("--resume-session-at"), "{launches}");
    assert_eq!(ground.messages(TASK), 1);
    let rows = window.rows("both", |rows| rows.len() == 2).await;
    let kept = rows.iter().find(|row| row.session == old.session).unwrap();
    assert!(given_up(kept) && kept.tip == old.tip, "it stays as it is: {kept:#?}");
    window.click(&format!("[data-testid=row][data-session='{}']", old.session)).await;
    window.until_content(STRIP, strip).await;
}

// proves: CW-03, UI-21
#[tokio::test]
async fn the_meter_is_calm_amber_or_red_and_says_when_nobody_knows() {
    let mut ground = Ground::new();
    let usages = [92_000, 187_999, 156_000];
    let answers = usages.map(|tokens| format!("usage {tokens} of 200000; say {tokens} tokens."));
    let script: Vec<&str> =
        ["hang"].into_iter().chain(answers.iter().map(String::as_str)).collect();
    ground.account("default", &script);
    let window = ground.open().await;
    window.start_session(&ground.project(), "Count the tokens.").await;
    let row = window.row("a running row", |row| row.label == "Running").await;
    window.until_content(NUMBER, "unknown").await;
    let unknown = json!(["unknown", "Context unknown", null, "0%", "text-3", "400", null]);
    assert_eq!(window.meter().await, unknown);
    let stop = json!({ "command": { "command": "stop", "session": row.session } });
    window.invoke("command", &stop).await.unwrap();
    window.row("its stop", |row| row.label == "Stopped").await;
    for (tokens, number, meter) in [
        (92_000, "46 %", json!(["calm", "Context 46 percent", "46", "46%", "text-3", "400", null])),
        (
            187_999,
            "93 %",
            json!([
                "red",
                "Context 93 percent, nearly full",
                "93",
                "93%",
                "red-text",
                "500",
                "93 %"
            ]),
        ),
        (
            156_000,
            "78 %",
            json!([
                "amber",
                "Context 78 percent, getting full",
                "78",
                "78%",
                "amber-text",
                "500",
                null
            ]),
        ),
    ] {
        window.say("And now?").await;
        window.read(&format!("{tokens} tokens.")).await;
        window.until_content(NUMBER, number).await;
        assert_eq!(window.meter().await, meter);
    }
    window.picture_for_docs("getting-full.png").await;
}

impl Window {
    /// Sends a message by the composer.
    async fn say(&self, text: &str) {
        self.type_into(COMPOSER, text).await;
        self.press(&[key::ENTER]).await;
    }

    /// Clicks a switch of Settings that is `before`, waits until it is something else and comes back;
    /// gives what it is then.
    async fn switch(&self, switch: &str, before: &str) -> String {
        self.press(&[key::ESCAPE]).await;
        self.press(&[key::CONTROL, ',']).await;
        let state =
            format!("return document.querySelector('{switch}')?.getAttribute('aria-checked')");
        self.until("the switch", &state, |now| (now == before).then_some(())).await;
        self.click(switch).await;
        let changed = |now: &Value| now.as_str().filter(|now| *now != before).map(str::to_owned);
        let after = self.until("the change", &state, changed).await;
        self.press(&[key::ESCAPE]).await;
        self.ready().await;
        after
    }

    /// Section and label that the only row has shown since it is watched, each change once.
    async fn shown(&self) -> Vec<String> {
        let seen = self.watched().await.into_iter();
        let mut shown: Vec<_> =
            seen.map(|seen| format!("{}: {}", seen.section, seen.label)).collect();
        shown.dedup();
        shown
    }

    /// The meter: level, name, value, width of the bar, colour and weight of the number; and the tag of
    /// the only row.
    async fn meter(&self) -> Value {
        let script = "const meter = document.querySelector('[data-testid=context][role=meter]');
            const number = getComputedStyle(meter.querySelector('.meter-number'));
            const probe = meter.appendChild(document.createElement('i'));
            const colour = ['text-3', 'amber-text', 'red-text'].find((name) => {
                probe.style.color = `var(--${name})`;
                return getComputedStyle(probe).color === number.color;
            });
            probe.remove();
            return [meter.dataset.level, meter.ariaLabel, meter.getAttribute('aria-valuenow'),
                meter.querySelector('.meter-fill').style.width, colour ?? number.color,
                number.fontWeight,
                document.querySelector('[data-testid=row] .tag')?.textContent ?? null];";
        self.run(script).await
    }
}
