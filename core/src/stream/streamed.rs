//! `stream_event` lines, which are most of what the CLI writes: the few fields that they carry, read
//! without a copy of what is not kept.

use super::meaning::small;
use super::soft::{Field, Present, Soft};
use super::wire::{ApiMessage, Block};
use super::{BlockStart, Partial, PartialKind, StreamEvent};
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use serde::Deserialize;
use serde::de::MapAccess;
use serde::de::value::MapAccessDeserializer;

/// The type of these lines.
pub(super) const KIND: &str = "stream_event";

/// One line. Whoever reads it knows its type.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Streamed<'a> {
    #[serde(borrow)]
    event: Soft<ApiEvent<'a>>,
    parent_tool_use_id: Soft<String>,
    agent_id: Soft<String>,
    api_message_id: Soft<String>,
    abandoned_blocks: Soft<Present>,
}

/// The API's own event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ApiEvent<'a> {
    #[serde(rename = "type", borrow)]
    kind: Soft<Cow<'a, str>>,
    index: Soft<f64>,
    #[serde(borrow)]
    delta: Soft<Delta<'a>>,
    message: Soft<Box<ApiMessage>>,
    content_block: Soft<Box<Block>>,
}

/// `delta` of an API event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta<'a> {
    #[serde(rename = "type", borrow)]
    kind: Soft<Cow<'a, str>>,
    #[serde(borrow)]
    text: Soft<Cow<'a, str>>,
    #[serde(borrow)]
    thinking: Soft<Cow<'a, str>>,
    stop_reason: Soft<String>,
}

impl<'de: 'a, 'a> Field<'de> for ApiEvent<'a> {
    fn object<A: MapAccess<'de>>(object: A) -> Result<Option<Self>, A::Error> {
        Self::deserialize(MapAccessDeserializer::new(object)).map(Some)
    }
}

impl<'de: 'a, 'a> Field<'de> for Delta<'a> {
    fn object<A: MapAccess<'de>>(object: A) -> Result<Option<Self>, A::Error> {
        Self::deserialize(MapAccessDeserializer::new(object)).map(Some)
    }
}

impl Streamed<'_> {
    /// Its event; `None` if its fields are not as expected.
    pub(super) fn event(self) -> Option<StreamEvent> {
        let event = self.event.0?;
        let named = || event.message.0.as_ref().and_then(|message| message.id.0.clone());
        Some(StreamEvent::Partial(Partial {
            message: self.api_message_id.0.or_else(named),
            // output of the main thread has none
            parent: self.parent_tool_use_id.0.or(self.agent_id.0),
            abandoned: self.abandoned_blocks.0.is_some(),
            kind: kind(event),
        }))
    }
}

fn kind(event: ApiEvent<'_>) -> PartialKind {
    let index = small(&event.index);
    let delta = event.delta.0.unwrap_or_default();
    match word(&event.kind) {
        "message_start" => PartialKind::MessageStart {
            context_tokens: event.message.0.unwrap_or_default().context_tokens(),
        },
        "content_block_start" => PartialKind::BlockStart {
            index,
            block: block_start(event.content_block.0.map(|block| *block).unwrap_or_default()),
        },
        "content_block_delta" => match word(&delta.kind) {
            "text_delta" => PartialKind::Text { index, text: text(delta.text) },
            "thinking_delta" => PartialKind::Thinking { index, text: text(delta.thinking) },
            "input_json_delta" => PartialKind::InputJson { index },
            _ => PartialKind::Other,
        },
        "content_block_stop" => PartialKind::BlockStop { index },
        "message_delta" => PartialKind::MessageDelta { stop_reason: delta.stop_reason.0 },
        "message_stop" => PartialKind::MessageStop,
        _ => PartialKind::Other,
    }
}

fn word<'a>(field: &'a Soft<Cow<'_, str>>) -> &'a str {
    field.0.as_deref().unwrap_or_default()
}

fn text(field: Soft<Cow<'_, str>>) -> String {
    field.0.unwrap_or_default().into_owned()
}

fn block_start(block: Block) -> BlockStart {
    match block.kind.text().as_str() {
        "text" => BlockStart::Text,
        "thinking" => BlockStart::Thinking,
        "tool_use" => BlockStart::ToolUse { id: block.id.text(), name: block.name.text() },
        _ => BlockStart::Other,
    }
}
