design=docs/plans/$(date -u +%F)-$POSSE_ITEM-design.md
case $POSSE_ITEM in *bug*) kind=defect;; *) kind=feature;; esac
mkdir -p docs/plans .posse/plans
echo "# Design of $POSSE_ITEM" > "$design"
cat > ".posse/plans/$POSSE_ITEM.yaml" <<EOF
meta:
  name: $POSSE_ITEM
  plan_doc: $design
  source_item: docs/$kind-backlog/$POSSE_ITEM.md
  validation: {enabled: true}
  backoff_base: 1
sections:
  - id: s
    name: Section
    tasks:
      - id: 'do-$POSSE_ITEM'
        name: Do it
        description: Do it.
        agent: coder
        target_acs: [AC1]
EOF
report '"status":"completed","message":"planned"'
