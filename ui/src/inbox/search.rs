//! What the search field finds: plain words, and `is:`, `in:`, `model:`. Values only.

use omniscio_core::attention::Attention;
use omniscio_core::ipc::RowView;

/// Whether a row matches every word of the query. An empty query matches all.
pub fn matches(query: &str, view: &RowView, attention: &Attention) -> bool {
    let query = query.to_lowercase();
    query.split_whitespace().all(|word| {
        if let Some(state) = word.strip_prefix("is:") {
            let label = attention.label.to_lowercase().replace(' ', "-");
            return attention.state.as_str().starts_with(state) || label.starts_with(state);
        }
        if let Some(folder) = word.strip_prefix("in:") {
            return project(&view.row.folder).to_lowercase().contains(folder);
        }
        if let Some(model) = word.strip_prefix("model:") {
            let used = view.live.model.as_deref().or(view.row.model.as_deref());
            return used.is_some_and(|used| used.to_lowercase().contains(model));
        }
        let reason = attention.reason.words().unwrap_or_default();
        let answer = view.row.answer_line.as_deref().unwrap_or_default();
        [view.row.title.as_str(), project(&view.row.folder), &reason, answer]
            .iter()
            .any(|text| text.to_lowercase().contains(word))
    })
}

/// The project's name: the last part of its folder.
pub fn project(folder: &str) -> &str {
    let folder = folder.trim_end_matches(['/', '\\']);
    folder.rsplit(['/', '\\']).next().unwrap_or(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use omniscio_core::attention::attention;
    use omniscio_core::id::Uuid;
    use omniscio_core::ipc::LiveView;
    use omniscio_core::limits::Limits;
    use omniscio_core::session::{SessionRow, Status};
    use omniscio_core::settings::Policy;
    use omniscio_core::time::{Now, Wall};

    #[test]
    fn words_and_prefixes_all_have_to_match() {
        let folder = "/home/me/src/billing-api/".to_string();
        let mut row =
            SessionRow::new(Uuid(1), folder, "Fix the race".into(), "default".into(), Wall(0));
        row.status = Status::Stalled;
        row.model = Some("opus".into());
        let view = RowView { row, live: LiveView::default() };
        let seen = attention(&view, &Policy::default(), &Limits::default(), Now::default());
        let found = |query: &str| matches(query, &view, &seen);
        for yes in
            ["", "race", "RACE fix", "billing", "in:bill is:stalled", "model:opus", "mid-task"]
        {
            assert!(found(yes), "{yes}");
        }
        for no in ["raze", "race zebra", "in:me", "is:question", "model:haiku"] {
            assert!(!found(no), "{no}");
        }
    }
}
