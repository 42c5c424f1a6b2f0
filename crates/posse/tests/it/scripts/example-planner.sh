asked=$(cat)
of() { printf '%s\n' "$asked" | sed -n "$1" | head -n 1; }
design=$(of 's/.*Write the design document \([^:]*\):.*/\1/p') plan=$(of 's/.*Write the plan \([^,]*\),.*/\1/p')
mkdir -p "$(dirname "$design")" "$(dirname "$plan")"
echo "# Design of $POSSE_ITEM" > "$design"
cat > "$plan" <<END
meta:
  name: $POSSE_ITEM
  plan_doc: $design
  source_item: $(of 's/^- Item: //p')
  validation: {enabled: true, run_after: [shell-coder], validators: [reviewer]}
sections:
  - id: s
    tasks:
      - id: '1.1'
        name: Do it
        agent: shell-coder
        target_acs: [$(printf '%s\n' "$asked" | sed -n 's/^\(AC[0-9]*\): .*/\1,/p' | sort -u | tr -d '\n')]
        description: As the design says.
END
report '"status":"completed","message":"planned"'
