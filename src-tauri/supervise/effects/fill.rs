//! Fills the person's texts into the blocks of a step: the rules hold no texts, only their numbers.

use omniscio_core::block::{Block, BlockKind};
use omniscio_core::id::MessageId;
use omniscio_core::supervisor::{Act, Step, Write};
use std::collections::BTreeMap;

/// Gives each block of the person, in the writes and for the window, the text of its message: from
/// the step itself if it stores it just now, else from `stored`.
pub(super) fn fill<E>(
    step: &mut Step,
    mut stored: impl FnMut(MessageId) -> Result<Option<String>, E>,
) -> Result<(), E> {
    let mut texts: BTreeMap<MessageId, String> = BTreeMap::new();
    for write in &step.writes {
        if let Write::Message(message) = write {
            texts.insert(message.id, message.text.clone());
        }
    }
    let written = step.writes.iter_mut().filter_map(|write| match write {
        Write::Block { block, .. } => Some(block),
        Write::Row { .. } | Write::Message(_) | Write::MessageState { .. } | Write::Settings(_) => {
            None
        }
    });
    let shown = step.acts.iter_mut().filter_map(block_of);
    for (message, text) in written.chain(shown).filter_map(empty_text) {
        if !texts.contains_key(&message) {
            texts.extend(stored(message)?.map(|found| (message, found)));
        }
        if let Some(found) = texts.get(&message) {
            text.clone_from(found);
        }
    }
    Ok(())
}

/// Whether the act shows a block, which may be one of the person.
pub(super) fn is_block(act: &Act) -> bool {
    matches!(act, Act::EmitBlock { .. })
}

fn block_of(act: &mut Act) -> Option<&mut Block> {
    match act {
        Act::EmitBlock { block, .. } => Some(block),
        Act::Spawn { .. }
        | Act::Write { .. }
        | Act::Control { .. }
        | Act::Stop { .. }
        | Act::Ask { .. }
        | Act::Emit(_)
        | Act::EmitGone(_)
        | Act::EmitDelta { .. }
        | Act::EmitSettings(_)
        | Act::Notify { .. }
        | Act::Badge(_)
        | Act::ForgetSecret(_)
        | Act::Reply { .. }
        | Act::Exit
        | Act::Log { .. } => None,
    }
}

fn empty_text(block: &mut Block) -> Option<(MessageId, &mut String)> {
    match &mut block.kind {
        BlockKind::Operator { message, text } if text.is_empty() => Some((*message, text)),
        BlockKind::Operator { .. }
        | BlockKind::Assistant { .. }
        | BlockKind::Thinking { .. }
        | BlockKind::Tool { .. }
        | BlockKind::Note { .. }
        | BlockKind::Boundary { .. }
        | BlockKind::Auto { .. }
        | BlockKind::Answered { .. }
        | BlockKind::Foot { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use omniscio_core::id::{SessionId, Uuid};
    use omniscio_core::message::{Message, MessageState, Origin};
    use omniscio_core::time::Wall;
    use std::convert::Infallible;

    const SESSION: SessionId = Uuid(1);

    fn block(seq: u64, message: u128) -> Block {
        Block {
            seq,
            turn: 1,
            at: Wall(0),
            kind: BlockKind::Operator { message: Uuid(message), text: String::new() },
            hidden: false,
            interruption: false,
            open: false,
            cut_off: false,
        }
    }

    fn text(block: &Block) -> &str {
        let BlockKind::Operator { text, .. } = &block.kind else { panic!("{block:?}") };
        text
    }

    #[test]
    fn texts_come_from_the_step_or_the_store() {
        let message = Message {
            id: Uuid(7),
            session: SESSION,
            origin: Origin::Operator,
            text: "new".into(),
            created_at: Wall(0),
            state: MessageState::Sent,
        };
        let mut step = Step {
            writes: vec![
                Write::Block { session: SESSION, block: block(1, 7) },
                Write::Message(message),
            ],
            acts: vec![
                Act::EmitBlock { session: SESSION, block: block(1, 7) },
                Act::EmitBlock { session: SESSION, block: block(2, 8) },
                Act::EmitBlock { session: SESSION, block: block(3, 9) },
            ],
        };
        let stored = |id: MessageId| {
            assert_ne!(id, Uuid(7), "the step itself has it");
            Ok::<_, Infallible>((id == Uuid(8)).then(|| "old".to_string()))
        };
        fill(&mut step, stored).unwrap();
        let Write::Block { block, .. } = &step.writes[0] else { panic!("{step:?}") };
        assert_eq!(text(block), "new");
        let shown: Vec<&str> = step
            .acts
            .iter()
            .map(|act| {
                let Act::EmitBlock { block, .. } = act else { panic!("{act:?}") };
                text(block)
            })
            .collect();
        assert_eq!(shown, ["new", "old", ""]);
    }
}
