//! Events: live, and from the log.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;
use futures_util::stream::unfold;
use posse_api::LogQuery;

use super::*;
use crate::store::StoreError;

/// The number of events read from the log at once.
const PAGE: u32 = 500;
/// The interval between two signs of life on a silent stream.
const ALIVE: Duration = Duration::from_secs(15);

/// Read the journal
#[utoipa::path(get, path = "/log", tag = "events", params(LogQuery),
    responses((status = 200, description = "Events, oldest first", body = Vec<LogEvent>)))]
pub(super) async fn log(State(app): State<App>, Params(query): Params<LogQuery>) -> Answer<Vec<LogEvent>> {
    Ok(Json(read(app.paths.database(), query).await?))
}

async fn read(database: PathBuf, query: LogQuery) -> Result<Vec<LogEvent>, StoreError> {
    disk::at(database, move |disk, database| store::read_events(disk, database, &query)).await
}

/// Follow the events
///
/// Server-sent events. With `Last-Event-ID` it begins after that one: nothing is missed, nothing is repeated.
/// Without it, it begins now.
#[utoipa::path(get, path = "/events", tag = "events", params(("last-event-id" = Option<i64>, Header)),
    responses((status = 200, description = "An endless stream of events", content_type = "text/event-stream")))]
pub(super) async fn follow(
    State(app): State<App>,
    headers: HeaderMap,
) -> Sse<impl Stream<Item = Result<Event, axum::Error>>> {
    // Read before subscribing: what is published in between is in the log, and read from there.
    let newest = app.newest.load(Ordering::Acquire);
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).and_then(|id| id.parse().ok());
    let follower = Follower {
        live: app.events.subscribe(),
        database: app.paths.database(),
        // A number from the future belongs to another database; waiting for it would never end.
        sent: last.map_or(newest, |last: i64| last.min(newest)),
        behind: true,
        over: false,
        ready: VecDeque::new(),
    };
    let stream = unfold(follower, |mut follower| async {
        let event = follower.next().await?;
        Some((sse(&event), follower))
    });
    Sse::new(stream).keep_alive(KeepAlive::new().interval(ALIVE))
}

fn sse(event: &LogEvent) -> Result<Event, axum::Error> {
    let sse = Event::default().json_data(event)?;
    Ok(match event.seq {
        Some(seq) => sse.id(seq.to_string()),
        None => sse,
    })
}

struct Follower {
    live: broadcast::Receiver<Arc<LogEvent>>,
    database: PathBuf,
    /// The last number sent, or the one to begin after.
    sent: i64,
    /// There may be events in the log that were not sent and will not come live.
    behind: bool,
    /// The daemon has announced its exit and sends nothing more.
    over: bool,
    ready: VecDeque<Arc<LogEvent>>,
}

impl Follower {
    async fn next(&mut self) -> Option<Arc<LogEvent>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.sent = event.seq.unwrap_or(self.sent);
                return Some(event);
            }
            if self.over {
                return None;
            }
            if self.behind {
                let query = LogQuery { terminal: None, after: Some(self.sent), limit: Some(PAGE) };
                let page = read(self.database.clone(), query).await.ok()?;
                self.behind = page.len() == PAGE as usize;
                self.ready.extend(page.into_iter().map(Arc::new));
                continue;
            }
            match self.live.recv().await {
                // Read off the log already.
                Ok(event) if event.seq.is_some_and(|seq| seq <= self.sent) => {}
                Ok(event) => {
                    self.over = matches!(event.body, EventBody::DaemonStopped {});
                    self.ready.push_back(event);
                }
                // Too slow for the live events: the log has those that count.
                Err(broadcast::error::RecvError::Lagged(_)) => self.behind = true,
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}
