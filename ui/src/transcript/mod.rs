//! The conversation of the open session: pages and live news, drawn as blocks, following its end.
//! Which rows are hidden and whether a reply shows as cut off is asked of the facts, not decided
//! here.

mod block_view;
pub(crate) mod blocks;
pub(crate) mod markdown;
mod scroll;
mod text_view;
mod tool_view;
pub(crate) mod tool_words;

use crate::bridge;
use crate::model::{TranscriptNews, use_store};
use block_view::ItemView;
use blocks::{Blocks, Change, Item, PAGE};
use leptos::ev;
use leptos::html;
use leptos::prelude::*;
use leptos::task::spawn_local;
use omniscio_core::block::Block;
use omniscio_core::id::SessionId;
use scroll::Follow;
use std::collections::BTreeMap;

pub(crate) use text_view::{CopyButton, Markdown};

/// What the views of one conversation share. Copied around freely.
#[derive(Clone, Copy)]
pub(crate) struct Transcript {
    session: SessionId,
    blocks: StoredValue<Blocks>,
    /// Which blocks there are, and their order.
    order: Trigger,
    /// The content of each block that is drawn.
    content: StoredValue<BTreeMap<u64, ArcTrigger>>,
    failed: RwSignal<Option<String>>,
    loading: RwSignal<bool>,
    follow: Follow,
}

impl Transcript {
    fn new(session: SessionId) -> Transcript {
        Transcript {
            session,
            blocks: StoredValue::new(Blocks::default()),
            order: Trigger::new(),
            content: StoredValue::new(BTreeMap::new()),
            failed: RwSignal::new(None),
            loading: RwSignal::new(false),
            follow: Follow::new(),
        }
    }

    /// Reads the blocks, tracked on their order only.
    pub(crate) fn in_order<T>(self, read: impl FnOnce(&Blocks) -> T) -> T {
        self.order.track();
        self.blocks.with_value(read)
    }

    /// Reads one block, tracked on its content.
    pub(crate) fn block<T>(self, seq: u64, read: impl FnOnce(&Block) -> T) -> Option<T> {
        let known = self.content.with_value(|content| content.get(&seq).cloned());
        let trigger = known.unwrap_or_else(|| {
            let trigger = ArcTrigger::new();
            self.content.update_value(|content| {
                content.insert(seq, trigger.clone());
            });
            trigger
        });
        trigger.track();
        self.block_now(seq, read)
    }

    /// Reads one block as it is now, untracked.
    pub(crate) fn block_now<T>(self, seq: u64, read: impl FnOnce(&Block) -> T) -> Option<T> {
        self.blocks.with_value(|blocks| blocks.get(seq).map(read))
    }

    fn apply(self, news: TranscriptNews) {
        let new_row = matches!(&news, TranscriptNews::Block(block) if !block.hidden
            && self.blocks.with_value(|blocks| blocks.get(block.seq).is_none()));
        let seq = match &news {
            TranscriptNews::Block(block) => block.seq,
            TranscriptNews::Delta { seq, .. } => *seq,
        };
        let change = self.blocks.try_update_value(|blocks| match news {
            TranscriptNews::Block(block) => blocks.take_block(block),
            TranscriptNews::Delta { seq, text } => blocks.take_delta(seq, &text),
        });
        match change {
            Some(Change::Order) => {
                if self.follow.is_at_end() {
                    self.trim();
                } else if new_row {
                    self.follow.one_more();
                }
                self.order.notify();
                self.notify(seq);
            }
            Some(Change::Content(seq)) => self.notify(seq),
            Some(Change::Nothing) | None => {}
        }
    }

    fn notify(self, seq: u64) {
        if let Some(trigger) = self.content.with_value(|content| content.get(&seq).cloned()) {
            trigger.notify();
        }
    }

    fn trim(self) {
        let first = self
            .blocks
            .try_update_value(|blocks| blocks.trim().then(|| blocks.first()).flatten())
            .flatten();
        if let Some(first) = first {
            self.content.update_value(|content| *content = content.split_off(&first));
        }
    }

    /// Fetches the last page, or the one before the first block here.
    fn load(self) {
        if self.loading.get_untracked() {
            return;
        }
        self.loading.set(true);
        self.failed.set(None);
        let before =
            self.blocks.with_value(|blocks| if blocks.is_loaded() { blocks.first() } else { None });
        spawn_local(async move {
            let page = bridge::transcript_page(self.session, before, PAGE).await;
            // the panel may be closed by now
            if self.loading.try_set(false).is_some() {
                return;
            }
            match page {
                Ok(page) => {
                    self.follow.keep_place();
                    self.blocks.update_value(|blocks| blocks.take_page(page));
                    self.order.notify();
                }
                Err(error) => self.failed.set(Some(error.message)),
            }
        });
    }
}

/// The conversation of one session, with its open card at the end.
#[component]
pub(crate) fn TranscriptView(session: SessionId, children: Children) -> impl IntoView {
    let store = use_store();
    let transcript = Transcript::new(session);
    provide_context(transcript);
    store.on_transcript(session, move |news| transcript.apply(news));
    transcript.load();

    let inner = NodeRef::<html::Div>::new();
    transcript.follow.watch(inner);
    let items = Memo::new(move |_| {
        let show_hidden = store.settings.with(|settings| settings.show_interruptions);
        transcript.in_order(|blocks| blocks.items(show_hidden))
    });
    let has_earlier = move || transcript.in_order(Blocks::has_earlier);
    let on_scroll = move |_| {
        let near_top = transcript.follow.scrolled();
        if near_top && transcript.blocks.with_value(Blocks::has_earlier) {
            transcript.load();
        }
    };
    view! {
        <div class="transcript-frame">
            <div
                class="transcript"
                node_ref=transcript.follow.outer()
                role="log"
                aria-live="off"
                aria-label="Conversation"
                tabindex="0"
                data-testid="transcript"
                on:scroll=on_scroll
                on:click=move |event| text_view::on_click(store, &event)
                on:keydown=move |event| text_view::on_key(store, &event)
            >
                <div class="transcript-inner" node_ref=inner>
                    <Show when=has_earlier>
                        <button class="link-button earlier" on:click=move |_| transcript.load()>
                            "Earlier"
                        </button>
                    </Show>
                    <Failure transcript=transcript />
                    <For each=move || items.get() key=Item::key let:item>
                        <ItemView item=item items=items />
                    </For>
                    {children()}
                </div>
            </div>
            <NewChip transcript=transcript />
        </div>
    }
}

#[component]
fn Failure(transcript: Transcript) -> impl IntoView {
    move || {
        transcript.failed.get().map(|words| {
            view! {
                <p class="note red-text" role="alert">
                    {words}
                    " "
                    <button class="link-button" on:click=move |_| transcript.load()>
                        "Try again"
                    </button>
                </p>
            }
        })
    }
}

/// How much came below while the person reads above.
#[component]
fn NewChip(transcript: Transcript) -> impl IntoView {
    let follow = transcript.follow;
    let key = window_event_listener(ev::keydown, move |event| {
        let plain = !(event.ctrl_key() || event.alt_key() || event.meta_key() || event.shift_key());
        let elsewhere = crate::dom::types_text() || crate::dom::dialog_is_open();
        let in_list = crate::dom::focus_is_in(crate::inbox::LIST_ID);
        if event.key() == "End" && plain && !elsewhere && !in_list {
            follow.to_end();
        }
    });
    on_cleanup(move || key.remove());
    move || {
        let more = follow.more();
        (more > 0).then(|| {
            view! {
                <button
                    class="new-chip"
                    data-testid="new-chip"
                    aria-keyshortcuts="End"
                    on:click=move |_| follow.to_end()
                >
                    {format!("{more} new")}
                </button>
            }
        })
    }
}
