//! A pump with an agent, but without a keeper, a hub and a store: the tests play all three.

use posse_agents::launch::Mode;
use posse_agents::start::Confirmed;
use posse_core::audit::Who;
use posse_core::delivery::Wish;
use posse_files::providers::Providers;
use posse_term::wire::StampedRequest;

use super::*;
use crate::disk::DISK;
use crate::record::Record;
use crate::recording;
use crate::store::Batch;

pub(super) const PATIENCE: Duration = Duration::from_secs(300);

pub(super) struct Scene {
    pub(super) pump: PumpHandle,
    pub(super) directory: tempfile::TempDir,
    pub(super) hub: mpsc::UnboundedReceiver<HubEvent>,
    pub(super) store: mpsc::UnboundedReceiver<Batch>,
    pub(super) keeper: mpsc::UnboundedReceiver<StampedRequest>,
    pub(super) recorder: recording::Thread,
    /// The length of the output so far.
    printed: u64,
}

pub(crate) fn played() -> (PumpHandle, mpsc::UnboundedReceiver<PumpEvent>) {
    let (events, queue) = mpsc::unbounded_channel();
    (PumpHandle { events }, queue)
}

/// Returns a pump with an agent, whose keeper still has to send `behind` bytes of output.
pub(super) fn scene(behind: u64) -> Scene {
    scene_of(behind, false)
}

/// Like `scene`, for a program that has ended when the pump starts if `over` is true.
pub(super) fn scene_of(behind: u64, over: bool) -> Scene {
    let directory = tempfile::tempdir().unwrap();
    let (hub, messages) = mpsc::unbounded_channel();
    let (store, batches) = crate::store::testing::played();
    let (link, requests) = KeeperLink::unconnected();
    let (recorder, thread) = recording::start(directory.path().to_owned(), false, |_| ());
    let provider = Providers::new(directory.path().to_owned()).load(DISK, "claude_code").unwrap();
    let settings = PumpSettings {
        link: Some(link),
        last_screen: directory.path().join("screen"),
        events_file: directory.path().join("events"),
        files: crate::watched_files::WatchedFiles::start(),
        hub,
        store,
        recorder,
    };
    let confirmed = Some(Confirmed { trusted: true, mode: Mode::Ask });
    let status = Life::starting(crate::now()).status().clone();
    let record = Record { confirmed, status, pid: None, ..Record::sample(1) };
    let beginning = PumpBeginning::Live { ring: 1 << 20, from: 0, caught_up_at: behind, over };
    let begin = PumpStart { record, provider: Some(provider), known_inputs: Vec::new(), beginning };
    let pump = start(begin, settings);
    Scene { pump, directory, hub: messages, store: batches, keeper: requests, recorder: thread, printed: 0 }
}

impl Scene {
    pub(super) fn output(&mut self, bytes: Vec<u8>) {
        let (id, offset) = (TerminalId::from_random(1), self.printed);
        self.printed += bytes.len() as u64;
        self.pump.send(PumpEvent::Keeper(KeeperEvent::Output { id, offset, bytes }));
    }

    pub(super) fn message(&self) -> oneshot::Receiver<Result<(), InputError>> {
        let (reply, answer) = oneshot::channel();
        let order = Order { text: "go on".into(), ..Order::default() };
        let message = PumpCommand::Message { order, answerer: person(), writer: WriterId(7), sequence: 1, reply };
        self.pump.send(PumpEvent::Command(message));
        answer
    }

    /// Ends the pump, and the thread of the recorder.
    pub(super) fn finish(self) -> tempfile::TempDir {
        drop((self.pump, self.hub, self.store, self.keeper));
        self.recorder.finish();
        self.directory
    }

    pub(super) fn answer(&self, question: Option<&str>) -> oneshot::Receiver<Result<Option<i64>, InputError>> {
        let (reply, answer) = oneshot::channel();
        let question = question.map(str::to_owned);
        let command = PumpCommand::Answer { wish: Wish::Accept, question, words: None, answerer: person(), reply };
        self.pump.send(PumpEvent::Command(command));
        answer
    }
}

pub(super) fn person() -> Answerer {
    Answerer::allowed(Who::person())
}

pub(super) async fn heard<T>(answer: oneshot::Receiver<Result<T, InputError>>) -> Option<InputError> {
    tokio::time::timeout(PATIENCE, answer).await.expect("it never hears").unwrap().err()
}
