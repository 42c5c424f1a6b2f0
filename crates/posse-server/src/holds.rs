//! Quotas that are used up. Whoever meets a limit tells here, and whoever is about to start a session asks first: what one run
//! has found out the others need not find out again. Kept in a file, so that the next daemon knows it too.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use posse_core::plan::limits::{Hold, longer};
use posse_core::time::Wall;
use sha2::Digest;

use crate::runs::Means;

/// What tells one account from another, as far as an environment does.
const ACCOUNT: [&str; 6] =
    ["HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY"];

#[derive(Clone)]
pub(crate) struct Holds {
    file: PathBuf,
    known: Arc<Mutex<BTreeMap<String, Hold>>>,
}

impl Holds {
    pub(crate) fn open(file: PathBuf) -> Self {
        let known = std::fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok());
        Self { file, known: Arc::new(Mutex::new(known.unwrap_or_default())) }
    }

    /// No session of this account before then.
    pub(crate) fn note(&self, provider: &str, means: &Means, hold: &Hold, now: Wall) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, hold| hold.until > now);
        let name = account(provider, means);
        let hold = match known.remove(&name) {
            Some(other) => longer(other, hold.clone()),
            None => hold.clone(),
        };
        known.insert(name, hold);
        let text = serde_json::to_vec(&*known).unwrap_or_default();
        if let Err(error) = crate::serve::write_private(&self.file, &text) {
            tracing::warn!("{}: {error}", self.file.display());
        }
    }

    /// What holds now.
    pub(crate) fn of(&self, provider: &str, means: &Means, now: Wall) -> Option<Hold> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&account(provider, means)).filter(|hold| hold.until > now).cloned()
    }
}

/// A fingerprint: nothing of an environment is ever stored.
fn account(provider: &str, means: &Means) -> String {
    let mut hasher = sha2::Sha256::new();
    for name in ACCOUNT {
        hasher.update(means.environment.get(name).map(String::as_bytes).unwrap_or_default());
        hasher.update([0]);
    }
    let digest: String = hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{provider}-{digest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_daemon_knows_it_too_and_other_accounts_do_not_care() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("holds.json");
        let means = |home: &str| Means {
            environment: BTreeMap::from([("HOME".to_owned(), home.to_owned())]),
            backend: Default::default(),
            tmux_server: None,
        };
        let hold = |until| Hold { until: Wall(until), reason: "limit".into(), known: true };
        let holds = Holds::open(file.clone());
        holds.note("claude_code", &means("/a"), &hold(100), Wall(1));
        holds.note("claude_code", &means("/a"), &hold(50), Wall(1));
        for holds in [holds, Holds::open(file.clone())] {
            assert_eq!(holds.of("claude_code", &means("/a"), Wall(99)), Some(hold(100)), "the longer one");
            assert_eq!(holds.of("claude_code", &means("/a"), Wall(100)), None, "it is over");
            assert_eq!(holds.of("claude_code", &means("/b"), Wall(2)), None);
            assert_eq!(holds.of("codex", &means("/a"), Wall(2)), None);
        }
        assert!(!std::fs::read_to_string(file).unwrap().contains("/a"), "no environment is stored");
    }
}
