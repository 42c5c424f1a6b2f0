//! The directories of a backlog.

use serde::{Deserialize, Serialize};

use super::Kind;
use super::queue::Shelf;

/// The directories of a backlog, within the project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BacklogDirs {
    pub defects: String,
    pub features: String,
    /// What is done; `defects` and `features` are below it.
    pub completed: String,
    /// What was given up.
    pub failed: String,
}

impl Default for BacklogDirs {
    fn default() -> Self {
        Self::below("docs")
    }
}

impl BacklogDirs {
    /// The usual names below another directory.
    pub fn below(directory: &str) -> Self {
        let directory = directory.trim_end_matches('/');
        let at = |name: &str| {
            if directory.is_empty() || directory == "." { name.to_owned() } else { format!("{directory}/{name}") }
        };
        Self {
            defects: at("defect-backlog"),
            features: at("feature-backlog"),
            completed: at("completed-backlog"),
            failed: at("failed-backlog"),
        }
    }

    pub fn of(&self, kind: Kind) -> &str {
        match kind {
            Kind::Defect => &self.defects,
            Kind::Feature => &self.features,
        }
    }

    /// Returns the directory for an item that has ended.
    pub fn archive(&self, kind: Kind, shelf: Shelf) -> String {
        match (shelf, kind) {
            (Shelf::Completed, Kind::Defect) => format!("{}/defects", self.completed),
            (Shelf::Completed, Kind::Feature) => format!("{}/features", self.completed),
            (Shelf::Failed, _) => self.failed.clone(),
        }
    }

    pub fn archives(&self) -> [(String, Shelf); 4] {
        [
            (self.completed.clone(), Shelf::Completed),
            (self.archive(Kind::Defect, Shelf::Completed), Shelf::Completed),
            (self.archive(Kind::Feature, Shelf::Completed), Shelf::Completed),
            (self.failed.clone(), Shelf::Failed),
        ]
    }
}
