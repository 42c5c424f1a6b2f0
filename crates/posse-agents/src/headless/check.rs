//! Checks the finished command line before a start: the session must be able to work unattended.
//!
//! The check does not trust the code that built the flags. A session that fails it would cost money and do nothing, or
//! do too much.

use super::command::{FROM_STDIN, JSON, PRINT};
use super::flags::{
    ACCEPT_EDITS, ADD_DIR, ALLOWED_TOOLS, CLAUDE_BYPASS, CODEX_BYPASS, CODEX_CONFIG, CODEX_SANDBOX, DISALLOWED_TOOLS,
    NEVER_ASK, PERMISSION_MODE, READ_ONLY_SANDBOX, Request, TOOLS, WRITE_SANDBOX,
};
use super::outside::is_below;
use super::{Dialect, Sandbox};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FailedCheck {
    #[error("approval is open: {flag} is missing, and nobody is there to answer")]
    NoApproval { flag: &'static str },
    #[error("approval is answered twice: by {bypass} and by {flag}")]
    TwoApprovals { bypass: &'static str, flag: &'static str },
    #[error("{bypass} is there though the sandbox is on")]
    Bypass { bypass: &'static str },
    #[error("the sandbox is off, and {bypass} is missing")]
    NoBypass { bypass: &'static str },
    #[error("{flag} is {value:?}, with which a session waits for a person or does more than it should")]
    BadMode { flag: &'static str, value: String },
    #[error("{flag} is missing or has no values")]
    Empty { flag: &'static str },
    #[error(
        "the arguments do not end as they should; what stands behind {flag} would be taken for the prompt, which comes on standard input"
    )]
    PromptSwallowed { flag: String },
    #[error("{ADD_DIR} {directory}: there is no such directory")]
    NoDirectory { directory: String },
    #[error("{ADD_DIR} {directory}: this is a link to {real}; what lies there would be outside, so give the real path")]
    Link { directory: String, real: String },
    #[error("{ADD_DIR} {directory}: this is not in the scope of the session")]
    OutsideScope { directory: String },
    #[error("{ADD_DIR} {directory} is missing, where the session works")]
    ScopeMissing { directory: String },
    #[error(
        "{path} is to be written, and these flags do not allow it; let the agent write there or report in its last message"
    )]
    Undeliverable { path: String },
}

/// Checks a command line without its program. `files` are the files that the session must write. `real` returns the
/// path of an existing directory without links.
pub fn check_flags(
    arguments: &[String],
    request: &Request<'_>,
    files: &[String],
    real: impl Fn(&str) -> Option<String>,
) -> Result<(), FailedCheck> {
    let flags = without_prompt(arguments, request.dialect)?;
    let directories = match request.dialect {
        Dialect::Claude => claude(flags, request.sandbox)?,
        Dialect::Codex => codex(flags, request.sandbox)?,
    };
    let scope: Vec<&str> = request.scope.directories().collect();
    for directory in directories.iter().chain(&scope) {
        let directory = (*directory).to_owned();
        match real(&directory) {
            None => return Err(FailedCheck::NoDirectory { directory }),
            Some(real) if real != directory => return Err(FailedCheck::Link { directory, real }),
            Some(_) => {}
        }
    }
    if request.sandbox == Sandbox::Off {
        return Ok(());
    }
    if let Some(directory) = directories.iter().find(|directory| !scope.contains(directory)) {
        return Err(FailedCheck::OutsideScope { directory: (*directory).into() });
    }
    // Codex may use its working directory without a flag.
    let must_be_told = scope.iter().skip(usize::from(request.dialect == Dialect::Codex));
    let can_write = can_write(flags, request.dialect);
    if let Some(directory) = must_be_told
        .copied()
        .find(|directory| !directories.contains(directory) && (can_write || request.dialect == Dialect::Claude))
    {
        return Err(FailedCheck::ScopeMissing { directory: directory.into() });
    }
    let deliverable = |path: &&String| can_write && scope.iter().any(|directory| is_below(path, directory));
    match files.iter().find(|path| !deliverable(path)) {
        Some(path) => Err(FailedCheck::Undeliverable { path: path.clone() }),
        None => Ok(()),
    }
}

/// Returns the flags of a command line that ends correctly, so that no flag is taken for a prompt.
fn without_prompt(arguments: &[String], dialect: Dialect) -> Result<&[String], FailedCheck> {
    let flags = match (dialect, arguments) {
        (Dialect::Claude, [.., last]) if last == PRINT => Some(arguments),
        (Dialect::Codex, [flags @ .., last]) if last == FROM_STDIN && flags.last().is_some_and(|flag| flag == JSON) => {
            Some(flags)
        }
        _ => None,
    };
    let last_flag = || arguments.iter().rev().find(|word| word.starts_with("--")).cloned().unwrap_or_default();
    let separator = |flags: &&[String]| flags.iter().any(|word| word == "--");
    flags.filter(|flags| !separator(flags)).ok_or_else(|| FailedCheck::PromptSwallowed { flag: last_flag() })
}

/// Returns the values after a flag, up to the next one.
fn values<'a>(flags: &'a [String], name: &str) -> Option<Vec<&'a str>> {
    let mut found = None;
    for (place, _) in flags.iter().enumerate().filter(|(_, word)| *word == name) {
        let rest = flags[place + 1..].iter().map(String::as_str).take_while(|word| !word.starts_with('-'));
        found.get_or_insert_with(Vec::new).extend(rest);
    }
    found
}

fn has(flags: &[String], name: &str) -> bool {
    flags.iter().any(|word| word == name)
}

fn bypass(
    flags: &[String],
    sandbox: Sandbox,
    bypass: &'static str,
    approval: Option<&'static str>,
) -> Result<(), FailedCheck> {
    match (has(flags, bypass), sandbox, approval) {
        (true, _, Some(flag)) => Err(FailedCheck::TwoApprovals { bypass, flag }),
        (true, Sandbox::On, None) => Err(FailedCheck::Bypass { bypass }),
        (false, Sandbox::Off, _) => Err(FailedCheck::NoBypass { bypass }),
        _ => Ok(()),
    }
}

fn claude(flags: &[String], sandbox: Sandbox) -> Result<Vec<&str>, FailedCheck> {
    let mode = values(flags, PERMISSION_MODE);
    bypass(flags, sandbox, CLAUDE_BYPASS, mode.as_ref().map(|_| PERMISSION_MODE))?;
    if sandbox == Sandbox::On {
        match mode.as_deref() {
            None => return Err(FailedCheck::NoApproval { flag: PERMISSION_MODE }),
            Some([ACCEPT_EDITS]) => {}
            Some(others) => {
                return Err(FailedCheck::BadMode { flag: PERMISSION_MODE, value: others.join(" ") });
            }
        }
        for flag in [ALLOWED_TOOLS, ADD_DIR] {
            if values(flags, flag).is_none_or(|values| values.is_empty() || values.contains(&"")) {
                return Err(FailedCheck::Empty { flag });
            }
        }
        if values(flags, TOOLS).is_some_and(|values| values.is_empty() || values.contains(&"")) {
            return Err(FailedCheck::Empty { flag: TOOLS });
        }
    }
    Ok(values(flags, ADD_DIR).unwrap_or_default())
}

/// Returns the additional directories.
fn codex(flags: &[String], sandbox: Sandbox) -> Result<Vec<&str>, FailedCheck> {
    let never_asks = flags.windows(2).any(|words| words[0] == CODEX_CONFIG && words[1] == NEVER_ASK);
    bypass(flags, sandbox, CODEX_BYPASS, never_asks.then_some(NEVER_ASK))?;
    if sandbox == Sandbox::On {
        if !never_asks {
            return Err(FailedCheck::NoApproval { flag: NEVER_ASK });
        }
        match values(flags, CODEX_SANDBOX).as_deref() {
            None => return Err(FailedCheck::Empty { flag: CODEX_SANDBOX }),
            Some([READ_ONLY_SANDBOX | WRITE_SANDBOX]) => {}
            Some(others) => return Err(FailedCheck::BadMode { flag: CODEX_SANDBOX, value: others.join(" ") }),
        }
    }
    Ok(values(flags, ADD_DIR).unwrap_or_default())
}

fn can_write(flags: &[String], dialect: Dialect) -> bool {
    match dialect {
        Dialect::Claude => {
            let lists = |flag: &str| values(flags, flag).is_some_and(|tools| tools.contains(&"Write"));
            lists(ALLOWED_TOOLS) && !lists(DISALLOWED_TOOLS)
        }
        Dialect::Codex => values(flags, CODEX_SANDBOX).is_some_and(|mode| mode == [WRITE_SANDBOX]),
    }
}

#[cfg(test)]
mod tests;
