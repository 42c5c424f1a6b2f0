//! What is meant for one question must not reach another: an answer that was decided on before, and keys that somebody
//! typed at it while posse was answering it.

use posse_core::delivery::{NotAnswered, Unanswered};
use posse_core::status::WaitingKind;

use super::testing::{PATIENCE, Scene, heard, scene};
use super::*;

/// Who types at a window.
const TYPIST: WriterId = WriterId(9);
const QUIET: &str = "● Done.\n\n────────────────────\n❯ \n────────────────────\n  ? for shortcuts\n";

fn dialog(command: &str) -> String {
    format!(
        "────────────────────\n Bash command\n\n   {command}\n   Run it\n\n Do you want to proceed?\n ❯ 1. Yes\n   \
         2. Yes, and don't ask again for this command\n   3. No\n\n Esc to cancel · Tab to amend\n"
    )
}

/// The agent, its keeper and its hub.
struct Played {
    scene: Scene,
    printed: u64,
}

impl Played {
    /// An agent that asks this.
    fn asking(command: &str) -> Self {
        let mut played = Self { scene: scene(0), printed: 0 };
        played.print(&dialog(command));
        played
    }

    /// Draws a screen, in one frame.
    fn print(&mut self, screen: &str) {
        let bytes = format!("\x1b[?2026h\x1b[H\x1b[2J{}\x1b[?2026l", screen.replace('\n', "\r\n")).into_bytes();
        let (id, stream, offset) = (TerminalId::from_random(1), Stream::Main, self.printed);
        self.printed += bytes.len() as u64;
        self.scene.pump.send(Event::Keeper(KeeperEvent::Output { id, stream, offset, bytes }));
    }

    async fn asked(&self) -> Result<Asked, InputError> {
        tokio::time::timeout(PATIENCE, self.scene.pump.ask(Command::Question)).await.expect("it never hears").unwrap()
    }

    fn type_at_it(&self, sequence: u64, keys: &str) -> oneshot::Receiver<Result<(), InputError>> {
        let (reply, answer) = oneshot::channel();
        self.type_from(Origin::Request(reply), sequence, keys);
        answer
    }

    fn type_from(&self, origin: Origin, sequence: u64, keys: &str) {
        let bytes = keys.as_bytes().to_vec();
        let input = Input { writer: TYPIST, sequence, bytes, expect: None, may_answer: true, origin };
        self.scene.pump.send(Event::Command(Command::Input(input)));
    }

    /// The next keys that reach the terminal, and whose they are. They have arrived.
    async fn keys(&mut self) -> (WriterId, Vec<u8>) {
        loop {
            let request =
                tokio::time::timeout(PATIENCE, self.scene.keeper.recv()).await.expect("no key comes").unwrap();
            if let Request::Input { id, writer, sequence, bytes } = request {
                self.scene.pump.send(Event::Keeper(KeeperEvent::InputDone { id, writer, sequence }));
                return (writer, bytes);
            }
        }
    }

    /// Waits until the answer is to be written down, and says whether it could be.
    async fn note(&mut self, seq: Option<i64>) {
        loop {
            let message =
                tokio::time::timeout(PATIENCE, self.scene.hub.recv()).await.expect("nothing is noted").unwrap();
            if matches!(message, Message::Change(_, Change::Answering(_))) {
                return self.scene.pump.send(Event::AnswerNoted(seq));
            }
        }
    }

    /// Waits until an answer is over, and completes it.
    async fn over(&mut self) {
        loop {
            let message =
                tokio::time::timeout(PATIENCE, self.scene.hub.recv()).await.expect("it is never over").unwrap();
            if let Message::AnswerOver(_, then) = message {
                return then();
            }
        }
    }
}

#[tokio::test]
async fn keys_typed_at_a_question_that_is_answered_reach_no_other() {
    let cases: [(&str, &[String]); 3] = [
        ("another question", &[dialog("rm -r target")]),
        ("no question", &[QUIET.to_owned()]),
        ("the same question once more", &[QUIET.to_owned(), dialog("ls")]),
    ];
    for (what, then) in cases {
        let mut played = Played::asking("ls");
        let mut window = played.scene.pump.ask(|reply| Command::Watch { from: None, reply }).await.unwrap();
        let answered = played.scene.answer(None);
        let typed = played.type_at_it(1, "2");
        played.type_from(Origin::Watcher(window.watcher), 7, "2");
        played.note(Some(1)).await;
        let (writer, keys) = played.keys().await;
        assert!(writer != TYPIST && keys == b"1", "{what}: {keys:?}");
        let also_typed = played.type_at_it(2, "\r");
        then.iter().for_each(|screen| played.print(screen));
        played.over().await;
        assert_eq!(heard(answered).await, None, "{what}");
        assert_eq!(heard(typed).await, Some(InputError::MovedOn), "{what}");
        assert_eq!(heard(also_typed).await, Some(InputError::MovedOn), "{what}");
        let told = loop {
            match window.items.recv().await.unwrap() {
                Item::Output { .. } => {}
                told => break told,
            }
        };
        assert!(matches!(told, Item::InputRefused { sequence: 7, why: "moved_on" }), "{what}: {told:?}");
        // What is typed now is typed at what is there now.
        let typed = played.type_at_it(3, "x");
        assert_eq!(played.keys().await, (TYPIST, b"x".to_vec()), "{what}");
        assert_eq!(heard(typed).await, None, "{what}");
    }
}

#[tokio::test]
async fn keys_typed_before_a_question_was_there_do_not_reach_it() {
    let mut played = Played { scene: scene(0), printed: 0 };
    played.print(QUIET);
    let message = played.scene.message();
    let noted = Event::InputNoted { writer: WriterId(7), sequence: 1, written: true };
    played.scene.pump.send(noted);
    let typed = played.type_at_it(1, "\r");
    played.print(&dialog("ls"));
    assert!(matches!(heard(message).await, Some(InputError::NotDelivered(_))));
    assert_eq!(heard(typed).await, Some(InputError::MovedOn));
}

#[tokio::test]
async fn keys_typed_at_a_question_that_stays_are_only_held_back() {
    let mut played = Played::asking("ls");
    let answered = played.scene.answer(None);
    let typed = played.type_at_it(1, "3");
    played.note(None).await;
    assert_eq!(heard(answered).await, Some(InputError::NotNoted));
    assert_eq!(played.keys().await, (TYPIST, b"3".to_vec()));
    assert_eq!(heard(typed).await, None);
}

#[tokio::test]
async fn only_the_question_that_is_named_is_answered() {
    let mut played = Played::asking("ls");
    let asked = played.asked().await.unwrap();
    assert_eq!((asked.text.as_str(), asked.kind), ("Bash ls", Some(WaitingKind::Permission)));
    played.print(&dialog("rm -r target"));
    let other = played.asked().await.unwrap();
    assert_eq!(other.text, "Bash rm -r target");
    assert_ne!(other.id, asked.id);
    let refused = heard(played.scene.answer(Some(&asked.id))).await;
    assert_eq!(refused, Some(InputError::Question(NotAnswered::Changed)));

    // It changes when it is about to be answered.
    let answered = played.scene.answer(Some(&other.id));
    played.print(&dialog("ls"));
    played.note(Some(1)).await;
    played.over().await;
    let changed = Unanswered { why: NotAnswered::Changed, presses: 0 };
    assert_eq!(heard(answered).await, Some(InputError::NotAnswered(changed)));

    played.print(QUIET);
    let refused = heard(played.scene.answer(Some(&asked.id))).await;
    assert_eq!(refused, Some(InputError::Question(NotAnswered::Vanished)));
    assert_eq!(played.asked().await, Err(InputError::NoQuestion));
    // And no key was pressed in all this.
    let typed = played.type_at_it(1, "x");
    assert_eq!(played.keys().await, (TYPIST, b"x".to_vec()));
    assert_eq!(heard(typed).await, None);
}

#[tokio::test]
async fn a_question_that_is_only_text_has_a_name_too() {
    let mut played = Played { scene: scene(0), printed: 0 };
    played.print("ls\nWould you like to run it?");
    let asked = played.asked().await.unwrap();
    assert!(asked.text.starts_with("Would you like to run"), "{asked:?}");
    played.print("rm -r target\nWould you like to run it?");
    let refused = heard(played.scene.answer(Some(&asked.id))).await;
    assert_eq!(refused, Some(InputError::Question(NotAnswered::Changed)));
    let asked = played.asked().await.unwrap();
    let _answered = played.scene.answer(Some(&asked.id));
    played.note(Some(1)).await;
    assert_eq!(played.keys().await.1, b"y");
}
