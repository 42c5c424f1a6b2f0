//! File names that come from a mistake in a shell or parser: `]`, `foo = bar`, `map.get(x)`.

/// Extensions of files whose names may have brackets, as in `[id].tsx`.
const SOURCE: &[&str] = &[
    "astro", "bash", "c", "cc", "cjs", "clj", "cljs", "cpp", "cs", "css", "cts", "cxx", "dart", "elm", "erl", "ex",
    "exs", "go", "gql", "graphql", "h", "hpp", "hs", "html", "java", "jl", "js", "json", "jsx", "kt", "kts", "less",
    "lua", "m", "md", "mdx", "mjs", "ml", "mli", "mm", "mts", "nim", "php", "proto", "py", "pyi", "r", "rb", "rs",
    "sass", "scala", "scss", "sh", "sql", "svelte", "swift", "toml", "ts", "tsx", "vue", "xml", "yaml", "yml", "zig",
];

const BRACKETS: [(char, char); 3] = [('(', ')'), ('[', ']'), ('{', '}')];

/// Returns whether a new file of this name is suspicious. Source files may have balanced brackets.
pub fn is_suspicious(name: &[u8]) -> bool {
    let name = &*String::from_utf8_lossy(name);
    let blank = |c: Option<char>| c.is_some_and(char::is_whitespace);
    if [".get(", ".set(", ">>", "<<"].iter().any(|fragment| name.contains(fragment))
        || blank(name.chars().next())
        || blank(name.chars().next_back())
    {
        return true;
    }
    let odd = |c: char| ",;=".contains(c) || BRACKETS.iter().any(|(open, close)| c == *open || c == *close);
    let source = name.rsplit_once('.').is_some_and(|(_, end)| SOURCE.contains(&end.to_lowercase().as_str()));
    match outside_brackets(name) {
        Some(rest) if source => rest.contains(odd),
        _ => name.contains(odd),
    }
}

/// Returns the text outside brackets, or `None` if they are not balanced.
fn outside_brackets(name: &str) -> Option<String> {
    let (mut open, mut rest) = (Vec::new(), String::new());
    for c in name.chars() {
        if let Some((_, close)) = BRACKETS.iter().find(|(opening, _)| c == *opening) {
            open.push(*close);
        } else if BRACKETS.iter().any(|(_, close)| c == *close) {
            if open.pop() != Some(c) {
                return None;
            }
        } else if open.is_empty() {
            rest.push(c);
        }
    }
    open.is_empty().then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_told_from_names() {
        let fine = [
            "main.rs",
            "[id].tsx",
            "[...slug].tsx",
            "[[...slug]].TSX",
            "(group).ts",
            "{-$lang}.tsx",
            "[lang=code].ts",
            "a [b] c.md",
            "+page.svelte",
            "Dockerfile",
            ".gitignore",
            "größe.txt",
            "a b.txt",
            "a\nb.txt",
            "-f",
            "x>y",
        ];
        for name in fine {
            assert!(!is_suspicious(name.as_bytes()), "{name:?}");
        }
        let suspicious = [
            "]",
            "a,b",
            "x;",
            "foo = bar",
            "f(x)",
            "(group)",
            "[id]",
            "{",
            "[id.tsx",
            "id].ts",
            "([)].ts",
            "a=b.ts",
            "x, y.py",
            "map.get(id).ts",
            "m.set(a).js",
            "a>>b.ts",
            "<<EOF",
            " lead.ts",
            "trail.ts ",
            "\tx",
            "logo (1).png",
        ];
        for name in suspicious {
            assert!(is_suspicious(name.as_bytes()), "{name:?}");
        }
        assert!(!is_suspicious(b"\xff.rs") && is_suspicious(b"\xff="));
    }
}
