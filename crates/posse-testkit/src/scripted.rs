//! A scripted `claude -p`: writes down how it was called, plays what the test says for the task, and speaks as the real one
//! does. What each session does is a piece of shell, so a test reads as what happens.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where it lives, and what it has written down.
pub struct ScriptedClaude {
    directory: PathBuf,
}

/// How a session was called.
#[derive(Debug)]
pub struct Called {
    pub arguments: Vec<String>,
    pub directory: String,
    pub environment: Vec<String>,
    /// Where its standard input leads to.
    pub stdin: String,
    /// What it read there.
    pub prompt: String,
}

impl Called {
    pub fn prompt(&self) -> &str {
        &self.prompt
    }

    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    }

    pub fn flag(&self, name: &str) -> Option<&str> {
        let at = self.arguments.iter().position(|argument| argument == name)?;
        self.arguments.get(at + 1).map(String::as_str)
    }
}

const SCRIPT: &str = r#"#!/bin/sh
home='@HOME@'
task=$POSSE_TASK_ID
number=1
while ! mkdir "$home/sessions/$task.$number" 2>/dev/null; do number=$((number + 1)); done
me=$home/sessions/$task.$number
for argument in "$@"; do printf '%s\0' "$argument"; done > "$me/arguments"
pwd > "$me/directory"
env > "$me/environment"
readlink /proc/$$/fd/0 > "$me/stdin"
cat > "$me/prompt"
# What it plays finds the prompt behind the arguments.
set -- "$@" "$(cat "$me/prompt")"
: > "$me/called"

# report STATUS MESSAGE [MORE]: the report, in the file that was named.
report() {
  printf '{"task_id": "%s", "nonce": "%s", "status": "%s", "message": "%s"%s}' \
    "$task" "$POSSE_RUN_ID" "$1" "$2" "${3:+, $3}" > "$POSSE_RESULT_FILE"
}
# say TEXT: what the model says. Quotes must be written as JSON has them.
say() {
  printf '{"type":"assistant","message":{"id":"m%s","content":[{"type":"text","text":"%s"}],"usage":{"input_tokens":10,"output_tokens":5}}}\n' "$$" "$1"
}
# commit FILE TEXT: work, committed.
commit() {
  printf '%s\n' "$2" > "$1" && git add -- "$1" && git -c user.name=a -c user.email=a@b commit -q -m "change $1" -- "$1"
}
# uses TOOL ARGUMENT: a tool is used, and done.
uses() {
  tools=$((tools + 1))
  case $1 in Bash) key=command ;; Grep | Glob) key=pattern ;; *) key=file_path ;; esac
  printf '{"type":"assistant","message":{"id":"t%s","content":[{"type":"tool_use","id":"t%s","name":"%s","input":{"%s":"%s"}}]}}\n' \
    "$tools" "$tools" "$1" "$key" "$2"
  printf '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t%s","is_error":%s,"content":"%s"}]}}\n' \
    "$tools" "${3:-false}" "${4:-done}"
}
# refused TOOL PATH: a tool that it is not allowed to use.
refused() {
  uses "$1" "$2" true 'it is outside of the allowed directories'
  denials="$denials${denials:+,}{\"tool_name\":\"$1\",\"tool_use_id\":\"t$tools\",\"tool_input\":{\"file_path\":\"$2\"}}"
}
# limited SECONDS: out of quota for so long.
limited() {
  printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%s,"rateLimitType":"five_hour"}}\n' \
    "$(($(date +%s) + $1))"
  error=true code=1
}
# await NAME: until the test lets it go on.
await() {
  : > "$me/awaits"
  read -r _ < "$home/$1"
}
cost=0.25 turns=2 error=false words=done code=0 tools=0 denials=
printf '{"type":"system","subtype":"init","session_id":"s","model":"scripted","claude_code_version":"0.0.1"}\n'
for play in "$home/play/$task.$number" "$home/play/$task"; do
  if [ -e "$play" ]; then . "$play"; break; fi
done
printf '{"type":"result","subtype":"success","is_error":%s,"num_turns":%s,"result":"%s","total_cost_usd":%s,"usage":{"input_tokens":10,"output_tokens":5},"duration_ms":1500,"permission_denials":[%s]}\n' "$error" "$turns" "$words" "$cost" "$denials"
exit $code
"#;

#[allow(clippy::unwrap_used)]
impl ScriptedClaude {
    /// Puts it into this directory.
    pub fn install(directory: &Path) -> Self {
        for name in ["bin", "play", "sessions"] {
            fs::create_dir_all(directory.join(name)).unwrap();
        }
        let program = directory.join("bin/claude");
        fs::write(&program, SCRIPT.replace("@HOME@", directory.to_str().unwrap())).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { directory: directory.to_owned() }
    }

    /// A PATH on which it is found first.
    pub fn path(&self) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        format!("{}:{path}", self.directory.join("bin").display())
    }

    /// What sessions of a task do: `1.1`, or of its second session only: `1.1.2`.
    pub fn play(&self, of: &str, script: &str) {
        fs::write(self.directory.join("play").join(of), script).unwrap();
    }

    /// Makes a place at which sessions wait (`await NAME`).
    pub fn gate(&self, name: &str) {
        rustix::fs::mknodat(
            rustix::fs::CWD,
            self.directory.join(name),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
    }

    /// Lets one session through that waits there.
    pub fn open_gate(&self, name: &str) {
        fs::write(self.directory.join(name), "go\n").unwrap();
    }

    /// Whether the session of this number of a task waits at a gate.
    pub fn waits(&self, task: &str, number: u32) -> bool {
        self.session(task, number).join("awaits").exists()
    }

    /// How the session of this number of a task was called, if it was.
    pub fn called(&self, task: &str, number: u32) -> Option<Called> {
        let session = self.session(task, number);
        session.join("called").exists().then(|| {
            let read = |name: &str| String::from_utf8_lossy(&fs::read(session.join(name)).unwrap()).into_owned();
            Called {
                arguments: read("arguments").trim_end_matches('\0').split('\0').map(str::to_owned).collect(),
                directory: read("directory").trim_end().to_owned(),
                environment: read("environment").lines().map(str::to_owned).collect(),
                stdin: read("stdin").trim_end().to_owned(),
                prompt: read("prompt"),
            }
        })
    }

    /// How many sessions there were, of all tasks.
    pub fn sessions(&self) -> usize {
        fs::read_dir(self.directory.join("sessions")).unwrap().count()
    }

    /// Where the session of this number of a task leaves what it likes (`$me`).
    pub fn session(&self, task: &str, number: u32) -> PathBuf {
        self.directory.join("sessions").join(format!("{task}.{number}"))
    }
}
