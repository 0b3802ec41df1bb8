//! Plays one [`Reply`] to one request: as a stream, as plain JSON, as an error, or as the fault it asks for.
//! It never chooses what to answer; that is the script's business.

use super::Shared;
use super::gate::Gate;
use super::http::Responder;
use super::reply::{Before, Block, Ending, Event, Reply};
use super::request::Request;
use serde_json::{Value, json};
use std::io;
use std::thread;
use std::time::Duration;

/// How often a held or hanging handler looks whether its client left or the mock ends.
const LOOK: Duration = Duration::from_millis(25);

/// A client that sees the end of a connection forgets what it has not read yet; by then it has read it, as a rule.
const BEFORE_CUT: Duration = Duration::from_millis(100);

/// What becomes of the connection after an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// The next request may come.
    Keep,
    /// It is over.
    Close,
}

/// Plays `reply`; an error means that the client went away, which ends the connection.
pub(super) fn play(
    shared: &Shared,
    request: &Request,
    reply: &Reply,
    out: &mut Responder<'_>,
) -> io::Result<After> {
    for step in &reply.before {
        match step {
            Before::Hold(gate) if wait_at(shared, gate, out) => {}
            Before::Hold(_) => return Ok(After::Close),
            Before::Hang => return Ok(hang(shared, out)),
            Before::Drop(ending) => return cut(*ending, false, out),
        }
    }
    let id = shared.next_id();
    let mut headers = vec![("request-id".to_owned(), format!("req_mock_{id}"))];
    headers.extend(reply.headers.iter().cloned());
    if let Some(error) = &reply.error {
        let body = error_body(&error.kind, &error.message);
        out.json(&request.method, error.status, &headers, &body)?;
        return Ok(After::Keep);
    }
    let play = Play { shared, reply, model: &request.body["model"], id };
    if request.stream() { play.stream(&headers, out) } else { play.plain(&headers, out) }
}

/// The error envelope of the API.
pub(super) fn error_body(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

struct Play<'a> {
    shared: &'a Shared,
    reply: &'a Reply,
    model: &'a Value,
    id: usize,
}

impl Play<'_> {
    fn stream(&self, headers: &[(String, String)], out: &mut Responder<'_>) -> io::Result<After> {
        out.head(200, "text/event-stream", None, headers)?;
        if self.reply.after_headers {
            return Ok(hang(self.shared, out));
        }
        let message = self.message(&[], Value::Null, 1);
        out.event("message_start", &json!({"type": "message_start", "message": message}))?;
        let mut sent = 0;
        if let Some(after) = self.happen(|n| n == 0, out)? {
            return Ok(after);
        }
        for (index, block) in self.reply.blocks.iter().enumerate() {
            let start = json!({"type": "content_block_start", "index": index, "content_block": self.opening(index, block)});
            out.event("content_block_start", &start)?;
            for piece in block.deltas() {
                thread::sleep(self.reply.pause);
                let delta = delta(block, &piece);
                out.event(
                    "content_block_delta",
                    &json!({"type": "content_block_delta", "index": index, "delta": delta}),
                )?;
                sent += 1;
                if let Some(after) = self.happen(|n| n == sent, out)? {
                    return Ok(after);
                }
            }
            if matches!(block, Block::Thinking(_)) {
                let delta = json!({"type": "signature_delta", "signature": "mock"});
                out.event(
                    "content_block_delta",
                    &json!({"type": "content_block_delta", "index": index, "delta": delta}),
                )?;
            }
            out.event(
                "content_block_stop",
                &json!({"type": "content_block_stop", "index": index}),
            )?;
        }
        if let Some(after) = self.happen(|n| n > sent, out)? {
            return Ok(after);
        }
        let delta = json!({"stop_reason": self.reply.stop_reason_sent(), "stop_sequence": null});
        out.event(
            "message_delta",
            &json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": sent + 1}}),
        )?;
        out.event("message_stop", &json!({"type": "message_stop"}))?;
        out.end()?;
        Ok(After::Keep)
    }

    /// The answer to `stream: false`: a server that never finishes its message has nothing to send.
    fn plain(&self, headers: &[(String, String)], out: &mut Responder<'_>) -> io::Result<After> {
        let blocks: Vec<Value> =
            self.reply.blocks.iter().enumerate().map(|(i, b)| self.whole(i, b)).collect();
        let body =
            self.message(&blocks, json!(self.reply.stop_reason_sent()), self.reply.deltas() + 1);
        if self.reply.after_headers {
            out.head(200, "application/json", Some(body.to_string().len()), headers)?;
            return Ok(hang(self.shared, out));
        }
        for (_, event) in &self.reply.events {
            match event {
                Event::Hold(gate) if wait_at(self.shared, gate, out) => {}
                Event::Hold(_) => return Ok(After::Close),
                Event::Hang => return Ok(hang(self.shared, out)),
                Event::Drop(ending) => return cut(*ending, false, out),
                Event::SseError { kind, message } => {
                    out.json("POST", 500, headers, &error_body(kind, message))?;
                    return Ok(After::Keep);
                }
            }
        }
        out.json("POST", 200, headers, &body)?;
        Ok(After::Keep)
    }

    /// Lets happen what the reply has for this place of the stream; `Some` when it ends there.
    fn happen(
        &self,
        here: impl Fn(usize) -> bool,
        out: &mut Responder<'_>,
    ) -> io::Result<Option<After>> {
        for (_, event) in self.reply.events.iter().filter(|(n, _)| here(*n)) {
            match event {
                Event::Hold(gate) if wait_at(self.shared, gate, out) => {}
                Event::Hold(_) => return Ok(Some(After::Close)),
                Event::Hang => return Ok(Some(hang(self.shared, out))),
                Event::Drop(ending) => return cut(*ending, true, out).map(Some),
                Event::SseError { kind, message } => {
                    out.event("error", &error_body(kind, message))?;
                    out.end()?;
                    return Ok(Some(After::Close));
                }
            }
        }
        Ok(None)
    }

    fn message(&self, content: &[Value], stop_reason: Value, output_tokens: usize) -> Value {
        let usage = self.reply.usage;
        json!({
            "id": format!("msg_mock_{}", self.id), "type": "message", "role": "assistant",
            "model": self.model, "content": content, "stop_reason": stop_reason, "stop_sequence": null,
            "usage": {
                "input_tokens": usage.input,
                "cache_read_input_tokens": usage.cache_read,
                "cache_creation_input_tokens": usage.cache_creation,
                "output_tokens": output_tokens,
            },
        })
    }

    fn tool_id(&self, index: usize) -> String {
        format!("toolu_mock_{}_{index}", self.id)
    }

    fn opening(&self, index: usize, block: &Block) -> Value {
        match block {
            Block::Text(_) => json!({"type": "text", "text": ""}),
            Block::Thinking(_) => json!({"type": "thinking", "thinking": "", "signature": ""}),
            Block::ToolUse { name, .. } => {
                json!({"type": "tool_use", "id": self.tool_id(index), "name": name, "input": {}})
            }
        }
    }

    fn whole(&self, index: usize, block: &Block) -> Value {
        match block {
            Block::Text(text) => json!({"type": "text", "text": text}),
            Block::Thinking(text) => {
                json!({"type": "thinking", "thinking": text, "signature": "mock"})
            }
            Block::ToolUse { name, input } => {
                json!({"type": "tool_use", "id": self.tool_id(index), "name": name, "input": input})
            }
        }
    }
}

fn delta(block: &Block, piece: &str) -> Value {
    match block {
        Block::Text(_) => json!({"type": "text_delta", "text": piece}),
        Block::Thinking(_) => json!({"type": "thinking_delta", "thinking": piece}),
        Block::ToolUse { .. } => json!({"type": "input_json_delta", "partial_json": piece}),
    }
}

/// Stands at a gate; `false` when it was left because the client or the mock is gone.
fn wait_at(shared: &Shared, gate: &Gate, out: &Responder<'_>) -> bool {
    gate.arrive();
    loop {
        if gate.wait_open(LOOK) {
            return true;
        }
        if shared.stopping() || out.client_left() {
            return false;
        }
    }
}

fn hang(shared: &Shared, out: &Responder<'_>) -> After {
    let _hanging = shared.count_hanging();
    while !shared.stopping() && !out.client_left() {
        thread::sleep(LOOK);
    }
    After::Close
}

fn cut(ending: Ending, chunked: bool, out: &mut Responder<'_>) -> io::Result<After> {
    thread::sleep(BEFORE_CUT);
    match ending {
        Ending::Fin => out.close(),
        Ending::Rst => out.reset_on_close()?,
        Ending::CleanEof if chunked => out.end()?,
        Ending::CleanEof => out.close(),
    }
    Ok(After::Close)
}
