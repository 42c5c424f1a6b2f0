//! Whoever wants something of an agent that has ended hears so, from whichever side of the end the wish comes. The hub here
//! says nothing: it does not know a pump any more whose end it has heard of.

use posse_agents::launch::Mode;
use posse_agents::start::Confirmed;
use posse_core::audit::Who;
use posse_core::delivery::Wish;

use super::*;
use crate::providers::Providers;
use crate::recording;

const PATIENCE: Duration = Duration::from_secs(30);

struct Scene {
    pump: Handle,
    directory: tempfile::TempDir,
    hub: mpsc::UnboundedReceiver<Message>,
    keeper: mpsc::UnboundedReceiver<Request>,
    recorder: recording::Thread,
}

/// A pump with an agent whose keeper has yet to send so much of its output.
fn scene(behind: u64) -> Scene {
    let directory = tempfile::tempdir().unwrap();
    let (hub, messages) = mpsc::unbounded_channel();
    let (link, requests) = mpsc::unbounded_channel();
    let (recorder, thread) = recording::start(directory.path().to_owned(), false, |_| ());
    let provider = Providers::new(directory.path().to_owned()).load("claude_code").unwrap();
    let settings = Settings {
        id: TerminalId::from_random(1),
        backend: Backend::Embedded,
        known_inputs: Vec::new(),
        size: Size::DEFAULT,
        status: Life::starting(crate::now()).status().clone(),
        history: HistoryLimit::default(),
        last_screen: directory.path().join("screen"),
        agent: Some((provider, None, Confirmed { trusted: true, mode: Mode::Ask })),
        hub,
        recorder,
    };
    let beginning = Beginning::Live { link: Link::new(link), ring: 1 << 20, from: 0, caught_up_at: behind };
    Scene { pump: start(settings, beginning), directory, hub: messages, keeper: requests, recorder: thread }
}

impl Scene {
    fn message(&self) -> oneshot::Receiver<Result<(), InputError>> {
        let (reply, answer) = oneshot::channel();
        let order = Order { text: "go on".into(), ..Order::default() };
        let message = Command::Message { order, writer: WriterId(7), sequence: 1, reply };
        self.pump.send(Event::Command(message));
        answer
    }

    fn answer(&self) -> oneshot::Receiver<Result<Option<i64>, InputError>> {
        let (reply, answer) = oneshot::channel();
        let command = Command::Answer { wish: Wish::Accept, question: None, who: Who::person(), reply };
        self.pump.send(Event::Command(command));
        answer
    }
}

async fn heard<T>(answer: oneshot::Receiver<Result<T, InputError>>) -> Option<InputError> {
    tokio::time::timeout(PATIENCE, answer).await.expect("it never hears").unwrap().err()
}

#[tokio::test]
async fn asked_on_either_side_of_the_end() {
    // An agent that is caught up with answers at once that it asks nothing; what one that is not gets has to wait.
    for (behind, asked_before) in [(0, InputError::NoQuestion), (100, InputError::Lost)] {
        let scene = scene(behind);
        let before = (scene.message(), scene.answer());
        scene.pump.send(Event::KeeperLost);
        let after = (scene.message(), scene.answer());
        assert_eq!(heard(before.0).await, Some(InputError::Lost), "{behind} bytes behind");
        assert_eq!(heard(before.1).await, Some(asked_before), "{behind} bytes behind");
        assert_eq!(heard(after.0).await, Some(InputError::Lost), "{behind} bytes behind");
        assert_eq!(heard(after.1).await, Some(InputError::Lost), "{behind} bytes behind");
        drop((scene.pump, scene.hub, scene.keeper));
        scene.recorder.finish();
        assert!(scene.directory.path().join("screen").exists(), "the last screen is kept");
    }
}

#[tokio::test]
async fn it_is_not_alive_before_anybody_has_heard_so() {
    let scene = scene(0);
    assert_eq!(scene.pump.ask(Command::Alive).await, Some(true));
    scene.pump.send(Event::KeeperLost);
    assert_eq!(scene.pump.ask(Command::Alive).await, Some(false));
    drop((scene.pump, scene.hub, scene.keeper));
    scene.recorder.finish();
}
