//! One look at all panes of the server: where ours are, whatever people did with them.

use std::collections::{BTreeMap, BTreeSet};

use posse_core::ids::TerminalId;
use posse_core::screen::Size;

use super::applied::Applied;
use super::command::{Line, PaneId, SessionId, WindowId};
use super::control::Reply;

/// Marks a pane as a terminal of ours.
pub(super) const ID_OPTION: &str = "@posse_id";
/// How many daemons have taken the pane over.
pub(super) const EPOCH_OPTION: &str = "@posse_epoch";
/// Whether the program asked for marked pastes, as far as we heard; older tmux does not tell.
pub(super) const PASTE_OPTION: &str = "@posse_paste";
/// Which input has been applied.
pub(super) const INPUTS_OPTION: &str = "@posse_inputs";

pub(super) fn line() -> Line {
    Line::new("list-panes -a -F").text(
        "#{session_id} #{window_id} #{pane_id} #{pane_pid} #{pane_width} #{pane_height} \
         #{@posse_id} #{@posse_epoch} #{@posse_paste} #{@posse_inputs}",
    )
}

/// A pane as tmux has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pane {
    pub(super) pane: PaneId,
    pub(super) window: WindowId,
    pub(super) pid: u32,
    pub(super) size: Size,
    pub(super) id: Option<TerminalId>,
    pub(super) epoch: u32,
    pub(super) paste: bool,
    pub(super) applied: Applied,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Survey {
    pub(super) panes: BTreeMap<PaneId, Pane>,
    /// Which sessions show a window.
    sessions: BTreeMap<WindowId, BTreeSet<SessionId>>,
}

impl Survey {
    pub(super) fn read(reply: &Reply) -> Self {
        let mut survey = Self::default();
        for line in reply.lines.iter().filter_map(|line| std::str::from_utf8(line).ok()) {
            if let Some((session, pane)) = row(line) {
                survey.sessions.entry(pane.window).or_default().insert(session);
                // A window that several sessions show comes several times.
                survey.panes.insert(pane.pane, pane);
            }
        }
        survey
    }

    pub(super) fn by_id(&self, id: TerminalId) -> Option<&Pane> {
        self.panes.values().find(|pane| pane.id == Some(id))
    }

    pub(super) fn is_alone(&self, window: WindowId) -> bool {
        self.panes.values().filter(|pane| pane.window == window).count() == 1
    }

    pub(super) fn has_session(&self, session: SessionId) -> bool {
        self.sessions.values().any(|sessions| sessions.contains(&session))
    }

    pub(super) fn is_in(&self, window: WindowId, session: SessionId) -> bool {
        self.sessions.get(&window).is_some_and(|sessions| sessions.contains(&session))
    }

    /// Another session that shows the window.
    pub(super) fn session_beside(&self, window: WindowId, anchor: SessionId) -> Option<SessionId> {
        self.sessions.get(&window)?.iter().copied().find(|session| *session != anchor)
    }

    /// Panes with our mark that nobody knows: their terminal was given up, and the wish to close them lost on the way. Only in
    /// windows of the anchor, which each is linked to before it is marked: other homes leave the same mark on theirs.
    pub(super) fn orphans(&self, anchor: SessionId, known: impl Fn(TerminalId) -> bool) -> Vec<(TerminalId, PaneId)> {
        let orphan = |pane: &Pane| {
            let id = pane.id.filter(|id| !known(*id))?;
            self.is_in(pane.window, anchor).then_some((id, pane.pane))
        };
        self.panes.values().filter_map(orphan).collect()
    }

    /// Windows of the anchor that others show too and in which nothing is ours any more.
    pub(super) fn strays(&self, anchor: SessionId, ours: impl Fn(PaneId) -> bool) -> Vec<WindowId> {
        let stray = |window: &&WindowId| {
            self.is_in(**window, anchor)
                && self.session_beside(**window, anchor).is_some()
                && !self.panes.values().any(|pane| pane.window == **window && ours(pane.pane))
        };
        self.sessions.keys().filter(stray).copied().collect()
    }
}

fn row(line: &str) -> Option<(SessionId, Pane)> {
    // Not by white space: what is not set is empty.
    let mut words = line.split(' ');
    let session = words.next()?.parse().ok()?;
    let window = words.next()?.parse().ok()?;
    let pane = words.next()?.parse().ok()?;
    let pid = words.next()?.parse().ok()?;
    let (columns, rows) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let mut next = || words.next().unwrap_or_default();
    let pane = Pane {
        pane,
        window,
        pid,
        size: Size::clamped(rows, columns),
        id: next().parse().ok(),
        epoch: next().parse().unwrap_or(0),
        paste: next() == "1",
        applied: Applied::parse(next()),
    };
    Some((session, pane))
}

#[cfg(test)]
mod tests {
    use posse_core::ids::WriterId;

    use super::*;

    fn survey(lines: &[&str]) -> Survey {
        let lines = lines.iter().map(|line| line.as_bytes().to_vec()).collect();
        Survey::read(&Reply { ours: true, failed: false, lines })
    }

    #[test]
    fn rows_become_panes_and_links() {
        let survey = survey(&[
            "$0 @0 %0 100 80 24    ",
            "$0 @1 %1 101 90 20 0000000a 3 1 5:6",
            "$1 @1 %1 101 90 20 0000000a 3 1 5:6",
            "$1 @2 %2 102 90 10 nonsense   ",
            "$1 @2 %3 103 90 9    ",
            "rubbish",
        ]);
        let ours = survey.by_id(TerminalId::from_random(10)).unwrap();
        assert_eq!((ours.pane, ours.window, ours.pid, ours.epoch, ours.paste), (PaneId(1), WindowId(1), 101, 3, true));
        assert_eq!((ours.size, ours.applied.highest(WriterId(5))), (Size::clamped(20, 90), 6));
        assert_eq!(survey.panes.len(), 4);
        assert_eq!(survey.panes[&PaneId(2)].id, None);
        assert!(survey.is_alone(WindowId(1)) && !survey.is_alone(WindowId(2)));
        let anchor = SessionId(0);
        assert!(survey.is_in(WindowId(1), anchor) && !survey.is_in(WindowId(2), anchor));
        assert_eq!(survey.session_beside(WindowId(1), anchor), Some(SessionId(1)));
        assert_eq!(survey.session_beside(WindowId(0), anchor), None);
        assert!(survey.has_session(SessionId(1)) && !survey.has_session(SessionId(2)));
        assert_eq!(survey.strays(anchor, |_| false), [WindowId(1)]);
        assert_eq!(survey.strays(anchor, |pane| pane == PaneId(1)), []);
        let ours = (TerminalId::from_random(10), PaneId(1));
        assert_eq!(survey.orphans(anchor, |_| false), [ours]);
        assert_eq!(survey.orphans(SessionId(2), |_| false), []);
        assert_eq!(survey.orphans(anchor, |_| true), []);
    }
}
