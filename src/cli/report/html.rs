//! Pieces of an HTML page: escaped text, tables and sections.

use std::fmt::Write;

use crate::cli::terminal::visible;

/// Escapes text for elements and quoted attributes. Characters that are invisible or change the order of others are shown
/// by their numbers, because text may come from the input.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// A part of a number in percent.
pub(crate) fn share(part: u64, all: u64) -> String {
    if all == 0 { "-".to_string() } else { format!("{:.1} %", part as f64 * 100.0 / all as f64) }
}

/// A table with a caption. The first cell of a row is its heading.
pub(crate) struct Table {
    pub(super) caption: &'static str,
    /// Headings of the columns; those that begin with `#` are columns of numbers, with `=` of short names.
    columns: &'static [&'static str],
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table whose cells are plain text.
    pub(crate) fn new(
        caption: &'static str,
        columns: &'static [&'static str],
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Table {
        Table { caption, columns, rows: rows.into_iter().collect() }
    }

    pub(crate) fn to_html(&self) -> String {
        let class = |column: usize| match self.columns[column].as_bytes() {
            [b'#', ..] => " class=\"n\"",
            [b'=', ..] => " class=\"name\"",
            _ => "",
        };
        let mut html = format!("<table><caption>{}</caption>\n<thead><tr>", escape(self.caption));
        for (i, name) in self.columns.iter().enumerate() {
            html.push_str(&format!(
                "<th scope=\"col\"{}>{}</th>",
                class(i),
                escape(name.trim_start_matches(['#', '=']))
            ));
        }
        html.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            html.push_str("<tr>");
            for (i, cell) in row.iter().enumerate() {
                let (open, close) = if i == 0 { ("th scope=\"row\"", "th") } else { ("td", "td") };
                html.push_str(&format!("<{open}{}>{}</{close}>", class(i), escape(cell)));
            }
            html.push_str("</tr>\n");
        }
        html + "</tbody></table>\n"
    }
}

/// Appends a section with a heading, an explanation in plain text, and a body in HTML.
pub(crate) fn section(html: &mut String, title: &str, note: &str, body: &str) {
    let note = if note.is_empty() { String::new() } else { format!("<p class=\"note\">{}</p>\n", escape(note)) };
    // Writing to a string does not fail.
    let _ = writeln!(html, "<section>\n<h2>{}</h2>\n{note}{body}</section>", escape(title));
}

/// Appends a section with settings; empty ones are left out.
pub(crate) fn settings(html: &mut String, title: &str, caption: &'static str, settings: Vec<(&'static str, String)>) {
    let rows = settings.into_iter().filter(|(_, value)| !value.is_empty());
    let rows = rows.map(|(name, value)| vec![name.to_string(), value]);
    section(html, title, "", &Table::new(caption, &["=setting", "value"], rows).to_html());
}

/// A chart and, next to it, the table of its numbers.
pub(crate) fn chart_and_table(chart: &str, table: &Table) -> String {
    format!("<div class=\"chart\">\n<figure>{chart}</figure>\n{}</div>\n", table.to_html())
}
