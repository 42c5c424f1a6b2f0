//! The conformance table in README.md, generated from docs/conformance.md.

/// The lines around the table.
const BEGIN: &str =
    "<!-- from docs/conformance.md: cargo run -p posse-testkit --bin conformance -- --no-run --readme -->\n";
const END: &str = "<!-- /conformance -->\n";

/// Returns the page's figures without times: agent, version, green scenarios, right statuses, and turns reported as
/// finished while running.
pub fn table(page: &str) -> Option<String> {
    let (_, section) = page.split_once("## In all\n\n")?;
    let rows = section.lines().take_while(|line| line.starts_with('|')).skip(2);
    let mut table = String::from(
        "| agent | scenarios green | statuses right | near changes | false ends |\n|---|---|---|---|---|\n",
    );
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [agent, _, green, right, near, wrong, ..] = cells[..] else { return None };
        let (agent, version) = agent.rsplit_once('-')?;
        let share = right.split_once('(')?.1.strip_suffix(')')?;
        let ends = wrong.split_once('(')?.1.strip_suffix(')')?;
        let green = green.replace('/', " of ");
        table.push_str(&format!("| `{agent}` {version} | {green} | {share} | {near} | {ends} |\n"));
    }
    Some(table)
}

/// Returns the text with this table inserted; `None` if the marker lines are missing.
pub fn put(readme: &str, table: &str) -> Option<String> {
    let (before, rest) = readme.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{table}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# x\n\n## In all\n\n| agent | p | g | r | n | f | l | d |\n|---|---|---|---|---|---|---|---|\n\
        | claude_code-2.1.325 | 16 Nov | 34/37 | 99/100 (99.0 %) | 98.1 % | 4 (1) | 0 | 0 |\n\n## more\n\n| a | b |\n";

    #[test]
    fn the_table_has_what_the_page_has() {
        let table = table(PAGE).unwrap();
        assert_eq!(table.lines().nth(2), Some("| `claude_code` 2.1.325 | 34 of 37 | 99.0 % | 98.1 % | 1 |"));
        assert_eq!(table.lines().count(), 3);
        let readme = format!("a\n{BEGIN}old\n{END}b\n");
        assert_eq!(put(&readme, &table).unwrap(), format!("a\n{BEGIN}\n{table}\n{END}b\n"));
        assert_eq!(put("no place", &table), None);
    }
}
