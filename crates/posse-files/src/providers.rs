//! Available agents and profiles: the ones posse ships, with the user's overrides, and the user's own. Only the user's
//! files count, never the project's: an agent must not be able to change its own restrictions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use posse_agents::manifest::BUILT_IN;
use posse_agents::merge::merge;
use posse_agents::profile::{BUILT_IN_PROFILES, Profile};
use posse_agents::{BadManifest, Provider};
use posse_core::file_problem::{ExcerptLook, FileProblem, TextSpan};
use posse_core::nearest::nearest;
use posse_core::prompts::{self, PromptTemplates};
use posse_term::text_file;
use serde::Serialize;

use crate::disk::Disk;

#[derive(Debug, thiserror::Error)]
pub enum UserFileError {
    #[error("there is no provider {name:?}{}; there are {}", did_you_mean(name, known), known.join(", "))]
    UnknownProvider { name: String, known: Vec<String> },
    #[error("there is no profile {name:?}{}; there are {}; yours would be {path}", did_you_mean(name, known), known.join(", "))]
    UnknownProfile { name: String, known: Vec<String>, path: PathBuf },
    #[error("{0:?} is no name for a profile: letters, digits, `-`, `_` and `.`, not beginning with a dot")]
    Name(String),
    /// The excerpt shows the problem in the file.
    #[error("{what} cannot be used\n{excerpt}")]
    Bad { what: &'static str, excerpt: String, problem: String },
    #[error("{path}: {error}")]
    Unreadable { path: PathBuf, error: std::io::Error },
}

fn did_you_mean(name: &str, known: &[String]) -> String {
    let meant = nearest(name, known.iter().map(String::as_str));
    meant.map(|meant| format!(", did you mean {meant}?")).unwrap_or_default()
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    pub id: String,
    pub name: String,
    /// The sources of its manifest, the later over the earlier.
    pub from: Vec<String>,
    pub problem: Option<String>,
}

const SHIPPED: &str = "built in";

/// Made ready once and kept as long as its files stay the same.
type Cache = Mutex<BTreeMap<String, (Option<String>, Arc<Provider>)>>;

#[derive(Debug)]
pub struct Providers {
    directory: PathBuf,
    cache: Cache,
}

impl Providers {
    pub fn new(directory: PathBuf) -> Self {
        Self { directory, cache: Cache::default() }
    }

    /// A provider by its id. Read again when the user's file has changed.
    pub fn load(&self, _: &Disk, id: &str) -> Result<Arc<Provider>, UserFileError> {
        let shipped = shipped(id);
        let path = self.path(id);
        let theirs = read(&path)?;
        if shipped.is_none() && theirs.is_none() {
            return Err(UserFileError::UnknownProvider { name: id.into(), known: self.ids() });
        }
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((text, provider)) = cache.get(id)
            && *text == theirs
        {
            return Ok(provider.clone());
        }
        let bad = |source: BadManifest| {
            let text = theirs.as_deref().or(shipped).unwrap_or_default();
            let excerpt = manifest_excerpt(&path.display().to_string(), text, &source);
            UserFileError::Bad { what: "a manifest", excerpt, problem: source.to_string() }
        };
        let provider = Arc::new(make(shipped, theirs.as_deref()).map_err(bad)?);
        cache.insert(id.into(), (theirs, provider.clone()));
        Ok(provider)
    }

    pub fn list(&self, disk: &Disk) -> Vec<Listed> {
        let listed = |id: String| {
            let loaded = self.load(disk, &id);
            let shipped = shipped(&id).map(|_| SHIPPED.to_owned());
            let theirs = Some(self.path(&id)).filter(|path| path.exists()).map(|path| path.display().to_string());
            Listed {
                name: loaded.as_ref().map_or_else(|_| id.clone(), |provider| provider.manifest.name.clone()),
                from: shipped.into_iter().chain(theirs).collect(),
                problem: loaded.err().map(|error| error.to_string()),
                id,
            }
        };
        self.ids().into_iter().map(listed).collect()
    }

    fn ids(&self) -> Vec<String> {
        names(&self.directory, ".toml", &BUILT_IN)
    }

    fn path(&self, id: &str) -> PathBuf {
        // A name that contains a path matches no file.
        self.directory.join(if plain(id) { format!("{id}.toml") } else { String::new() })
    }
}

fn shipped(id: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|(known, _)| *known == id).map(|(_, text)| *text)
}

fn make(shipped: Option<&str>, theirs: Option<&str>) -> Result<Provider, BadManifest> {
    match (shipped, theirs) {
        (Some(ours), Some(theirs)) => {
            let parse = |text: &str| text.parse::<toml::Table>().map_err(|error| BadManifest::Toml(Box::new(error)));
            Provider::from_table(merge(parse(ours)?, parse(theirs)?))
        }
        (ours, theirs) => Provider::parse(theirs.or(ours).unwrap_or_default()),
    }
}

/// Renders what is wrong with a manifest, with an excerpt if the place is known: from the parser, or because the message
/// quotes something in the text.
fn manifest_excerpt(path: &str, text: &str, error: &BadManifest) -> String {
    let (message, span) = match error {
        BadManifest::Toml(error) => (error.message().to_owned(), error.span()),
        other => (other.to_string(), None),
    };
    let quoted = message.split(['`', '"']).skip(1).step_by(2).filter(|word| !word.is_empty());
    let span = span.or_else(|| quoted.filter_map(|word| text.find(word).map(|at| at..at + word.len())).next());
    match span {
        Some(span) => rendered(path, text, &FileProblem::new(TextSpan::of_bytes(text, span), message)),
        None => format!("{path}: {message}"),
    }
}

fn rendered(path: &str, text: &str, problem: &FileProblem) -> String {
    problem.error(path, text, ExcerptLook::PLAIN).trim_end().to_owned()
}

fn read(path: &Path) -> Result<Option<String>, UserFileError> {
    match text_file::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::IsADirectory) => {
            Ok(None)
        }
        Err(error) => Err(UserFileError::Unreadable { path: path.to_owned(), error }),
    }
}

fn plain(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && !name.starts_with('.') && name.len() <= 100 && name.chars().all(allowed)
}

/// A profile by its name: the user's file, else ours.
pub fn profile(_: &Disk, directory: &Path, name: &str) -> Result<Profile, UserFileError> {
    WrittenProfile::find(directory, name)?.read()
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenProfile {
    /// The user's file; none if it is part of this program.
    pub path: Option<PathBuf>,
    pub text: String,
}

impl WrittenProfile {
    pub fn find(directory: &Path, name: &str) -> Result<Self, UserFileError> {
        if !plain(name) {
            return Err(UserFileError::Name(name.chars().take(100).collect()));
        }
        let path = directory.join(format!("{name}.md"));
        if let Some(text) = read(&path)? {
            return Ok(Self { path: Some(path), text });
        }
        let ours = BUILT_IN_PROFILES.iter().find(|(known, _)| *known == name);
        let ours = ours.map(|(_, text)| Self { path: None, text: (*text).to_owned() });
        ours.ok_or_else(|| UserFileError::UnknownProfile { name: name.into(), known: profile_names(directory), path })
    }

    pub fn read(&self) -> Result<Profile, UserFileError> {
        Profile::parse(&self.text).map_err(|bad| {
            let excerpt = rendered(&self.from(), &self.text, &bad.0);
            UserFileError::Bad { what: "a profile", excerpt, problem: bad.to_string() }
        })
    }

    pub fn from(&self) -> String {
        self.path.as_ref().map_or_else(|| SHIPPED.to_owned(), |path| path.display().to_string())
    }
}

/// Reads and checks the user's prompt templates, `NAME.j2` in this directory.
pub fn prompt_templates(directory: &Path) -> Result<PromptTemplates, UserFileError> {
    let mut files = Vec::new();
    for name in names(directory, &format!(".{}", prompts::EXTENSION), &[]) {
        let path = directory.join(&name).with_extension(prompts::EXTENSION);
        let text = text_file::read(&path).map_err(|error| UserFileError::Unreadable { path: path.clone(), error })?;
        files.push((path.display().to_string(), name, text));
    }
    PromptTemplates::new(files).map_err(|(problems, text)| {
        let excerpt = problems.errors(&text, ExcerptLook::PLAIN).trim_end().to_owned();
        UserFileError::Bad { what: "a prompt template", problem: excerpt.clone(), excerpt }
    })
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedProfile {
    pub name: String,
    pub description: String,
    pub from: String,
    pub problem: Option<String>,
}

pub fn profiles(directory: &Path) -> Vec<ListedProfile> {
    let listed = |name: String| {
        let written = WrittenProfile::find(directory, &name);
        let from = written.as_ref().map(WrittenProfile::from).unwrap_or_default();
        let (description, problem) = match written.and_then(|written| written.read()) {
            Ok(profile) => (profile.description, None),
            // A list has one line for each.
            Err(UserFileError::Bad { problem, .. }) => (String::new(), Some(problem)),
            Err(error) => (String::new(), Some(error.to_string())),
        };
        ListedProfile { name, description, from, problem }
    };
    profile_names(directory).into_iter().map(listed).collect()
}

fn profile_names(directory: &Path) -> Vec<String> {
    names(directory, ".md", BUILT_IN_PROFILES)
}

/// Lists the built-in names, and the files in the directory with this ending.
fn names(directory: &Path, ending: &str, built_in: &[(&str, &str)]) -> Vec<String> {
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let theirs = files.filter_map(|file| file.file_name().into_string().ok()?.strip_suffix(ending).map(str::to_owned));
    let mut names: Vec<String> = built_in.iter().map(|(name, _)| (*name).to_owned()).collect();
    names.extend(theirs.filter(|name| plain(name)));
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DISK;

    #[test]
    fn the_users_file_is_laid_over_ours() {
        let directory = tempfile::tempdir().unwrap();
        let providers = Providers::new(directory.path().to_owned());
        let ours = providers.load(DISK, "claude_code").unwrap();
        assert!(Arc::ptr_eq(&ours, &providers.load(DISK, "claude_code").unwrap()), "made ready once");
        assert!(providers.load(DISK, "../claude_code").unwrap_err().to_string().contains("claude_code"));

        let file = directory.path().join("claude_code.toml");
        std::fs::write(&file, "name = 'Mine'\n[launch]\nprogram = '/opt/claude'").unwrap();
        let mine = providers.load(DISK, "claude_code").unwrap();
        assert_eq!((mine.manifest.name.as_str(), mine.manifest.exit.as_deref()), ("Mine", Some("/exit")));
        assert_eq!(mine.manifest.launch.as_ref().unwrap().program, "/opt/claude");

        std::fs::write(&file, "[screen.layuot]\n").unwrap();
        let error = providers.load(DISK, "claude_code").unwrap_err().to_string();
        assert!(error.contains("layuot") && error.contains("claude_code.toml"), "{error}");
        let listed = providers.list(DISK).into_iter().find(|listed| listed.id == "claude_code").unwrap();
        assert_eq!(listed.from.len(), 2);
        assert!(listed.problem.is_some());
    }

    #[test]
    fn the_users_profile_takes_the_place_of_ours() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let ours = profile(DISK, &directory.join("no-such"), "tester").unwrap();
        assert_eq!((ours.name.as_str(), profile(DISK, directory, "tester").unwrap()), ("tester", ours.clone()));

        std::fs::write(directory.join("tester.md"), "---\nname: tester\ndescription: mine\n---\nTest it.").unwrap();
        std::fs::write(directory.join("writer.md"), "---\nname: writer\ndescription: writes\n---\nWrite.").unwrap();
        assert_eq!(profile(DISK, directory, "tester").unwrap().text, "Test it.");
        let listed = profiles(directory);
        let names: Vec<&str> = listed.iter().map(|listed| listed.name.as_str()).collect();
        assert_eq!(
            names,
            ["peer_programmer", "peer_system_analyst", "programmer", "system_analyst", "tester", "writer"]
        );
        assert_eq!((listed[0].from.as_str(), listed[4].description.as_str()), (SHIPPED, "mine"));
        assert!(listed.iter().all(|listed| listed.problem.is_none()), "{listed:?}");

        // A broken one is not quietly replaced by ours.
        std::fs::write(directory.join("tester.md"), "Test it.").unwrap();
        assert!(profile(DISK, directory, "tester").unwrap_err().to_string().contains("tester.md"));
        assert!(profiles(directory)[4].problem.is_some());
        let unknown = profile(DISK, directory, "boss").unwrap_err().to_string();
        assert!(unknown.contains("no profile \"boss\"") && unknown.contains("writer"), "{unknown}");
        assert!(matches!(profile(DISK, directory, "../tester"), Err(UserFileError::Name(_))));
    }

    #[test]
    fn prompt_templates_of_the_user_are_checked_when_they_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tester.j2");
        assert_eq!(prompt_templates(&directory.path().join("none")).unwrap(), PromptTemplates::default());
        std::fs::write(&path, "Round {{ round }}").unwrap();
        assert_ne!(prompt_templates(directory.path()).unwrap(), PromptTemplates::default());
        std::fs::write(&path, "Round\n{{ rund }}").unwrap();
        let error = prompt_templates(directory.path()).unwrap_err().to_string();
        assert!(error.contains("tester.j2:2:4") && error.contains("{{ rund }}") && error.contains("`rund`"), "{error}");
    }
}
