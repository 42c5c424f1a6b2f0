//! The end of a terminal: saves its last screen and answers all waiting callers.

use super::*;

impl Pump {
    pub(super) async fn ended(&mut self, exit: Exit) {
        if self.exit.is_some() {
            return;
        }
        self.exit = Some(exit);
        self.event_watch = None;
        self.session_file = None;
        self.look();
        if self.tape.is_behind() {
            self.record_picture();
        }
        self.tape.end();
        // From here on input fails with an error.
        let link = self.link.take();
        self.drive(Some(Event::Gone));
        self.next_job();
        self.last_wanted.iter_mut().for_each(|(_, until)| *until = Instant::now());
        self.tell_last_answer();
        let status = self.life.handle(&LifeEvent::Exited(exit), crate::mono(), crate::now()).cloned();
        let why = self.no_reader();
        for ((_, sequence), origins) in std::mem::take(&mut self.inputs) {
            for origin in origins {
                self.answer(sequence, origin, Err(why));
            }
        }
        self.run_waiting();
        let screen_saved = self.save_last_screen().await;
        self.watchers.tell(&Item::Message(StreamMessage::Exited { exit }));
        // The keeper had the only copy of the screen until the file was written, and still has that of the exit.
        self.tell_hub(PumpReport::Ended {
            exit,
            status: status.map(Box::new),
            screen_saved,
            keeper_knows: link.is_some(),
        });
        self.observed.send_replace(self.observe());
    }

    async fn save_last_screen(&self) -> bool {
        let (path, blob) = (self.last_screen.clone(), self.emulator.checkpoint());
        let saved = disk::at(path, move |disk, path| disk.write_private(path, &blob)).await;
        if let Err(error) = &saved {
            tracing::warn!(terminal = %self.id, "the last screen could not be saved: {error}");
        }
        saved.is_ok()
    }
}
