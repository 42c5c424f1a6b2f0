//! Draws what is below the transcript.

use posse_core::time::Mono;
use unicode_width::UnicodeWidthStr;

use super::look::PROJECT;
use super::player::{Activity, ActivityKind, AgentHost, OpenDialog, ScriptedAgent, frame_number, visible};
use super::rows::{LookText, RowStyle, ScreenRow, ScreenSize, wrap};
use crate::scenario::{AgentLook, QuestionKind};

#[derive(Debug, Default)]
pub(super) struct LivePanel {
    pub(super) rows: Vec<ScreenRow>,
    /// The cursor's row and column inside the panel; `None` hides it.
    pub(super) cursor: Option<(usize, usize)>,
    size: ScreenSize,
}

impl<H: AgentHost> ScriptedAgent<H> {
    pub(super) fn live(&self, now: Mono) -> LivePanel {
        let look = self.scenario.look;
        let mut panel = LivePanel { size: self.size, ..LivePanel::default() };
        if let Some(Activity { kind, since }) = &self.activity {
            match kind {
                ActivityKind::Ask(dialog) => {
                    panel.dialog(look, dialog);
                    return panel;
                }
                ActivityKind::Stream(text, rate) => {
                    panel.above(&look.streaming(visible(text, *rate, *since, now).to_owned()));
                }
                ActivityKind::Tool(running) => {
                    panel.above(running);
                    if look == AgentLook::Claude {
                        panel.row("  ⎿  Running…", RowStyle::Dim);
                    }
                }
                ActivityKind::Think | ActivityKind::Pause => {}
            }
            if let ActivityKind::Think | ActivityKind::Tool(_) = kind {
                let (turn, began) = self.turn.as_ref().map_or((0, *since), |turn| (turn.number, turn.since));
                panel.blank();
                let style = if look == AgentLook::Claude { RowStyle::Accent } else { RowStyle::Plain };
                panel.row(&look.spinner(frame_number(*since, now), turn, now.since(began)), style);
            }
        }
        if self.ready {
            panel.input_box(look, &self.draft.message().shown, self.turn.is_some());
        }
        if panel.rows.is_empty() {
            // The cursor needs a row.
            panel.blank();
        }
        panel
    }
}

impl LivePanel {
    fn above(&mut self, (text, first, rest, style): &LookText) {
        self.blank();
        self.text(text, first, rest, *style);
    }

    fn text(&mut self, text: &str, first: &str, rest: &str, style: RowStyle) {
        self.rows.extend(wrap(text, first, rest, style, self.size.columns));
    }

    /// Adds as much of a text as fits in one row.
    fn row(&mut self, text: &str, style: RowStyle) {
        self.rows.extend(wrap(text, "", "", style, self.size.columns).into_iter().take(1));
    }

    fn blank(&mut self) {
        self.rows.push(ScreenRow::default());
    }

    fn rule(&mut self) {
        self.rows.push(ScreenRow { text: "─".repeat(self.size.columns), style: RowStyle::Dim });
    }

    fn input_box(&mut self, look: AgentLook, draft: &str, busy: bool) {
        self.blank();
        let footer = match look {
            AgentLook::Claude => {
                self.rule();
                self.input("❯\u{a0}", draft, "");
                self.rule();
                match (draft.is_empty(), busy) {
                    // A draft hides the footer.
                    (false, _) => "",
                    (true, true) => "esc to interrupt",
                    (true, false) => "? for shortcuts",
                }
            }
            AgentLook::Codex => {
                self.blank();
                self.input("› ", draft, "Ask Codex to do anything");
                self.blank();
                self.row(&format!("  actor-1 medium · /{PROJECT}"), RowStyle::Dim);
                match (draft.is_empty(), busy) {
                    (true, _) => "? for shortcuts",
                    (false, true) => "tab to queue message",
                    (false, false) => "",
                }
            }
        };
        self.row(&format!("  {footer}"), RowStyle::Dim);
    }

    /// Adds an input box and puts the cursor after its text. Of a long draft, the end is visible.
    fn input(&mut self, prompt: &str, draft: &str, placeholder: &str) {
        if draft.is_empty() {
            self.cursor = Some((self.rows.len(), prompt.width()));
            return self.row(&format!("{prompt}{placeholder}"), RowStyle::Dim);
        }
        let width = self.size.columns;
        let rows = wrap(draft, "", "", RowStyle::Plain, width.saturating_sub(prompt.width()).max(1));
        let most = (self.size.rows / 2).max(1);
        for (at, row) in rows[rows.len().saturating_sub(most)..].iter().enumerate() {
            let prefix = if at == 0 { prompt } else { "  " };
            let prefix = if prefix.width() < width { prefix } else { "" };
            self.cursor = Some((self.rows.len(), prefix.width() + row.text.width()));
            self.rows.push(ScreenRow { text: format!("{prefix}{}", row.text), style: RowStyle::Plain });
        }
    }

    fn dialog(&mut self, look: AgentLook, dialog: &OpenDialog) {
        let ask = &dialog.ask;
        let texts = look.dialog(ask.kind);
        let text = ask.text.as_deref().unwrap_or(texts.text);
        let startup = ask.kind == QuestionKind::Startup;
        let (command, detail) = (ask.command.as_deref(), ask.detail.as_deref());
        // Questions of Claude Code begin in the first column, all its other dialogs in the second.
        let indent = match look {
            AgentLook::Claude if ask.kind == QuestionKind::Question => "",
            AgentLook::Claude => " ",
            AgentLook::Codex => "  ",
        };
        match look {
            AgentLook::Claude => {
                if !startup {
                    self.blank();
                }
                self.rule();
                self.text(texts.title, " ", " ", RowStyle::Bold);
                self.paragraph(false, command, "   ", RowStyle::Plain);
                self.paragraph(false, detail, "   ", RowStyle::Dim);
                self.paragraph(true, Some(text), indent, RowStyle::Plain);
                if ask.kind != QuestionKind::Permission {
                    self.blank();
                }
                self.options(dialog, &format!("{indent}❯ "), &format!("{indent}  "));
            }
            AgentLook::Codex => {
                self.paragraph(true, Some(texts.title), indent, RowStyle::Bold);
                self.paragraph(false, detail.filter(|_| startup), indent, RowStyle::Plain);
                self.paragraph(startup, Some(text), indent, RowStyle::Bold);
                self.paragraph(true, detail.filter(|_| !startup), indent, RowStyle::Plain);
                self.paragraph(true, command.map(|command| format!("$ {command}")).as_deref(), indent, RowStyle::Plain);
                self.blank();
                self.options(dialog, "› ", "  ");
            }
        }
        self.paragraph(true, Some(texts.footer), indent, RowStyle::Dim);
    }

    /// Adds a text if there is one, after a blank row if `apart`.
    fn paragraph(&mut self, apart: bool, text: Option<&str>, indent: &str, style: RowStyle) {
        let Some(text) = text else { return };
        if apart {
            self.blank();
        }
        self.text(text, indent, indent, style);
    }

    /// Adds options with a cursor. `mark` and `gap` have the same width.
    fn options(&mut self, dialog: &OpenDialog, mark: &str, gap: &str) {
        for (at, label) in dialog.options.iter().enumerate() {
            let number = if dialog.ask.numbered { format!("{}. ", at + 1) } else { String::new() };
            let selected = at == dialog.cursor;
            let first = format!("{}{number}", if selected { mark } else { gap });
            let rest = " ".repeat(first.width());
            self.text(label, &first, &rest, if selected { RowStyle::Accent } else { RowStyle::Plain });
        }
    }
}
