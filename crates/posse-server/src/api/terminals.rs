//! Terminals: make, look at, type into, end.

use std::path::Path as StdPath;

use posse_api::{OutputMode, OutputQuery};
use posse_core::audit::Who;
use posse_core::delivery::{Failure, Left, Order, Wish};
use posse_core::ids::WriterId;
use posse_core::screen::{Screen, Size};
use posse_term::lineage::ProcessStat;
use serde::de::IgnoredAny;
use tokio::sync::broadcast::error::RecvError;

use super::*;
use crate::pump::{self, Answerer, InputError, InputOrigin, PumpHandle, TextPart};

type StatusEvents = broadcast::Receiver<Arc<LogEvent>>;

const TAIL_LINES: usize = 5;
/// The time for which a request waits for the keeper, to which a new daemon may not be connected yet.
const FINDING: Duration = Duration::from_secs(20);
/// The time in which a terminal must have processed its output. The longest ring takes a second or two.
const CATCHING_UP: Duration = Duration::from_secs(8);
/// The time in which an agent must be ready for the reason of a refusal.
const REASON_PATIENCE: Duration = Duration::from_secs(60);
/// The interval at which the reason is sent again although the status did not change.
const REASON_RETRY: Duration = Duration::from_secs(2);
/// The longest answer in words: it must fit on a screen to be seen there.
const MAX_WORDS: usize = 1000;

/// List the terminals
#[utoipa::path(get, path = "/terminals", tag = "terminals",
    responses((status = 200, description = "All terminals, oldest first", body = Vec<Terminal>)))]
pub(super) async fn list(State(app): State<App>) -> Answer<Vec<Terminal>> {
    Ok(Json(app.ask(HubCommand::List).await?.into_iter().map(Terminal::from).collect()))
}

/// Show a terminal
#[utoipa::path(get, path = "/terminals/{id}", tag = "terminals", params(("id" = String, Path)),
    responses((status = 200, description = "The terminal", body = Terminal)))]
pub(super) async fn show(State(app): State<App>, Id(id): Id<TerminalId>) -> Answer<Terminal> {
    Ok(Json(snapshot(&app, id).await?.into()))
}

/// Start a command in a terminal
#[utoipa::path(post, path = "/terminals", tag = "terminals", request_body = posse_api::Create,
    responses((status = 201, description = "The new terminal; its program runs", body = Terminal)))]
pub(super) async fn create(
    State(app): State<App>,
    Params(create): Params<posse_api::Create>,
) -> Result<(StatusCode, Json<Terminal>), ApiError> {
    let (choice, session) = match &create.session_name {
        Some(name) => (SessionChoice::Any, Name::session(name)?),
        None => (SessionChoice::New, random_session()),
    };
    Ok((StatusCode::CREATED, Json(agents::start(&app, create, choice, session).await?)))
}

pub(super) fn random_session() -> Name {
    Name::random_session(crate::random() as u32)
}

/// A directory to start in, resolved, so that what is shown and stored is where the program really runs.
pub(crate) async fn directory(text: &str) -> Result<PathBuf, ApiError> {
    let path = PathBuf::from(text);
    if !path.is_absolute() {
        return Err(ApiError::invalid(format!("the working directory {text:?} is not an absolute path")));
    }
    disk::at(&path, Disk::canonicalize).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => ApiError::invalid(format!("the directory {} does not exist", path.display())),
        _ => ApiError::invalid(format!("the directory {} cannot be used: {error}", path.display())),
    })
}

/// The pump of a terminal, for what only it knows.
pub(super) async fn find(app: &App, id: TerminalId) -> Result<PumpHandle, ApiError> {
    let asked = app.ask(|reply| HubCommand::Find(id, reply));
    let found = tokio::time::timeout(FINDING, asked).await.map_err(|_| out_of_reach(id))?;
    let pump = found?.ok_or_else(|| ApiError::no_terminal(id))?;
    // One that catches up with a keeper that was stopped meanwhile never answers.
    let caught_up = pump.ask(pump::PumpCommand::Alive);
    tokio::time::timeout(CATCHING_UP, caught_up).await.map_err(|_| out_of_reach(id))?;
    Ok(pump)
}

fn out_of_reach(id: TerminalId) -> ApiError {
    let detail = format!("where terminal {id} lives cannot be reached for now");
    ApiError::new(ProblemKind::OutOfReach, detail).with_hint("`posse doctor` says what is wrong")
}

fn too_much_input(bytes: usize) -> ApiError {
    let detail = format!("the input has {bytes} bytes; at most {MAX_INPUT} are taken at once");
    ApiError::new(ProblemKind::TooMuchInput, detail).with_hint("put it into a file and send its path")
}

async fn ask<T>(
    app: &App,
    id: TerminalId,
    command: impl FnOnce(oneshot::Sender<T>) -> pump::PumpCommand,
) -> Result<T, ApiError> {
    find(app, id).await?.ask(command).await.ok_or_else(|| ApiError::no_terminal(id))
}

async fn snapshot(app: &App, id: TerminalId) -> Result<TerminalSnapshot, ApiError> {
    app.ask(|reply| HubCommand::Show(id, reply)).await?.ok_or_else(|| ApiError::no_terminal(id))
}

/// What a terminal shows now
#[utoipa::path(get, path = "/terminals/{id}/screen", tag = "terminals", params(("id" = String, Path)),
    responses((status = 200, description = "The screen of the terminal", body = Screen)))]
pub(super) async fn screen(State(app): State<App>, Id(id): Id<TerminalId>) -> Answer<Screen> {
    ask(&app, id, pump::PumpCommand::Screen).await.map(Json)
}

/// What a terminal has printed, as text
#[utoipa::path(get, path = "/terminals/{id}/output", tag = "terminals", params(("id" = String, Path), OutputQuery),
    responses((status = 200, description = "The requested text", body = posse_api::Output)))]
pub(super) async fn output(
    State(app): State<App>,
    Id(id): Id<TerminalId>,
    Params(query): Params<OutputQuery>,
) -> Answer<posse_api::Output> {
    let text = match query.mode {
        OutputMode::Full => TextPart::Full,
        OutputMode::Last => TextPart::Last,
        OutputMode::Tail => TextPart::Tail(query.lines.map_or(TAIL_LINES, |lines| lines as usize)),
    };
    let text = ask(&app, id, |reply| pump::PumpCommand::Text(text, reply)).await?;
    let nothing = || {
        ApiError::new(ProblemKind::NoMessage, "nothing was printed since the last input")
            .with_hint("`full` output has everything")
    };
    Ok(Json(posse_api::Output { output: text.ok_or_else(nothing)?, mode: query.mode }))
}

/// Where the program in the foreground is
#[utoipa::path(get, path = "/terminals/{id}/working-directory", tag = "terminals", params(("id" = String, Path)),
    responses((status = 200, description = "The directory of the foreground process", body = posse_api::WorkingDirectory)))]
pub(super) async fn working_directory(
    State(app): State<App>,
    Id(id): Id<TerminalId>,
) -> Answer<posse_api::WorkingDirectory> {
    let view = snapshot(&app, id).await?;
    let pid = view.record.pid.filter(|_| view.record.exit.is_none());
    let working_directory = match pid {
        Some(pid) => disk::run(move |disk| foreground_directory(disk, pid as i32)).await,
        None => None,
    };
    Ok(Json(posse_api::WorkingDirectory { working_directory }))
}

/// The directory of the foreground group's leader, which is what a person would call the terminal's.
fn foreground_directory(disk: &Disk, pid: i32) -> Option<String> {
    let of =
        |pid: i32| disk.read_link(StdPath::new(&format!("/proc/{pid}/cwd"))).ok()?.into_os_string().into_string().ok();
    ProcessStat::read(pid)?.foreground.and_then(of).or_else(|| of(pid))
}

/// Type into a terminal
#[utoipa::path(post, path = "/terminals/{id}/input", tag = "terminals", params(("id" = String, Path), posse_api::Input), request_body = Option<posse_api::Input>,
    responses((status = 200, description = "The input has reached the terminal", body = Success)))]
pub(super) async fn input(
    State(app): State<App>,
    Id(id): Id<TerminalId>,
    requester: Requester,
    Params(body): Params<posse_api::Input>,
) -> Answer<Success> {
    let (writer, sequence) = match (body.writer, body.sequence) {
        (Some(0), _) => return Err(ApiError::invalid("writer 0 is the daemon itself")),
        (Some(writer), Some(sequence)) if sequence > 0 => (WriterId(writer), sequence),
        (None, None) => (WriterId(crate::random().max(1)), 1),
        _ => return Err(ApiError::invalid("writer and sequence go together, and sequences start at 1")),
    };
    let pump = find(&app, id).await?;
    let (enter, raw) = (body.enter.unwrap_or(true), body.raw.unwrap_or(false));
    let _ = app.hub.send(crate::hub::HubEvent::Command(HubCommand::Touch(id)));
    if !raw && enter && snapshot(&app, id).await?.record.confirmed.is_some() {
        let order = Order { text: body.message, expect: body.expect_status, epoch: body.epoch };
        let answerer = requester.answerer(&app, id).await;
        let done = pump.ask(|reply| pump::PumpCommand::Message { order, answerer, writer, sequence, reply });
        done.await.ok_or_else(|| ApiError::no_terminal(id))??;
        return Ok(Json(Success { success: true }));
    }
    let bytes = if raw {
        let mut bytes = body.message.into_bytes();
        bytes.extend(enter.then_some(b'\r'));
        bytes
    } else {
        let bracketed = pump.ask(pump::PumpCommand::BracketedPaste).await.ok_or_else(|| ApiError::no_terminal(id))?;
        paste(&body.message, bracketed, enter)
    };
    if bytes.len() > MAX_INPUT {
        return Err(too_much_input(bytes.len()));
    }
    let may_answer = requester.may_type(&app).await;
    let done = pump.ask(|reply| {
        let (expect, origin) = (body.expect_status, InputOrigin::Request(reply));
        pump::PumpCommand::Input(pump::PumpInput { writer, sequence, bytes, expect, may_answer, origin })
    });
    done.await.ok_or_else(|| ApiError::no_terminal(id))??;
    Ok(Json(Success { success: true }))
}

/// The question an agent asks
///
/// If one is announced and not drawn yet, when it is. While one is being answered, the next one.
#[utoipa::path(get, path = "/terminals/{id}/question", tag = "agents", params(("id" = String, Path)),
    responses((status = 200, description = "The open question", body = posse_api::Question)))]
pub(super) async fn question(State(app): State<App>, Id(id): Id<TerminalId>) -> Answer<posse_api::Question> {
    Ok(Json(ask(&app, id, pump::PumpCommand::Question).await??))
}

/// Accept the question an agent asks
///
/// Only with the option that allows this once and nothing else, unless another one is named.
#[utoipa::path(post, path = "/terminals/{id}/approve", tag = "agents", params(("id" = String, Path), posse_api::AnswerIn), request_body = Option<posse_api::AnswerIn>,
    responses((status = 200, description = "The question is answered and gone from the screen", body = posse_api::Answered)))]
pub(super) async fn approve(
    State(app): State<App>,
    Id(id): Id<TerminalId>,
    requester: Requester,
    Params(body): Params<posse_api::AnswerIn>,
) -> Answer<posse_api::Answered> {
    let posse_api::AnswerIn { dialog, option: number, text: None, reason: None } = body else {
        return Err(ApiError::invalid("words answer a question, and a reason goes with a refusal"));
    };
    let wish = number.map_or(Ok(Wish::Accept), option)?;
    answer(&app, id, requester, wish, dialog, [None, None]).await.map(Json)
}

/// Answer the question an agent asks
///
/// With one of its options, or in words where one of the options takes some.
#[utoipa::path(post, path = "/terminals/{id}/answer", tag = "agents", params(("id" = String, Path), posse_api::AnswerIn), request_body = Option<posse_api::AnswerIn>,
    responses((status = 200, description = "The question is answered and gone from the screen", body = posse_api::Answered)))]
pub(super) async fn answer_question(
    State(app): State<App>,
    Id(id): Id<TerminalId>,
    requester: Requester,
    Params(body): Params<posse_api::AnswerIn>,
) -> Answer<posse_api::Answered> {
    let (wish, text) = match (body.option, body.text, body.reason) {
        (Some(number), None, None) => (option(number)?, None),
        (None, Some(text), None) if text.chars().any(|c| !c.is_whitespace() && !c.is_control()) => {
            if text.len() > MAX_WORDS {
                return Err(too_much_input(text.len()));
            }
            (Wish::Accept, Some(text))
        }
        _ => return Err(ApiError::invalid("an answer is an option or a text")),
    };
    answer(&app, id, requester, wish, body.dialog, [text, None]).await.map(Json)
}

fn option(number: u32) -> Result<Wish, ApiError> {
    match number {
        0 => Err(ApiError::invalid("options are counted from 1")),
        number => Ok(Wish::Option(number as usize - 1)),
    }
}

/// Refuse the question an agent asks
#[utoipa::path(post, path = "/terminals/{id}/deny", tag = "agents", params(("id" = String, Path), posse_api::AnswerIn), request_body = Option<posse_api::AnswerIn>,
    responses((status = 200, description = "The question is refused and gone from the screen", body = posse_api::Answered)))]
pub(super) async fn deny(
    State(app): State<App>,
    Id(id): Id<TerminalId>,
    requester: Requester,
    Params(body): Params<posse_api::AnswerIn>,
) -> Answer<posse_api::Answered> {
    if body.option.is_some() || body.text.is_some() {
        return Err(ApiError::invalid("an option is chosen by approving, or by answering"));
    }
    let mut events = app.events.subscribe();
    let reason = body.reason.filter(|reason| !reason.trim().is_empty());
    let answered = answer(&app, id, requester, Wish::Deny, body.dialog, [None, reason.clone()]).await?;
    if let Some(reason) = reason {
        let told = tell_reason(&app, id, &reason, &mut events);
        tokio::time::timeout(REASON_PATIENCE, told).await.map_err(|_| InputError::NotTold)??;
    }
    Ok(Json(answered))
}

/// Sends the reason of a refusal as a prompt, as soon as the agent takes one. A refusal ends the turn of most agents;
/// others continue, or ask something else first.
async fn tell_reason(app: &App, id: TerminalId, reason: &str, events: &mut StatusEvents) -> Result<(), ApiError> {
    let writer = WriterId(crate::random().max(1));
    for sequence in 1.. {
        let pump = find(app, id).await?;
        let order = Order { text: reason.to_owned(), ..Order::default() };
        // A reason is a prompt. It must not become the answer to the next question.
        let answerer = Answerer::forbidden(Who::person());
        let sent = pump.ask(|reply| pump::PumpCommand::Message { order, answerer, writer, sequence, reply });
        match sent.await.ok_or_else(|| ApiError::no_terminal(id))? {
            Ok(()) => return Ok(()),
            Err(InputError::NotDelivered(Failure { left: Left::Nothing, .. }) | InputError::Question(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let _ = tokio::time::timeout(REASON_RETRY, status_change(id, events)).await;
    }
    Ok(())
}

/// Waits until the status of a terminal is another one, or may be.
async fn status_change(id: TerminalId, events: &mut StatusEvents) {
    loop {
        match events.recv().await {
            Ok(event) if event.terminal != Some(id) || !matches!(event.body, EventBody::StatusChanged(_)) => {}
            Err(RecvError::Closed) => std::future::pending().await,
            Ok(_) | Err(RecvError::Lagged(_)) => return,
        }
    }
}

/// Answers the question with this identity, perhaps in words or with a reason.
async fn answer(
    app: &App,
    id: TerminalId,
    requester: Requester,
    wish: Wish,
    question: String,
    [words, reason]: [Option<String>; 2],
) -> Result<posse_api::Answered, ApiError> {
    let pump = find(app, id).await?;
    let answerer = Answerer { reason, ..requester.answerer(app, id).await };
    let question = Some(question);
    let done = pump.ask(|reply| pump::PumpCommand::Answer { wish, question, words, answerer, reply });
    let audit = done.await.ok_or_else(|| ApiError::no_terminal(id))??;
    Ok(posse_api::Answered { success: true, audit })
}

/// How an agent's screen is read now: which rule holds, on which text, and what lost
#[utoipa::path(get, path = "/terminals/{id}/explain", tag = "agents", params(("id" = String, Path)),
    responses((status = 200, description = "The rule that matched, the matched text, and the rules that did not", body = posse_api::ExplanationView)))]
pub(super) async fn explain(State(app): State<App>, Id(id): Id<TerminalId>) -> Answer<posse_api::ExplanationView> {
    let (explanation, said) = ask(&app, id, pump::PumpCommand::Explain).await?.ok_or(InputError::NoAgent)?;
    let signals = said
        .into_iter()
        .map(|(source, claim)| posse_api::SignalView { source: source.to_string(), said: claim.to_string() })
        .collect();
    let view = snapshot(&app, id).await?;
    let status = posse_api::StatusView::from(&view.record.status);
    Ok(Json(posse_api::ExplanationView { status, title: view.title, signals, explanation }))
}

/// Takes the report of an agent's own hook. Only on the private socket, and only from a process of that terminal.
pub(super) async fn hook(
    State(app): State<App>,
    Id(id): Id<TerminalId>,
    requester: Requester,
    Json(payload): Json<serde_json::Value>,
) -> Answer<Success> {
    let pump = find(&app, id).await?;
    if !requester.belongs_to(id) {
        let detail = format!("only a process of terminal {id} may report what its agent does");
        return Err(ApiError::new(ProblemKind::ForeignHook, detail));
    }
    pump.send(pump::PumpEvent::Hook(payload));
    Ok(Json(Success { success: true }))
}

/// Text as a paste: marked as one where the program understands it, with carriage returns where it does not.
/// Control characters are taken out of the text, but for tabs and line ends, so that no text can pose as keys.
fn paste(message: &str, bracketed: bool, enter: bool) -> Vec<u8> {
    let message: String = message.chars().filter(|c| !c.is_control() || matches!(c, '\t' | '\n' | '\r')).collect();
    let mut bytes = Vec::with_capacity(message.len() + 16);
    if bracketed && !message.is_empty() {
        bytes.extend_from_slice(b"\x1b[200~");
        bytes.extend_from_slice(message.as_bytes());
        bytes.extend_from_slice(b"\x1b[201~");
    } else {
        bytes.extend_from_slice(message.replace("\r\n", "\r").replace('\n', "\r").as_bytes());
    }
    bytes.extend(enter.then_some(b'\r'));
    bytes
}

/// Set the size a terminal has while no viewer is attached
#[utoipa::path(post, path = "/terminals/{id}/resize", tag = "terminals", params(("id" = String, Path), posse_api::SizeIn), request_body = Option<Size>,
    responses((status = 200, description = "The size is set", body = Success)))]
pub(super) async fn resize(
    State(app): State<App>,
    Id(id): Id<TerminalId>,
    Params(size): Params<posse_api::SizeIn>,
) -> Answer<Success> {
    let (Some(rows), Some(cols)) = (size.rows, size.cols) else {
        return Err(ApiError::malformed("rows and cols are needed"));
    };
    let size = Size::new(rows, cols)?;
    find(&app, id).await?;
    let _ = app.hub.send(crate::hub::HubEvent::Command(HubCommand::Resize(id, size)));
    Ok(Json(Success { success: true }))
}

/// Ask the program to leave
#[utoipa::path(post, path = "/terminals/{id}/exit", tag = "terminals", params(("id" = String, Path)),
    responses((status = 200, description = "The program was asked to exit", body = Success)))]
pub(super) async fn exit(State(app): State<App>, Id(id): Id<TerminalId>, _: Params<IgnoredAny>) -> Answer<Success> {
    // Read the body even if it is empty: closing a connection with unread bytes drops the answer.
    ask_to_leave(&app, id).await?;
    Ok(Json(Success { success: true }))
}

/// Asks a program to leave: in its own words where there are some, otherwise by hanging up.
pub(crate) async fn ask_to_leave(app: &App, id: TerminalId) -> Result<(), ApiError> {
    let pump = find(app, id).await?;
    let view = snapshot(app, id).await?;
    if view.record.provider == SHELL {
        // A shell gets an exit command: it may have output first.
        let (writer, bytes, expect) = (WriterId(crate::random().max(1)), b"exit\r".to_vec(), None);
        let asked = pump.ask(|reply| {
            let origin = InputOrigin::Request(reply);
            pump::PumpCommand::Input(pump::PumpInput { writer, sequence: 1, bytes, expect, may_answer: false, origin })
        });
        asked.await.ok_or_else(|| ApiError::no_terminal(id))??;
    } else if !leave(app, &pump, &view).await {
        app.ask(|reply| HubCommand::HangUp(id, reply)).await??;
    }
    Ok(())
}

/// Asks an agent to leave, in its own words. `false`: there are none, or it is busy and does not listen.
async fn leave(app: &App, pump: &PumpHandle, view: &TerminalSnapshot) -> bool {
    let provider = match view.record.confirmed {
        Some(_) => app.provider(&view.record.provider).await.ok(),
        None => None,
    };
    let Some(text) = provider.and_then(|provider| provider.manifest.exit.clone()) else { return false };
    let (order, writer) = (Order { text, ..Order::default() }, WriterId(crate::random().max(1)));
    let answerer = Answerer::forbidden(Who::person());
    let asked = pump.ask(|reply| pump::PumpCommand::Message { order, answerer, writer, sequence: 1, reply });
    // An agent that leaves at once takes its screen with it, and the proof.
    matches!(asked.await, Some(Ok(()) | Err(InputError::NotDelivered(Failure { left: Left::Unknown, .. }))))
}

/// End a terminal with every process in it, and forget it
#[utoipa::path(delete, path = "/terminals/{id}", tag = "terminals", params(("id" = String, Path), posse_api::DeleteQuery),
    responses((status = 200, description = "The terminal is gone; `success` is false if it did not exist or a process could not be ended", body = posse_api::Deleted)))]
pub(super) async fn delete(
    State(app): State<App>,
    Id(id): Id<TerminalId>,
    Params(query): Params<posse_api::DeleteQuery>,
) -> Answer<posse_api::Deleted> {
    let grace_ms = query.grace_ms.unwrap_or(GRACE_MS).min(600_000);
    let deleted = app.ask(|reply| HubCommand::Delete { id, grace_ms, reply }).await??;
    Ok(Json(match deleted {
        Some(left) => posse_api::Deleted { success: left == 0, processes_left: left },
        None => posse_api::Deleted { success: false, processes_left: 0 },
    }))
}

#[cfg(test)]
mod tests {
    use super::paste;

    #[test]
    fn a_paste_cannot_break_out_of_its_brackets() {
        let pasted = |message, bracketed, enter| String::from_utf8(paste(message, bracketed, enter)).unwrap();
        assert_eq!(pasted("a\nb", true, true), "\x1b[200~a\nb\x1b[201~\r");
        assert_eq!(pasted("a\x1b[201~rm\n", true, false), "\x1b[200~a[201~rm\n\x1b[201~");
        assert_eq!(pasted("a\r\nb\nc", false, true), "a\rb\rc\r", "a plain terminal takes carriage returns");
        assert_eq!(pasted("", true, true), "\r", "nothing is just Enter");
        assert_eq!(pasted("a\x03\x04\x7f\u{9b}b\tc", false, false), "ab\tc");
    }
}
