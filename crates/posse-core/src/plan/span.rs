//! Where in a text something stands.

use std::fmt;

use serde::Serialize;

/// A piece of a text: its bytes, and for people the line and the column (in characters, both from 1) where it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Place {
    pub start: usize,
    pub end: usize,
    pub line: usize,
    pub column: usize,
}

impl Place {
    pub(super) fn of(span: granit_parser::Span) -> Self {
        // Texts are parsed from a string, so bytes are known. The parser counts columns from 0.
        let bytes = span.byte_range().unwrap_or(0..0);
        Self { start: bytes.start, end: bytes.end, line: span.start.line(), column: span.start.col() + 1 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}
