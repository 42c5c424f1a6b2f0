//! Menus whose options stand side by side. Only colours show the selection: its background has the colour of the
//! dialog's border. "The option that differs from the others" is no criterion: while a selection moves from right to
//! left, two options are briefly painted as selected, and the third one would match.

use std::ops::Range;

use super::compile::Detector;
use super::dialog::Choice;
use super::engine::Sight;
use crate::screen::{Colour, Inks};

/// Returns the options in this row, if it has any.
pub(super) fn read(detector: &Detector, sight: &Sight<'_>, row: usize) -> Option<Vec<Choice>> {
    let pattern = detector.rules.dialog.row.iter().find(|pattern| sight.hit(row, [*pattern]))?;
    let text = sight.row(row);
    let groups = pattern.captures(text)?;
    let labels: Vec<Range<usize>> = groups.iter().skip(1).flatten().map(|label| label.range()).collect();
    let selected = selected(sight, row, &labels);
    let choices = labels.iter().enumerate().map(|(at, label)| Choice {
        number: None,
        label: text[label.clone()].to_owned(),
        selected: selected == Some(at),
    });
    (labels.len() >= 2).then(|| choices.collect())
}

/// Returns the option that is entirely painted as selected, if no part of the others is.
fn selected(sight: &Sight<'_>, row: usize, labels: &[Range<usize>]) -> Option<usize> {
    let (text, colours) = (sight.row(row), sight.colours?);
    let border = text.find(|c: char| !c.is_whitespace())?;
    let mark = colours.inks(row, column(text, border)?)?.text;
    if mark == Colour::Default {
        return None;
    }
    let mut found = None;
    for (at, label) in labels.iter().enumerate() {
        let (from, to) = (column(text, label.start)?, column(text, label.end)?);
        let inks = (from..to).map(|column| colours.inks(row, column)).collect::<Option<Vec<Inks>>>()?;
        let marked = inks.iter().filter(|inks| inks.ground == mark).count();
        match marked {
            0 => {}
            _ if marked == inks.len() && found.is_none() => found = Some(at),
            _ => return None,
        }
    }
    found
}

/// Returns the column of a byte of a row. `None` after characters of uncertain width.
fn column(text: &str, byte: usize) -> Option<usize> {
    let narrow = |c: char| c.is_ascii() || matches!(c, '│' | '┃');
    text[..byte].chars().all(narrow).then(|| text[..byte].chars().count())
}

#[cfg(test)]
mod tests {
    use super::super::{Look, Memo};
    use super::*;
    use crate::detect::rules::Rules;
    use crate::screen::Painted;

    /// One letter per cell for its background: `w` is the colour of the border, `.` the terminal's default.
    struct Paint(&'static str, Colour);

    impl Painted for Paint {
        fn inks(&self, row: usize, column: usize) -> Option<Inks> {
            let ground = match self.0.chars().nth(column).filter(|_| row == 2)? {
                'w' => WARNING,
                'm' => Colour::Rgb(30, 30, 30),
                'e' => Colour::Rgb(40, 40, 40),
                _ => Colour::Default,
            };
            Some(Inks { text: self.1, ground })
        }
    }

    const WARNING: Colour = Colour::Rgb(245, 167, 66);
    const ROW: &str = "┃  Allow once   Allow always   Reject   enter confirm";

    fn read_as(row: &str, paint: Option<&Paint>) -> Option<Vec<(String, bool)>> {
        let rules = r#"
            [dialog]
            row = ['^┃ +(Allow once) +(Allow always) +(Reject)(?: |$)', '^┃ +(Confirm) +(Cancel)(?: |$)', '^┃ +(Alone)$']
            start = '△'
            [[rule]]
            id = "dialog"
            status = "waiting_user_answer"
            kind = "permission"
            when = ["menu"]
            why = "x"
        "#;
        let detector = Detector::new(toml::from_str::<Rules>(rules).unwrap(), |_| None).unwrap();
        let rows = ["┃ △ Permission required", "┃ $ ls", row].map(str::to_owned);
        let colours = paint.map(|paint| paint as &dyn Painted);
        let reading = detector.read(Look { rows: &rows, colours, ..Look::default() }, &mut Memo::default());
        Some(reading.dialog?.options.into_iter().map(|option| (option.label, option.selected)).collect())
    }

    #[test]
    fn option_is_selected_only_if_its_colours_prove_it() {
        for (what, paint, expected) in [
            ("the first", "...wwwwwwwwwwmmmmmmmmmmmmmmmmmmmmmmmm", Some(0)),
            ("padded", "..wwwwwwwwwwwwmmmmmmmmmmmmmmmmmmmmmmmm", Some(0)),
            ("the second", "...mmmmmmmmmmm..wwwwwwwwwwwwmmmmmmmmmmmm", Some(1)),
            ("the third", "...mmmmmmmmmmm..mmmmmmmmmmmmm.wwwwwwwwm", Some(2)),
            ("none", "...mmmmmmmmmmm..mmmmmmmmmmmmm.mmmmmmmmm", None),
            ("two, as on its way from right to left", "...wwwwwwwwwwm..wwwwwwwwwwwwm..mmmmmmmm", None),
            ("half of it", "...wwwwwmmmmmm..mmmmmmmmmmmmm..mmmmmmmm", None),
            ("one differs in another colour", "...eeeeeeeeeem..mmmmmmmmmmmmm..mmmmmmmm", None),
            ("no such cells", "...wwwwwwwwww", None),
        ] {
            let options = read_as(ROW, Some(&Paint(paint, WARNING))).unwrap();
            let labels: Vec<&str> = options.iter().map(|(label, _)| label.as_str()).collect();
            assert_eq!(labels, ["Allow once", "Allow always", "Reject"], "{what}");
            assert_eq!(options.iter().position(|(_, selected)| *selected), expected, "{what}");
        }
    }

    #[test]
    fn no_option_is_selected_without_colours() {
        let first = "...wwwwwwwwwwmmmmmmmmmmmmmmmmmmmmmmmm";
        for paint in [None, Some(&Paint(first, Colour::Default))] {
            assert!(read_as(ROW, paint).unwrap().iter().all(|(_, selected)| !selected));
        }
        let wide = ROW.replacen("┃  ", "┃ 宽 ", 1);
        assert_eq!(read_as(&wide, Some(&Paint(first, WARNING))), None, "that is no row of options");
    }

    #[test]
    fn row_of_options_has_at_least_two() {
        let labels = |row| read_as(row, None).map(|options| options.into_iter().map(|(label, _)| label).collect());
        assert_eq!(labels("┃  Confirm   Cancel  "), Some(vec!["Confirm".to_owned(), "Cancel".to_owned()]));
        assert_eq!(labels("┃  Alone"), None::<Vec<String>>);
        assert_eq!(labels("┃  Allow once   Reject"), None);
    }
}
