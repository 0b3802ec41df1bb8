//! Where every row of the list stands, from two fixed heights: nothing is measured. With it only the
//! rows in view, and a few beside, are in the page. Values only.

use super::order::Layout;
use omniscio_core::attention::Section;
use omniscio_core::id::SessionId;
use std::ops::Range;

/// Rows that are in the page above and below those in view.
const BESIDE: usize = 10;

/// Heights in CSS pixels; the style sheet draws the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heights {
    /// A section's header.
    pub header: f64,
    /// A row of two lines.
    pub full: f64,
    /// A row of one line.
    pub slim: f64,
}

impl Heights {
    /// In a window with list and panel.
    pub const WIDE: Heights = Heights { header: 28.0, full: 44.0, slim: 28.0 };
    /// In a window with one pane.
    pub const NARROW: Heights = Heights { header: 28.0, full: 50.0, slim: 34.0 };

    fn row(self, section: Section) -> f64 {
        if section.needs_person() { self.full } else { self.slim }
    }
}

/// The part of the list that is in view, in CSS pixels from its start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Viewport {
    /// Its upper edge.
    pub top: f64,
    /// Its height.
    pub height: f64,
}

/// The rows of one section.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// The upper edge of the first row.
    pub top: f64,
    /// The height of a row.
    pub row: f64,
    /// How many rows are drawn: none when folded.
    pub rows: usize,
}

impl Band {
    /// The rows that have to be in the page.
    pub fn mounted(self, view: Viewport) -> Range<usize> {
        let at = |y: f64| (((y - self.top) / self.row).floor().max(0.0) as usize).min(self.rows);
        let first = at(view.top).saturating_sub(BESIDE);
        let last = (at(view.top + view.height) + 1 + BESIDE).min(self.rows);
        first..last.max(first)
    }
}

/// The band of a section; `None` when the section is not drawn.
pub fn band(layout: &Layout, folded: &[Section], heights: Heights, of: Section) -> Option<Band> {
    let mut top = 0.0;
    for (section, rows) in layout {
        top += heights.header;
        let rows = if folded.contains(section) { 0 } else { rows.len() };
        let row = heights.row(*section);
        if *section == of {
            return Some(Band { top, row, rows });
        }
        top += row * rows as f64;
    }
    None
}

/// Where a row stands: its upper edge and its height; `None` when it is not drawn.
pub fn place(
    layout: &Layout,
    folded: &[Section],
    heights: Heights,
    session: SessionId,
) -> Option<(f64, f64)> {
    let (section, rows) = layout.iter().find(|(_, rows)| rows.contains(&session))?;
    let band = band(layout, folded, heights, *section).filter(|band| band.rows > 0)?;
    let at = rows.iter().position(|row| *row == session)?;
    Some((band.top + band.row * at as f64, band.row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use omniscio_core::id::Uuid;

    fn layout(needs: u128, running: u128) -> Layout {
        let rows = |from: u128, count: u128| (from..from + count).map(Uuid).collect::<Vec<_>>();
        vec![(Section::NeedsYou, rows(0, needs)), (Section::Running, rows(10_000, running))]
    }

    #[test]
    fn a_row_stands_below_the_headers_and_rows_over_it() {
        let layout = layout(3, 5);
        let at = |folded: &[Section], n| place(&layout, folded, Heights::WIDE, Uuid(n));
        assert_eq!(at(&[], 0), Some((28.0, 44.0)));
        assert_eq!(at(&[], 2), Some((116.0, 44.0)));
        assert_eq!(at(&[], 10_001), Some((28.0 + 132.0 + 28.0 + 28.0, 28.0)));
        assert_eq!(at(&[Section::NeedsYou], 10_000), Some((56.0, 28.0)));
        assert_eq!(at(&[Section::NeedsYou], 1), None);
        assert_eq!(at(&[], 77), None);
    }

    #[test]
    fn only_rows_in_view_and_ten_beside_are_in_the_page() {
        let layout = layout(1_000, 5);
        let band = band(&layout, &[], Heights::WIDE, Section::NeedsYou).expect("drawn");
        let view = |top| Viewport { top, height: 440.0 };
        assert_eq!(band.mounted(view(0.0)), 0..20);
        assert_eq!(band.mounted(view(28.0 + 44.0 * 500.0)), 490..521);
        assert_eq!(band.mounted(view(1e9)), 990..1_000);
        let folded = Band { rows: 0, ..band };
        assert_eq!(folded.mounted(view(0.0)), 0..0);
    }
}
