//! Reads the marks: where a rule of the contract is written and which tests prove it, and the page that
//! lists both (RULES.md).
//!
//! `tests/tidy.rs` checks with it, `cargo xtask rules` writes with it. Reads sources as text, knows no
//! other file of the project, and holds no sentence of the contract.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Every id of the contract, one a line, in its order.
pub(crate) const IDS: &str = "tests/fixtures/contract_ids.txt";

/// The kinds of files that hold marks.
pub(crate) const MARKED: [&str; 3] = ["rs", "sql", "css"];

const HEAD: &str = "\
# Rules

Where each rule of the contract is written, and which tests fail when it breaks. The ids are the
contract's; CONTRIBUTING.md says how a mark is set.

This page is made from the marks by `cargo xtask rules`. Do not edit it: change the marks and run that
again. It names functions and no lines, which would be wrong after the next change.
";

/// What a mark claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Claim {
    /// The rule is written here.
    Rule,
    /// The test below fails when the rule breaks.
    Proof,
}

/// A mark: its claim and its ids, if the line is one.
pub(crate) fn mark(line: &str) -> Option<(Claim, Vec<String>)> {
    let line = line.trim();
    let text = ["// ", "-- ", "/* "].iter().find_map(|open| line.strip_prefix(open))?;
    let rule = text.strip_prefix("rule: ").map(|ids| (Claim::Rule, ids));
    let (claim, ids) = rule.or(text.strip_prefix("proves: ").map(|ids| (Claim::Proof, ids)))?;
    let ids = ids.trim_end_matches("*/").trim();
    Some((claim, ids.split(',').map(|id| id.trim().to_owned()).collect()))
}

/// The project's files of these kinds below these folders: path from the root, and text.
pub(crate) fn files(root: &Path, folders: &[&str], kinds: &[&str]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open: Vec<PathBuf> = folders.iter().map(|folder| root.join(folder)).collect();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() {
                let foreign = ["target", "node_modules", "dist", "gen"].contains(&name.as_str());
                if !foreign && !name.starts_with('.') {
                    open.push(path);
                }
            } else if path.extension().is_some_and(|kind| kinds.iter().any(|k| kind == *k)) {
                let from_root = path.strip_prefix(root).unwrap_or(&path);
                let from_root = from_root.to_string_lossy().replace("./", "");
                if let Ok(bytes) = fs::read(&path) {
                    found.insert(from_root, String::from_utf8_lossy(&bytes).into_owned());
                }
            }
        }
    }
    found
}

/// RULES.md as the marks give it.
pub(crate) fn page(root: &Path) -> String {
    let ids = fs::read_to_string(root.join(IDS)).unwrap_or_default();
    let mut known: Vec<&str> = ids.lines().collect();
    // the contract's groups in its order, each by number
    let groups: Vec<&str> = known.iter().map(|id| group_of(id)).collect();
    known.sort_by_key(|id| (groups.iter().position(|group| *group == group_of(id)), *id));
    page_of(&known, &files(root, &["."], &MARKED))
}

/// Where the marks of one id stand, by what they claim.
type Places = BTreeMap<Claim, BTreeSet<String>>;

fn page_of(known: &[&str], files: &BTreeMap<String, String>) -> String {
    let mut marks: BTreeMap<String, Places> = BTreeMap::new();
    for (path, text) in files {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let Some((claim, ids)) = mark(line) else { continue };
            let place = match name_of(&lines, at, claim).filter(|_| path.ends_with(".rs")) {
                Some(name) => format!("`{path}`: `{name}`"),
                None => format!("`{path}`"),
            };
            for id in ids {
                marks.entry(id).or_default().entry(claim).or_default().insert(place.clone());
            }
        }
    }
    let mut page = HEAD.to_owned();
    let mut group = "";
    let mut unproven = Vec::new();
    for id in known {
        let Some(places) = marks.get(*id) else { continue };
        if group_of(id) != group {
            group = group_of(id);
            add(
                &mut page,
                &format!("\n## {group}\n\n| Rule | Written | Proved by |\n|---|---|---|"),
            );
        }
        let cell = |claim| {
            let cell: Vec<&str> =
                places.get(&claim).into_iter().flatten().map(String::as_str).collect();
            cell.join("<br>")
        };
        let (rule, proof) = (cell(Claim::Rule), cell(Claim::Proof));
        if proof.is_empty() {
            unproven.push(*id);
        }
        add(&mut page, &format!("| {id} | {rule} | {proof} |"));
    }
    let list = if unproven.is_empty() { "None.".to_owned() } else { unproven.join(", ") };
    add(&mut page, &format!("\n## Written, not yet proven\n\n{list}"));
    page
}

fn group_of(id: &str) -> &str {
    id.split('-').next().unwrap_or_default()
}

fn add(page: &mut String, line: &str) {
    // writing to a String cannot fail
    writeln!(page, "{line}").ok();
}

/// What a mark in Rust belongs to: the item below it, else the one around it. A proof is the test's.
fn name_of<'a>(lines: &[&'a str], at: usize, claim: Claim) -> Option<&'a str> {
    if claim == Claim::Proof {
        let functions = lines[at..].iter().filter_map(|line| item(line));
        return functions.filter(|(kind, _)| *kind == "fn").map(|(_, name)| name).next();
    }
    let code = |line: &&&str| !line.trim().is_empty() && !line.trim_start().starts_with(['/', '#']);
    if let Some((_, name)) = lines[at..].iter().find(code).and_then(|line| item(line)) {
        return Some(name);
    }
    let mut depth = indent(lines[at]);
    // the last line of a long signature is no item around the mark, the first one is
    let outer = |line: &&&str| !line.trim().is_empty() && !line.trim_start().starts_with(')');
    for line in lines[..at].iter().rev().filter(outer) {
        if indent(line) < depth {
            depth = indent(line);
            if let Some((_, name)) = item(line) {
                return Some(name);
            }
        }
    }
    None
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Kind and name of the item that the line begins.
fn item(line: &str) -> Option<(&str, &str)> {
    let mut kind = None;
    for word in line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty()) {
        match word {
            "pub" | "crate" | "super" | "async" | "unsafe" => {}
            "fn" | "struct" | "enum" | "trait" | "const" | "static" | "type" | "mod" | "impl" => {
                // of `const fn` the last word counts
                kind = Some(word);
            }
            name => return kind.map(|kind| (kind, name)),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_in_every_kind_of_comment() {
        let of = |claim, ids: &[&str]| Some((claim, ids.iter().map(|id| id.to_string()).collect()));
        assert_eq!(mark("    // rule: SC-13"), of(Claim::Rule, &["SC-13"]));
        assert_eq!(mark("-- proves: SC-13, INV-11"), of(Claim::Proof, &["SC-13", "INV-11"]));
        assert_eq!(mark("/* rule: UI-02 */"), of(Claim::Rule, &["UI-02"]));
        assert_eq!(mark("// the rule: none"), None);
    }

    #[test]
    fn the_page_names_what_each_mark_belongs_to() {
        let code = "\
// rule: SC-01
pub(crate) const fn above() {}
impl Inside {
    fn around(
        &self,
    ) {
        if true {
            // rule: SC-02, SC-01
            act();
        }
    }
}
// rule: SC-02
#[cfg(unix)]
pub const TABLE: [u8; 1] = [
    // rule: SC-03
    1,
];
// proves: SC-01
#[test]
fn it_holds() {}
";
        let files = BTreeMap::from([
            ("a.rs".to_owned(), code.to_owned()),
            ("b.sql".to_owned(), "-- rule: SC-01\nCREATE".to_owned()),
        ]);
        let page = page_of(&["A-01", "SC-01", "SC-02", "SC-03"], &files);
        let table = page.strip_prefix(HEAD).unwrap();
        assert_eq!(
            table,
            "
## SC

| Rule | Written | Proved by |
|---|---|---|
| SC-01 | `a.rs`: `above`<br>`a.rs`: `around`<br>`b.sql` | `a.rs`: `it_holds` |
| SC-02 | `a.rs`: `TABLE`<br>`a.rs`: `around` |  |
| SC-03 | `a.rs`: `TABLE` |  |

## Written, not yet proven

SC-02, SC-03
"
        );
    }
}
