//! tmux's description of how a window is divided, as far as it tells the sizes of panes.
//!
//! `a29e,90x20,0,0,1` is one pane; `c2af,90x20,0,0[90x10,0,0,2,90x9,0,11,3]` two, one above the other. It comes
//! with the news that a window changed, before the programs in it hear of their new size; asking would take longer
//! than some of them need to repaint.

use posse_core::screen::Size;

use super::command::PaneId;

/// The panes and their sizes. What cannot be read is left out.
pub(super) fn sizes(layout: &str) -> Vec<(PaneId, Size)> {
    let mut found = Vec::new();
    // A checksum comes first.
    let mut rest = layout.split_once(',').map_or("", |(_, cells)| cells);
    while let Some((cell, after)) = cell(rest) {
        found.extend(cell);
        rest = after;
    }
    found
}

/// One `WIDTHxHEIGHT,X,Y`, which is a pane if `,ID` follows and a division if a bracket does.
fn cell(text: &str) -> Option<(Option<(PaneId, Size)>, &str)> {
    let text = text.trim_start_matches(|c: char| !c.is_ascii_digit());
    let (width, text) = number(text)?;
    let (height, text) = number(text.strip_prefix('x')?)?;
    let (_, text) = number(text.strip_prefix(',')?)?;
    let (_, text) = number(text.strip_prefix(',')?)?;
    let Some((id, after)) = text.strip_prefix(',').and_then(number) else { return Some((None, text)) };
    let clamp = |n: u32| u16::try_from(n).unwrap_or(u16::MAX);
    Some((Some((PaneId(id), Size::clamped(clamp(height), clamp(width)))), after))
}

fn number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((text[..digits].parse().ok()?, &text[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(layout: &str, expected: &[(u32, u16, u16)]) {
        let found: Vec<_> = sizes(layout).into_iter().map(|(id, size)| (id.0, size.cols(), size.rows())).collect();
        assert_eq!(found, expected, "{layout}");
    }

    #[test]
    fn panes_are_found_however_deep() {
        check("a29e,90x20,0,0,1", &[(1, 90, 20)]);
        check("c2af,90x20,0,0[90x10,0,0,2,90x9,0,11,3]", &[(2, 90, 10), (3, 90, 9)]);
        check(
            "5b3f,120x40,0,0{60x40,0,0,0,59x40,61,0[59x20,61,0,4,59x19,61,21{29x19,61,21,5,29x19,91,21,16}]}",
            &[(0, 60, 40), (4, 59, 20), (5, 29, 19), (16, 29, 19)],
        );
    }

    #[test]
    fn nonsense_gives_nothing() {
        for nonsense in
            ["", "a29e", "a29e,", "a29e,x", "a29e,90", "a29e,90x20", "a29e,90x20,0", "a29e,99999999999x1,0,0,1"]
        {
            check(nonsense, &[]);
        }
        check("a29e,0x70000,0,0,1", &[(1, 2, 1000)]);
    }

    proptest::proptest! {
        #[test]
        fn nothing_makes_it_panic_or_hang(layout in "[0-9a-fx,\\[\\]{}é]{0,60}") {
            sizes(&layout);
        }
    }
}
