//! The command line of a child and the variables that belong to it. Starts nothing and reads
//! no environment.

use super::{Conversation, LaunchPlan};
use crate::prompt;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// What every launch has in common: the protocol.
const PROTOCOL: [&str; 9] = [
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
    "--include-partial-messages",
    "--permission-prompt-tool",
    "stdio",
];

/// The arguments behind the program's name.
pub fn launch_args(plan: &LaunchPlan) -> Vec<String> {
    // rule: A-18
    let mut args: Vec<String> = PROTOCOL.map(String::from).into();
    let mut push = |words: &[&str]| args.extend(words.iter().map(|word| word.to_string()));
    match plan.conversation {
        Conversation::New { id } => push(&["--session-id", &id.to_string()]),
        Conversation::Resume { id } => push(&["--resume", &id.to_string()]),
        Conversation::Fork { from, id, at } => {
            push(&["--resume", &from.to_string(), "--fork-session"]);
            push(&["--session-id", &id.to_string()]);
            if let Some(at) = at {
                push(&["--resume-session-at", &at.to_string()]);
            }
        }
    }
    // at every launch: a resume without it loses the text at the next `/compact`
    push(&["--append-system-prompt", &prompt::appended_prompt(plan.plain_speak)]);
    let of_endpoint = plan.endpoint.as_ref().map(|endpoint| &endpoint.model);
    if let Some(model) = plan.model.as_ref().or(of_endpoint) {
        push(&["--model", model]);
    }
    if let Some(mode) = plan.permission_mode {
        push(&["--permission-mode", mode.as_flag()]);
    }
    if plan.user_settings_only {
        // rule: A-23
        push(&["--setting-sources", "user"]);
    }
    args
}

/// The variables that A-18 puts on top of the child's environment.
///
/// `CLAUDE_CODE_RESUME_INTERRUPTED_TURN` is not among them and never may be: with a fork and one
/// message it gives two turns.
pub fn launch_env(plan: &LaunchPlan) -> Vec<(String, String)> {
    // rule: A-18
    [
        ("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1"),
        ("CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS", &plan.byte_idle_ms.to_string()),
        ("CLAUDE_CODE_STARTUP_FAILURE_RESULTS", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
    ]
    .map(|(name, value)| (name.to_string(), value.to_string()))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Uuid;
    use crate::session::PermissionMode;
    use alloc::vec;

    const A: &str = "00000000-0000-0000-0000-00000000000a";
    const B: &str = "00000000-0000-0000-0000-00000000000b";
    const C: &str = "00000000-0000-0000-0000-00000000000c";

    fn plan(conversation: Conversation) -> LaunchPlan {
        LaunchPlan {
            session: Uuid(1),
            folder: "/projects/x".into(),
            account: "default".into(),
            conversation,
            endpoint: None,
            model: None,
            permission_mode: None,
            user_settings_only: false,
            plain_speak: false,
            byte_idle_ms: 90_000,
        }
    }

    fn protocol() -> Vec<&'static str> {
        "-p --input-format stream-json --output-format stream-json --verbose \
         --include-partial-messages --permission-prompt-tool stdio"
            .split_whitespace()
            .collect()
    }

    // proves: A-18
    #[test]
    fn each_conversation_has_exactly_its_flags() {
        let (a, b, c) = (Uuid(10), Uuid(11), Uuid(12));
        for (conversation, flags) in [
            (Conversation::New { id: a }, vec!["--session-id", A]),
            (Conversation::Resume { id: a }, vec!["--resume", A]),
            (
                Conversation::Fork { from: a, id: b, at: None },
                vec!["--resume", A, "--fork-session", "--session-id", B],
            ),
            (
                Conversation::Fork { from: a, id: b, at: Some(c) },
                vec!["--resume", A, "--fork-session", "--session-id", B, "--resume-session-at", C],
            ),
        ] {
            let prompt = prompt::appended_prompt(false);
            let mut expected = protocol();
            expected.extend(flags);
            expected.extend(["--append-system-prompt", &prompt]);
            assert_eq!(launch_args(&plan(conversation)), expected);
        }
    }

    // proves
    #[test]
    fn what_the_user_chose_is_added_and_nothing_else() {
        let mut chosen = plan(Conversation::Resume { id: Uuid(10) });
        chosen.model = Some("opus".into());
        chosen.permission_mode = Some(PermissionMode::Plan);
        chosen.user_settings_only = true;
        chosen.plain_speak = true;
        let prompt = prompt::appended_prompt(true);
        let mut expected = protocol();
        expected.extend(["--resume", A, "--append-system-prompt", &prompt, "--model", "opus"]);
        expected.extend(["--permission-mode", "plan", "--setting-sources", "user"]);
        assert_eq!(launch_args(&chosen), expected);
    }

    // proves: A-18
    #[test]
    fn four_variables_and_never_the_re_run_of_an_interrupted_turn() {
        let mut plan = plan(Conversation::Resume { id: Uuid(10) });
        plan.byte_idle_ms = 10_000;
        let env = launch_env(&plan);
        let env: Vec<(&str, &str)> = env.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(
            env,
            [
                ("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1"),
                ("CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS", "10000"),
                ("CLAUDE_CODE_STARTUP_FAILURE_RESULTS", "1"),
                ("DISABLE_AUTOUPDATER", "1"),
            ]
        );
    }
}
