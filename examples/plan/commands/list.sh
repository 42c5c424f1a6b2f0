# notes list: all notes, each with its number.
[ -f "$NOTES_FILE" ] || exit 0
grep -n '' "$NOTES_FILE" | sed 's/:/ /'
