//! The table of speeds in README.md, made from the results files of one day in `benches/results`.

use std::fs;
use std::path::Path;

/// A table of a results file: the cells of each row.
struct ResultsFile {
    link: String,
    rows: Vec<Vec<String>>,
}

impl ResultsFile {
    fn load(name: &str, date: &str) -> ResultsFile {
        let path = format!("benches/results/{date}-{name}.md");
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(&path));
        let text = text.unwrap_or_else(|error| panic!("{path}: {error}"));
        let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_string()).collect();
        let rows = text.lines().filter(|line| line.starts_with('|')).map(cells).collect();
        ResultsFile { link: format!("[{name}]({path})"), rows }
    }

    /// The first word of a cell: the median. Engines have their version after their name.
    fn median(&self, job: &str, column: &str) -> String {
        let place = self.rows[0].iter().position(|head| head == column);
        let place = place.unwrap_or_else(|| panic!("{}: no column {column}", self.link));
        let is_job = |row: &&Vec<String>| {
            let words: Vec<&str> =
                row[0].split(' ').filter(|word| !word.starts_with(|c: char| c.is_ascii_digit())).collect();
            words.join(" ") == job
        };
        let row = self.rows.iter().find(is_job).unwrap_or_else(|| panic!("{}: no job {job}", self.link));
        row[place].split(' ').next().unwrap_or_default().to_string()
    }

    /// Seconds, and gigabytes of memory.
    fn seconds_and_memory(&self, job: &str, column: &str) -> String {
        let bytes: f64 = self.median(job, column).parse().expect("megabytes");
        let gigabytes = bytes / 1000.0;
        let digits = if gigabytes < 1.0 { 2 } else { 1 };
        format!("{} s, {gigabytes:.digits$} GB", self.median(job, "seconds"))
    }
}

/// The table of the results of `date`.
pub(super) fn table(date: &str) -> String {
    let [crawl, pipeline, dedup] = ["crawl", "pipeline", "dedup"].map(|name| ResultsFile::load(name, date));
    let ns = |engine| crawl.median(engine, "ns/line median [min–max]");
    let zstd = |job| pipeline.median(job, "zstd:1");
    let others = ["ada", "fluent_uri", "url"].map(|engine| format!("{} {}", engine.replace('_', "-"), ns(engine)));
    let rows = [
        ["parse and normalize, one core", &format!("{} ns per line", ns("irikey")), &others.join(", "), &crawl.link],
        [
            "5 million lines to Parquet, zstd",
            &format!("{} s", zstd("irikey: uri, input, key")),
            &format!("DuckDB {} s, Polars {} s", zstd("duckdb raw lines"), zstd("polars raw lines")),
            &pipeline.link,
        ],
        [
            "distinct rows of 20 million lines, zstd",
            &dedup.seconds_and_memory("irikey dedup", "resident, MB"),
            &format!(
                "DuckDB {}; Polars {}",
                dedup.seconds_and_memory("duckdb DISTINCT", "resident, MB"),
                dedup.seconds_and_memory("polars DISTINCT", "resident, MB")
            ),
            &dedup.link,
        ],
        [
            "count distinct of 20 million lines",
            &format!("{} s", dedup.median("irikey count", "seconds")),
            &format!(
                "DuckDB {} s, Polars {} s",
                dedup.median("duckdb count(DISTINCT)", "seconds"),
                dedup.median("polars count(DISTINCT)", "seconds")
            ),
            &dedup.link,
        ],
    ];
    let head = "| job | irikey | others | results |\n|---|---:|---|---|\n".to_string();
    rows.iter().fold(head, |table, row| table + &format!("| {} |\n", row.join(" | ")))
}
