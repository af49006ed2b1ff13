//! The tables of the documentation, made from `irikey schema --json`, the library and the results of benchmarks.

use std::path::Path;

use serde_json::Value;

use super::{printed, speed_table};

const OPEN: &str = "<!-- generated: ";
const CLOSE: &str = "<!-- end -->";

/// What tables are made from.
pub(super) struct Tables(Value);

/// The tables of the columns on request.
#[derive(Clone, Copy, PartialEq)]
enum ColumnGroup {
    /// Keys, and texts of keys.
    Keys,
    Captures,
    Links,
    PartsOfUrls,
    Others,
}

impl ColumnGroup {
    fn of(column: &Value) -> ColumnGroup {
        let name = column["name"].as_str().expect("a name");
        let begins_with = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        if begins_with(&["key_", "url_surtkey", "url_rules"]) {
            ColumnGroup::Keys
        } else if begins_with(&["fetch_", "content_", "payload_", "warc_", "request_"]) {
            ColumnGroup::Captures
        } else if begins_with(&["page", "link_"]) {
            ColumnGroup::Links
        } else if begins_with(&["url_", "fragment"]) {
            ColumnGroup::PartsOfUrls
        } else {
            ColumnGroup::Others
        }
    }
}

impl Tables {
    pub(super) fn load() -> Tables {
        Tables(serde_json::from_str(&printed(&["schema", "--json"], b"")).expect("schema prints JSON"))
    }

    /// Names of all columns.
    pub(super) fn column_names(&self) -> Vec<&str> {
        array(&self.0["columns"]).iter().map(|column| column["name"].as_str().expect("a name")).collect()
    }

    /// The text of a file with its generated tables as they are now.
    pub(super) fn render(&self, path: &Path, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(OPEN) {
            let head = rest[at..].find("-->\n").expect("a marker ends its line") + at + 4;
            let end = rest.find(CLOSE).unwrap_or_else(|| panic!("{}: {CLOSE} is missing", path.display()));
            let name = rest[at + OPEN.len()..head].trim_end_matches("-->\n").trim();
            out.push_str(&rest[..head]);
            out.push('\n');
            out.push_str(&self.table(name).unwrap_or_else(|| panic!("{}: no table {name}", path.display())));
            out.push('\n');
            out.push_str(CLOSE);
            rest = &rest[end + CLOSE.len()..];
        }
        out + rest
    }

    fn table(&self, name: &str) -> Option<String> {
        let two = |list: &str| Some(self.rows(list, &["name", "meaning"]));
        match name {
            "columns" => Some(self.columns(|column| column["default"] == true)),
            "key columns" => Some(self.columns_on_request(ColumnGroup::Keys)),
            "capture columns" => Some(self.columns_on_request(ColumnGroup::Captures)),
            "link columns" => Some(self.columns_on_request(ColumnGroup::Links)),
            "URL columns" => Some(self.columns_on_request(ColumnGroup::PartsOfUrls)),
            "other columns" => Some(self.columns_on_request(ColumnGroup::Others)),
            "flags" => Some(self.bits("flags")),
            "spoofing flags" => Some(self.bits("spoofing_flags")),
            "faults" => two("faults"),
            "changes" => two("changes"),
            "rules" => two("rules"),
            "recipes" => Some(self.recipes()),
            "input formats" => two("input_formats"),
            "output formats" => two("output_formats"),
            "exit codes" => Some(self.rows("exit_codes", &["code", "meaning"])),
            "metadata" => Some(self.names(&self.0["metadata"])),
            "equivalence columns" => Some(rows(&self.0["equivalences"]["columns"], &["name", "meaning"])),
            "content rules" => Some(rows(&self.0["equivalences"]["rules"], &["name", "meaning"])),
            "patterns" => Some(self.names(&self.0["equivalences"]["patterns"])),
            "profiles" => Some(irikey::iri::Profile::table()),
            _ => name.strip_prefix("speed of ").map(speed_table::table),
        }
    }

    fn rows(&self, list: &str, fields: &[&str]) -> String {
        rows(&self.0[list], fields)
    }

    fn columns_on_request(&self, group: ColumnGroup) -> String {
        self.columns(|column| column["default"] == false && ColumnGroup::of(column) == group)
    }

    fn columns(&self, is_chosen: impl Fn(&Value) -> bool) -> String {
        let mut text = String::from("| column | type | null | meaning |\n|---|---|---|---|\n");
        for column in array(&self.0["columns"]).iter().filter(|column| is_chosen(column)) {
            let null = if column["nullable"] == true { "yes" } else { "" };
            let cells = [code(&column["name"]), code(&column["type"]), null.to_string(), cell(&column["meaning"])];
            text += &format!("| {} |\n", cells.join(" | "));
        }
        text
    }

    fn bits(&self, list: &str) -> String {
        let mut text = String::from("| mask | name | meaning |\n|---:|---|---|\n");
        for bit in array(&self.0[list]) {
            text += &format!("| {} | {} | {} |\n", bit["bit"], code(&bit["name"]), cell(&bit["meaning"]));
        }
        text
    }

    fn recipes(&self) -> String {
        let mut text = String::from("| recipe | version | rules |\n|---|---:|---|\n");
        for recipe in array(&self.0["recipes"]) {
            let rules: Vec<String> = array(&recipe["rules"]).iter().map(code).collect();
            text += &format!("| {} | {} | {} |\n", code(&recipe["name"]), recipe["version"], rules.join(", "));
        }
        text
    }

    fn names(&self, list: &Value) -> String {
        array(list).iter().map(code).collect::<Vec<_>>().join(", ") + "\n"
    }
}

fn rows(list: &Value, fields: &[&str]) -> String {
    let head = fields.join(" | ");
    let mut text = format!("| {head} |\n|{}\n", if fields[0] == "code" { "---:|---|" } else { "---|---|" });
    for row in array(list) {
        let first = &row[fields[0]];
        let first = if first.is_string() { code(first) } else { first.to_string() };
        text += &format!("| {first} | {} |\n", cell(&row[fields[1]]));
    }
    text
}

fn array(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("schema --json: {value} is not a list"))
}

fn code(value: &Value) -> String {
    format!("`{}`", value.as_str().expect("a name").replace('|', "\\|"))
}

/// Text in a cell: what Markdown would read as markup is escaped, except for code between pairs of backticks.
fn cell(value: &Value) -> String {
    let text = value.as_str().expect("a meaning");
    if text.matches('`').count() % 2 == 1 {
        return escaped(text);
    }
    let part = |(at, part): (usize, &str)| match at % 2 {
        0 => escaped(part),
        _ => format!("`{}`", part.replace('|', "\\|")),
    };
    text.split('`').enumerate().map(part).collect()
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('|', "\\|")
        .replace('<', "\\<")
        .replace('>', "\\>")
        .replace('`', "\\`")
        .replace('*', "\\*")
}
