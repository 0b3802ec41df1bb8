//! T20: bytes of every kind on their way from the CLI to the store and from the person to the CLI.

use super::histories::{conversation, transcript};
use super::{App, Ground, config, kill_cli};
use omniscio_core::ipc::RowView;
use omniscio_core::session::SessionRow;
use omniscio_lib::supervise::supervisor::Cli;
use serde_json::{Value, json};
use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::process;

/// Characters that some program on the way might cut, translate or swallow: of two to four bytes, joined
/// by a zero-width one, escapes, a carriage return, NUL, a byte order mark.
const ODD: &str = "漢字かな äß 👩‍👩‍👧 \u{1b}[31mred\u{1b}[0m a\rb \0 \u{feff} \u{7} \\ \" end";

/// A ground whose every path holds spaces and characters that are no ASCII.
fn odd_ground() -> Ground {
    let home = tempfile::Builder::new().prefix("mit Leerzeichen, 漢字 und 🎉 ").tempdir().unwrap();
    for folder in ["data", "project", "config"] {
        fs::create_dir(home.path().join(folder)).unwrap();
    }
    Ground { home }
}

/// What the CLI took for the person's messages, as its own file of the conversation has them.
fn heard(ground: &Ground, row: &SessionRow) -> Vec<String> {
    let text = fs::read_to_string(transcript(ground, conversation(row))).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let said = lines.filter(|line| line["type"] == "user");
    said.filter_map(|line| Some(line["message"]["content"].as_str()?.to_string())).collect()
}

fn whole(answer: &str) -> Vec<(String, bool)> {
    vec![(answer.to_string(), false)]
}

// proves: PR-02
#[test]
fn t20_odd_characters_written_byte_by_byte_come_back_as_they_were() {
    let ground = odd_ground();
    let app = ground.start();
    let text = format!("{ODD}\n[[fake: drip; say {ODD}]]\n{ODD}");
    let session = app.create(&ground, &text);
    let row = app.until_answered(session);
    assert_eq!(heard(&ground, &row), [text.as_str()], "what the CLI got");
    assert_eq!((app.bubbles(session), app.replies(session)), (vec![text.clone()], whole(ODD)));
    app.quit();
    drop(app);

    let app = ground.start();
    assert_eq!(app.bubbles(session), [text], "what the store kept");
    assert_eq!(app.replies(session), whole(ODD));
}

/// What may stand between two lines of the protocol, as `raw` of the stand-in takes it. The first ones
/// have no line end: the line that follows is on the same one.
const NOISE: [&str; 12] = [
    r"\xef\xbb\xbf",
    r#"{"type":"keep_alive"}"#,
    r#"{"type":"keep_alive"}{"type":"keep_alive"}"#,
    r"\x1b[31mred\x1b[0m\x1b[?25h",
    r"\x1b]0\x3btitle\x07",
    r"\r\x00\r",
    r"漢字 \xf0\x9f",
    r"\xff\xfe\xc3(\n",
    r"Warning: no protocol\r\n",
    r#"\x7b"type":"assistant","mess\n"#,
    r#"{"type":"keep_alive","odd":"\xc3("}\n"#,
    r"[1,2]\n\n\n",
];

// proves: A-01
#[test]
fn t20_what_is_no_protocol_costs_no_line_of_it() {
    let ground = odd_ground();
    let app = ground.start();
    for drip in ["", "drip; "] {
        // each reply stands in the one line behind its noise and nowhere else
        let blocks = NOISE.iter().enumerate().map(|(n, noise)| {
            let content = json!([{"type": "text", "text": format!("Said {n}.")}]);
            let message =
                json!({"id": format!("msg_{n}"), "role": "assistant", "content": content});
            let line = json!({"type": "assistant", "message": message, "parent_tool_use_id": null});
            // the type stands in front, as the CLI writes it
            let fields = line.to_string().replacen(r#","type":"assistant"}"#, "}", 1);
            format!(r#"raw {noise}{{"type":"assistant",{}\n; "#, &fields[1..])
        });
        let text = format!("Go. [[fake: {drip}{}say Done.]]", blocks.collect::<String>());
        let session = app.create(&ground, &text);
        app.until_answered(session);
        let said = (0..NOISE.len()).map(|n| format!("Said {n}.")).chain(["Done.".to_string()]);
        let said: Vec<_> = said.map(|text| (text, false)).collect();
        assert_eq!(app.replies(session), said, "{drip}");
        assert_eq!(app.launches(session), 1);

        app.send(session, "And now. [[fake: say Now.]]");
        app.until_said(session, "Now.");
    }
}

/// Set in the process that a test has to itself.
const ALONE: &str = "T20_TEST_ALONE";

/// Runs `test` of this file, which is called `name`, in a process of its own with these variables.
fn alone(name: &str, variables: &[(&str, &str)], test: impl FnOnce()) {
    if env::var_os(ALONE).is_some() {
        return test();
    }
    let mut again = process::Command::new(env::current_exe().unwrap());
    again.args(["--exact", &format!("supervisor::cases::bytes::{name}"), "--nocapture"]);
    again.env(ALONE, "1").envs(variables.iter().copied());
    assert!(again.status().unwrap().success(), "{name} fails in a process of its own");
}

/// The most memory that this process has held since the last call, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = most.trim().trim_end_matches(" kB").parse().unwrap();
    fs::write("/proc/self/clear_refs", "5").unwrap();
    kib * 1024
}

// proves: A-01
#[test]
fn t20_a_huge_line_is_left_out_and_kept_by_nobody() {
    alone("t20_a_huge_line_is_left_out_and_kept_by_nobody", &[], || {
        let ground = odd_ground();
        let app = ground.start();
        let most = config(ground.home.path()).limits.line_max_bytes;
        let session = app.create(&ground, "Hello. [[fake: say Hello.]]");
        app.until_said(session, "Hello.");
        peak();
        let before = peak();
        // the one of the case, and one that is a multiple of what is kept of a line
        for length in [20_000_000, 60_000_000] {
            assert!(length > most);
            let steps = format!("partial One; long {length}; say and {length}.");
            app.send(session, &format!("Go. [[fake: {steps}]]"));
            app.until_said(session, &format!("Oneand {length}."));
            let grown = peak().saturating_sub(before);
            println!("a line of {length} bytes: {grown} bytes more");
            assert!(grown < most as u64 * 3 / 2, "{grown} bytes more for {length}");
        }
        assert_eq!(app.launches(session), 1);
    });
}

/// A prompt of so many characters, every second of them of two bytes.
fn prompt(characters: usize) -> String {
    let ask = "Go. [[fake: say Read.]]\n";
    let filler = characters - ask.len() - ODD.chars().count();
    let filler: String = ['a', 'ü'].into_iter().cycle().take(filler).collect();
    format!("{ask}{filler}{ODD}")
}

// proves: PR-06
#[test]
fn t20_long_prompts_go_by_stdin_and_arrive_whole() {
    let ground = odd_ground();
    let app = ground.start();
    for characters in [40_000, 200_000, 5_000_000] {
        let text = prompt(characters);
        assert_eq!(text.chars().count(), characters);
        let session = app.create(&ground, &text);
        let row = app.until_said(session, "Read.");
        // no assert_eq: its words would be the texts
        assert!(heard(&ground, &row) == [text.as_str()], "what the CLI got of {characters}");
        assert!(app.bubbles(session) == [text.as_str()], "what the store kept of {characters}");
        let line = fs::read(format!("/proc/{}/cmdline", row.child.unwrap().pid)).unwrap();
        let line = String::from_utf8(line).unwrap();
        assert!(line.contains("stream-json") && !line.contains("[[fake"), "{line}");

        // and once more as a further message of a running conversation
        app.send(session, &text);
        let twice = |view: &RowView| view.row.turn_count == 2 && view.row.turn.is_none();
        let row = app.until_row(session, "second answer", twice);
        assert!(heard(&ground, &row) == [text.as_str(), text.as_str()], "{characters}, again");
    }
}

/// What a CLI sets for the programs that it starts, and what would point a child to somebody else's
/// account or session.
const NOT_THE_CHILDS: [(&str, &str); 7] = [
    ("CLAUDECODE", "1"),
    ("CLAUDE_CODE_ENTRYPOINT", "cli"),
    ("CLAUDE_CODE_SSE_PORT", "1"),
    ("CLAUDE_CODE_SESSION_ID", "11111111-1111-4111-8111-111111111111"),
    ("CLAUDE_PID", "1"),
    ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1"),
    ("OMNISCIO_SESSION", "11111111-1111-4111-8111-111111111111"),
];

// proves: A-11
#[test]
fn t20_an_app_that_was_started_inside_a_cli_passes_nothing_of_it_on() {
    let home = tempfile::tempdir().unwrap();
    let mut variables = NOT_THE_CHILDS.to_vec();
    variables.extend([("HOME", home.path().to_str().unwrap()), ("SHELL", "/bin/sh")]);
    variables.push(("A_VARIABLE", "of the person's own"));
    alone("t20_an_app_that_was_started_inside_a_cli_passes_nothing_of_it_on", &variables, || {
        let ground = odd_ground();
        let program = ground.home.path().join("die CLI 漢字");
        symlink(env!("CARGO_BIN_EXE_omniscio-fake-claude"), &program).unwrap();
        let mut config = config(ground.home.path());
        config.cli = Cli::Fixed { program: program.clone(), args: Vec::new() };
        // the login shell tells, as for a person; its own environment is this process's
        config.login_env = None;
        let app = App::start(config);
        let session = app.create(&ground, "Go. [[fake: fail-first 1 bash 600; say Done.]]");
        let first = app.until_tool_runs(session);
        kill_cli(&first);
        let row = app.until_said(session, "Done.");

        let process = format!("/proc/{}", row.child.unwrap().pid);
        let environ = fs::read(format!("{process}/environ")).unwrap();
        let environ = String::from_utf8(environ).unwrap();
        let variables: Vec<_> =
            environ.split('\0').filter_map(|pair| pair.split_once('=')).collect();
        for set in NOT_THE_CHILDS {
            assert!(!variables.contains(&set), "{set:?}");
        }
        assert!(variables.contains(&("A_VARIABLE", "of the person's own")), "{variables:?}");
        assert!(variables.contains(&("OMNISCIO_SESSION", &session.to_string())));
        let line = fs::read_to_string(format!("{process}/cmdline")).unwrap();
        assert_eq!(line.split('\0').next(), program.to_str());
        let folder = ground.home.path().join("project").canonicalize().unwrap();
        assert_eq!(fs::read_link(format!("{process}/cwd")).unwrap(), folder);
        // the CLI keeps it under a name made of the folder's: it was found there, and went on in a copy
        assert_ne!(row.cli_session_id, first.cli_session_id);
        assert_eq!((app.launches(session), app.charged(session)), (2, 1));
    });
}
