//! What the stand-in does without a directive: the rehearsal a newcomer sees. Texts and triggers only.

use crate::script::Step;
use serde_json::json;

/// How far the first answer gets before it is cut off.
pub(crate) const WORDS_BEFORE_CUT: usize = 40;

/// The steps for a message: `attempt` counts from 1, `first` says that this session has no answer yet,
/// `seen` is the number of the operator's messages before this one.
pub(crate) fn steps(text: &str, attempt: u32, first: bool, seen: usize) -> Vec<Step> {
    let lower = text.to_lowercase();
    let has = |word: &str| lower.contains(word);
    let mut steps = Vec::new();
    let cuts = cuts(&lower, first);
    if cuts > 0 {
        steps.push(Step::FailFirst { times: cuts, then: Box::new(Step::Kill) });
    }
    let mut asked = Vec::new();
    if has("permission") {
        steps.push(Step::Tool { name: "Write".into(), ask: true,
            input: json!({"file_path": "rehearsal.txt", "content": "Nothing of this is written.\n"}) });
        asked.push("I asked for permission to write a file, and you said: **{answer}**. I wrote nothing, either way.");
    } else if has("question") {
        steps.push(Step::Question(json!({})));
        asked.push("You answered my question with: **{answer}**.");
    } else if has("plan") {
        steps.push(Step::Plan(String::new()));
        asked.push("I showed you a plan, and it was **{answer}**. There is nothing behind it to carry out.");
    }
    steps.push(Step::Say(answer(text, attempt, seen, &asked)));
    steps
}

/// How often the answer is cut off: once for a session's first message, more often when asked for.
fn cuts(lower: &str, first: bool) -> u32 {
    if lower.contains("exhaust") {
        3
    } else if lower.contains("twice") {
        2
    } else {
        u32::from(first)
    }
}

fn answer(text: &str, attempt: u32, seen: usize, asked: &[&str]) -> String {
    let mut parts = vec![
        "Hello! I am the **bundled stand-in** of Omniscio's rehearsal mode. There is no model behind me: I know a \
         few sentences, and I cost nothing."
            .to_owned(),
    ];
    let quoted: String = text.split_whitespace().take(24).collect::<Vec<_>>().join(" ");
    if !quoted.is_empty() {
        parts.push(format!("You wrote:\n\n> {quoted}"));
    }
    parts.extend(asked.iter().map(|&line| line.to_owned()));
    if attempt > 1 {
        let times = if attempt == 2 { "once".to_owned() } else { format!("{} times", attempt - 1) };
        parts.push(format!(
            "My reply to this message was cut off {times}: the process behind this session died in the middle of a \
             sentence. **You did nothing, and the answer is here anyway.** Omniscio noticed, waited a moment, and \
             sent your message again. With a real CLI it does the same."
        ));
    }
    parts.push(
        "Things to try here:\n\n\
         - write a message with the word `permission`, `question` or `plan`, and answer the card\n\
         - write one with the word `twice`, and watch two cut-offs in a row\n\
         - write one with the word `exhaust`: after too many cut-offs the row turns red, and **Retry** brings it back\n\
         - send a second message while I am still writing: it waits its turn"
            .to_owned(),
    );
    parts.push(match seen {
        0 => "This is the first message I have seen in this conversation.".to_owned(),
        1 => "Before this one I have seen 1 message in this conversation.".to_owned(),
        seen => format!("Before this one I have seen {seen} messages in this conversation."),
    });
    parts.join("\n\n")
}
