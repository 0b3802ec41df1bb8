//! Markdown of the agent as HTML that can do nothing: a strict writer of a dozen tags.
//!
//! The text is hostile. Raw HTML is shown as text, no address is ever an `href` or a `src` (links
//! carry theirs in `data-href`, which only a click of the person reads), nothing is loaded, and
//! nesting and length are bounded.

use pulldown_cmark::{Alignment, CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd};
use std::fmt::Write;

/// Deeper containers than this are drawn flat, so that no text can nest the page to death.
const DEPTH_MAX: usize = 24;
/// Text longer than this, in bytes, is drawn to here; a line says so, and Copy still has it all.
pub(crate) const DRAWN_MAX: usize = 256 * 1024;
/// Addresses longer than this are not links.
const ADDRESS_MAX: usize = 4_096;

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// The text as HTML.
pub(crate) fn to_html(text: &str) -> String {
    let (drawn, cut) = bounded(text);
    let mut writer = Writer::default();
    Parser::new_ext(drawn, options()).for_each(|event| writer.event(event));
    let mut html = writer.finish();
    if cut {
        html.push_str(CUT_LINE);
    }
    html
}

const CUT_LINE: &str =
    r#"<p class="md-cut">The rest of this text is too long to show here. Copy has all of it.</p>"#;

fn bounded(text: &str) -> (&str, bool) {
    let end = text.floor_char_boundary(DRAWN_MAX);
    (&text[..end], end < text.len())
}

/// A growing text, drawn piece by piece: what can no longer change is drawn once, only the last
/// top-level block is drawn again.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    source: String,
    /// Bytes of `source` that are drawn for good.
    settled: usize,
    /// HTML of the settled pieces, in order.
    pieces: Vec<String>,
    tail: String,
}

impl Growing {
    /// Takes the text as it stands now. Returns whether the settled pieces began anew.
    pub(crate) fn set(&mut self, text: &str) -> bool {
        let (drawn, cut) = bounded(text);
        let anew = !drawn.starts_with(&self.source);
        if anew {
            *self = Growing::default();
        } else if drawn.len() == self.source.len() && !self.tail.is_empty() {
            return false;
        }
        self.source.push_str(&drawn[self.source.len()..]);
        let rest = &self.source[self.settled..];
        // of whole lines only the last top-level block can still change; half a line can be anything
        let whole_lines = rest.rfind('\n').map_or(0, |end| end + 1);
        let last = last_block_start(&rest[..whole_lines]);
        if last > 0 {
            self.pieces.push(to_html(&rest[..last]));
            self.settled += last;
        }
        self.tail = to_html(&self.source[self.settled..]);
        if cut {
            self.tail.push_str(CUT_LINE);
        }
        anew
    }

    /// What is drawn for good, in order.
    pub(crate) fn pieces(&self) -> &[String] {
        &self.pieces
    }

    /// What is still growing.
    pub(crate) fn tail(&self) -> &str {
        &self.tail
    }
}

/// Where the last top-level block of the text begins.
fn last_block_start(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut last = 0;
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        match event {
            Event::Start(_) => {
                if depth == 0 {
                    last = range.start;
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Rule if depth == 0 => last = range.start,
            Event::Rule
            | Event::Text(_)
            | Event::Code(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::Html(_)
            | Event::InlineHtml(_)
            | Event::FootnoteReference(_)
            | Event::SoftBreak
            | Event::HardBreak
            | Event::TaskListMarker(_) => {}
        }
    }
    // a block may be indented: its line belongs to it
    text[..last].rfind('\n').map_or(0, |line| line + 1)
}

#[derive(Default)]
struct Writer {
    html: String,
    /// What closes the open containers, innermost last; empty for one that is drawn flat.
    open: Vec<&'static str>,
    in_link: bool,
    in_code_block: bool,
    /// The address and the label's start of an open image.
    image: Option<(String, usize)>,
    columns: Vec<Alignment>,
    cell: usize,
    in_head: bool,
}

impl Writer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => escape(&mut self.html, &text),
            Event::Code(text) => {
                self.html.push_str("<code>");
                escape(&mut self.html, &text);
                self.html.push_str("</code>");
            }
            Event::SoftBreak => self.html.push('\n'),
            Event::HardBreak => self.html.push_str("<br>"),
            Event::Rule => self.html.push_str("<hr>"),
            Event::TaskListMarker(done) => self.html.push_str(if done { "☑ " } else { "☐ " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.push("<p>", "</p>"),
            Tag::Heading { .. } => self.push("<h4>", "</h4>"),
            Tag::BlockQuote(_) => self.push("<blockquote>", "</blockquote>"),
            Tag::CodeBlock(kind) => self.code_block(kind),
            Tag::List(None) => self.push("<ul>", "</ul>"),
            Tag::List(Some(first)) => self.push(&format!(r#"<ol start="{first}">"#), "</ol>"),
            Tag::Item => self.push("<li>", "</li>"),
            Tag::Table(columns) => {
                self.columns = columns;
                self.push(r#"<div class="md-table" tabindex="0"><table>"#, "</table></div>");
            }
            Tag::TableHead => {
                (self.in_head, self.cell) = (true, 0);
                self.push("<thead><tr>", "</tr></thead>");
            }
            Tag::TableRow => {
                self.cell = 0;
                self.push("<tr>", "</tr>");
            }
            Tag::TableCell => self.table_cell(),
            Tag::Emphasis => self.push("<em>", "</em>"),
            Tag::Strong => self.push("<strong>", "</strong>"),
            Tag::Strikethrough => self.push("<del>", "</del>"),
            Tag::Link { dest_url, .. } => self.link(&dest_url),
            Tag::Image { dest_url, .. } => {
                self.link(&dest_url);
                self.image = Some((dest_url.into_string(), self.html.len()));
            }
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => self.push("", ""),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::CodeBlock => self.in_code_block = false,
            TagEnd::TableHead => self.in_head = false,
            TagEnd::Image => self.end_image(),
            TagEnd::Link => self.in_link = false,
            TagEnd::Paragraph
            | TagEnd::Heading(_)
            | TagEnd::BlockQuote(_)
            | TagEnd::HtmlBlock
            | TagEnd::List(_)
            | TagEnd::Item
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Table
            | TagEnd::TableRow
            | TagEnd::TableCell
            | TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
        if let Some(close) = self.open.pop() {
            self.html.push_str(close);
        }
    }

    /// Opens a container, or draws it flat when it is too deep.
    fn push(&mut self, open: &str, close: &'static str) {
        if self.open.len() >= DEPTH_MAX {
            self.open.push("");
            return;
        }
        self.html.push_str(open);
        self.open.push(close);
    }

    fn code_block(&mut self, kind: CodeBlockKind<'_>) {
        let info = match kind {
            CodeBlockKind::Fenced(info) => info,
            CodeBlockKind::Indented => CowStr::Borrowed(""),
        };
        let language = info.split([' ', ',', '{']).next().unwrap_or_default();
        let mut open = String::from(r#"<div class="code-block"><div class="code-head"><span>"#);
        escape(&mut open, &language.chars().take(24).collect::<String>());
        open.push_str(r#"</span><button type="button" class="code-copy">Copy</button></div>"#);
        open.push_str(r#"<pre tabindex="0"><code>"#);
        self.in_code_block = true;
        self.push(&open, "</code></pre></div>");
    }

    fn table_cell(&mut self) {
        let column = self.columns.get(self.cell).copied().unwrap_or(Alignment::None);
        self.cell += 1;
        let (class, head) = match column {
            Alignment::None | Alignment::Left => ("", self.in_head),
            Alignment::Center => (r#" class="center""#, self.in_head),
            Alignment::Right => (r#" class="right""#, self.in_head),
        };
        match head {
            true => self.push(&format!("<th{class}>"), "</th>"),
            false => self.push(&format!("<td{class}>"), "</td>"),
        }
    }

    /// A link of a kind that may be opened, else its text with the address beside it on hover.
    fn link(&mut self, address: &str) {
        if self.in_link {
            return self.push("", "");
        }
        if !may_open(address) {
            let mut open = String::from(r#"<span class="md-no-link" title=""#);
            escape(&mut open, &address.chars().take(200).collect::<String>());
            open.push_str(r#"">"#);
            return self.push(&open, "</span>");
        }
        let mut address_text = String::new();
        escape(&mut address_text, address);
        self.in_link = true;
        let open = format!(
            r#"<a role="link" tabindex="0" data-href="{address_text}" title="{address_text}">"#
        );
        self.push(&open, "</a>");
    }

    /// An image is its words; without any it is its address.
    fn end_image(&mut self) {
        if let Some((address, start)) = self.image.take()
            && self.html.len() == start
        {
            escape(&mut self.html, &address.chars().take(200).collect::<String>());
        }
        self.in_link = false;
    }

    fn finish(mut self) -> String {
        while let Some(close) = self.open.pop() {
            self.html.push_str(close);
        }
        self.html
    }
}

/// Whether an address is of a kind that the person's click may open: http, https or mailto.
pub(crate) fn may_open(address: &str) -> bool {
    let lower = address.get(..8).unwrap_or(address).to_ascii_lowercase();
    let kind = ["http://", "https://", "mailto:"].iter().any(|kind| lower.starts_with(kind));
    kind && address.len() <= ADDRESS_MAX
        && !address.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\')
}

/// Text as HTML text or as the value of a quoted attribute.
pub(crate) fn escape(html: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            // these turn the reading direction of what follows, or are not text at all
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\0' => {
                // writing to a string cannot fail
                write!(html, "\u{fffd}").ok();
            }
            c => html.push(c),
        }
    }
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
