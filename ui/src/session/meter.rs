//! The context meter of the header: how full the model's context is. From which fullness on it warns,
//! it asks the core.

use leptos::prelude::*;
use omniscio_core::context::{ContextLevel, ContextUsage};
use omniscio_core::ipc::RowView;

/// A bar and a number; an empty bar while nobody knows.
#[component]
pub(super) fn ContextMeter(view: Memo<Option<RowView>>) -> impl IntoView {
    let usage = Memo::new(move |_| view.get().and_then(|view| view.live.context));
    let read = Memo::new(move |_| reading(usage.get()));
    view! {
        <span
            class="meta-part context"
            role="meter"
            aria-valuemin="0"
            aria-valuemax="100"
            aria-valuenow=move || usage.get().map(|usage| percent(usage).to_string())
            aria-label=move || read.get().speech
            data-level=move || read.get().level
            data-testid="context"
        >
            "Context"
            <span class="meter">
                <span
                    class="meter-fill"
                    style:width=move || format!("{}%", usage.get().map_or(0, percent))
                />
            </span>
            <span class="meter-number">{move || read.get().number}</span>
        </span>
    }
}

/// Whole per cent for the eye, and never more than the bar holds.
pub(crate) fn percent(usage: ContextUsage) -> u64 {
    usage.percent().min(100)
}

/// What the meter shows and says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reading {
    level: &'static str,
    number: String,
    speech: String,
}

fn reading(usage: Option<ContextUsage>) -> Reading {
    // rule: CW-03, UI-21
    let Some(usage) = usage else {
        let (number, speech) = ("unknown".into(), "Context unknown".into());
        return Reading { level: "unknown", number, speech };
    };
    let (level, warning) = match usage.level() {
        ContextLevel::Calm => ("calm", ""),
        ContextLevel::Amber => ("amber", ", getting full"),
        ContextLevel::Red => ("red", ", nearly full"),
    };
    let percent = percent(usage);
    let speech = format!("Context {percent} percent{warning}");
    Reading { level, number: format!("{percent} %"), speech }
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: CW-03, UI-21
    #[test]
    fn the_meter_is_calm_then_amber_then_red_and_says_so() {
        let read = |tokens| {
            let Reading { level, number, speech } =
                reading(Some(ContextUsage { tokens, window: 200_000 }));
            (level, number, speech)
        };
        for (tokens, level, number, speech) in [
            (0, "calm", "0 %", "Context 0 percent"),
            (149_999, "calm", "74 %", "Context 74 percent"),
            (150_000, "amber", "75 %", "Context 75 percent, getting full"),
            (179_999, "amber", "89 %", "Context 89 percent, getting full"),
            (180_000, "red", "90 %", "Context 90 percent, nearly full"),
            (260_000, "red", "100 %", "Context 100 percent, nearly full"),
        ] {
            assert_eq!(read(tokens), (level, number.into(), speech.into()));
        }
        let Reading { level, number, speech } = reading(None);
        assert_eq!((level, &*number, &*speech), ("unknown", "unknown", "Context unknown"));
    }
}
