//! Finds work trees by the files with which git ties them to their repository. Git is not asked: it would obey what a session
//! wrote there.

use std::path::Path;

use super::guard::{self, Found};
use super::{GitError, WorkTree};
use crate::disk;
use crate::environment::Environment;

impl WorkTree {
    pub(crate) async fn find(directory: &Path) -> Result<Option<Self>, GitError> {
        Self::find_in(&Environment::default(), directory).await
    }

    /// The same, in this environment; what is done there later is done in it too.
    pub(crate) async fn find_in(environment: &Environment, directory: &Path) -> Result<Option<Self>, GitError> {
        Ok(match disk::at(directory, guard::resolve).await? {
            Found::Tree(places) => Some(Self { places, environment: environment.clone() }),
            Found::Bare | Found::Nothing => None,
        })
    }

    /// Whether another work tree is of the same repository.
    pub(crate) fn shares_with(&self, other: &Self) -> bool {
        self.common == other.common
    }
}
