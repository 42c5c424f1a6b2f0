//! Reasons why a step of a plan or pipeline failed.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Any error. Several steps may fail of the same.
#[derive(Clone, Debug)]
pub(crate) struct StepError(Arc<dyn Error + Send + Sync>);

impl StepError {
    pub(crate) fn because(text: impl Into<String>) -> Self {
        Self(Box::<dyn Error + Send + Sync>::from(text.into()).into())
    }

    pub(crate) fn cause<E: Error + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }

    pub(crate) fn no_environment() -> Self {
        Self::because("no client that knows the environment is there")
    }

    pub(crate) fn needs_terminal() -> Self {
        Self::because("this provider cannot be used without a terminal")
    }

    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::because(format!("{}: {error}", path.display()))
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for StepError {
    fn from(error: E) -> Self {
        Self(Arc::new(error))
    }
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
