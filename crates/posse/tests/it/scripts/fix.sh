cat > commands/add.sh <<'END'
# notes add TEXT: writes a note down, on one line.
[ $# -gt 0 ] || { echo "notes add: what?" >&2; exit 64; }
printf '%s' "$*" | tr '\n' ' ' >> "$NOTES_FILE"
echo >> "$NOTES_FILE"
END
cat > tests/line_break.test <<'END'
./notes add "call Ada
tomorrow"
[ "$(./notes list)" = '1 call Ada tomorrow' ]
END
