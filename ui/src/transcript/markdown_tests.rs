//! What hostile and ordinary Markdown becomes. A checker reads the HTML as a browser would and
//! accepts only the writer's own tags.

use super::*;

/// Every tag of the HTML, with its attributes' names. Fails on anything a browser could act on.
fn tags(html: &str) -> Vec<String> {
    let mut names = Vec::new();
    for part in html.split('<').skip(1) {
        let (tag, _) = part.split_once('>').expect("a tag that closes");
        let name: String = tag.chars().take_while(|c| !c.is_whitespace()).collect();
        let known = [
            "p",
            "h4",
            "blockquote",
            "ul",
            "ol",
            "li",
            "div",
            "span",
            "button",
            "pre",
            "code",
            "table",
            "thead",
            "tr",
            "th",
            "td",
            "em",
            "strong",
            "del",
            "a",
            "br",
            "hr",
        ];
        assert!(known.contains(&name.trim_start_matches('/')), "<{tag}> in {html}");
        let outside: String = tag.split('"').step_by(2).collect::<Vec<_>>().join("");
        for attribute in outside.split_whitespace().skip(1) {
            let attribute = attribute.trim_end_matches('=');
            let allowed = ["class", "role", "tabindex", "data-href", "title", "type", "start"];
            assert!(allowed.contains(&attribute), "{attribute} in <{tag}>");
        }
        names.push(name);
    }
    names
}

/// Opening and closing tags pair up.
fn assert_balanced(html: &str) {
    let mut open: Vec<String> = Vec::new();
    for name in tags(html) {
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name), "{html}"),
            None if name == "br" || name == "hr" => {}
            None => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?} in {html}");
}

#[test]
fn raw_html_is_shown_as_text() {
    for hostile in [
        "<script>alert(1)</script>",
        "text <img src=x onerror=alert(1)> text",
        "<svg/onload=alert(1)>",
        "<iframe src=\"https://x\"></iframe>\n\n<style>*{display:none}</style>",
        "<!-- a --><b>bold</b>",
        "<a href=\"javascript:alert(1)\">x</a>",
        "</div></pre></code><script src=//x></script>",
        "```\n</code></pre><script>1</script>\n```",
        "`<script>`",
        "| a |\n|---|\n| <img src=x onerror=1> |",
        "&lt;script&gt;1&lt;/script&gt;",
        "```html\"><script>x</script>\nbody\n```",
    ] {
        let html = to_html(hostile);
        assert_balanced(&html);
        assert!(!html.contains("<script") && !html.contains("<img"), "{html}");
    }
    assert_eq!(to_html("<b>x</b>"), "<p>&lt;b&gt;x&lt;/b&gt;</p>");
}

#[test]
fn only_three_kinds_of_links_can_be_opened() {
    for address in [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "data:text/html,<script>1</script>",
        "vbscript:x",
        "file:///etc/passwd",
        "//example.org",
        "/relative",
        "tauri://localhost",
        "java&#x73;cript:alert(1)",
        "http:\\\\x",
        "",
    ] {
        let html = to_html(&format!("[x]({address})"));
        assert_balanced(&html);
        assert!(!html.contains("data-href"), "{address}: {html}");
    }
    for address in ["https://example.org/a?b=c&d=e", "HTTP://x", "mailto:a@example.org"] {
        let html = to_html(&format!("[x]({address})"));
        assert_balanced(&html);
        assert!(html.contains("<a role=\"link\""), "{address}: {html}");
    }
    let quoted = to_html("[x](<https://x/\"onclick=alert(1)//>)");
    assert_balanced(&quoted);
    let long = format!("https://x/{}", "a".repeat(ADDRESS_MAX));
    assert!(!may_open(&long) && !may_open("https://x/\u{a0}y") && !may_open("https://x\ny"));
    assert!(!may_open("é") && !may_open("ööööö"), "cut inside a letter");
}

#[test]
fn images_load_nothing() {
    let html = to_html("![a picture](https://example.org/x.png)");
    assert_balanced(&html);
    assert!(html.contains("data-href=\"https://example.org/x.png\"") && html.contains("a picture"));
    let inline = to_html("![](data:image/png;base64,AAAA)");
    assert_balanced(&inline);
    assert!(!inline.contains("data-href") && !inline.contains("src="), "{inline}");
    let linked = to_html("[![alt](https://a/b.png)](https://c)");
    assert_balanced(&linked);
    assert_eq!(linked.matches("data-href").count(), 1, "a link holds no link: {linked}");
    assert!(to_html("![](https://a/b.png)").contains(">https://a/b.png<"), "words of some kind");
}

#[test]
fn ordinary_markdown_reads_as_it_should() {
    assert_eq!(
        to_html("# A\n\nb *c* **d** ~~e~~ `f`"),
        "<h4>A</h4><p>b <em>c</em> <strong>d</strong> <del>e</del> <code>f</code></p>"
    );
    assert_eq!(to_html("3. a\n4. b"), "<ol start=\"3\"><li>a</li><li>b</li></ol>");
    assert_eq!(to_html("- [x] done"), "<ul><li>☑ done</li></ul>");
    let table = to_html("| a | b |\n|:-:|--:|\n| 1 | 2 |");
    assert_balanced(&table);
    assert!(table.contains("<th class=\"center\">a</th><th class=\"right\">b</th>"), "{table}");
    let code = to_html("```rust\nlet a = 1 < 2;\n```");
    assert!(code.contains("<span>rust</span>") && code.contains("let a = 1 &lt; 2;\n"), "{code}");
}

#[test]
fn an_unfinished_fence_is_code_already() {
    let html = to_html("Look:\n\n```ts\nconst a = 1");
    assert_balanced(&html);
    assert!(html.contains("<pre tabindex=\"0\"><code>const a = 1"), "{html}");
}

#[test]
fn deep_and_long_texts_are_bounded() {
    let deep = format!("{}x", "> ".repeat(5_000));
    let html = to_html(&deep);
    assert_balanced(&html);
    assert!(html.matches("<blockquote>").count() <= DEPTH_MAX && html.contains('x'));
    let lists: String = (0..200).map(|n| format!("{}- x\n", "  ".repeat(n))).collect();
    assert_balanced(&to_html(&lists));
    let long = "word ".repeat(DRAWN_MAX / 4);
    let html = to_html(&long);
    assert_balanced(&html);
    assert!(html.len() < DRAWN_MAX + 1_000 && html.contains("md-cut"));
    assert_balanced(&to_html(&"[".repeat(20_000)));
    assert_balanced(&to_html(&"*a_ ".repeat(20_000)));
}

#[test]
fn letters_that_turn_the_reading_direction_are_shown() {
    assert_eq!(to_html("a\u{202e}b"), "<p>a\u{fffd}b</p>");
}

#[test]
fn growing_text_ends_as_the_whole_text_and_settles_all_but_its_last_block() {
    let text = "# Title\n\nFirst *para*\nmore.\n\n- a\n- b\n\n  c\n- d\n\n```rust\nfn x() {}\n\n// y\n```\n\n| a |\n|---|\n| 1 |\n\n---\n\n> q\n\nLast [x](https://y).";
    for step in [1, 2, 3, 7, 1_000] {
        let mut growing = Growing::default();
        let cuts = (1..=text.len()).filter(|at| text.is_char_boundary(*at) && at % step == 0);
        for at in cuts.chain([text.len()]) {
            assert!(!growing.set(&text[..at]), "nothing begins anew");
            let html = format!("{}{}", growing.pieces().concat(), growing.tail());
            assert_balanced(&html);
            assert_eq!(html, to_html(&text[..at]), "at {at} in steps of {step}");
        }
        let (pieces, tail) = (growing.pieces().len(), growing.tail().len());
        let least = if step == 1 { 5 } else { 1 };
        assert!(pieces >= least && tail < 170, "{growing:?}");
    }
    let mut growing = Growing::default();
    growing.set("one");
    assert!(growing.set("another"), "other text begins anew");
    assert_eq!(growing.tail(), "<p>another</p>");
}
