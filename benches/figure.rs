//! A figure with its limit and its goal, and the table of them. Measures nothing.

use serde::{Deserialize, Serialize};
use std::thread::available_parallelism;

/// One line of the table.
#[derive(Serialize, Deserialize)]
pub(crate) struct Figure {
    /// What was measured.
    pub(crate) what: String,
    /// The measured value, with its unit.
    pub(crate) measured: String,
    /// The limit of the same run that it stands against.
    pub(crate) against: String,
    /// The one as a share of the other.
    pub(crate) ratio: String,
    /// The goal in words; empty for a line that only explains the one above it.
    pub(crate) goal: String,
    /// Whether the goal is met.
    pub(crate) met: Option<bool>,
}

impl Figure {
    /// A figure without a goal yet.
    pub(crate) fn new(
        what: impl Into<String>,
        measured: impl Into<String>,
        against: impl Into<String>,
        ratio: f64,
    ) -> Figure {
        Figure {
            what: what.into(),
            measured: measured.into(),
            against: against.into(),
            ratio: share(ratio),
            goal: String::new(),
            met: None,
        }
    }

    /// The same with its goal.
    pub(crate) fn goal(self, goal: &str, met: bool) -> Figure {
        Figure { goal: goal.to_owned(), met: Some(met), ..self }
    }
}

/// A ratio with as many digits as it needs to be read.
fn share(ratio: f64) -> String {
    if !ratio.is_finite() {
        return "-".to_owned();
    }
    let digits = if ratio < 0.095 { 5 } else { 2 };
    format!("{ratio:.digits$}")
}

const HEAD: [&str; 6] = ["figure", "measured", "against", "ratio", "goal", "met"];

/// Prints the table, and what was missed once more below it.
pub(crate) fn print(figures: &[Figure]) {
    let cores = available_parallelism().map_or(0, usize::from);
    println!("\nOn a machine with {cores} cores:\n");
    let rows: Vec<[&str; 6]> = figures.iter().map(cells).collect();
    let width = |column: usize| {
        let cells = rows.iter().chain([&HEAD]).map(|row| row[column].chars().count());
        cells.max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let line = |row: &[&str; 6]| {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        println!("| {} |", cells.join(" | "));
    };
    line(&HEAD);
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    println!("| {} |", rule.join(" | "));
    rows.iter().for_each(line);

    let missed: Vec<&Figure> = figures.iter().filter(|figure| figure.met == Some(false)).collect();
    let goals = figures.iter().filter(|figure| figure.met.is_some()).count();
    println!("\n{} of {goals} goals are met.", goals - missed.len());
    for Figure { what, measured, goal, .. } in missed {
        println!("MISSED: {what}: {measured}, the goal is {goal}");
    }
}

fn cells(figure: &Figure) -> [&str; 6] {
    let met = match figure.met {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "",
    };
    [&figure.what, &figure.measured, &figure.against, &figure.ratio, &figure.goal, met]
}
