rm -f orphan.code
export -f posse 2>/dev/null
cat > approve <<END
while [ "\$(cut -d' ' -f4 /proc/\$\$/stat)" = "$$" ]; do :; done
$(declare -f posse)
posse ${ORPHANS_ARGUMENTS:-approve a} > orphan.said 2>&1
echo \$? > orphan.code.new
mv orphan.code.new orphan.code
END
(setsid env -i POSSE_HOME="$POSSE_HOME" PATH="$PATH" bash ./approve > /dev/null 2>&1 &)
until [ -e orphan.code ]; do sleep 0.05; done
cat orphan.said
exit $(cat orphan.code)
