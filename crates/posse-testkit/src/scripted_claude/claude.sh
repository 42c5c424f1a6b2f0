#!/bin/sh
# A scripted `claude --print`. It records how it was called, then plays a file of shell commands as its session:
# `play/TASK.NUMBER`, or `play/TASK` for all other sessions of the task. The commands see `$session`, the directory of the
# session, and `$number`. Standard input is the prompt. What they print is the stream of the session.

home=@HOME@
number=1
until session=$home/sessions/$POSSE_TASK_ID.$number && mkdir "$session" 2>/dev/null; do
  [ -d "$session" ] || exit 1
  number=$((number + 1))
done
readlink "/proc/$$/fd/0" >"$session/stdin"
pwd -P >"$session/directory"
env -0 >"$session/environment"
for argument; do printf '%s\0' "$argument"; done >"$session/arguments"
cat >"$session/prompt"
: >"$session/called"
exec <"$session/prompt"

# The fields of the result, as JSON, and the exit status. A play may change them.
text='"done"' cost=0.25 turns=2 error=false code=0 denials=

# Prints a line of the stream.
emit() {
  printf '%s\n' "$1"
}

# Writes the report, with these fields besides those that every report has.
report() {
  printf '{"task_id":"%s","nonce":"%s",%s}' "$POSSE_TASK_ID" "$POSSE_RUN_ID" "$1" >"$POSSE_RESULT_FILE"
}

# Writes a file with this line and commits it.
commit() {
  printf '%s\n' "$2" >"$1"
  git add -- "$1"
  git -c user.name=a -c user.email=a@b commit -q -m "change $1" -- "$1"
}

# Waits until the test opens this gate, which lets one session pass.
wait_for() {
  : >"$session/awaits"
  read -r _ <"$home/$1"
}

# Prints a text as a JSON string.
json() {
  printf '"%s"' "$(printf '%s' "$1" | sed ':all;$!{N;b all};s/\\/\\\\/g;s/"/\\"/g;s/\t/\\t/g;s/\n/\\n/g')"
}

# Ends the session with its result.
finish() {
  printf '{"type":"result","subtype":"success","is_error":%s,"num_turns":%s,"result":%s,"total_cost_usd":%s,' \
    "$error" "$turns" "$text" "$cost"
  printf '"usage":{"input_tokens":10,"output_tokens":5},"duration_ms":1500,"permission_denials":[%s]}\n' "${denials#,}"
  exit "$code"
}

emit '{"type":"system","subtype":"init","session_id":"s","model":"scripted","claude_code_version":"0.0.1"}'
play=$home/play/$POSSE_TASK_ID
if [ -e "$play.$number" ]; then
  . "$play.$number"
elif [ -e "$play" ]; then
  . "$play"
fi
finish
