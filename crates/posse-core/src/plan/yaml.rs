//! YAML as a tree with the position and notation of every node. Messages name positions, an unquoted `1.10` must differ
//! from a quoted one, and statuses are written back in place.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, StructureStyle};

use crate::file_problem::{FileProblem, TextSpan};

/// The maximum number of nodes. Aliases are copied in place, and must not expand a text without bound.
const MAX_NODES: usize = 500_000;

/// The maximum depth, beyond that of any plan. The parser's own limit is 255.
const MAX_DEPTH: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) at: TextSpan,
    pub(crate) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Scalar { text: String, plain: bool },
    List(Vec<Node>),
    Map(Vec<YamlEntry>, Notation),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct YamlEntry {
    pub(crate) key: Node,
    pub(crate) value: Node,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    /// One key per line.
    Block,
    /// `{key: value}`
    Flow,
}

/// Nodes are equal if their contents are, at any position.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Node {
    /// Creates a scalar. `plain`: it is written without quotes.
    pub(crate) fn scalar(at: TextSpan, text: impl Into<String>, plain: bool) -> Self {
        Self { at, value: Value::Scalar { text: text.into(), plain } }
    }

    /// Returns whether the value is empty or `null`.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, plain: true } if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    pub(crate) fn entries(&self) -> &[YamlEntry] {
        match &self.value {
            Value::Map(entries, _) => entries,
            _ => &[],
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&YamlEntry> {
        self.entries().iter().find(|entry| entry.name() == Some(key))
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        let Value::Map(entries, _) = &mut self.value else { return None };
        entries.iter_mut().find(|entry| entry.name() == Some(key)).map(|entry| &mut entry.value)
    }

    pub(crate) fn as_scalar(&self) -> Option<&str> {
        if let Value::Scalar { text, .. } = &self.value { Some(text) } else { None }
    }

    pub(crate) fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    pub(crate) fn items_mut(&mut self) -> &mut [Node] {
        if let Value::List(items) = &mut self.value { items } else { &mut [] }
    }

    /// Returns the kind of the value, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            _ if self.is_null() => "nothing",
            Value::Scalar { .. } => "a single value",
            Value::List(_) => "a list",
            Value::Map(..) => "a map",
        }
    }
}

impl YamlEntry {
    pub(crate) fn name(&self) -> Option<&str> {
        self.key.as_scalar()
    }
}

/// A text and its parsed content.
#[derive(Debug)]
pub(crate) struct YamlTree {
    pub(crate) root: Node,
    /// Every comment, in order. Edits are checked against it, so that none is lost.
    pub(crate) comments: Vec<String>,
}

pub(crate) fn parse(text: &str) -> Result<YamlTree, FileProblem> {
    let mut builder = Builder { text, comments: Vec::new(), anchors: HashMap::new(), nodes: 0 };
    let mut events = Parser::new_from_str(text);
    let mut root = None;
    while let Some((event, at)) = builder.next(&mut events)? {
        match event {
            Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd | Event::StreamEnd => {}
            _ if root.is_some() => {
                return Err(FileProblem::new(at, "a second document begins here")
                    .hint("the file is one document: remove the `---`"));
            }
            event => root = Some(builder.node(event, at, &mut events, 0)?),
        }
    }
    match root {
        Some(root) => Ok(YamlTree { root, comments: builder.comments }),
        None => Err(FileProblem::new(TextSpan { line: 1, column: 1, ..TextSpan::default() }, "the file is empty")
            .hint("a plan has `meta` and `sections`; `posse plan init` writes a sample")),
    }
}

/// Parses a YAML text as a JSON value. Only unquoted scalars can be other than text.
pub fn to_json(text: &str) -> Result<serde_json::Value, FileProblem> {
    Ok(json(&parse(text)?.root))
}

fn json(node: &Node) -> serde_json::Value {
    match &node.value {
        _ if node.is_null() => serde_json::Value::Null,
        // JSON's literals are valid YAML: `true`, `12`, `1.5`.
        Value::Scalar { text, plain: true } => match serde_json::from_str(text) {
            Ok(value @ (serde_json::Value::Bool(_) | serde_json::Value::Number(_))) => value,
            _ => text.as_str().into(),
        },
        Value::Scalar { text, .. } => text.as_str().into(),
        Value::List(items) => items.iter().map(json).collect(),
        Value::Map(entries, _) => {
            entries.iter().filter_map(|entry| Some((entry.name()?.to_owned(), json(&entry.value)))).collect()
        }
    }
}

struct Builder<'t> {
    text: &'t str,
    comments: Vec<String>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
}

type Events<'t> = Parser<'t, granit_parser::StrInput<'t>>;

impl<'t> Builder<'t> {
    /// Returns the next event that is not a comment.
    fn next(&mut self, events: &mut Events<'t>) -> Result<Option<(Event<'t>, TextSpan)>, FileProblem> {
        loop {
            match events.next_event() {
                None => return Ok(None),
                Some(Ok((Event::Comment(comment, _), _))) => self.comments.push(comment.trim().to_owned()),
                Some(Ok((event, span))) => return Ok(Some((event, TextSpan::of_yaml(span)))),
                Some(Err(error)) => {
                    let place = TextSpan::of_yaml(granit_parser::Span::empty(*error.marker()));
                    let wrong = self.text.get(place.start..).and_then(|rest| rest.chars().next());
                    let end = place.start + wrong.map_or(0, char::len_utf8);
                    return Err(FileProblem::new(
                        TextSpan { end, ..place },
                        format!("not valid YAML: {}", error.info()),
                    ));
                }
            }
        }
    }

    fn node(
        &mut self,
        event: Event<'t>,
        at: TextSpan,
        events: &mut Events<'t>,
        depth: usize,
    ) -> Result<Node, FileProblem> {
        self.count(1, at)?;
        if depth > MAX_DEPTH {
            return Err(FileProblem::new(at, format!("nested more than {MAX_DEPTH} deep")));
        }
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, _) => (Node::scalar(at, text, style == ScalarStyle::Plain), anchor),
            Event::SequenceStart(style, anchor, _) => {
                let (items, end) = self.children(events, at, style, depth)?;
                (Node { at: TextSpan { end, ..at }, value: Value::List(items) }, anchor)
            }
            Event::MappingStart(style, anchor, _) => {
                let (children, end) = self.children(events, at, style, depth)?;
                let notation = if style == StructureStyle::Flow { Notation::Flow } else { Notation::Block };
                // The parser reports the start of a block at its first colon.
                let first = children.first().filter(|_| notation == Notation::Block).map_or(at, |first| first.at);
                let mut children = children.into_iter();
                let entry = || Some(YamlEntry { key: children.next()?, value: children.next()? });
                let value = Value::Map(std::iter::from_fn(entry).collect(), notation);
                (Node { at: TextSpan { end, ..first }, value }, anchor)
            }
            Event::Alias(anchor) => {
                let Some(mut copy) = self.anchors.get(&anchor).cloned() else {
                    return Err(FileProblem::new(at, "an alias inside of what it stands for"));
                };
                self.count(size(&copy), at)?;
                copy.at = at;
                return Ok(copy);
            }
            other => return Err(FileProblem::new(at, format!("not expected here: {other:?}"))),
        };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    /// Reads the items of a list that began at `began`, or the keys and values of a map. Returns them and their end.
    fn children(
        &mut self,
        events: &mut Events<'t>,
        began: TextSpan,
        style: StructureStyle,
        depth: usize,
    ) -> Result<(Vec<Node>, usize), FileProblem> {
        let mut nodes: Vec<Node> = Vec::new();
        loop {
            let cut_off = || FileProblem::new(began, "the file ends in the middle of this");
            match self.next(events)?.ok_or_else(cut_off)? {
                (Event::SequenceEnd | Event::MappingEnd, at) => {
                    // The parser reports the end of a block at the next token, after comments and empty lines.
                    let last = nodes.iter().rev().take(2).map(|node| node.at.end).max();
                    let end = last.filter(|_| style == StructureStyle::Block).unwrap_or(at.end);
                    return Ok((nodes, end));
                }
                (event, at) => nodes.push(self.node(event, at, events, depth + 1)?),
            }
        }
    }

    fn count(&mut self, more: usize, at: TextSpan) -> Result<(), FileProblem> {
        self.nodes += more;
        if self.nodes > MAX_NODES {
            return Err(FileProblem::new(at, format!("more than {MAX_NODES} values: this is no plan")));
        }
        Ok(())
    }
}

fn size(node: &Node) -> usize {
    1 + match &node.value {
        Value::Scalar { .. } => 0,
        Value::List(items) => items.iter().map(size).sum(),
        Value::Map(entries, _) => entries.iter().map(|entry| size(&entry.key) + size(&entry.value)).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns every scalar as written: edits rely on these spans.
    fn slices(text: &str) -> Vec<String> {
        fn walk(node: &Node, text: &str, out: &mut Vec<String>) {
            match &node.value {
                Value::Scalar { .. } => out.push(text[node.at.start..node.at.end].to_owned()),
                Value::List(items) => items.iter().for_each(|item| walk(item, text, out)),
                Value::Map(entries, _) => entries.iter().for_each(|entry| {
                    walk(&entry.key, text, out);
                    walk(&entry.value, text, out);
                }),
            }
        }
        let mut out = Vec::new();
        walk(&parse(text).unwrap().root, text, &mut out);
        out
    }

    #[test]
    fn every_scalar_knows_its_bytes() {
        let text = "a: plain  # why\nb: 'it''s'\nc: \"x\\ny\"\nd: |\n  two\n  lines\n\ne:\nf: [1, {g: é h}]\n";
        assert_eq!(
            slices(text),
            ["a", "plain", "b", "'it''s'", "c", "\"x\\ny\"", "d", "two\n  lines\n\n", "e", "", "f", "1", "g", "é h"]
        );
        assert_eq!(parse(text).unwrap().comments, ["why"]);
    }

    #[test]
    fn a_text_that_is_no_document_says_where() {
        for (text, line, what) in [
            ("", 1, "empty"),
            ("# only this\n", 1, "empty"),
            ("a: 1\n---\nb: 2\n", 3, "second document"),
            ("a: [1, 2\nb: 3\n", 2, "not valid YAML"),
            ("a:\n\t- b\n", 2, "not valid YAML"),
            ("a: *nobody\n", 1, "not valid YAML"),
            ("a: \"open\n", 2, "not valid YAML"),
            ("a: 'x'é\n", 1, "not valid YAML"),
        ] {
            let problem = parse(text).unwrap_err();
            assert_eq!(problem.at.line, line, "{text:?}: {problem}");
            assert!(problem.message.contains(what), "{text:?}: {problem}");
            assert!(text.get(problem.at.start..problem.at.end).is_some(), "{text:?}: {problem}");
        }
    }

    #[test]
    fn aliases_are_copies_and_cannot_explode() {
        let tree = parse("a: &x [1, 2]\nb: *x\n").unwrap();
        assert_eq!(tree.root.get("a").unwrap().value, tree.root.get("b").unwrap().value);
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for i in 1..10 {
            let before = format!("*a{}, ", i - 1).repeat(10);
            bomb += &format!("a{i}: &a{i} [{before}]\n");
        }
        assert!(parse(&bomb).unwrap_err().message.contains("more than"));
    }
}
