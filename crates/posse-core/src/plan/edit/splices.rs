//! Changes to a text that leave the rest of it as it is.

use std::ops::Range;

use super::Written;
use crate::plan::yaml::{Entry, Node, Notation, Value};

/// Changes to a text, collected first and made at once.
pub(crate) struct Edits<'t> {
    pub(crate) text: &'t str,
    pub(crate) splices: Vec<Splice>,
}

/// What goes, and what comes in its place.
pub(crate) type Splice = (Range<usize>, String);

impl Edits<'_> {
    /// Changes fields of a map from what they were to what they shall be. New ones are put behind the last of these
    /// fields that is there, else behind one of `anchors`. Nothing if there is no place.
    pub(super) fn set(&mut self, map: &Node, was: &[Written], wanted: &[Written], anchors: &[&str]) -> Option<()> {
        for ((key, before), (_, wanted)) in was.iter().zip(wanted) {
            let entry = map.get(key);
            // `status: pending` and no status are the same.
            let same =
                before == wanted && (entry.is_some() || *key != "status" || wanted.as_deref() == Some("pending"));
            match (entry, wanted) {
                _ if same => {}
                (Some(entry), wanted) => self.replace(entry, wanted.as_deref().unwrap_or("null"))?,
                (None, None) => {}
                (None, Some(wanted)) => {
                    let ours = map
                        .entries()
                        .iter()
                        .rev()
                        .filter(|entry| entry.name().is_some_and(|name| was.iter().any(|(key, _)| *key == name)));
                    let anchor = ours
                        .chain(anchors.iter().filter_map(|anchor| map.get(anchor)))
                        .chain(map.entries())
                        .find(|entry| self.on_one_line(entry))?;
                    self.insert_behind(map, anchor, key, wanted);
                }
            }
        }
        Some(())
    }

    fn on_one_line(&self, entry: &Entry) -> bool {
        let end = self.end(&entry.value).max(entry.key.at.end);
        !self.text[entry.key.at.start..end].contains('\n')
    }

    /// Puts other text behind the colon of a field.
    pub(crate) fn replace(&mut self, entry: &Entry, with: &str) -> Option<()> {
        let behind_key = self.text.get(entry.key.at.end..)?;
        let colon = behind_key.len() - behind_key.trim_start_matches([' ', '\t']).len();
        if !behind_key[colon..].starts_with(':') {
            return None;
        }
        let from = entry.key.at.end + colon + 1;
        let to = self.end(&entry.value).max(from);
        self.splices.push((from..to, format!(" {with}")));
        Some(())
    }

    pub(crate) fn insert_behind(&mut self, map: &Node, anchor: &Entry, key: &str, value: &str) {
        let end = self.end(&anchor.value).max(anchor.key.at.end);
        match map.value {
            Value::Map(_, Notation::Flow) => self.splices.push((end..end, format!(", {key}: {value}"))),
            _ => {
                let line_end = self.text[end..].find('\n').map_or(self.text.len(), |at| end + at);
                let (at, line) = match self.text[..line_end].strip_suffix('\r') {
                    Some(line) => (line.len(), "\r\n"),
                    None => (line_end, "\n"),
                };
                let indent = " ".repeat(anchor.key.at.column - 1);
                self.splices.push((at..at, format!("{line}{indent}{key}: {value}")));
            }
        }
    }

    /// Where a value ends. Block scalars reach into the empty lines behind them, and of nothing the parser says that it
    /// stands at the next thing.
    pub(crate) fn end(&self, node: &Node) -> usize {
        match &node.value {
            Value::Scalar { text, plain: true } if text.is_empty() => 0,
            _ => {
                let value = &self.text[node.at.start..node.at.end];
                node.at.start + value.trim_end().len()
            }
        }
    }

    /// Whether two of the changes are about the same bytes. They cannot both be right.
    pub(super) fn overlap(&mut self) -> bool {
        self.sort();
        self.splices.windows(2).any(|pair| pair[1].0.start < pair[0].0.end)
    }

    /// Stable: several lines inserted in one place keep their order.
    fn sort(&mut self) {
        self.splices.sort_by_key(|(range, _)| range.start);
    }

    pub(crate) fn apply(mut self) -> String {
        self.sort();
        let mut out = String::with_capacity(self.text.len() + 256);
        let mut at = 0;
        for (range, with) in &self.splices {
            // Overlapping edits cannot both be right; the proof will refuse what comes out.
            if range.start < at {
                continue;
            }
            out.push_str(&self.text[at..range.start]);
            out.push_str(with);
            at = range.end;
        }
        out.push_str(&self.text[at..]);
        out
    }
}
