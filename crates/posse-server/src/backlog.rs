//! The steps that end the work on a backlog item. The files of the backlog are read and edited in `posse_files::backlog`.

pub(crate) mod archive;
#[cfg(test)]
mod archive_tests;
pub(crate) mod checkout;
