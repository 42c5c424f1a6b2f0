//! Terminals: make, look at, type into, end.

use std::path::PathBuf;

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use posse_core::ids::{Name, TerminalId, WriterId};
use posse_core::screen::{Screen, Size};
use posse_term::wire::MAX_INPUT;

use super::types::{self, OutputMode, OutputQuery, Success, Terminal};
use super::{ApiError, App};
use crate::hub::{Command, Creation, GRACE_MS};
use crate::pump::{self, Handle, Origin, Text};

type Answer<T> = Result<Json<T>, ApiError>;

/// How much output survives the daemon when nobody says otherwise.
const RING: u32 = 1 << 20;
/// The least that makes sense and the most that one terminal may take.
const RING_RANGE: std::ops::RangeInclusive<u32> = 64 << 10..=64 << 20;
/// Lines of `tail` when nobody says how many.
const TAIL_LINES: usize = 5;

pub(super) async fn health(State(app): State<App>) -> Answer<types::Health> {
    let health = app.ask(Command::Health).await?;
    Ok(Json(types::Health {
        status: "ok".into(),
        service: "posse".into(),
        version: crate::VERSION.into(),
        pid: std::process::id(),
        problem: health.problem,
    }))
}

pub(super) async fn list(State(app): State<App>) -> Answer<Vec<Terminal>> {
    Ok(Json(app.ask(Command::List).await?.into_iter().map(Terminal::from).collect()))
}

pub(super) async fn show(State(app): State<App>, Path(id): Path<String>) -> Answer<Terminal> {
    let id: TerminalId = id.parse()?;
    let view = app.ask(|reply| Command::Show(id, reply)).await?;
    view.map(|view| Json(view.into())).ok_or(ApiError::NoTerminal(id))
}

pub(super) async fn create(
    State(app): State<App>,
    body: Result<Json<types::Create>, JsonRejection>,
) -> Result<(StatusCode, Json<Terminal>), ApiError> {
    let Json(body) = body?;
    if body.command.first().is_none_or(String::is_empty) {
        return Err(ApiError::Invalid("no command was given".into()));
    }
    if body.command.iter().any(|argument| argument.contains('\0')) {
        return Err(ApiError::Invalid("the command contains a NUL character".into()));
    }
    let directory = PathBuf::from(&body.working_directory);
    if !directory.is_absolute() {
        return Err(ApiError::Invalid(format!("the working directory {directory:?} is not an absolute path")));
    }
    // Resolved here so that what is shown and stored is where the program really runs.
    let directory = std::fs::canonicalize(&directory).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            ApiError::Invalid(format!("the directory {} does not exist", directory.display()))
        }
        _ => ApiError::Invalid(format!("the directory {} cannot be used: {error}", directory.display())),
    })?;
    let ring = body.ring_bytes.unwrap_or(RING);
    if !RING_RANGE.contains(&ring) {
        return Err(ApiError::Invalid(format!(
            "ring_bytes must be from {} to {}",
            RING_RANGE.start(),
            RING_RANGE.end()
        )));
    }
    let creation = Creation {
        command: body.command,
        name: body.name.map(|name| name.parse::<Name>()).transpose()?,
        session: body.session_name.map(|name| Name::session(&name)).transpose()?,
        directory,
        environment: body.environment,
        size: body.size.unwrap_or(Size::DEFAULT),
        ring,
    };
    let created = app.ask(|reply| Command::Create(Box::new(creation), reply)).await??;
    Ok((StatusCode::CREATED, Json(created.into())))
}

/// The pump of a terminal, for what only it knows.
pub(super) async fn find(app: &App, id: &str) -> Result<(TerminalId, Handle), ApiError> {
    let id: TerminalId = id.parse()?;
    let handle = app.ask(|reply| Command::Find(id, reply)).await?;
    Ok((id, handle.ok_or(ApiError::NoTerminal(id))?))
}

pub(super) async fn screen(State(app): State<App>, Path(id): Path<String>) -> Answer<Screen> {
    let (id, pump) = find(&app, &id).await?;
    pump.ask(pump::Command::Screen).await.map(Json).ok_or(ApiError::NoTerminal(id))
}

pub(super) async fn output(
    State(app): State<App>,
    Path(id): Path<String>,
    query: Result<Query<OutputQuery>, QueryRejection>,
) -> Answer<types::Output> {
    let Query(query) = query?;
    let (id, pump) = find(&app, &id).await?;
    let text = match query.mode {
        OutputMode::Full => Text::Full,
        OutputMode::Last => Text::Last,
        OutputMode::Tail => Text::Tail(query.lines.unwrap_or(TAIL_LINES)),
    };
    let text = pump.ask(|reply| pump::Command::Text(text, reply)).await.ok_or(ApiError::NoTerminal(id))?;
    Ok(Json(types::Output { output: text.ok_or(ApiError::NoMessage)?, mode: query.mode }))
}

pub(super) async fn input(
    State(app): State<App>,
    Path(id): Path<String>,
    body: Result<Json<types::Input>, JsonRejection>,
) -> Answer<Success> {
    let Json(body) = body?;
    let (id, pump) = find(&app, &id).await?;
    let bytes = if body.raw {
        let mut bytes = body.message.into_bytes();
        bytes.extend(body.enter.then_some(b'\r'));
        bytes
    } else {
        let bracketed = pump.ask(pump::Command::BracketedPaste).await.ok_or(ApiError::NoTerminal(id))?;
        paste(&body.message, bracketed, body.enter)
    };
    if bytes.len() > MAX_INPUT {
        return Err(ApiError::TooMuchInput(bytes.len()));
    }
    let _ = app.hub.send(crate::hub::Message::Command(Command::Touch(id)));
    let (writer, sequence) = match (body.writer, body.sequence) {
        (Some(0), _) => return Err(ApiError::Invalid("writer 0 is the daemon itself".into())),
        (Some(writer), Some(sequence)) if sequence > 0 => (writer, sequence),
        (None, None) => (crate::random().max(1), 1),
        _ => return Err(ApiError::Invalid("writer and sequence go together, and sequences start at 1".into())),
    };
    let done = pump.ask(|reply| {
        let writer = WriterId(writer);
        pump::Command::Input(pump::Input { writer, sequence, bytes, origin: Origin::Request(reply) })
    });
    done.await.ok_or(ApiError::NoTerminal(id))??;
    Ok(Json(Success { success: true }))
}

/// Text as a paste: marked as one where the program understands it, with carriage returns where it does not.
/// Escape characters are taken out of the text, so that no text can pose as keys.
fn paste(message: &str, bracketed: bool, enter: bool) -> Vec<u8> {
    let message = message.replace('\x1b', "");
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

pub(super) async fn resize(
    State(app): State<App>,
    Path(id): Path<String>,
    body: Result<Json<Size>, JsonRejection>,
) -> Answer<Success> {
    let Json(size) = body?;
    let (id, _) = find(&app, &id).await?;
    let _ = app.hub.send(crate::hub::Message::Command(Command::Resize(id, size)));
    Ok(Json(Success { success: true }))
}

pub(super) async fn exit(State(app): State<App>, Path(id): Path<String>) -> Answer<Success> {
    let (id, _) = find(&app, &id).await?;
    let _ = app.hub.send(crate::hub::Message::Command(Command::HangUp(id)));
    Ok(Json(Success { success: true }))
}

pub(super) async fn delete(
    State(app): State<App>,
    Path(id): Path<String>,
    query: Result<Query<types::DeleteQuery>, QueryRejection>,
) -> Answer<types::Deleted> {
    let (id, Query(query)) = (id.parse::<TerminalId>()?, query?);
    let grace_ms = query.grace_ms.unwrap_or(GRACE_MS).min(600_000);
    let deleted = app.ask(|reply| Command::Delete { id, grace_ms, reply }).await?;
    Ok(Json(match deleted {
        Some(deleted) => types::Deleted { success: deleted.left == 0, processes_left: deleted.left },
        None => types::Deleted { success: false, processes_left: 0 },
    }))
}

pub(super) async fn stop(
    State(app): State<App>,
    body: Result<Json<types::Stop>, JsonRejection>,
) -> Answer<types::Stopped> {
    let Json(stop) = body?;
    let stopped = app.ask(|reply| Command::Stop { all: stop.all, reply }).await?;
    Ok(Json(types::Stopped { running: stopped.running.into_iter().map(Terminal::from).collect() }))
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
    }
}
