//! `posse session`: what the keeper starts instead of a headless session, so that what it says goes to files and it reads
//! its prompt from one. It becomes the program: same process, same end.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Error, Exit};

/// Start a headless session (started by posse itself)
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file that it reads on standard input
    #[arg(long = "in")]
    input: PathBuf,
    /// Where its standard output goes
    #[arg(long)]
    out: PathBuf,
    /// Where its standard error goes
    #[arg(long)]
    err: PathBuf,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Error> {
    let [program, arguments @ ..] = args.command.as_slice() else { return Ok(Exit::Usage) };
    let prompt = File::options().read(true).custom_flags(NO_LINK).open(&args.input);
    let prompt = prompt.map_err(Error::io(args.input.display().to_string()))?;
    let error = Command::new(program)
        .args(arguments)
        .stdin(Stdio::from(prompt))
        .stdout(file(&args.out)?)
        .stderr(file(&args.err)?)
        .exec();
    Err(Error::Io { what: format!("cannot start {program}"), error })
}

/// A link in place of a file could lead anywhere.
const NO_LINK: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

fn file(path: &Path) -> Result<File, Error> {
    let opened = File::options().create(true).append(true).mode(0o600).custom_flags(NO_LINK).open(path);
    opened.map_err(Error::io(path.display().to_string()))
}
