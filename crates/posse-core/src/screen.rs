//! The content of a terminal as a plain value. `posse-term` creates it from bytes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A terminal's size in character cells, at least 1 row and 2 columns: emulators and programs misbehave below that. At
/// most 1,000 of each (an emulator cell costs 32 bytes, twice).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "RawSize")]
pub struct Size {
    #[schema(minimum = 1, maximum = 1000)]
    rows: u16,
    #[schema(minimum = 2, maximum = 1000)]
    cols: u16,
}

#[derive(Deserialize)]
struct RawSize {
    rows: u16,
    cols: u16,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadSize {
    #[error("a terminal has 1 to {max} rows and 2 to {max} columns, not {cols}x{rows}", max = Size::MAX)]
    Range { rows: u16, cols: u16 },
    #[error("a size is written COLUMNSxROWS, like 120x40, not {0:?}")]
    Format(String),
}

impl Size {
    pub const MAX: u16 = 1000;
    /// Wide enough that agents do not wrap the sentences that rules look for.
    pub const DEFAULT: Size = Size { rows: 48, cols: 160 };

    pub fn new(rows: u16, cols: u16) -> Result<Self, BadSize> {
        if (1..=Self::MAX).contains(&rows) && (2..=Self::MAX).contains(&cols) {
            Ok(Self { rows, cols })
        } else {
            Err(BadSize::Range { rows, cols })
        }
    }

    /// Returns the nearest valid size, for sizes from a window rather than a person.
    pub fn clamped(rows: u16, cols: u16) -> Self {
        Self { rows: rows.clamp(1, Self::MAX), cols: cols.clamp(2, Self::MAX) }
    }

    pub fn rows(self) -> u16 {
        self.rows
    }

    pub fn cols(self) -> u16 {
        self.cols
    }

    pub fn smallest(self, other: Self) -> Self {
        Self { rows: self.rows.min(other.rows), cols: self.cols.min(other.cols) }
    }
}

impl TryFrom<RawSize> for Size {
    type Error = BadSize;
    fn try_from(raw: RawSize) -> Result<Self, Self::Error> {
        Size::new(raw.rows, raw.cols)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.cols, self.rows)
    }
}

impl FromStr for Size {
    type Err = BadSize;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let format = || BadSize::Format(s.chars().take(40).collect());
        let (cols, rows) = s.split_once('x').ok_or_else(format)?;
        Size::new(rows.parse().map_err(|_| format())?, cols.parse().map_err(|_| format())?)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Colour {
    /// The terminal's default colour.
    #[default]
    Default,
    Indexed(u8),
    Rgb(u8, u8, u8),
}

/// The visible colours of one cell: inverse cells have them swapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Inks {
    pub text: Colour,
    pub ground: Colour,
}

/// Access to the colours of a screen, cell by cell. Only a few cells are queried, so the colours are not copied.
pub trait Painted {
    /// Returns the colours of a cell, or `None` if there is no such cell.
    fn inks(&self, row: usize, column: usize) -> Option<Inks>;
}

impl fmt::Debug for dyn Painted + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Painted")
    }
}

/// The content of a terminal at one moment. Rows are text without trailing spaces, exactly `size.rows()` of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Screen {
    pub size: Size,
    pub rows: Vec<String>,
    /// Row and column of the cursor, from 0; `None` if it is hidden.
    pub cursor: Option<(u16, u16)>,
    /// True if the program draws on the alternate screen, as full-screen programs do.
    pub alternate: bool,
    pub title: String,
}

impl Screen {
    /// Returns the rows up to the last one that is not blank.
    pub fn filled_rows(&self) -> &[String] {
        let end = self.rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
        &self.rows[..end]
    }

    /// Returns the non-blank part of the screen as text, one line per row.
    pub fn text(&self) -> String {
        let mut text = self.filled_rows().join("\n");
        if !text.is_empty() {
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_as_columns_by_rows() {
        assert_eq!("120x40".parse(), Size::new(40, 120));
        for bad in ["", "120", "x", "120x", "0x0", "1x1", "1001x40", "120x40x3", "-1x5", "70000x2"] {
            assert!(bad.parse::<Size>().is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn deserialized_size_is_checked() {
        assert!(serde_json::from_str::<Size>(r#"{"rows":0,"cols":80}"#).is_err());
        assert_eq!(serde_json::from_str::<Size>(r#"{"rows":24,"cols":80}"#).unwrap(), Size::clamped(24, 80));
    }

    #[test]
    fn text_ends_at_the_last_non_blank_row() {
        let rows = ["a", "", "b", "", ""].map(str::to_owned).to_vec();
        let screen = Screen { size: Size::clamped(5, 10), rows, cursor: None, alternate: false, title: String::new() };
        assert_eq!(screen.text(), "a\n\nb\n");
    }
}
