# notes add TEXT: writes a note down.
[ $# -gt 0 ] || { echo "notes add: what?" >&2; exit 64; }
printf '%s\n' "$*" >> "$NOTES_FILE"
