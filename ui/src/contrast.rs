//! Checks the colours of `style/tokens.css`: every text and every shape can be read on every surface
//! it may lie on, in both themes. A test only; nothing of it is shipped.

use std::collections::BTreeMap;

const TOKENS: &str = include_str!("../style/tokens.css");

const SURFACES: [&str; 8] =
    ["bg", "bg-side", "surface-1", "surface-2", "row-hover", "row-selected", "field", "tag-bg"];
const TEXTS: [&str; 8] =
    ["text", "text-2", "text-3", "accent", "green-text", "amber-text", "orange-text", "red-text"];
const SHAPES: [&str; 5] = ["green-400", "amber-400", "orange-400", "red-400", "grey-400"];

/// Where buttons, fields and switches lie.
const CONTROL_GROUNDS: [&str; 5] = ["bg", "bg-side", "surface-1", "surface-2", "field"];

/// The colours of the rule that begins with `selector`.
fn theme(selector: &str) -> BTreeMap<&'static str, u32> {
    let rule = TOKENS.split_once(&format!("{selector} {{")).expect("the theme's rule").1;
    let rule = rule.split_once('}').expect("its end").0;
    let colours = rule.lines().filter_map(|line| {
        let (name, value) = line.trim().strip_prefix("--")?.split_once(": #")?;
        let value = value.strip_suffix(';').filter(|value| value.len() == 6)?;
        Some((name, u32::from_str_radix(value, 16).ok()?))
    });
    colours.collect()
}

fn luminance(colour: u32) -> f64 {
    let part = |shift: u32| {
        let value = f64::from((colour >> shift) & 0xff) / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * part(16) + 0.7152 * part(8) + 0.0722 * part(0)
}

fn contrast(one: u32, other: u32) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[test]
fn every_text_and_shape_can_be_read_on_every_surface() {
    let dark = theme(":root");
    let mut light = dark.clone();
    light.extend(theme(":root[data-theme=\"light\"]"));
    assert_eq!(contrast(0, 0xff_ff_ff), 21.0);
    let mut weak = Vec::new();
    for (name, colours) in [("dark", &dark), ("light", &light)] {
        let mut check = |front: &str, back: &str, least: f64| {
            let found = contrast(colours[front], colours[back]);
            if found < least {
                weak.push(format!("{name}: {front} on {back} has {found:.2}, needs {least}"));
            }
        };
        for surface in SURFACES {
            TEXTS.iter().for_each(|text| check(text, surface, 4.5));
            SHAPES.iter().for_each(|shape| check(shape, surface, 3.0));
        }
        CONTROL_GROUNDS.iter().for_each(|ground| check("line-control", ground, 3.0));
        for own in ["red-bg", "amber-bg", "code-bg", "diff-add", "diff-del"] {
            ["text", "text-2", "text-3"].iter().for_each(|text| check(text, own, 4.5));
        }
        check("red-400", "red-bg", 3.0);
        check("red-text", "red-bg", 4.5);
        check("amber-400", "amber-bg", 3.0);
        check("on-fill", "accent-fill", 4.5);
        check("on-fill", "red-fill", 4.5);
    }
    assert!(weak.is_empty(), "{}", weak.join("\n"));
}

#[test]
fn no_other_sheet_names_a_colour() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("style");
    let mut named = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the style folder") {
        let path = entry.expect("a sheet").path();
        if path.ends_with("tokens.css") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a sheet");
        let colour = |line: &str| {
            let hex = line.split_once(": ").is_some_and(|(_, value)| value.contains('#'));
            hex || ["rgb(", "rgba(", "hsl("].iter().any(|function| line.contains(function))
        };
        let places = text.lines().enumerate().filter(|(_, line)| colour(line));
        named.extend(places.map(|(at, line)| format!("{}:{}: {line}", path.display(), at + 1)));
    }
    assert!(named.is_empty(), "give the colour a name in tokens.css:\n{}", named.join("\n"));
}
