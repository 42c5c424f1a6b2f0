//! The live view of a run, at the foot of a person's window: where it is, what each agent does, and the last lines of the
//! one whose turn it is. Drawn over itself; everything above it stays.

use posse_core::rounds::Role;
use posse_server::api::types::{Output, Terminal};
use posse_server::runs::view::RunView;

use crate::client::Client;
use crate::error::Error;
use crate::ui::{Colour, Ui, age, colour_of, cut, plain, window};

/// Lines of the terminal whose turn it is.
const LINES: usize = 5;

pub(super) struct Live<'a> {
    ui: &'a Ui,
    /// Rows drawn last.
    rows: usize,
}

impl<'a> Live<'a> {
    pub(super) fn new(ui: &'a Ui) -> Self {
        Self { ui, rows: 0 }
    }

    /// Takes it away.
    pub(super) fn clear(&mut self) {
        if self.rows > 0 {
            self.ui.print(&format!("\x1b[{}A\x1b[J", self.rows));
            self.rows = 0;
        }
    }

    pub(super) async fn draw(&mut self, client: &mut Client, view: &RunView) -> Result<(), Error> {
        let terminals: Vec<Terminal> = client.get("/terminals").await?;
        let tail = match &view.turn {
            Some(turn) => {
                let path = format!("/terminals/{}/output?mode=tail&lines={LINES}", turn.terminal);
                client.get::<Output>(&path).await.map(|output| output.output).unwrap_or_default()
            }
            None => String::new(),
        };
        let columns = window().map_or(80, |(_, columns)| usize::from(columns));
        let text = picture(view, &terminals, &tail, columns, self.ui);
        self.clear();
        self.rows = text.lines().count();
        self.ui.print(&text);
        Ok(())
    }
}

fn picture(view: &RunView, terminals: &[Terminal], tail: &str, columns: usize, ui: &Ui) -> String {
    let dim = |text: &str| ui.paint(text, Colour::Dim);
    let mut text = format!("{}\n", dim(&"─".repeat(columns.min(100))));
    let mut head = format!("round {}/{}  {}", view.round, view.max_rounds, view.phase);
    if let Some(turn) = &view.turn {
        head.push_str(&format!(", review {}  turn {}  {}", view.cycle, turn.number, age(turn.since)));
        if turn.accepts > 0 {
            head.push_str(&format!("  {} accepted", turn.accepts));
        }
    }
    if let Some(until) = view.parked_until {
        let at = until.to_zoned(jiff::tz::TimeZone::system()).strftime("%T").to_string();
        head.push_str(&format!("  parked until {at}"));
    }
    text.push_str(&format!("{}\n", ui.paint(&cut(&head, columns), Colour::Bold)));
    for role in Role::ALL {
        let Some(terminal) = view.terminals.get(&role).and_then(|id| terminals.iter().find(|t| t.id == *id)) else {
            text.push_str(&format!("  {role:<16} {}\n", dim("starting")));
            continue;
        };
        let turn = view.turn.as_ref().is_some_and(|turn| turn.terminal == terminal.id);
        let mark = if turn { ui.paint("▸", Colour::Blue) } else { " ".into() };
        let status = terminal.status.status;
        let painted = ui.paint(&format!("{status:<20}"), colour_of(status));
        let asks = terminal
            .status
            .dialog
            .as_ref()
            .map(|dialog| format!("asks: {}  (posse approve {})", plain(&dialog.question), terminal.id));
        let what = asks.unwrap_or_else(|| plain(&terminal.title));
        let what = cut(&what, columns.saturating_sub(52));
        text.push_str(&format!(
            "{mark} {role:<16} {painted} {:>4}  {} {}\n",
            age(terminal.status.since),
            terminal.id,
            dim(&what)
        ));
    }
    for line in tail.lines() {
        text.push_str(&format!("{}\n", dim(&format!("  │ {}", cut(&plain(line), columns.saturating_sub(4))))));
    }
    text
}
