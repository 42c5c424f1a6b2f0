NOTES_FILE=$(mktemp)
export NOTES_FILE
./notes add 'call Ada
tomorrow'
seen=$(./notes list)
rm "$NOTES_FILE"
if [ "$seen" = '1 call Ada tomorrow' ] && sh tests/run >/dev/null; then
  text='"[PASS] S1: one note\n[PASS] AC1: one note on one line\n[PASS] AC2: sh tests/run passes\n[PASS] AC3: without it, line_break.test fails\n**Verdict: PASS**"'
else
  text='"[FAIL] S1: notes list still shows two notes\n[FAIL] AC1: two notes\n[PASS] AC2: sh tests/run passes\n[FAIL] AC3: line_break.test has no line break\n**Verdict: FAIL**"'
fi
