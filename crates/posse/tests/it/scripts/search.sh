cat > commands/search.sh <<'END'
# notes search TEXT: the notes that contain it.
sh commands/list.sh | grep -F -- "$*" || { echo "notes: none" >&2; exit 1; }
END
cat > tests/search.test <<'END'
./notes add buy milk
./notes add call Ada
[ "$(./notes search milk)" = '1 buy milk' ]
! ./notes search beer 2>/dev/null
END
