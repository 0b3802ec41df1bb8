//! The shortening of the history: by `compact N` within a turn, as the CLI does it by itself (captures
//! 91 to 93), and by the message `/compact`, with success (capture 90) or without (capture 94).

use crate::clock::{self, Stopwatch};
use crate::session::{Incoming, Session};
use crate::transcript::text_of;
use crate::turn::Turn;
use crate::{ids, limits, protocol};
use serde_json::{Value, json};

/// What the summary begins with, in the CLI's words.
const SUMMARY: &str = "This session is being continued from a previous conversation that ran out of context. \
                       The summary below covers the earlier portion of the conversation.";
/// What the CLI says of a summary that does not fit.
pub(crate) const FAILED: &str =
    "Compaction failed · conversation could not be reduced below the context limit";

/// Whether the message is the CLI's own command. It is no attempt at anything.
pub(crate) fn is_command(batch: &[Incoming]) -> bool {
    matches!(batch, [message] if text_of(&message.content).trim() == "/compact")
}

impl Session {
    /// Does what the message `/compact` says.
    pub(crate) fn compact_on_command(&mut self, message: Incoming) {
        let clock = Stopwatch::start();
        let uuid = message.uuid.unwrap_or_else(ids::uuid);
        self.out.emit(protocol::lifecycle(&uuid, "started"));
        self.busy = true;
        self.state("running");
        let failed = self.compact_error.clone();
        self.out.emit(json!({"type": "system", "subtype": "status", "status": "compacting"}));
        match &failed {
            None => self.compacted(),
            Some(words) => self.out.emit(json!({"type": "system", "subtype": "status",
                "status": null, "compact_result": "failed", "compact_error": words})),
        }
        self.out.emit(protocol::init(&self.cwd, &self.model, &self.mode, self.args.asks_host));
        match &failed {
            None => {
                self.boundary("manual", limits::COMPACTED_TOKENS);
                self.said_by_the_cli(&json!(SUMMARY), json!({"isReplay": false, "isSynthetic": true}));
                let said = json!("<local-command-stdout>Compacted </local-command-stdout>");
                self.said_by_the_cli(&said, json!({"isReplay": true}));
            }
            Some(words) => self.out.emit(json!({"type": "assistant", "parent_tool_use_id": null,
                "timestamp": clock::timestamp(), "local_command_run": {"command": "compact", "args": ""},
                "message": {"id": ids::uuid(), "type": "message", "role": "assistant", "model": "<synthetic>",
                    "content": [{"type": "text", "text": words}], "stop_reason": "end_turn",
                    "usage": protocol::usage(0, 0)}})),
        }
        let cost = self.cost();
        self.out.emit(
            json!({"type": "result", "subtype": "success", "is_error": false, "stop_reason": null,
            "num_turns": 0, "result": failed.unwrap_or_default(), "duration_ms": clock.millis(),
            "duration_api_ms": 0, "total_cost_usd": cost, "permission_denials": [],
            "queued_turn_count": self.queue.len(), "result_index": self.totals.results,
            "local_command": "compact", "usage": protocol::usage(0, 0)}),
        );
        self.totals.results += 1;
        self.last_failed = false;
        self.out.emit(protocol::lifecycle(&uuid, "completed"));
        self.busy = false;
        self.state("idle");
    }

    fn compacted(&mut self) {
        self.out.emit(json!({"type": "system", "subtype": "status", "status": null,
            "compact_result": "success"}));
    }

    /// The history was replaced, and holds so many tokens now.
    fn boundary(&mut self, trigger: &str, tokens: u64) {
        let before = std::mem::replace(&mut self.context, tokens);
        self.out.emit(json!({"type": "system", "subtype": "compact_boundary", "compact_metadata":
            {"trigger": trigger, "pre_tokens": before, "post_tokens": tokens,
             "cumulative_dropped_tokens": before.saturating_sub(tokens), "duration_ms": 1}}));
    }

    /// A `user` line of the CLI's own, beside the conversation.
    fn said_by_the_cli(&mut self, content: &Value, marks: Value) {
        let line = json!({"type": "user", "message": {"role": "user", "content": content},
            "parent_tool_use_id": null, "timestamp": clock::timestamp()});
        self.out.emit(protocol::with(line, marks.as_object().cloned().unwrap_or_default()));
    }
}

impl Turn<'_> {
    /// Compacts within the turn, which goes on.
    pub(crate) fn compact(&mut self, tokens: u64) {
        self.close_message("end_turn");
        let session = &mut *self.session;
        session.out.emit(json!({"type": "system", "subtype": "status", "status": "compacting",
            "compact_output_chars": 0}));
        session.compacted();
        session.boundary("auto", tokens);
        session.said_by_the_cli(
            &json!([{"type": "text", "text": SUMMARY}]),
            json!({"isSynthetic": true}),
        );
        self.requesting();
    }
}
