#!/bin/sh
# A scripted `claude -p`. Records its call in sessions/TASK.NUMBER, then runs play/TASK.NUMBER or play/TASK.
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
# The play finds the prompt as the last argument.
set -- "$@" "$(cat "$me/prompt")"
: > "$me/called"

# report STATUS MESSAGE [MORE]: writes the report.
report() {
  printf '{"task_id": "%s", "nonce": "%s", "status": "%s", "message": "%s"%s}' \
    "$task" "$POSSE_RUN_ID" "$1" "$2" "${3:+, $3}" > "$POSSE_RESULT_FILE"
}
# say TEXT: a message of the model. The text is JSON-escaped.
say() {
  printf '{"type":"assistant","message":{"id":"m%s","content":[{"type":"text","text":"%s"}],"usage":{"input_tokens":10,"output_tokens":5}}}\n' "$$" "$1"
}
# commit FILE TEXT: writes a file and commits it.
commit() {
  printf '%s\n' "$2" > "$1" && git add -- "$1" && git -c user.name=a -c user.email=a@b commit -q -m "change $1" -- "$1"
}
# uses TOOL ARGUMENT: a tool call and its result.
uses() {
  tools=$((tools + 1))
  case $1 in Bash) key=command ;; Grep | Glob) key=pattern ;; *) key=file_path ;; esac
  printf '{"type":"assistant","message":{"id":"t%s","content":[{"type":"tool_use","id":"t%s","name":"%s","input":{"%s":"%s"}}]}}\n' \
    "$tools" "$tools" "$1" "$key" "$2"
  printf '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t%s","is_error":%s,"content":"%s"}]}}\n' \
    "$tools" "${3:-false}" "${4:-done}"
}
# refused TOOL PATH: a tool call that is not allowed.
refused() {
  uses "$1" "$2" true 'it is outside of the allowed directories'
  denials="$denials${denials:+,}{\"tool_name\":\"$1\",\"tool_use_id\":\"t$tools\",\"tool_input\":{\"file_path\":\"$2\"}}"
}
# limited SECONDS: the quota is used up for this time.
limited() {
  printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%s,"rateLimitType":"five_hour"}}\n' \
    "$(($(date +%s) + $1))"
  error=true code=1
}
# await NAME: waits until the test opens the gate.
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
