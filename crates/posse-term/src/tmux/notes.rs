//! Files between us and the shims: what to start, what became of it, and what a later daemon must know.
//!
//! All in one private directory, named by terminal:
//! - `ID.terminal`: the secret of its bell, and the daemon's label. There as long as the terminal is known.
//! - `ID.program`: what to start. The shim takes it (`ID.start`) and deletes it; it holds somebody's environment.
//! - `ID.pid`, `ID.exit`: written by the shim, whole or not at all.
//! - `N.input`: a long input on its way through tmux.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use posse_core::ids::TerminalId;
use posse_core::status::Exit;

use super::doorbell::Secret;
use crate::wire::{self, Program, Request, SpawnRefusal};

/// What the shim wrote about a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fate {
    pub(super) pid: Option<u32>,
    pub(super) end: Option<End>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    Exit(Exit),
    /// It could not be started.
    Refused(SpawnRefusal, String),
}

/// What is left of a terminal of an earlier daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) id: TerminalId,
    pub(super) secret: Secret,
    pub(super) label: Vec<u8>,
    pub(super) fate: Fate,
}

#[derive(Clone, Debug)]
pub(super) struct Notes {
    directory: PathBuf,
}

impl Notes {
    /// Makes the directory, and refuses one that others can enter.
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let found = fs::symlink_metadata(directory)?;
        let ours = found.uid() == rustix::process::getuid().as_raw();
        if !found.is_dir() || !ours || found.permissions().mode() & 0o077 != 0 {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is not a private directory of yours"));
        }
        Ok(Self { directory: directory.to_owned() })
    }

    fn path(&self, id: TerminalId, kind: &str) -> PathBuf {
        self.directory.join(format!("{id}.{kind}"))
    }

    pub(super) fn program_path(&self, id: TerminalId) -> PathBuf {
        self.path(id, "program")
    }

    /// Writes down what the shim shall start.
    pub(super) fn prepare(&self, id: TerminalId, program: &Program, secret: &Secret) -> io::Result<()> {
        let mut frame = Vec::new();
        wire::encode(&Request::Spawn { id, program: program.clone() }, &mut frame);
        let notes = [secret.as_str().as_bytes(), b"\n", &program.label].concat();
        write_new(&self.path(id, "terminal"), &notes)?;
        write_new(&self.program_path(id), &frame).inspect_err(|_| self.remove(id))
    }

    pub(super) fn fate(&self, id: TerminalId) -> Fate {
        let read = |kind| fs::read_to_string(self.path(id, kind)).ok();
        Fate {
            pid: read("pid").and_then(|text| text.trim().parse().ok()),
            end: read("exit").and_then(|text| End::parse(&text)),
        }
    }

    /// Everything an earlier daemon left. What makes no sense is removed.
    pub(super) fn found(&self) -> io::Result<Vec<Found>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let name = entry?.file_name();
            let Some((stem, kind)) = name.to_str().and_then(|name| name.rsplit_once('.')) else { continue };
            match (stem.parse(), kind) {
                (Ok(id), "terminal") => match self.read_terminal(id) {
                    Some((secret, label)) => found.push(Found { id, secret, label, fate: self.fate(id) }),
                    None => self.remove(id),
                },
                (Ok(id), _) if !self.path(id, "terminal").exists() => self.remove(id),
                (_, "input") => drop(fs::remove_file(self.directory.join(&name))),
                _ => {}
            }
        }
        found.sort_by_key(|found| found.id);
        Ok(found)
    }

    fn read_terminal(&self, id: TerminalId) -> Option<(Secret, Vec<u8>)> {
        let notes = fs::read(self.path(id, "terminal")).ok()?;
        let end = memchr::memchr(b'\n', &notes)?;
        Some((Secret::parse(std::str::from_utf8(&notes[..end]).ok()?)?, notes[end + 1..].to_vec()))
    }

    /// Forgets a terminal.
    pub(super) fn remove(&self, id: TerminalId) {
        for kind in ["program", "start", "pid", "exit", "terminal"] {
            let _ = fs::remove_file(self.path(id, kind));
        }
    }

    pub(super) fn input_path(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{number}.input"))
    }

    pub(super) fn save_input(&self, number: u64, bytes: &[u8]) -> io::Result<()> {
        write_new(&self.input_path(number), bytes)
    }

    pub(super) fn drop_input(&self, number: u64) {
        let _ = fs::remove_file(self.input_path(number));
    }
}

/// The shim's side: what it was given, and where it answers.
pub(super) struct Errand {
    pub(super) program: Program,
    pub(super) secret: Secret,
    notes: Notes,
    id: TerminalId,
}

/// Which of its two lives the shim is in; see `shim`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Watch,
    Start,
}

impl Errand {
    /// By the file tmux was told to give to the shim, or the one the shim gave to itself.
    pub(super) fn read(file: &Path) -> io::Result<(Self, Stage)> {
        let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {what}", file.display()));
        let stage = match file.extension().and_then(|kind| kind.to_str()) {
            Some("program") => Stage::Watch,
            Some("start") => Stage::Start,
            _ => return Err(invalid("not a program to start")),
        };
        let directory = file.parent().filter(|parent| parent.is_absolute()).ok_or_else(|| invalid("no directory"))?;
        let bytes = fs::read(file)?;
        let Ok(Some((Request::Spawn { id, program }, _))) = wire::decode(&bytes) else {
            return Err(invalid("it cannot be read"));
        };
        let notes = Notes { directory: directory.to_owned() };
        let (secret, _) = notes.read_terminal(id).ok_or_else(|| invalid("its terminal is not known"))?;
        Ok((Self { program, secret, notes, id }, stage))
    }

    /// Takes the program for the next stage: nobody else can start it any more.
    pub(super) fn pass_on(&self) -> io::Result<PathBuf> {
        let next = self.notes.path(self.id, "start");
        fs::rename(self.notes.program_path(self.id), &next)?;
        Ok(next)
    }

    pub(super) fn delete(&self) {
        let _ = fs::remove_file(self.notes.path(self.id, "start"));
    }

    pub(super) fn write_pid(&self, pid: u32) -> io::Result<()> {
        self.write_whole("pid", &pid.to_string())
    }

    pub(super) fn write_end(&self, end: &End) -> io::Result<()> {
        self.write_whole("exit", &end.to_text())
    }

    fn write_whole(&self, kind: &str, text: &str) -> io::Result<()> {
        // A terminal that was forgotten meanwhile has nobody who would remove this.
        if !self.notes.path(self.id, "terminal").exists() {
            return Ok(());
        }
        let unfinished = self.notes.path(self.id, &format!("{kind}-{}", std::process::id()));
        write_new(&unfinished, text.as_bytes())?;
        fs::rename(&unfinished, self.notes.path(self.id, kind))
    }
}

impl End {
    pub(super) fn to_text(&self) -> String {
        match self {
            End::Exit(Exit::Code(code)) => format!("code {code}"),
            End::Exit(Exit::Signal(signal)) => format!("signal {signal}"),
            End::Exit(Exit::Lost) => "lost".into(),
            End::Refused(why, message) => format!("refused {} {message}", refusal_word(*why)),
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        Some(match word {
            "code" => End::Exit(Exit::Code(rest.parse().ok()?)),
            "signal" => End::Exit(Exit::Signal(rest.parse().ok()?)),
            "lost" => End::Exit(Exit::Lost),
            "refused" => {
                let (why, message) = rest.split_once(' ')?;
                let known = [
                    SpawnRefusal::DirectoryMissing,
                    SpawnRefusal::ProgramMissing,
                    SpawnRefusal::NotExecutable,
                    SpawnRefusal::LimitReached,
                ];
                let why = known.into_iter().find(|known| refusal_word(*known) == why).unwrap_or(SpawnRefusal::Other);
                End::Refused(why, message.to_owned())
            }
            _ => return None,
        })
    }
}

fn refusal_word(why: SpawnRefusal) -> &'static str {
    match why {
        SpawnRefusal::DirectoryMissing => "directory_missing",
        SpawnRefusal::ProgramMissing => "program_missing",
        SpawnRefusal::NotExecutable => "not_executable",
        SpawnRefusal::LimitReached => "limit_reached",
        SpawnRefusal::IdTaken | SpawnRefusal::Other => "other",
    }
}

/// Private, and not where something already is.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use posse_core::screen::Size;

    use super::*;
    use crate::wire::Wiring;

    fn program() -> Program {
        Program {
            arguments: vec![b"agent".to_vec(), b"-x".to_vec()],
            environment: vec![(b"KEY".to_vec(), b"secret".to_vec())],
            directory: b"/nowhere".to_vec(),
            wiring: Wiring::Terminal(Size::DEFAULT),
            ring: 1,
            label: b"{\"name\":\"a\"}\nmore".to_vec(),
        }
    }

    fn all_files(notes: &Notes) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(&notes.directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn from_the_order_to_the_end() {
        let temp = tempfile::tempdir().unwrap();
        let notes = Notes::open(&temp.path().join("state")).unwrap();
        let (id, secret) = (TerminalId::from_random(7), Secret::new([1; 16]));
        notes.prepare(id, &program(), &secret).unwrap();
        assert!(notes.prepare(id, &program(), &secret).is_err(), "twice the same terminal");
        let mode = fs::metadata(notes.program_path(id)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "it holds an environment");

        let (errand, stage) = Errand::read(&notes.program_path(id)).unwrap();
        assert_eq!((errand.program.clone(), stage), (program(), Stage::Watch));
        let next = errand.pass_on().unwrap();
        assert!(Errand::read(&notes.program_path(id)).is_err(), "it can be taken once");
        let (errand, stage) = Errand::read(&next).unwrap();
        assert_eq!((errand.secret.clone(), stage), (secret.clone(), Stage::Start));
        errand.delete();
        errand.write_pid(42).unwrap();
        assert_eq!(notes.fate(id), Fate { pid: Some(42), end: None });
        errand.write_end(&End::Exit(Exit::Signal(9))).unwrap();
        let fate = Fate { pid: Some(42), end: Some(End::Exit(Exit::Signal(9))) };

        notes.save_input(3, b"left behind").unwrap();
        fs::write(notes.directory.join("0000000a.program"), "of nobody").unwrap();
        let found = Found { id, secret, label: program().label, fate };
        assert_eq!(notes.found().unwrap(), [found]);
        assert_eq!(all_files(&notes), ["00000007.exit", "00000007.pid", "00000007.terminal"]);

        notes.remove(id);
        assert_eq!(all_files(&notes), [""; 0]);
        errand.write_end(&End::Exit(Exit::Code(0))).unwrap();
        assert_eq!(all_files(&notes), [""; 0], "a forgotten terminal leaves nothing behind");
    }

    #[test]
    fn ends_are_read_as_they_were_written() {
        for end in [
            End::Exit(Exit::Code(-1)),
            End::Exit(Exit::Code(255)),
            End::Exit(Exit::Signal(15)),
            End::Exit(Exit::Lost),
            End::Refused(SpawnRefusal::ProgramMissing, "a b: no such\nprogram".into()),
            End::Refused(SpawnRefusal::Other, String::new()),
        ] {
            assert_eq!(End::parse(&end.to_text()), Some(end));
        }
        for nonsense in ["", "code", "code x", "signal ", "refused", "what"] {
            assert_eq!(End::parse(nonsense), None, "{nonsense:?}");
        }
    }

    #[test]
    fn a_directory_others_can_enter_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(Notes::open(temp.path()).is_err());
    }
}
