//! Notifies absent users through an ntfy server, a webhook, or a command. Delivery blocks nothing and its failure fails
//! nothing: after five seconds it is only logged. Other modules decide what is worth a notice.

use std::collections::VecDeque;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use posse_core::review_loop::config::Notifications;
use posse_core::time::Mono;
use posse_core::visible;
use serde::Serialize;
use tokio::sync::Semaphore;
use ureq::http::Uri;
use ureq::tls::{RootCerts, TlsConfig};

use posse_files::child::{self, ChildError, Leftovers};

const PATIENCE: Duration = Duration::from_secs(5);
/// An ntfy server makes an attachment of a longer text, and refuses it without a store for those.
const NTFY_TEXT: usize = 4096;
/// A title is a line on a telephone.
const TITLE: usize = 200;
/// The kernel takes no variable of more than 128 KiB. The whole text is on standard input.
const VARIABLE: usize = 32 << 10;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Notice {
    /// The event in one word, for programs.
    pub event: &'static str,
    /// From 1, for later, to 5, for now.
    pub priority: u8,
    pub title: String,
    pub text: String,
    pub run: Option<String>,
}

#[derive(Debug, thiserror::Error)]
enum NotifyError {
    #[error("a topic is made of letters, digits, `-` and `_`, 64 of them at most")]
    Topic,
    #[error("the address must begin with https:// or http:// and name a host")]
    Address,
    #[error("no answer within {} s", PATIENCE.as_secs())]
    Late,
    #[error("it answered with {0}")]
    Refused(u16),
    #[error("{0}")]
    Http(ureq::Error),
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    #[error("cannot write the notification as JSON: {0}")]
    Encode(#[from] serde_json::Error),
    #[error(transparent)]
    Command(#[from] ChildError),
    #[error("it ended with {status}: {words}")]
    Failed { status: std::process::ExitStatus, words: String },
}

/// The number of notices that may be on their way. Each takes some seconds at most, so more of them are a mistake.
const MOST: usize = 64;

/// Sends notices: the same one once a minute, and at most [`MOST`] at a time.
#[derive(Clone)]
pub(crate) struct Notifier {
    recent: Arc<Mutex<Recent>>,
    free: Arc<Semaphore>,
}

impl Default for Notifier {
    fn default() -> Self {
        Self { recent: Arc::default(), free: Arc::new(Semaphore::new(MOST)) }
    }
}

impl Notifier {
    /// Sends a notice. Nothing waits for it.
    pub(crate) fn tell(&self, channels: &Notifications, notice: Notice) {
        let notice = Notice { title: visible::one_line(&notice.title), text: visible::lines(&notice.text), ..notice };
        if channels.ntfy_topic.is_empty() && channels.webhook.is_empty() && channels.command.is_empty() {
            return;
        }
        let Ok(on_its_way) = self.free.clone().try_acquire_owned() else {
            return tracing::warn!("{:?} is not told: too many notices are on their way", notice.title);
        };
        if !self.recent.lock().unwrap_or_else(PoisonError::into_inner).is_new(channels, &notice, crate::mono()) {
            return tracing::debug!("{:?} was told a moment ago, in the same words", notice.title);
        }
        let channels = channels.clone();
        crate::spawn(async move {
            notify(&channels, notice).await;
            drop(on_its_way);
        });
    }
}

/// The interval in which the same notice is not repeated.
const SAME: Duration = Duration::from_secs(60);
/// The notices of the last minute, oldest first.
#[derive(Default)]
struct Recent(VecDeque<(Mono, Notifications, Notice)>);

impl Recent {
    /// Returns whether this notice was not sent in the last minute. If so, records it as sent now.
    fn is_new(&mut self, channels: &Notifications, notice: &Notice, now: Mono) -> bool {
        while self.0.front().is_some_and(|(at, ..)| *at + SAME <= now) {
            self.0.pop_front();
        }
        let is_new = !self.0.iter().any(|(_, where_to, what)| (where_to, what) == (channels, notice));
        if is_new {
            self.0.push_back((now, channels.clone(), notice.clone()));
        }
        is_new
    }
}

async fn notify(channels: &Notifications, notice: Notice) {
    let told = |channel: &str, result: Result<(), NotifyError>| {
        if let Err(error) = result {
            // Without the address: those of webhooks are secrets.
            tracing::warn!("{channel}: the notice {:?} ({}) was not told: {error}", notice.title, notice.event);
        }
    };
    tokio::join!(
        async { told("ntfy", ntfy(channels, &notice).await) },
        async { told("webhook", webhook(channels, &notice).await) },
        async { told("notification command", command(channels, &notice).await) },
    );
}

async fn ntfy(channels: &Notifications, notice: &Notice) -> Result<(), NotifyError> {
    let topic = channels.ntfy_topic.as_str();
    if topic.is_empty() {
        return Ok(());
    }
    if topic.len() > 64 || !topic.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
        return Err(NotifyError::Topic);
    }
    let headers = vec![
        ("title", shortened(&visible::one_line(&notice.title), TITLE)),
        ("priority", notice.priority.clamp(1, 5).to_string()),
    ];
    post(
        &format!("{}/{topic}", channels.ntfy_url.trim_end_matches('/')),
        headers,
        shortened(&notice.text, NTFY_TEXT).into_bytes(),
    )
    .await
}

async fn webhook(channels: &Notifications, notice: &Notice) -> Result<(), NotifyError> {
    if channels.webhook.is_empty() {
        return Ok(());
    }
    post(&channels.webhook, vec![("content-type", "application/json".into())], serde_json::to_vec(notice)?).await
}

async fn command(channels: &Notifications, notice: &Notice) -> Result<(), NotifyError> {
    let Some((program, arguments)) = channels.command.split_first() else { return Ok(()) };
    let mut command = Command::new(program);
    command.args(arguments);
    let variables = [
        ("POSSE_EVENT", notice.event),
        ("POSSE_TITLE", &notice.title),
        ("POSSE_TEXT", &notice.text),
        ("POSSE_PRIORITY", &notice.priority.to_string()),
        ("POSSE_RUN", notice.run.as_deref().unwrap_or_default()),
    ];
    for (name, value) in variables {
        command.env(name, shortened(&value.replace('\0', ""), VARIABLE));
    }
    let ended = child::run(command, &serde_json::to_vec(notice)?, PATIENCE, Leftovers::Stay).await?;
    if ended.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
    Err(NotifyError::Failed { status: ended.status, words: shortened(&words, TITLE) })
}

/// The request runs on a detached thread: a name lookup cannot be cancelled, and a stopping daemon must not wait for
/// it.
async fn post(address: &str, headers: Vec<(&'static str, String)>, body: Vec<u8>) -> Result<(), NotifyError> {
    let uri: Uri = address.parse().map_err(|_| NotifyError::Address)?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none_or(str::is_empty) {
        return Err(NotifyError::Address);
    }
    let (answer, answered) = tokio::sync::oneshot::channel();
    let request = move || {
        let mut request = agent(&uri).post(uri);
        for (name, value) in headers {
            // Non-ASCII text is sent as it is: ntfy reads UTF-8.
            request = request.header(name, value.as_bytes());
        }
        drop(answer.send(request.send(&body[..]).map(|response| response.status())));
    };
    std::thread::Builder::new().name("notify".into()).spawn(request).map_err(NotifyError::Thread)?;
    let answered = tokio::time::timeout(PATIENCE, answered).await;
    match answered.map_err(|_| NotifyError::Late)?.map_err(|_| NotifyError::Late)? {
        Ok(status) if status.is_success() => Ok(()),
        Ok(status) => Err(NotifyError::Refused(status.as_u16())),
        Err(ureq::Error::Timeout(_)) => Err(NotifyError::Late),
        Err(error) => Err(NotifyError::Http(error)),
    }
}

fn agent(uri: &Uri) -> ureq::Agent {
    // The certificates of this machine: a server of one's own often has one that only they know.
    let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
    let mut config = ureq::Agent::config_builder()
        .timeout_global(Some(PATIENCE))
        .http_status_as_error(false)
        // A redirected POST arrives as a GET without content.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .tls_config(tls);
    // Loopback addresses bypass the proxy.
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    if host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback()) {
        config = config.proxy(None);
    }
    config.build().new_agent()
}

/// Returns at most `most` bytes, with an ellipsis where text was cut.
fn shortened(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(most.saturating_sub('…'.len_utf8()))])
}

#[cfg(test)]
mod tests;
