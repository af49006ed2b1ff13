//! The flags of `canon`, group by group, and the [`Job`] that they mean.

use std::path::PathBuf;

use clap::Args;

use super::args::{
    EquivalenceArgs, FormArgs, InputArgs, Inputs, OutputArgs, Outputs, RecipeArgs, Reporting, ReportingArgs, SortArgs,
    SpillArgs, Work, WorkArgs,
};
use crate::batch::{COLUMNS, ColumnId};
use crate::canon::{Policy, Rung};
use crate::run::{WorkerNeed, columns_to_sort};

const EXAMPLES: &str = "\
Examples:
  One canonical URI a line, in the order of the input:
      irikey canon urls.txt

  A compressed crawl list to Parquet, with keys of all three rungs:
      irikey canon urls.txt.gz -o urls.parquet --key simple,syntax,scheme

  From a pipe, keys of what would be retrieved (fragments do not count):
      zcat urls.gz | irikey canon --drop-fragment -o urls.parquet

  Links of pages, resolved against the page that each stood on:
      irikey canon links.csv --column href --base-column page -o links.parquet

  Hosts that look like others, by what they look like, and what else may mislead:
      irikey canon urls.txt --skeleton --columns +spoofing_flags,+bidi -o urls.parquet

  Attribute values of old pages, as they stood there:
      irikey canon links.csv --charset-column charset --character-references html --trim -o links.parquet

  Sorted as an archive's index is, in files of ten million rows, with the memory of a small machine:
      irikey canon cdx-*.gz -o index/ --sort url_surtkey,fetch_time --part-rows 10000000 --memory 2G

  How many distinct URIs? The summary on stderr says it; keep the numbers for a script:
      irikey canon @lists.txt -o all.parquet --report all.json";

/// Flags of `canon`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", super::exit_help()))]
pub struct CanonArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    form: FormArgs,
    /// Further key columns, a list with commas: of rungs, simple, syntax, scheme and protocol, for --equivalences; of recipes, surt-wayback, surt-ia,
    /// crawler-commons, nutch, w3lib, urlcanon-aggressive, heritrix; and rules, for --rules. Not with text output
    #[arg(long, value_name = "LIST", value_parser = parse_key, value_delimiter = ',', help_heading = "Canonical form")]
    key: Vec<ColumnId>,
    #[command(flatten)]
    equivalences: EquivalenceArgs,
    #[command(flatten)]
    recipes: RecipeArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    sort: SortArgs,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    spill: SpillArgs,
    #[command(flatten)]
    reporting: ReportingArgs,
}

/// What `canon` has to do: flags, checked against each other and with their defaults filled in.
#[derive(Clone, Debug)]
pub struct Job {
    /// What is read.
    pub inputs: Inputs,
    /// What rows depend on.
    pub policy: Policy,
    /// What is written.
    pub outputs: Outputs,
    /// With what means.
    pub work: Work,
    /// Bytes of memory for a sort, and the directory of its temporary files.
    pub spill: Option<(usize, PathBuf)>,
    /// What is told.
    pub reporting: Reporting,
}

impl CanonArgs {
    /// The job that the flags mean.
    ///
    /// # Errors
    /// Flags that contradict each other, as a sentence that says what to do.
    pub fn job(&self) -> Result<Job, String> {
        let mut work = self.work.work()?;
        let outputs = self.output.outputs_in(&self.key, Some(&self.sort))?;
        let is_sorted = outputs.sorting.is_sorted();
        let mut spill = None;
        if is_sorted {
            let (mut budget, need) = (self.spill.budget(), WorkerNeed::rows(outputs.row_group_len));
            work.threads = budget.reserve_workers(work.threads, need).map_err(|error| error.to_string())?;
            spill = Some((budget.remaining(), self.spill.directory()));
        }
        let reporting = self.reporting.reporting();
        let mut job = Job::new(&self.input, &self.form, &self.recipes, outputs, work, reporting)?;
        let is_wanted = job.outputs.columns.contains(ColumnId::KeyProtocol);
        job.policy.equivalences = self.equivalences.read(&job.policy, is_wanted)?;
        Ok(Job { spill, ..job })
    }
}

impl Job {
    /// The job of these flags, with a policy that makes what the output's columns want.
    ///
    /// # Errors
    /// As [`CanonArgs::job`].
    pub(super) fn new(
        input: &InputArgs,
        form: &FormArgs,
        recipes: &RecipeArgs,
        outputs: Outputs,
        work: Work,
        reporting: Reporting,
    ) -> Result<Job, String> {
        let sorting = &outputs.sorting;
        let columns = &columns_to_sort(&outputs.columns, &sorting.by, sorting.partition.as_ref());
        let policy = Policy {
            more_keys: columns.key_rungs(),
            carry: columns.carry(),
            recipes: recipes.wanted(columns)?,
            suffixes: recipes.suffixes()?,
            keep_input: columns.contains(ColumnId::Input),
            spoofing_flags: columns.contains(ColumnId::SpoofingFlags),
            ..form.policy(input)?
        };
        Ok(Job { inputs: input.inputs()?, policy, outputs, work, spill: None, reporting })
    }
}

/// The rung above those that a URL has by itself (RFC 3987 section 5.3.4).
pub(super) const PROTOCOL: &str = "protocol";

/// A rung's name, or a recipe's.
pub(super) fn parse_key(name: &str) -> Result<ColumnId, String> {
    let rungs = [Rung::Simple, Rung::Syntax, Rung::Scheme];
    if let Some(rung) = rungs.into_iter().find(|rung| rung.name() == name) {
        return Ok(ColumnId::KeyOf(rung));
    }
    if name == PROTOCOL {
        return Ok(ColumnId::KeyProtocol);
    }
    let recipe =
        COLUMNS.iter().map(|column| column.id).find(|id| matches!(id, ColumnId::RecipeKey(key) if *key == name));
    recipe.ok_or_else(|| {
        let names = COLUMNS.iter().filter_map(|column| match column.id {
            ColumnId::KeyOf(rung) => Some(rung.name()),
            ColumnId::KeyProtocol => Some(PROTOCOL),
            ColumnId::RecipeKey(name) => Some(name),
            _ => None,
        });
        format!("take one of {}", names.collect::<Vec<_>>().join(", "))
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::output::{Destination, OutputFormat};

    fn job(flags: &str) -> Result<Job, String> {
        let words = ["irikey", "canon", "in.txt"].into_iter().chain(flags.split_whitespace());
        match Cli::try_parse_from(words).map_err(|error| error.to_string())?.command {
            Command::Canon(args) => args.job(),
            _ => unreachable!("the words say canon"),
        }
    }

    #[test]
    fn the_suffix_tells_the_format_unless_a_flag_does() {
        assert_eq!(job("").unwrap().outputs.format, OutputFormat::Text);
        assert_eq!(job("-o x.parquet").unwrap().outputs.format, OutputFormat::Parquet);
        assert_eq!(job("-o x.csv --output-format jsonl").unwrap().outputs.format, OutputFormat::JsonLines);
        assert_eq!(job("-o - --output-format csv").unwrap().outputs.destination, Destination::Stdout);
        assert!(job("-o x.xls").unwrap_err().contains("--output-format"));
    }

    #[test]
    fn columns_and_keys_agree_with_the_policy() {
        let job = |flags| job(flags).unwrap();
        let keys = job("-o x.parquet --key simple,scheme");
        assert_eq!(keys.policy.more_keys, [Rung::Simple, Rung::Scheme]);
        assert!(keys.policy.keep_input);
        let chosen = job("-o x.parquet --columns key_syntax,uri --key simple,syntax");
        assert_eq!(chosen.outputs.columns.names().collect::<Vec<_>>(), ["key_syntax", "key_simple", "uri"]);
        assert_eq!(chosen.policy.more_keys, [Rung::Syntax, Rung::Simple]);
        let added = job("-o x.parquet --columns +spoofing_flags,+iri");
        assert_eq!(added.outputs.columns.names().skip(8).collect::<Vec<_>>(), ["flags", "spoofing_flags", "iri"]);
        assert!(added.policy.spoofing_flags && !keys.policy.spoofing_flags);
        let skeleton = job("-o x.parquet --columns uri --skeleton");
        assert_eq!(skeleton.outputs.columns.names().collect::<Vec<_>>(), ["uri", "host_skeleton"]);
        assert!(!chosen.policy.keep_input && !job("").policy.keep_input);
    }

    #[test]
    fn contradictions_are_usage_errors() {
        let refused = [
            ("--format lines --column url", "--format csv"),
            ("--format cdx --no-header", "--format csv"),
            ("--no-header --column url", "needs a number"),
            ("--literal-base", "--base"),
            ("-o x.csv --compression lz4", "Parquet"),
            ("-o d --sort uri,nope --part-rows 9", "nope"),
            ("--part-rows 9", "-o"),
            ("-o d --partition surt:4 --sort uri", "url_surtkey"),
            ("-o d --partition klingon:4", "host:N"),
            ("-o d --hive crawl", "NAME=VALUE"),
            ("-o x.cdxj --sort uri", "leave --sort out"),
            ("-o x.cdxj --columns uri", "fields of its own"),
            ("-o x.csv --bloom-filter", "Parquet"),
            ("--key simple", "text output"),
            ("--columns key", "text output"),
            ("--skeleton", "text output"),
            ("--profile klingon", "the profiles are rfc3987"),
            ("--profile whatwg --strict", "one way to read a URL"),
            ("--no-header --charset-column cs", "needs a number"),
            ("-o x.csv --columns kye", "kye"),
            ("-o x.csv --columns +iri,uri", "put + before all names or none"),
            ("--charset klingon", "no charset has this label"),
            ("--chunk-size 1G", "512M"),
            ("--chunk-size 0", "at least 1"),
            ("--threads 0", "--threads"),
            ("--compression zstd:99", "1 to 22"),
            ("--assume-scheme 1x", "a scheme is"),
            ("--delimiter ab", "one byte"),
            ("--quiet --progress always", "--quiet"),
        ];
        for (flags, advice) in refused {
            let message = job(flags).unwrap_err();
            assert!(message.contains(advice), "{flags}: {message}");
        }
    }
}
