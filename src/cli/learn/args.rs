//! The arguments of `learn`, and what they mean for the library.

use std::path::{Path, PathBuf};

use clap::Args;

use super::export::{Export, parse_export};
use super::hand_rules::HandRules;
use crate::batch::part_metadata;
use crate::canon::{Policy, Rung};
use crate::cli::args::{
    InputArgs, PolicyArgs, ReportingArgs, WorkArgs, named_path, parquet_path, parse_number, parse_number_from,
};
use crate::cli::error::CommandError;
use crate::cli::file_roles::FileRoles;
use crate::cli::help;
use crate::cli::terminal::print_error;
use crate::input::{Source, Sources};
use crate::learn::LearnLimits;
use crate::learn::content::ContentLimits;
use crate::output::OutputFormat;
use crate::remote::RemoteUrl;
use crate::run::{DocumentOptions, ObserveOptions, Summary};

const EXAMPLES: &str = "\
Examples:
  Learn from the redirects of a crawl, then remove duplicates with the result:
      irikey learn crawl-data/*.warc.gz -o equivalences.parquet
      irikey dedup urls.txt.gz -o distinct.parquet --key protocol \\
          --equivalences equivalences.parquet

  Learn from indexes and from temporary redirects as well, but only within registered domains:
      irikey learn cdx-*.gz --weak --same-site -o equivalences.parquet

  Learn on several machines, each from the captures of other registered domains:
      irikey learn captures-1.parquet --part -o parts/1.parquet
      irikey learn --merge parts -o equivalences.parquet

  Show what was learned about a host:
      duckdb -c \"SELECT * FROM 'equivalences.parquet' WHERE host = 'example.org'\"";

// Equivalences are for the rung scheme, so that another --rung is refused.
/// Learn which URLs are the same resource, from observed redirects and contents
///
/// Makes the equivalences for the rung protocol (RFC 3987 section 5.3.4). Reads status, redirect and digest from CDX, CDXJ,
/// WARC, ARC, HAR, JSON lines, crawl.log, and Parquet or Arrow files with the columns fetch_status, fetch_redirect or
/// content_digest. Writes classes of URLs that redirects connect, patterns by which hosts redirect all of their URLs, and rules
/// about what makes no difference to the content (session identifiers, the order of parameters, index.html, letter case,
/// aliases of hosts), each with its evidence. Rules that captures contradict are refused and listed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = help::long_examples(EXAMPLES),
          mut_arg("rung", |flag| flag.hide(true)))]
pub(crate) struct LearnArgs {
    #[command(flatten)]
    pub(super) input: InputArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Output file for the equivalences, Parquet
    #[arg(short, long, value_name = "FILE", value_parser = parquet_path(), required = true, help_heading = "Output")]
    pub(super) output: PathBuf,
    /// Accept temporary redirects (302, 303, 307) and those of unknown status, unless a permanent one contradicts
    #[arg(long, help_heading = "Learning")]
    weak: bool,
    /// Number of different URLs that may redirect to one target; redirects to targets of more URLs are ignored. URLs that
    /// differ from the target only in scheme, www. or a final slash do not count and are always accepted
    #[arg(long, value_name = "N", default_value_t = LearnLimits::default().max_sources,
          value_parser = parse_number_from::<u64, 0>, allow_negative_numbers = true, help_heading = "Learning")]
    max_sources: u64,
    /// Accept only redirects within one registered domain
    #[arg(long, help_heading = "Learning")]
    same_site: bool,
    /// Number of different URLs of a host that must support a pattern, such as http->https
    #[arg(long, value_name = "N", default_value_t = LearnLimits::default().min_support,
          value_parser = parse_number_from::<u64, 1>, allow_negative_numbers = true, help_heading = "Learning")]
    min_support: u64,
    /// Share of the URLs to which a pattern could apply that must support it: above 0.5, up to 1
    #[arg(long, value_name = "SHARE", default_value_t = LearnLimits::default().min_confidence,
          value_parser = parse_share, help_heading = "Learning")]
    min_confidence: f64,
    /// Learn from redirects only, and not from digests of content
    #[arg(long, conflicts_with_all = ["min_contents", "min_precision", "export"], help_heading = "Learning")]
    no_content: bool,
    /// Write a part: the rules about content of some registered domains, without redirects. All captures of a registered
    /// domain must be inputs of one part. --merge makes one file of all parts, the same as if all captures had been learned
    /// from at once
    #[arg(long, conflicts_with_all = ["no_content", "rules", "export", "validate", "weak", "max_sources", "same_site",
          "min_support", "min_confidence"], help_heading = "Learning")]
    pub(super) part: bool,
    /// Take the rules about content from FILE, which was written with --part, or from the .parquet files of a directory,
    /// instead of learning them from the inputs. May be repeated. Redirects are learned from the inputs, if there are any
    #[arg(long, value_name = "FILE", value_parser = named_path(),
          conflicts_with_all = ["no_content", "part", "validate", "near_duplicates", "canonical_links", "min_contents",
          "min_precision"], help_heading = "Learning")]
    merge: Vec<PathBuf>,
    /// Number of different contents of a host for which a rule about content must have made no difference. Rules about the
    /// segments of paths need two or three times as many
    #[arg(long, value_name = "N", default_value_t = ContentLimits::default().min_contents,
          value_parser = parse_number_from::<u64, 1>, allow_negative_numbers = true, help_heading = "Learning")]
    min_contents: u64,
    /// Share of the merges of a rule about content that must be right by the captures of the host: above 0.5, up to 1.
    /// Contents that also change from capture to capture of one URL are taken into account
    #[arg(long, value_name = "SHARE", default_value_t = ContentLimits::default().min_precision,
          value_parser = parse_share, help_heading = "Learning")]
    min_precision: f64,
    /// Treat contents of WARC and ARC files as equal if the SimHashes (64 bits) of their texts differ in at most BITS bits,
    /// such as 3 for long texts, or 12 for texts of some hundred words. The archives are read a second time
    #[arg(long, value_name = "BITS", value_parser = parse_number::<u32, 0, 16>,
          allow_negative_numbers = true, conflicts_with = "no_content", help_heading = "Learning")]
    pub(super) near_duplicates: Option<u32>,
    /// Use canonical links of documents in WARC and ARC files (link elements and Link header fields) as evidence: a rule needs
    /// half as many contents if enough pages confirm it. The archives are read a second time
    #[arg(long, conflicts_with = "no_content", help_heading = "Learning")]
    pub(super) canonical_links: bool,
    /// Add or leave out rules about content: a CSV file with the columns host, pattern and how, and context if needed, such
    /// as --export csv=FILE writes. A row whose how is hand adds a rule; one whose how is strike leaves a learned rule out;
    /// other rows are ignored
    #[arg(long, value_name = "FILE", value_parser = named_path(), help_heading = "Learning")]
    pub(super) rules: Option<PathBuf>,
    /// Also write the rules about content for other tools: csv=FILE (a table, for --rules), nutch=FILE
    /// (regex-normalize.xml), stormcrawler=FILE (a URL filter) or sql=FILE (a table of regular expressions). May be repeated
    #[arg(long, value_name = "FORMAT=FILE", value_parser = parse_export, help_heading = "Output")]
    pub(super) export: Vec<Export>,
    /// Hold out SHARE (above 0, below 0.9) of the sites, and of the other sites SHARE of the captures: the latest ones, or SHARE
    /// of the URLs if all captures are of one day. Learn from the rest, and report precision, recall and reduction of the rules
    /// about content on what was held out. The output has the rules that were learned from the rest; for those of all captures,
    /// run again without this flag
    #[arg(long, value_name = "SHARE", value_parser = parse_held_out, conflicts_with = "no_content",
          help_heading = "Learning")]
    pub(super) validate: Option<f64>,
    #[command(flatten)]
    pub(super) work: WorkArgs,
    #[command(flatten)]
    pub(super) reporting: ReportingArgs,
}

/// Refuses the name of an object or of a file on a server for a flag whose files are local.
fn refuse_remote(flag: &str, path: &Path) -> Result<(), CommandError> {
    RemoteUrl::of_path(path).map_or(Ok(()), |url| {
        let name = url.name();
        Err(CommandError::Usage(format!("{flag} {name}: this file is read from a local disk only; copy it there")))
    })
}

/// Returns the files of a directory whose names end in `.parquet`, in the order of their names.
fn parquet_files(directory: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let failed = |error: std::io::Error| CommandError::not_opened("--merge", directory, &error);
    let entries = std::fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(failed)?;
    let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    files.retain(|path| OutputFormat::of_path(path) == Some(OutputFormat::Parquet));
    files.sort_unstable();
    match files.is_empty() {
        true => Err(CommandError::Usage(format!("--merge {}: there are no .parquet files", directory.display()))),
        false => Ok(files),
    }
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| *share > 0.5 && *share <= 1.0);
    share.ok_or_else(|| "expected a number above 0.5 and up to 1, such as 0.95".to_string())
}

fn parse_held_out(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| *share > 0.0 && *share < 0.9);
    share.ok_or_else(|| "expected a number above 0 and below 0.9, such as 0.2".to_string())
}

impl LearnArgs {
    /// The limits for redirects, which `--merge` without inputs does not learn from.
    pub(super) fn limits(&self) -> Result<LearnLimits, CommandError> {
        let LearnArgs { weak, max_sources, same_site, min_support, min_confidence, .. } = *self;
        let default = LearnLimits::default();
        let flags = [
            ("--weak", weak),
            ("--max-sources", max_sources != default.max_sources),
            ("--same-site", same_site),
            ("--min-support", min_support != default.min_support),
            ("--min-confidence", min_confidence != default.min_confidence),
        ];
        let has_redirects = self.merge.is_empty() || !self.input.files.inputs.is_empty();
        if let Some((flag, _)) = flags.iter().find(|(_, is_given)| *is_given && !has_redirects) {
            return Err(CommandError::Usage(format!(
                "{flag} is for redirects, which are learned from inputs, and --merge without inputs has none; remove {flag}, or name \
                 inputs"
            )));
        }
        Ok(LearnLimits { weak, max_sources, same_site, min_support, min_confidence })
    }

    /// The files that the job reads and writes, among them the parts that are merged.
    pub(super) fn files(&self, parts: &[PathBuf]) -> FileRoles {
        let files = self.reporting.files(&self.input.files.inputs).input("--rules", self.rules.as_deref());
        let files = parts.iter().fold(files, |files, part| files.input("--merge", Some(part)));
        let files = files.output("-o", Some(&self.output));
        self.export.iter().fold(files, |files, export| files.output("--export", Some(&export.path)))
    }

    fn content_limits(&self) -> ContentLimits {
        ContentLimits {
            min_contents: self.min_contents,
            min_precision: self.min_precision,
            held_out: self.validate.unwrap_or(0.0),
            near_bits: self.near_duplicates,
        }
    }

    pub(super) fn observe_options(&self, memory: usize, parts: Vec<PathBuf>) -> Result<ObserveOptions, CommandError> {
        Ok(ObserveOptions {
            memory,
            directory: self.work.directory()?,
            redirects: self.limits()?,
            content: (!self.no_content && self.merge.is_empty()).then_some(self.content_limits()),
            parts,
        })
    }

    /// Returns whether inputs from which nothing can be learned are accepted, because rules come from elsewhere or other
    /// parts may have some.
    pub(super) fn may_learn_nothing(&self) -> bool {
        self.part || self.rules.is_some() || !self.merge.is_empty()
    }

    /// The files of `--merge`.
    pub(super) fn parts(&self) -> Result<Vec<PathBuf>, CommandError> {
        let mut parts = Vec::new();
        for path in &self.merge {
            refuse_remote("--merge", path)?;
            match path.is_dir() {
                true => parts.extend(parquet_files(path)?),
                false => parts.push(path.clone()),
            }
        }
        Ok(parts)
    }

    /// The rules by hand; none without `--rules`.
    pub(super) fn hand_rules(&self) -> Result<HandRules, CommandError> {
        let Some(path) = &self.rules else { return Ok(HandRules::default()) };
        refuse_remote("--rules", path)?;
        HandRules::read(path)
    }

    /// The captures; standard input is read only if there are no parts.
    pub(super) fn sources(&self) -> Result<Sources, CommandError> {
        match self.input.files.inputs.as_slice() {
            [] if !self.merge.is_empty() => Ok(Sources(Vec::new())),
            _ => self.input.sources(),
        }
    }

    /// Documents of archives are read.
    pub(super) fn reads_documents(&self) -> bool {
        self.near_duplicates.is_some() || self.canonical_links
    }

    /// What is looked for in documents, with the sources that are read a second time for it.
    pub(super) fn document_options(&self, sources: &Sources) -> Result<Option<DocumentOptions>, CommandError> {
        if !self.reads_documents() {
            return Ok(None);
        }
        if self.input.limit.is_some() {
            return Err(CommandError::usage(
                "--limit would not apply to the documents of --near-duplicates and --canonical-links; remove one of the flags",
            ));
        }
        let (has_texts, has_canonical) = (self.near_duplicates.is_some(), self.canonical_links);
        if let Some(source) = sources.0.iter().find(|source| source.is_read_once()) {
            return Err(CommandError::Usage(format!(
                "{}: --near-duplicates and --canonical-links read archives twice, which a pipe does not allow; copy the input to a file",
                source.name
            )));
        }
        let sources = sources.0.iter().filter_map(Source::again).collect();
        Ok(Some(DocumentOptions { sources, has_texts, has_canonical }))
    }

    /// Prints that the flags about documents had no effect, if no input has documents.
    pub(super) fn print_unused_documents(&self, summary: &Summary) {
        if self.reads_documents() && summary.records > 0 && !summary.has_record_types() && !self.reporting.quiet {
            let flag = if self.near_duplicates.is_some() { "--near-duplicates" } else { "--canonical-links" };
            print_error(&format!(
                "{flag} had no effect, because no input is WARC or ARC; remove it, or check the inputs"
            ));
        }
    }

    /// Metadata of the table about documents and parts; none if neither documents were read nor a part is written.
    pub(super) fn more_metadata(&self) -> Vec<(String, String)> {
        let mut metadata = self.document_metadata();
        if self.part {
            metadata.push(part_metadata(&self.content_limits(), &metadata));
        }
        metadata
    }

    fn document_metadata(&self) -> Vec<(String, String)> {
        let near = self.near_duplicates.map(|bits| ("irikey.learn.near_duplicates".to_string(), bits.to_string()));
        let canonical = self.canonical_links.then(|| ("irikey.learn.canonical_links".to_string(), "yes".to_string()));
        near.into_iter().chain(canonical).collect()
    }

    pub(super) fn policy(&self) -> Result<Policy, CommandError> {
        let policy = self.policy.policy(&self.input)?;
        if policy.rung != Rung::Scheme {
            return Err(CommandError::usage("irikey learn needs the rung scheme; remove --rung"));
        }
        if policy.profile.is_whatwg() {
            return Err(CommandError::usage(
                "irikey learn does not support --profile whatwg, because targets are normalized as in RFC 3987; remove it",
            ));
        }
        Ok(policy)
    }
}
