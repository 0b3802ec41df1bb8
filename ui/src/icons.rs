//! Icons as SVG: the state shapes, each its own form, and the few symbols of the controls. Colours
//! come from the style sheet by `data-tone` alone.

use leptos::prelude::*;
use omniscio_core::attention::{Attention, Shape};

/// The shape of a state. Hidden from speech: the label beside it is text.
#[component]
pub fn StateShape(
    /// What the session is.
    #[prop(into)]
    of: Signal<Option<Attention>>,
) -> impl IntoView {
    move || {
        of.get().map(|attention| {
            view! {
                <svg
                    class="shape"
                    viewBox="0 0 14 14"
                    aria-hidden="true"
                    data-tone=attention.tone.as_str()
                    data-state=attention.state.as_str()
                    data-shape=name(attention.shape)
                    inner_html=drawing(attention.shape)
                />
            }
        })
    }
}

fn name(shape: Shape) -> &'static str {
    match shape {
        Shape::Disc => "disc",
        Shape::RingPulsing => "ring-pulsing",
        Shape::Diamond => "diamond",
        Shape::Question => "question",
        Shape::Lines => "lines",
        Shape::Padlock => "padlock",
        Shape::Door => "door",
        Shape::Square => "square",
        Shape::OpenDiamond => "open-diamond",
        Shape::Clock => "clock",
        Shape::Pause => "pause",
        Shape::Cross => "cross",
        Shape::Triangle => "triangle",
        Shape::HalfDisc => "half-disc",
        Shape::TwoBars => "two-bars",
        Shape::Ring => "ring",
    }
}

/// What is cut out of a shape is left unpainted, so that it shows any surface below.
fn drawing(shape: Shape) -> &'static str {
    match shape {
        Shape::Disc => r#"<circle cx="7" cy="7" r="4.5" fill="currentColor"/>"#,
        Shape::RingPulsing => {
            r#"<path d="M4.1 3.7A4.4 4.4 0 1 0 9.9 3.7" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round"/>"#
        }
        Shape::Diamond => r#"<path d="M7 1.2 12.8 7 7 12.8 1.2 7Z" fill="currentColor"/>"#,
        Shape::Question => {
            r#"<path d="M4.3 4.6a2.7 2.7 0 1 1 4.3 2.2C7.6 7.5 7 8 7 9" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round"/><circle cx="7" cy="11.9" r="1.15" fill="currentColor"/>"#
        }
        Shape::Lines => {
            r#"<path d="M1.5 3h11M1.5 7h11M1.5 11h7" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round"/>"#
        }
        Shape::Padlock => {
            r#"<rect x="2.2" y="6" width="9.6" height="7" rx="1.6" fill="currentColor"/><path d="M4.4 6V4.3a2.6 2.6 0 0 1 5.2 0V6" fill="none" stroke="currentColor" stroke-width="1.6"/>"#
        }
        Shape::Door => {
            r#"<path d="M8 1.5h3.7a.8.8 0 0 1 .8.8v9.4a.8.8 0 0 1-.8.8H8M1.5 7h6.3M5.3 4.3 8 7 5.3 9.7" fill="none" stroke="currentColor" stroke-width="1.7" stroke-linecap="round" stroke-linejoin="round"/>"#
        }
        Shape::Square => {
            r#"<rect x="2.5" y="2.5" width="9" height="9" rx="1.8" fill="currentColor"/>"#
        }
        Shape::OpenDiamond => {
            r#"<path d="M7 1.7 12.3 7 7 12.3 1.7 7Z" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linejoin="round"/><circle cx="7" cy="7" r="1.4" fill="currentColor"/>"#
        }
        Shape::Clock => {
            r#"<circle cx="7" cy="7" r="5.3" fill="none" stroke="currentColor" stroke-width="1.6"/><path d="M7 4.2V7l1.9 1.5" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round"/>"#
        }
        Shape::Pause => {
            r#"<path fill-rule="evenodd" d="M7 1a6 6 0 1 1 0 12A6 6 0 0 1 7 1ZM4.7 4.2v5.6h1.5V4.2ZM7.8 4.2v5.6h1.5V4.2Z" fill="currentColor"/>"#
        }
        Shape::Cross => {
            r#"<path fill-rule="evenodd" d="M7 1a6 6 0 1 1 0 12A6 6 0 0 1 7 1ZM8.84 4.16 7 6 5.16 4.16 4.16 5.16 6 7 4.16 8.84 5.16 9.84 7 8 8.84 9.84 9.84 8.84 8 7 9.84 5.16Z" fill="currentColor"/>"#
        }
        Shape::Triangle => {
            r#"<path fill-rule="evenodd" d="M6.1 1.6a1.05 1.05 0 0 1 1.8 0l5.3 9.4a1.05 1.05 0 0 1-.9 1.6H1.7a1.05 1.05 0 0 1-.9-1.6ZM6.25 4.7v3.8h1.5V4.7ZM7 9.4a.9.9 0 1 0 0 1.8.9.9 0 0 0 0-1.8Z" fill="currentColor"/>"#
        }
        Shape::HalfDisc => {
            r#"<circle cx="7" cy="7" r="5.2" fill="none" stroke="currentColor" stroke-width="1.6"/><path d="M7 1.8a5.2 5.2 0 0 0 0 10.4Z" fill="currentColor"/>"#
        }
        Shape::TwoBars => {
            r#"<path d="M3.2 2.5h2.2v9H3.2ZM8.6 2.5h2.2v9H8.6Z" fill="currentColor"/>"#
        }
        Shape::Ring => {
            r#"<circle cx="7" cy="7" r="4.6" fill="none" stroke="currentColor" stroke-width="1.6"/>"#
        }
    }
}

/// The symbols of the controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Icon {
    /// Search.
    Search,
    /// New.
    Plus,
    /// Archive.
    Archive,
    /// More.
    More,
    /// Settings.
    Gear,
    /// A folder.
    Folder,
    /// Try again.
    Again,
    /// Back.
    Back,
    /// Unfold.
    Chevron,
    /// Close.
    Close,
    /// Send.
    Send,
    /// Stop.
    Stop,
    /// Copy.
    Copy,
    /// A file.
    File,
    /// Edit.
    Pencil,
    /// Run.
    Terminal,
    /// Fetch.
    Globe,
    /// The mark of the app.
    Mark,
}

/// A symbol of a control, 16 px, in the control's own colour.
#[component]
pub fn Symbol(
    /// Which.
    icon: Icon,
) -> impl IntoView {
    view! {
        <svg class="symbol" viewBox="0 0 16 16" aria-hidden="true" fill="none" stroke="currentColor"
            stroke-width="1.4" stroke-linecap="round" stroke-linejoin="round"
            inner_html=symbol(icon) />
    }
}

fn symbol(icon: Icon) -> &'static str {
    match icon {
        Icon::Search => r#"<circle cx="7" cy="7" r="4.2"/><path d="m10.2 10.2 3.3 3.3"/>"#,
        Icon::Plus => r#"<path d="M8 3v10M3 8h10"/>"#,
        Icon::Archive => {
            r#"<path d="M2 3h12v3H2ZM3 6v6.5a.5.5 0 0 0 .5.5h9a.5.5 0 0 0 .5-.5V6M6.5 8.7h3"/>"#
        }
        Icon::More => {
            r#"<g fill="currentColor" stroke="none"><circle cx="3.5" cy="8" r="1.1"/><circle cx="8" cy="8" r="1.1"/><circle cx="12.5" cy="8" r="1.1"/></g>"#
        }
        Icon::Gear => {
            r#"<circle cx="8" cy="8" r="2.1"/><path d="M8 1.8v2M8 12.2v2M1.8 8h2M12.2 8h2M3.6 3.6 5 5M11 11l1.4 1.4M12.4 3.6 11 5M5 11l-1.4 1.4"/>"#
        }
        Icon::Folder => r#"<path d="M2 12.5v-9h4l1.5 1.8H14v7.2Z"/>"#,
        Icon::Again => r#"<path d="M13 8a5 5 0 1 1-1.5-3.6M13 2.5v3h-3"/>"#,
        Icon::Back => r#"<path d="M10 3 5 8l5 5"/>"#,
        Icon::Chevron => r#"<path d="m6 4 4 4-4 4"/>"#,
        Icon::Close => r#"<path d="m4 4 8 8M12 4l-8 8"/>"#,
        Icon::Send => r#"<path d="M8 13V3M4 7l4-4 4 4"/>"#,
        Icon::Stop => {
            r#"<rect x="4" y="4" width="8" height="8" rx="1.6" fill="currentColor" stroke="none"/>"#
        }
        Icon::Copy => {
            r#"<rect x="5.5" y="5.5" width="8" height="8" rx="1.6"/><path d="M3.5 10.5h-.3a.7.7 0 0 1-.7-.7V3.2a.7.7 0 0 1 .7-.7h6.6a.7.7 0 0 1 .7.7v.3"/>"#
        }
        Icon::File => r#"<path d="M4 2h5l3 3v9H4ZM9 2v3h3"/>"#,
        Icon::Pencil => r#"<path d="m3 13 .6-2.8 7.3-7.3 2.2 2.2-7.3 7.3Z"/>"#,
        Icon::Terminal => r#"<path d="m3 4.5 3.5 3.5L3 11.5M8 12h5"/>"#,
        Icon::Globe => {
            r#"<circle cx="8" cy="8" r="5.7"/><path d="M2.3 8h11.4M8 2.3c3.3 3.8 3.3 7.6 0 11.4-3.3-3.8-3.3-7.6 0-11.4Z"/>"#
        }
        Icon::Mark => {
            r#"<circle cx="8" cy="8" r="6.4" stroke-width="1.5"/><circle cx="8" cy="8" r="2.3" fill="currentColor" stroke="none"/>"#
        }
    }
}
