//! The pieces of a streamed API message, in the recorded order: `message_start`, blocks (the `assistant` line
//! stands before its block's stop), `message_delta`, `message_stop`.

use crate::turn::{Cut, Turn};
use crate::{clock, ids, limits, protocol};
use serde_json::{Value, json};
use std::time::Duration;

/// An API message that is being streamed.
pub(crate) struct Message {
    id: String,
    /// Index of the open block, or of the next one.
    index: u64,
    /// What the open text block holds so far.
    open_text: Option<String>,
}

/// The text in the pieces it is streamed in: words with the white space behind them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(char::is_whitespace)
}

impl Turn<'_> {
    /// The CLI is about to call the API.
    pub(crate) fn requesting(&mut self) {
        if self.session.args.partial {
            let status =
                self.named(json!({"type": "system", "subtype": "status", "status": "requesting"}));
            self.session.out.emit(status);
        }
    }

    fn stream(&mut self, event: Value) {
        if !self.session.args.partial {
            return;
        }
        let id = self.message.as_ref().map_or_else(String::new, |message| message.id.clone());
        let first = event["type"] == "message_start";
        let line = json!({"type": "stream_event", "event": event, "parent_tool_use_id": null, "api_message_id": id});
        let line = if first { self.named(line) } else { line };
        self.session.out.emit(line);
    }

    /// Opens a message unless one is open, and tells the index of its next block.
    fn ensure_message(&mut self) -> u64 {
        if let Some(message) = &self.message {
            return message.index;
        }
        self.calls += 1;
        self.session.totals.calls += 1;
        self.session.totals.input += self.session.context;
        let id = ids::tagged("msg");
        self.message = Some(Message { id: id.clone(), index: 0, open_text: None });
        let usage = protocol::usage(self.session.context, 1);
        let model = self.session.model.clone();
        self.stream(json!({"type": "message_start",
            "message": {"id": id, "role": "assistant", "model": model, "usage": usage}}));
        0
    }

    /// Streams `text` into the open text block, or into a new one.
    pub(crate) fn stream_text(&mut self, text: &str) -> Result<(), Cut> {
        let index = self.ensure_message();
        if self.message.as_ref().is_some_and(|message| message.open_text.is_none()) {
            self.set_open_text(Some(String::new()));
            self.stream(json!({"type": "content_block_start", "index": index,
                "content_block": {"type": "text", "text": ""}}));
        }
        for word in words(text) {
            if let Some(open) = self.message.as_mut().and_then(|message| message.open_text.as_mut())
            {
                open.push_str(word);
            }
            self.stream(json!({"type": "content_block_delta", "index": index,
                "delta": {"type": "text_delta", "text": word}}));
            self.session.pause(self.pace)?;
        }
        Ok(())
    }

    /// Whether text streams at this moment.
    pub(crate) fn text_is_open(&self) -> bool {
        self.message.as_ref().is_some_and(|message| message.open_text.is_some())
    }

    fn set_open_text(&mut self, text: Option<String>) {
        if let Some(message) = &mut self.message {
            message.open_text = text;
        }
    }

    /// Ends the open text block with its `assistant` line.
    pub(crate) fn close_text(&mut self) {
        let Some(text) = self.message.as_mut().and_then(|message| message.open_text.take()) else {
            return;
        };
        self.text.clone_from(&text);
        self.block_done(&json!({"type": "text", "text": text}));
    }

    /// A thinking block that takes `time`.
    pub(crate) fn think(&mut self, time: Duration) -> Result<(), Cut> {
        const THOUGHT: [&str; 4] = ["Let ", "me ", "think ", "carefully "];
        self.close_text();
        let index = self.ensure_message();
        self.stream(json!({"type": "content_block_start", "index": index,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""}}));
        for (so_far, word) in (1_u64..).zip(THOUGHT) {
            self.session.out.emit(json!({"type": "system", "subtype": "thinking_tokens",
                "estimated_tokens": so_far, "estimated_tokens_delta": 1}));
            self.stream(json!({"type": "content_block_delta", "index": index,
                "delta": {"type": "thinking_delta", "thinking": word}}));
            self.session.pause(time / 4)?;
        }
        self.block_done(
            &json!({"type": "thinking", "thinking": THOUGHT.concat(), "signature": "sig"}),
        );
        Ok(())
    }

    /// A complete tool call, which ends its message.
    pub(crate) fn call(&mut self, id: &str, name: &str, input: &Value) {
        self.close_text();
        let index = self.ensure_message();
        self.stream(json!({"type": "content_block_start", "index": index,
            "content_block": {"type": "tool_use", "id": id, "name": name, "input": {}}}));
        self.stream(json!({"type": "content_block_delta", "index": index,
            "delta": {"type": "input_json_delta", "partial_json": input.to_string()}}));
        self.block_done(&json!({"type": "tool_use", "id": id, "name": name, "input": input}));
        self.close_message("tool_use");
    }

    /// The `assistant` line of a finished block, its place in the transcript, and the block's stop.
    fn block_done(&mut self, block: &Value) {
        let uuid = ids::uuid();
        self.assistant_line(block, &uuid, false);
        let Some(message) = self.message.as_mut() else {
            return;
        };
        let (id, index) = (message.id.clone(), message.index);
        message.index += 1;
        let kept = json!({"id": id, "type": "message", "role": "assistant", "model": self.session.model,
            "content": [block], "stop_reason": null,
            "usage": protocol::usage(self.session.context, limits::OUTPUT_TOKENS)});
        self.session.transcript.assistant(&uuid, &kept, &json!({}));
        self.stream(json!({"type": "content_block_stop", "index": index}));
    }

    fn assistant_line(&mut self, block: &Value, uuid: &str, aborted: bool) {
        let id = self.message.as_ref().map(|message| message.id.clone());
        let mut line = json!({"type": "assistant", "parent_tool_use_id": null, "uuid": uuid,
            "timestamp": clock::timestamp(), "request_id": "req_fake",
            "message": {"id": id, "type": "message", "role": "assistant", "model": self.session.model,
                        "content": [block], "stop_reason": null, "usage": protocol::usage(self.session.context, 1)}});
        if aborted {
            line["aborted"] = true.into();
        }
        let line = self.named(line);
        self.session.out.emit(line);
    }

    /// Ends the open message.
    pub(crate) fn close_message(&mut self, stop_reason: &str) {
        self.close_text();
        if self.message.is_some() {
            self.stream(json!({"type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": null},
                "usage": {"output_tokens": limits::OUTPUT_TOKENS}}));
            self.stream(json!({"type": "message_stop"}));
            self.message = None;
        }
    }

    /// Breaks the open message off as a dropped connection does: its text is void (capture 51).
    pub(crate) fn abandon_message(&mut self) {
        let Some(message) = self.message.as_mut() else {
            return;
        };
        let open = message.open_text.take().is_some();
        let (id, index) = (message.id.clone(), message.index);
        if open {
            self.stream(json!({"type": "content_block_stop", "index": index}));
        }
        self.message_stop_abandoned(&id, index);
    }

    /// Breaks the open message off as an interrupt does: its text stays, marked as aborted (capture A0).
    pub(crate) fn abort_message(&mut self) {
        let open = self.message.as_mut().and_then(|message| message.open_text.take());
        let text = open.filter(|text| !text.is_empty());
        if let Some(text) = &text {
            let (block, uuid) = (json!({"type": "text", "text": text}), ids::uuid());
            self.assistant_line(&block, &uuid, true);
            let kept = json!({"role": "assistant", "model": self.session.model, "content": [block], "stop_reason": null});
            self.session.transcript.assistant(&uuid, &kept, &json!({}));
        }
        self.note_user(
            &json!([{"type": "text", "text": "[Request interrupted by user]"}]),
            true,
            json!({}),
        );
        let Some(message) = &self.message else { return };
        let (id, index) = (message.id.clone(), message.index);
        if text.is_some() {
            self.stream(json!({"type": "content_block_stop", "index": index}));
        }
        self.stream(
            json!({"type": "message_delta", "delta": {"stop_reason": null, "stop_sequence": null},
            "usage": {"output_tokens": 1}}),
        );
        self.message_stop_abandoned(&id, index + 1);
    }

    fn message_stop_abandoned(&mut self, id: &str, from: u64) {
        self.message = None;
        if self.session.args.partial {
            self.session.out.emit(
                json!({"type": "stream_event", "event": {"type": "message_stop"},
                "parent_tool_use_id": null, "api_message_id": id,
                "abandoned_blocks": {"api_message_id": id, "from_block_index": from}}),
            );
        }
    }

    /// A `user` line of the CLI's own: a tool result, a nudge, an interrupt note.
    pub(crate) fn note_user(&mut self, content: &Value, meta: bool, extra: Value) {
        let uuid = ids::uuid();
        self.session.transcript.user(&uuid, content, meta);
        let line = json!({"type": "user", "message": {"role": "user", "content": content},
            "parent_tool_use_id": null, "uuid": uuid, "timestamp": clock::timestamp()});
        self.session.out.emit(protocol::with(line, extra.as_object().cloned().unwrap_or_default()));
    }

    /// Streams the beginning of the answer, unless text is open already: a cut comes inside a sentence.
    pub(crate) fn stream_before_cut(&mut self) -> Result<(), Cut> {
        if self.text_is_open() {
            return Ok(());
        }
        let opening = self.before_cut.clone();
        self.stream_text(&opening)
    }

    /// A whole text block.
    pub(crate) fn say(&mut self, text: &str) -> Result<(), Cut> {
        let text = text.replace("{answer}", &self.heard);
        self.stream_text(&text)?;
        self.close_text();
        Ok(())
    }
}
