//! The part of a repository's own configuration that posse's git uses.
//!
//! A session can write `.git/config`, and many keys there name programs. So git gets a copy with the keys in this list and no
//! others. Keys that name programs count only in the user's own configuration (global or system), which git reads as always.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// One entry: the key as git prints it (section and name in lower case), and its value. A missing value means true.
pub type Entry = (String, Option<String>);

/// Keys that name no program, by section. `*` stands for a user-chosen name.
const PLAIN: &[(&str, &str)] = &[
    ("author", "name email"),
    ("branch.*", "remote merge rebase"),
    ("commit", "gpgsign"),
    ("committer", "name email"),
    ("core", "attributesfile autocrlf bigfilethreshold checkstat commentchar eol excludesfile filemode ignorecase"),
    ("core", "logallrefupdates precomposeunicode protecthfs protectntfs quotepath repositoryformatversion safecrlf"),
    ("core", "sharedrepository sparsecheckout sparsecheckoutcone symlinks trustctime untrackedcache"),
    ("diff", "algorithm renamelimit renames"),
    ("extensions", "objectformat refstorage relativeworktrees"),
    ("gpg", "format"),
    ("gpg.ssh", "allowedsignersfile"),
    ("i18n", "commitencoding"),
    ("index", "version"),
    ("merge", "conflictstyle directoryrenames renamelimit renames"),
    ("remote.*", "fetch pushurl url"),
    ("submodule", "active"),
    ("submodule.*", "active url"),
    ("user", "email name signingkey useconfigonly"),
];

/// Well-known entries that name a program outside of every repository.
const KNOWN_PROGRAMS: &[(&str, &str)] = &[
    ("filter.lfs.clean", "git-lfs clean -- %f"),
    ("filter.lfs.smudge", "git-lfs smudge -- %f"),
    ("filter.lfs.process", "git-lfs filter-process"),
    ("filter.lfs.required", "true"),
];

/// The command in place of a filter that the repository itself defines. A file that needs the filter is neither committed
/// nor checked out without it.
const REFUSED_FILTER: &str = "echo 'posse runs no filter that .git/config defines, because sessions can write there: define it in your own git configuration (git config --global)' >&2; exit 1";

/// Reads what `git config --list -z` prints.
pub fn read(text: &[u8]) -> Vec<Entry> {
    let lines = text.split(|byte| *byte == 0).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let line = String::from_utf8_lossy(line);
            match line.split_once('\n') {
                Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
                None => (line.into_owned(), None),
            }
        })
        .collect()
}

/// Returns whether posse's git uses an entry of the repository's own configuration.
pub fn is_used((key, value): &Entry) -> bool {
    let known = |(known, program): &(&str, &str)| key == known && value.as_deref() == Some(*program);
    // The merge driver `true` keeps the current branch's side. It is widely used, and runs no program of a session.
    let keeps_ours = key.starts_with("merge.") && key.ends_with(".driver") && value.as_deref() == Some("true");
    is_plain(key) || KNOWN_PROGRAMS.iter().any(known) || keeps_ours
}

fn is_plain(key: &str) -> bool {
    let Some((section, name)) = key.rsplit_once('.') else { return false };
    let named = |plain: &str| plain.strip_suffix('*').and_then(|before| section.strip_prefix(before));
    let is_in = |plain: &str| section == plain || named(plain).is_some_and(|name| !name.is_empty());
    PLAIN.iter().any(|(plain, names)| is_in(plain) && names.split(' ').any(|known| known == name))
}

/// Returns the configuration for posse's git: the entries that are used, and a refusal for each filter that is not.
pub fn trusted(entries: &[Entry], users_filters: &BTreeSet<String>) -> String {
    let mut text = String::from("# Written by posse from the repository's configuration when a run began.\n");
    for entry in entries.iter().filter(|entry| is_used(entry)) {
        write_entry(&mut text, entry);
    }
    let refused: BTreeSet<&str> = entries.iter().filter(|entry| !is_used(entry)).filter_map(filter_name).collect();
    for name in refused.into_iter().filter(|name| !users_filters.contains(*name)) {
        for (variable, value) in [("clean", REFUSED_FILTER), ("smudge", REFUSED_FILTER), ("required", "true")] {
            write_entry(&mut text, &(format!("filter.{name}.{variable}"), Some(value.to_owned())));
        }
    }
    text
}

/// Returns `NAME` of `filter.NAME.clean`.
pub fn filter_name((key, _): &Entry) -> Option<&str> {
    key.strip_prefix("filter.")?.rsplit_once('.').map(|(name, _)| name)
}

fn write_entry(text: &mut String, (key, value): &Entry) {
    let Some((section, rest)) = key.split_once('.') else { return };
    let (subsection, name) = match rest.rsplit_once('.') {
        Some((subsection, name)) => (Some(subsection), name),
        None => (None, rest),
    };
    let _ = match subsection {
        // A name with a line break cannot be written.
        Some(subsection) if subsection.contains(['\n', '\0']) => return,
        Some(subsection) => {
            writeln!(text, "[{section} \"{}\"]", subsection.replace('\\', "\\\\").replace('"', "\\\""))
        }
        None => writeln!(text, "[{section}]"),
    };
    let _ = match value {
        None => writeln!(text, "\t{name}"),
        Some(value) => {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
            writeln!(text, "\t{name} = \"{value}\"")
        }
    };
}

/// Describes the entries that are new, changed or gone, as lines for people.
pub fn differences(before: &[Entry], now: &[Entry]) -> Vec<String> {
    let shown = |(key, value): &Entry| match value {
        Some(value) => format!("{key}={}", value.escape_debug()),
        None => key.clone(),
    };
    let new = now.iter().filter(|entry| !before.contains(entry)).map(|entry| format!("{} is new", shown(entry)));
    let gone = before.iter().filter(|entry| !now.contains(entry)).map(|entry| format!("{} is gone", shown(entry)));
    new.chain(gone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, value: &str) -> Entry {
        (key.to_owned(), Some(value.to_owned()))
    }

    #[test]
    fn keys_that_name_programs_or_other_files_are_not_used() {
        let dangerous =
            "core.fsmonitor core.hookspath core.worktree core.sshcommand core.pager core.editor core.askpass
            core.alternaterefscommand core.gitproxy core.bare credential.helper credential.https://example.com.helper
            gpg.program gpg.ssh.program gpg.ssh.defaultkeycommand gpg.x509.program include.path includeif.gitdir:/.path
            alias.status protocol.ext.allow extensions.worktreeconfig extensions.partialclone filter.x.clean
            filter.x.process filter.lfs.clean diff.x.textconv diff.x.command diff.external merge.x.driver merge.tool
            mergetool.x.cmd remote.origin.vcs remote.origin.uploadpack submodule.x.update trailer.x.command
            sequence.editor status.submodulesummary uploadpack.packobjectshook url.ext::sh.insteadof branch.merge
            branch.x.pushremote.y";
        for key in dangerous.split_whitespace() {
            assert!(!is_used(&entry(key, "touch /tmp/x")), "{key}");
        }
        for (key, value) in [
            ("user.email", "a@example.com"),
            ("branch.feature/a.b.merge", "refs/heads/main"),
            ("filter.lfs.clean", "git-lfs clean -- %f"),
            ("merge.ours.driver", "true"),
        ] {
            assert!(is_used(&entry(key, value)), "{key}");
        }
    }

    #[test]
    fn a_filter_of_the_repository_is_refused_unless_the_user_defines_it_too() {
        let entries = [
            entry("user.name", "a \"b\" \\ c\nd"),
            entry("filter.git-crypt.clean", "x"),
            entry("filter.mine.clean", "y"),
        ];
        let text = trusted(&entries, &BTreeSet::from(["mine".to_owned()]));
        assert!(text.contains("[user]\n\tname = \"a \\\"b\\\" \\\\ c\\nd\"\n"), "{text}");
        assert!(text.contains("[filter \"git-crypt\"]\n\tclean = \"echo 'posse runs no filter"), "{text}");
        assert!(!text.contains("mine"), "{text}");
    }

    #[test]
    fn what_git_prints_is_read_back() {
        let entries = read(b"core.bare\nfalse\0a.b.c\nx\ny\0core.flag\0");
        assert_eq!(entries, [entry("core.bare", "false"), entry("a.b.c", "x\ny"), ("core.flag".to_owned(), None)]);
        let now = [entry("core.bare", "false"), entry("core.fsmonitor", "\u{1b}x")];
        let told = differences(&entries[..1], &now);
        assert_eq!(told, ["core.fsmonitor=\\u{1b}x is new"]);
    }
}
