//! The agents that posse has a manifest for: whether they are installed, their versions, and signs of accounts. Reads no
//! credential, and starts nothing but the agents' `--version`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use posse_agents::Manifest;
use posse_agents::account::Sign;
use posse_agents::version::Version;
use posse_files::disk::Disk;
use posse_files::providers::{Listed, Providers};
use posse_files::versions;
use posse_term::paths::Paths;

use super::line::{ReportLine, line};

#[derive(Clone, Debug)]
pub(super) struct FoundAgent {
    pub(super) id: String,
    /// `None` if it cannot be used.
    pub(super) manifest: Option<Manifest>,
    pub(super) program: Option<PathBuf>,
    /// The output of `--version`; `None` if it fails.
    pub(super) said: Option<String>,
    pub(super) sign: Option<Sign>,
}

pub(super) async fn installed_agents(paths: &Paths, environment: &BTreeMap<String, String>) -> Vec<FoundAgent> {
    let providers = Providers::new(paths.providers());
    let agent = |listed: Listed| agent(listed, &providers, environment);
    let mut agents: Vec<FoundAgent> = providers.list(&Disk::of_this_thread()).into_iter().map(agent).collect();
    // All are asked at once: some take seconds.
    let ask = |agent: &FoundAgent| {
        let (program, environment) = (agent.program.clone(), environment.clone());
        tokio::spawn(async move { versions::ask(&program?, &environment).await })
    };
    let asked: Vec<_> = agents.iter().map(ask).collect();
    for (agent, said) in agents.iter_mut().zip(asked) {
        agent.said = said.await.ok().flatten();
    }
    agents
}

/// An agent that was not asked for its version yet.
fn agent(listed: Listed, providers: &Providers, environment: &BTreeMap<String, String>) -> FoundAgent {
    let disk = &Disk::of_this_thread();
    let manifest = providers.load(disk, &listed.id).ok().map(|provider| provider.manifest.clone());
    let launch = manifest.as_ref().and_then(|manifest| manifest.launch.as_ref());
    let path = environment.get("PATH").map(String::as_str).unwrap_or_default();
    let account = manifest.as_ref().and_then(|manifest| manifest.account.as_ref());
    FoundAgent {
        program: launch.and_then(|launch| versions::locate(disk, &launch.program, path)),
        sign: account.and_then(|account| account.sign(|name| environment.get(name).cloned(), Path::exists)),
        id: listed.id,
        manifest,
        said: None,
    }
}

pub(super) fn lines(agents: &[FoundAgent]) -> Vec<ReportLine> {
    let mut lines: Vec<ReportLine> = Vec::new();
    if agents.iter().all(|agent| agent.program.is_none()) {
        let none = line("any", "none is installed; `posse demo` works all the same");
        lines.push(none.warn("install one of those below and sign in to it"));
    }
    for agent in agents {
        lines.push(installed(agent));
        if agent.program.is_some() && agent.said.is_some() {
            lines.push(account(agent));
        }
    }
    lines
}

fn installed(agent: &FoundAgent) -> ReportLine {
    let id = &agent.id;
    let Some(manifest) = &agent.manifest else {
        return line(id, "its manifest is broken").bad(format!("`posse provider check {id}` shows where"));
    };
    let Some(program) = &agent.program else {
        let install = manifest.launch.as_ref().map_or("", |launch| &launch.install);
        return line(id, "not installed").advise(format!("to get it: {install}"));
    };
    let Some(said) = &agent.said else {
        let fails = line(id, format!("{} --version fails", program.display()));
        return fails.bad("install it anew, or take it off your PATH");
    };
    let known: Vec<String> = manifest.versions.iter().map(Version::to_string).collect();
    let fits = format!("`posse provider check --live {id}` says whether it fits; needs no account, spends nothing");
    match Version::said(said) {
        Some(version) if manifest.versions.contains(&version) => line(id, format!("{version}, which posse knows")),
        Some(version) if known.is_empty() => {
            line(id, format!("{version}; its manifest names no versions, so try it before you rely on it"))
        }
        Some(version) => line(id, format!("{version} is new to posse, which knows {}", known.join(", "))).warn(fits),
        None => line(id, format!("its version is unknown: it says {said:?}")).warn(fits),
    }
}

fn account(agent: &FoundAgent) -> ReportLine {
    let what = format!("{} account", agent.id);
    let account = agent.manifest.as_ref().and_then(|manifest| manifest.account.as_ref());
    match (&agent.sign, account) {
        (Some(Sign::File(file)), _) => line(what, format!("signed in, it seems: {} is there", file.display())),
        (Some(Sign::Variable(name)), _) => line(what, format!("a key is set: {name}")),
        (None, Some(account)) => {
            let advice = format!("if you have not signed in: {}", account.sign_in);
            line(what, "unknown: no sign of one was found").warn(advice)
        }
        (None, None) => line(what, "unknown").advise("start it once by hand to see"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::ReportVerdict::{Bad, Ok as Fine, Warn};
    use super::super::line::assert_lines;
    use super::*;

    /// An agent about which all is well, changed.
    fn mole(change: impl FnOnce(&mut FoundAgent, &mut Manifest)) -> Vec<ReportLine> {
        let mut manifest = posse_agents::manifest::built_in("claude_code").unwrap().unwrap().manifest.clone();
        manifest.versions = vec!["1.2.3".parse().unwrap(), "1.3.0".parse().unwrap()];
        let mut agent = FoundAgent {
            id: "mole".into(),
            manifest: None,
            program: Some("/usr/bin/mole".into()),
            said: Some("mole 1.2.3".into()),
            sign: Some(Sign::File("/home/me/.mole/auth.json".into())),
        };
        change(&mut agent, &mut manifest);
        agent.manifest = Some(manifest);
        lines(&[agent])
    }

    #[test]
    fn agents_are_judged() {
        let said = |said: &str| mole(|agent, _| agent.said = Some(said.into())).remove(0);
        let absent = mole(|agent, _| agent.program = None);
        let broken = FoundAgent { id: "mole".into(), manifest: None, program: None, said: None, sign: None };
        let account = |change: fn(&mut FoundAgent, &mut Manifest)| mole(change).remove(1);
        let variable = |agent: &mut FoundAgent, _: &mut Manifest| agent.sign = Some(Sign::Variable("MOLE_KEY".into()));
        let without_account = |agent: &mut FoundAgent, manifest: &mut Manifest| {
            agent.sign = None;
            manifest.account = None;
        };
        assert_eq!(absent.len(), 2, "nothing is said of an account with an agent that is not installed");
        assert_lines([
            (said("mole 1.2.3"), Fine, "1.2.3, which posse knows", ""),
            (said("1.4.0"), Warn, "1.4.0 is new to posse, which knows 1.2.3, 1.3.0", "provider check --live mole"),
            (said("hello"), Warn, "unknown", "--live mole"),
            (mole(|_, manifest| manifest.versions.clear()).remove(0), Fine, "names no versions", ""),
            (mole(|agent, _| agent.said = None).remove(0), Bad, "/usr/bin/mole --version fails", "install it anew"),
            (absent[0].clone(), Warn, "none is installed; `posse demo` works", "install one"),
            (absent[1].clone(), Fine, "not installed", "npm install"),
            (lines(&[broken]).remove(1), Bad, "manifest is broken", "provider check mole"),
            (account(|_, _| {}), Fine, "/home/me/.mole/auth.json is there", ""),
            (account(variable), Fine, "a key is set: MOLE_KEY", ""),
            (account(|agent, _| agent.sign = None), Warn, "unknown", "claude"),
            (account(without_account), Fine, "unknown", "by hand"),
        ]);
    }
}
