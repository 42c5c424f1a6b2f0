//! Input: exactly these bytes, once.

use std::os::unix::ffi::OsStrExt;

use super::*;
use crate::tmux::survey::Survey;

/// Up to here bytes are sent as words of a command. tmux takes a time that grows with the square of their number
/// (1 ms for 256, 240 ms for 4096); longer ones go through a buffer.
const SHORT: usize = 256;

/// An input on its way through tmux.
#[derive(Debug)]
pub(super) struct Sent {
    id: TerminalId,
    writer: WriterId,
    sequence: u64,
    bytes: Vec<u8>,
    /// The writer's highest number before this one.
    before: u64,
    /// The number of its file and buffer.
    buffer: Option<u64>,
    /// Repeats that came meanwhile, told with it.
    repeats: Vec<(WriterId, u64)>,
}

impl Machine {
    pub(super) fn input(&mut self, id: TerminalId, writer: WriterId, sequence: u64, bytes: Vec<u8>) {
        let why = match self.terminals.get(&id) {
            None => Some(InputRefusal::NoSuchTerminal),
            Some(terminal) if terminal.life != Life::Running => Some(InputRefusal::NotReading),
            Some(_) if bytes.len() > wire::MAX_INPUT => Some(InputRefusal::Full),
            Some(_) => None,
        };
        if let Some(why) = why {
            return self.tell(Event::InputRefused { id, writer, sequence, why });
        }
        let Some(terminal) = self.terminals.get_mut(&id) else { return };
        let before = terminal.applied.highest(writer);
        if sequence <= before || bytes.is_empty() {
            // Behind all that is on its way to this terminal.
            let last = self.pending.iter_mut().rev().find_map(|pending| match &mut pending.purpose {
                Purpose::Input(sent) if sent.id == id => Some(sent),
                _ => None,
            });
            return match last {
                Some(sent) => sent.repeats.push((writer, sequence)),
                None => self.tell(Event::InputDone { id, writer, sequence }),
            };
        }
        self.transmit(Sent { id, writer, sequence, bytes, before, buffer: None, repeats: Vec::new() });
    }

    fn transmit(&mut self, mut sent: Sent) {
        let Some(terminal) = self.terminals.get_mut(&sent.id) else { return };
        let Some(place) = terminal.place else { return self.refuse(&sent, InputRefusal::NotReading) };
        let noted_before = terminal.applied.to_text();
        terminal.applied.note(sent.writer, sent.sequence);
        let noted = terminal.applied.to_text();
        let pane = place.pane;
        // Somebody may be scrolling: their keys go to that mode, ours are for the program.
        let leave = Line::new("copy-mode -q -t").pane(pane);
        let line = if sent.bytes.len() <= SHORT {
            leave.then("send-keys -t").pane(pane).words("-H").hexadecimal(&sent.bytes)
        } else {
            self.inputs += 1;
            sent.buffer = Some(self.inputs);
            self.effects.push(Effect::SaveInput(self.inputs, sent.bytes.clone()));
            let name = self.buffer_name(self.inputs);
            let file = self.config.notes.input_path(self.inputs);
            let load = Line::new("load-buffer -b").text(&name).literal(file.as_os_str().as_bytes());
            let paste = load.then("copy-mode -q -t").pane(pane);
            let paste = paste.then(if self.paste_raw { "paste-buffer -d -r -S -b" } else { "paste-buffer -d -r -b" });
            paste.text(name).words("-t").pane(pane)
        };
        // Whoever switched off a pane's input is obeyed, and then nothing is noted.
        let line = line
            .then("set-option -p -F -t")
            .pane(pane)
            .words(survey::INPUTS_OPTION)
            .text(format!("#{{?pane_input_off,{},{}}}", commas(&noted_before), commas(&noted)))
            .then("display-message -p -t")
            .pane(pane)
            .text("#{pane_input_off}");
        self.send(line, Purpose::Input(sent));
    }

    fn buffer_name(&self, number: u64) -> String {
        format!("posse_{}_{number}", self.config.tag)
    }

    /// What an earlier daemon did not come to paste: somebody's words.
    pub(super) fn clear_buffers(&mut self, names: &Reply) {
        let ours = format!("posse_{}_", self.config.tag);
        for name in names.lines.iter().filter(|name| !names.failed && name.starts_with(ours.as_bytes())) {
            self.send(Line::new("delete-buffer -b").text(name), Purpose::Quiet);
        }
    }

    pub(super) fn input_answered(&mut self, sent: &Sent, replies: &[Reply]) {
        let failed = replies.iter().find(|reply| reply.failed).map(Reply::text);
        if let Some(number) = sent.buffer {
            self.effects.push(Effect::DropInput(number));
            if failed.is_some() {
                let line = Line::new("delete-buffer -b").text(self.buffer_name(number));
                // Mostly there is none.
                self.send(line, Purpose::Quiet);
            }
        }
        let off = replies.last().is_some_and(|reply| reply.lines.first().is_some_and(|line| line == b"1"));
        match failed {
            None if !off => self.accept(sent),
            None => self.refuse(sent, InputRefusal::Off),
            Some(why) if why.contains("can't find") => self.refuse(sent, InputRefusal::NotReading),
            // Our file could not be read, or the buffer is gone.
            Some(_) => self.refuse(sent, InputRefusal::Failed),
        }
    }

    fn accept(&mut self, sent: &Sent) {
        let id = sent.id;
        self.tell(Event::InputDone { id, writer: sent.writer, sequence: sent.sequence });
        for (writer, sequence) in &sent.repeats {
            self.tell(Event::InputDone { id, writer: *writer, sequence: *sequence });
        }
    }

    fn refuse(&mut self, sent: &Sent, why: InputRefusal) {
        let id = sent.id;
        if let Some(terminal) = self.terminals.get_mut(&id)
            && terminal.applied.highest(sent.writer) == sent.sequence
        {
            terminal.applied.note(sent.writer, sent.before);
        }
        for (writer, sequence) in std::iter::once((sent.writer, sent.sequence)).chain(sent.repeats.iter().copied()) {
            self.tell(Event::InputRefused { id, writer, sequence, why });
        }
    }

    /// After a lost connection: what tmux noted has arrived, the rest has not.
    pub(super) fn confirm_inputs(&mut self, survey: &Survey) {
        for mut sent in std::mem::take(&mut self.unconfirmed) {
            if let Some(number) = sent.buffer.take() {
                self.effects.push(Effect::DropInput(number));
            }
            let place = self.terminals.get(&sent.id).and_then(|terminal| terminal.place);
            let pane = place.and_then(|place| survey.panes.get(&place.pane));
            match pane {
                // Nobody waits for an answer that comes so late, and it is not noted.
                _ if sent.writer == WriterId::RESPONDER => self.accept(&sent),
                Some(pane) if pane.applied.highest(sent.writer) >= sent.sequence => self.accept(&sent),
                Some(_) => self.transmit(sent),
                None => self.refuse(&sent, InputRefusal::NotReading),
            }
        }
    }

    /// There is nowhere to send them any more.
    pub(super) fn refuse_all(&mut self) {
        let pending = std::mem::take(&mut self.pending).into_iter().filter_map(|pending| match pending.purpose {
            Purpose::Input(sent) => Some(sent),
            _ => None,
        });
        let all: Vec<Sent> = std::mem::take(&mut self.unconfirmed).into_iter().chain(pending).collect();
        for sent in all {
            if let Some(number) = sent.buffer {
                self.effects.push(Effect::DropInput(number));
            }
            self.refuse(&sent, InputRefusal::NotReading);
        }
    }
}

/// Inside a condition of a format commas part its cases.
fn commas(text: &str) -> String {
    text.replace(',', "#,")
}
