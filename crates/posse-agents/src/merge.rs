//! Merges a user's manifest over the built-in one: table by table, rule by rule. An entry with an `id` replaces the one
//! with the same id; a new one is tried before the built-in ones.

use toml::{Table, Value};

pub fn merge(mut ours: Table, theirs: Table) -> Table {
    for (key, value) in theirs {
        let merged = match (ours.remove(&key), value) {
            (Some(Value::Table(ours)), Value::Table(theirs)) => Value::Table(merge(ours, theirs)),
            (Some(Value::Array(ours)), Value::Array(theirs)) if theirs.iter().any(|item| id(item).is_some()) => {
                Value::Array(merge_by_id(ours, theirs))
            }
            (_, theirs) => theirs,
        };
        ours.insert(key, merged);
    }
    ours
}

fn merge_by_id(mut ours: Vec<Value>, theirs: Vec<Value>) -> Vec<Value> {
    let mut first = Vec::new();
    for item in theirs {
        match ours.iter_mut().find(|known| id(known).is_some() && id(known) == id(&item)) {
            Some(known) => *known = item,
            None => first.push(item),
        }
    }
    first.extend(ours);
    first
}

fn id(item: &Value) -> Option<&str> {
    item.get("id")?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_replaced_one_by_one() {
        let parse = |text: &str| text.parse::<Table>().unwrap();
        let ours = parse("name = 'a'\n[t]\nx = 1\ny = 2\n[[rule]]\nid = 'one'\nv = 1\n[[rule]]\nid = 'two'\nv = 2");
        let theirs = parse("[t]\ny = 3\n[[rule]]\nid = 'new'\nv = 0\n[[rule]]\nid = 'two'\nw = 9");
        let expected = "name = 'a'\n[t]\nx = 1\ny = 3\n[[rule]]\nid = 'new'\nv = 0\n[[rule]]\nid = 'one'\nv = 1\n[[rule]]\nid = 'two'\nw = 9";
        assert_eq!(merge(ours, theirs), parse(expected));
    }
}
