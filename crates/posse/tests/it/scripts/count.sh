cat > commands/count.sh <<'END'
# notes count: how many there are.
[ -f "$NOTES_FILE" ] || { echo 0; exit 0; }
wc -l < "$NOTES_FILE" | tr -d ' '
END
cat > tests/count.test <<'END'
[ "$(./notes count)" = 0 ]
./notes add buy milk
[ "$(./notes count)" = 1 ]
END
