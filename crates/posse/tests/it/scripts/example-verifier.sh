verdict=$(for point in $(sed -n 's/^\(AC[0-9]*\|S[0-9]*\): .*/\1/p' | sort -u); do
  echo "[PASS] $point: tried"
done
echo '**Verdict: PASS**')
text=$(json "$verdict")
