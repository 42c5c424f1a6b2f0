//! Entries of journals without what looks like a secret.

use posse_api::{AutoEntry, PlanEntry};
use posse_core::auto::words::Event as AutoEvent;
use posse_core::plan::machine::Event as PlanEvent;
use posse_core::secrets::mask_json;
use posse_core::turn::Level;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// An entry of a journal that is masked before it is written or published.
pub(crate) trait MaskedEntry: Serialize + DeserializeOwned {
    /// Whether a person wrote the texts of the entry. Those stay: a plan has to say what it says, and an answer has to arrive.
    fn is_by_a_person(&self) -> bool;

    fn warning(text: String) -> Self;

    /// The entry without what looks like a secret.
    fn masked(self) -> Self {
        if self.is_by_a_person() {
            return self;
        }
        without_secrets(self).unwrap_or_else(|error| {
            tracing::error!("an entry of a journal cannot be masked: {error}");
            Self::warning("something happened that cannot be shown without a secret in it".into())
        })
    }
}

impl MaskedEntry for PlanEntry {
    fn is_by_a_person(&self) -> bool {
        match self {
            Self::Created { .. } => true,
            Self::Happened { event } => matches!(**event, PlanEvent::PlanEdited { .. } | PlanEvent::Answered { .. }),
            _ => false,
        }
    }

    fn warning(text: String) -> Self {
        Self::Said { level: Level::Warning, text }
    }
}

impl MaskedEntry for AutoEntry {
    fn is_by_a_person(&self) -> bool {
        match self {
            Self::Created { .. } => true,
            Self::Happened { event } => matches!(**event, AutoEvent::Scanned { .. } | AutoEvent::Retry { .. }),
            _ => false,
        }
    }

    fn warning(text: String) -> Self {
        Self::Said { level: Level::Warning, item: None, text }
    }
}

fn without_secrets<E: Serialize + DeserializeOwned>(entry: E) -> Result<E, serde_json::Error> {
    let plain = serde_json::to_value(&entry)?;
    let mut masked = plain.clone();
    mask_json(&mut masked);
    if masked == plain { Ok(entry) } else { serde_json::from_value(masked) }
}
