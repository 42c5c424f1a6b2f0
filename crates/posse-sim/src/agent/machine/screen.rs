//! Draws what is below the transcript.

use posse_core::time::Mono;

use super::play::{OpenDialog, StepKind, visible};
use super::{ScriptedAgent, frame_number};
use crate::agent::look::{LookText, PROJECT};
use crate::agent::paint::LivePanel;
use crate::agent::rows::{RowStyle, ScreenRow, ScreenSize, text_width, wrap};
use crate::scenario::{AgentLook, QuestionKind};

struct PanelDrawing {
    panel: LivePanel,
    size: ScreenSize,
}

impl ScriptedAgent {
    pub(super) fn live(&self, now: Mono) -> LivePanel {
        let look = self.scenario.look;
        let claude = look == AgentLook::Claude;
        let mut drawing = PanelDrawing { panel: LivePanel::default(), size: self.size };
        let act = self.play.as_ref().map(|play| &play.act);
        match act.map(|act| (&act.kind, act.since)) {
            Some((StepKind::Stream(text, rate), since)) => {
                let mark = if claude { "● " } else { "• " };
                drawing.above((visible(text, *rate, since, now).to_owned(), mark, "  ", RowStyle::Plain));
            }
            Some((StepKind::Tool { name, input, .. }, _)) => {
                drawing.above(look.running(name, input));
                if claude {
                    let running = ScreenRow::cut("  ⎿  Running…", RowStyle::Dim, self.size.columns);
                    drawing.panel.upper.push(running);
                }
            }
            Some((StepKind::Ask(dialog), _)) => {
                drawing.dialog(look, dialog);
                return drawing.panel;
            }
            _ => {}
        }
        if let Some(play) = &self.play
            && matches!(play.act.kind, StepKind::Think | StepKind::Announce(_) | StepKind::Tool { .. })
        {
            let row = look.spinner(frame_number(play.act.since, now), self.turns_started, now.since(play.since));
            drawing.blank();
            drawing.row(&row, if claude { RowStyle::Accent } else { RowStyle::Plain });
        }
        if self.ready {
            self.input_box(&mut drawing);
        }
        drawing.panel
    }

    fn input_box(&self, drawing: &mut PanelDrawing) {
        let draft = self.draft.message().shown;
        let busy = self.play.is_some();
        drawing.blank();
        let footer = match self.scenario.look {
            AgentLook::Claude => {
                drawing.rule('─');
                drawing.input("❯\u{a0}", &draft, "");
                drawing.rule('─');
                match (draft.is_empty(), busy) {
                    // A draft hides the footer.
                    (false, _) => "",
                    (true, true) => "esc to interrupt",
                    (true, false) => "? for shortcuts",
                }
            }
            AgentLook::Codex => {
                drawing.blank();
                drawing.input("› ", &draft, "Ask Codex to do anything");
                drawing.blank();
                drawing.row(&format!("  actor-1 medium · /{PROJECT}"), RowStyle::Dim);
                match (draft.is_empty(), busy) {
                    (true, _) => "? for shortcuts",
                    (false, true) => "tab to queue message",
                    (false, false) => "",
                }
            }
        };
        drawing.row(&format!("  {footer}"), RowStyle::Dim);
    }
}

impl PanelDrawing {
    fn above(&mut self, (text, first, rest, style): LookText) {
        self.panel.upper.push(ScreenRow::blank());
        self.panel.upper.extend(wrap(&text, first, rest, style, self.size.columns));
    }

    fn text(&mut self, text: &str, first: &str, rest: &str, style: RowStyle) {
        self.panel.lower.extend(wrap(text, first, rest, style, self.size.columns));
    }

    /// Adds one row, cut if it is too long.
    fn row(&mut self, text: &str, style: RowStyle) {
        self.panel.lower.push(ScreenRow::cut(text, style, self.size.columns));
    }

    fn blank(&mut self) {
        self.panel.lower.push(ScreenRow::blank());
    }

    fn rule(&mut self, glyph: char) {
        self.panel.lower.push(ScreenRow::rule(glyph, self.size.columns));
    }

    /// Adds an input box and puts the cursor after its text. Of a long draft, the end is visible.
    fn input(&mut self, prompt: &str, draft: &str, placeholder: &str) {
        let width = self.size.columns;
        let lower = &mut self.panel.lower;
        if draft.is_empty() {
            self.panel.cursor = Some((lower.len(), text_width(prompt)));
            let style = if placeholder.is_empty() { RowStyle::Plain } else { RowStyle::Dim };
            lower.extend(wrap(placeholder, prompt, "  ", style, width).into_iter().take(1));
            return;
        }
        let rows = wrap(draft, "", "", RowStyle::Plain, width.saturating_sub(text_width(prompt)).max(1));
        let most = (self.size.rows / 2).max(1);
        for (at, row) in rows[rows.len().saturating_sub(most)..].iter().enumerate() {
            let prefix = if at == 0 { prompt } else { "  " };
            let prefix = if text_width(prefix) < width { prefix } else { "" };
            self.panel.cursor = Some((lower.len(), text_width(prefix) + text_width(&row.text)));
            lower.push(ScreenRow::styled(format!("{prefix}{}", row.text), RowStyle::Plain));
        }
    }

    fn dialog(&mut self, look: AgentLook, dialog: &OpenDialog) {
        let ask = &dialog.ask;
        let texts = look.dialog(ask.kind);
        let text = ask.text.as_deref().unwrap_or(texts.text);
        let startup = ask.kind == QuestionKind::Startup;
        self.panel.at_top = startup;
        let indent = match look {
            AgentLook::Claude => {
                // Questions begin in the first column, all other dialogs in the second.
                let indent = if ask.kind == QuestionKind::Question { "" } else { " " };
                if !startup {
                    self.blank();
                }
                self.rule('─');
                self.text(texts.title, " ", " ", RowStyle::Bold);
                if let Some(command) = &ask.command {
                    self.text(command, "   ", "   ", RowStyle::Plain);
                }
                match &ask.detail {
                    None => {}
                    Some(detail) if ask.kind == QuestionKind::Plan => {
                        self.rule('╌');
                        self.text(detail, " ", " ", RowStyle::Plain);
                        self.rule('╌');
                    }
                    Some(detail) => self.text(detail, "   ", "   ", RowStyle::Dim),
                }
                self.blank();
                self.text(text, indent, indent, RowStyle::Plain);
                if ask.kind != QuestionKind::Permission {
                    self.blank();
                }
                self.options(dialog, &format!("{indent}❯ "), &format!("{indent}  "));
                indent
            }
            AgentLook::Codex => {
                self.blank();
                self.text(texts.title, "  ", "  ", RowStyle::Bold);
                if let Some(detail) = ask.detail.as_ref().filter(|_| startup) {
                    self.text(detail, "  ", "  ", RowStyle::Plain);
                    self.blank();
                }
                self.text(text, "  ", "  ", RowStyle::Bold);
                if let Some(detail) = ask.detail.as_ref().filter(|_| !startup) {
                    self.blank();
                    self.text(detail, "  ", "  ", RowStyle::Plain);
                }
                if let Some(command) = &ask.command {
                    self.blank();
                    self.text(command, "  $ ", "  ", RowStyle::Plain);
                }
                self.blank();
                self.options(dialog, "› ", "  ");
                "  "
            }
        };
        self.blank();
        self.text(texts.footer, indent, indent, RowStyle::Dim);
    }

    /// Adds options with a cursor. `mark` and `gap` have the same width.
    fn options(&mut self, dialog: &OpenDialog, mark: &str, gap: &str) {
        for (at, label) in dialog.options.iter().enumerate() {
            let number = if dialog.ask.numbered { format!("{}. ", at + 1) } else { String::new() };
            let selected = at == dialog.cursor;
            let first = format!("{}{number}", if selected { mark } else { gap });
            let rest = " ".repeat(text_width(&first));
            self.text(label, &first, &rest, if selected { RowStyle::Accent } else { RowStyle::Plain });
        }
    }
}
