//! Bounds of shown text. Cuts nothing silently.

use alloc::format;
use alloc::string::String;

/// The result of a tool call is kept up to this size, in bytes.
pub(super) const RESULT_BYTES: usize = 64 * 1024;
/// Room for the line that says what was left out.
const LINE_BYTES: usize = 64;

/// The text, or its head and tail around a line that says how much was left out.
pub(super) fn bounded(text: &str) -> String {
    if text.len() <= RESULT_BYTES {
        return text.into();
    }
    let keep = (RESULT_BYTES - LINE_BYTES) / 2;
    let (head, rest) = text.split_at(text.floor_char_boundary(keep));
    let (left_out, tail) = rest.split_at(rest.ceil_char_boundary(rest.len() - keep));
    format!("{head}\n[… {} characters left out …]\n{tail}", left_out.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_head_and_tail_and_says_what_is_missing() {
        let fits = "é".repeat(RESULT_BYTES / 2);
        assert_eq!(bounded(&fits), fits);
        let long = format!("begin{}end", "é".repeat(RESULT_BYTES));
        let cut = bounded(&long);
        assert!(cut.len() <= RESULT_BYTES, "{}", cut.len());
        let (head, rest) = cut.split_once("\n[… ").expect("a head");
        let (count, tail) = rest.split_once(" characters left out …]\n").expect("a tail");
        assert!(long.starts_with(head) && long.ends_with(tail) && tail.ends_with("end"));
        let kept = head.chars().count() + tail.chars().count();
        assert_eq!(count.parse(), Ok(long.chars().count() - kept));
    }
}
