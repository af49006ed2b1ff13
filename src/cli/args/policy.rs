//! The flags that define the canonical form and the keys, and the [`Policy`] that they stand for.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::input::InputArgs;
use super::values::{Choices, Named, named_path, parse_size_up_to, read_text};
use crate::batch::{COLUMNS, ColumnId, ColumnSet, OWN_RULES};
use crate::canon::{MaxUrlLen, Policy, RecipeColumn, Rung, SCHEME_FORM};
use crate::cli::error::CommandError;
use crate::cli::file_roles::FileRoles;
use crate::encoding::Charset;
use crate::iri::{
    Backslashes, CharacterReferences, Component, Fault, ParseMode, PreprocessOptions, Profile, Spaces, is_scheme,
};
use crate::key::psl::SuffixList;
use crate::key::{KeyAlgorithm, RULES, Recipe};
use crate::learn::Equivalences;
use crate::run::{self, RowKey};

const RUNGS: Choices<Rung> = Choices(&[
    (
        "syntax",
        Rung::Syntax,
        "Scheme and host case, percent-encoding, mapping to a URI, dot segments (RFC 3987 section 5.3.2)",
    ),
    ("scheme", Rung::Scheme, "Also default ports, empty paths, hosts and rules of single schemes (section 5.3.3)"),
]);

const KEY_HASHES: Choices<KeyAlgorithm> = Choices(&[
    ("xxh3", KeyAlgorithm::Xxh3, "XXH3, 128 bits, seed 0"),
    ("blake3", KeyAlgorithm::Blake3, "The first 128 bits of BLAKE3, for inputs that an adversary may choose"),
]);

const INNER_SPACES: Choices<Spaces> = Choices(&[
    ("remove", Spaces::Removed, "Remove white space"),
    ("encode", Spaces::Encoded, "Write each space as %20, even with --strict"),
    ("split", Spaces::Split, "Split at spaces: each reference is a record of its own"),
]);

const CHARACTER_REFERENCES: Choices<CharacterReferences> = Choices(&[
    ("xml", CharacterReferences::Xml, "Numbers, and &lt; &gt; &amp; &quot; &apos;"),
    ("html", CharacterReferences::Html, "Numbers, and all names of HTML"),
]);

const BACKSLASHES: Choices<Backslashes> = Choices(&[
    ("slash", Backslashes::Slash, "Write each before the query as /, as browsers do"),
    ("encode", Backslashes::Encoded, "Write each as %5C, even with --strict"),
]);

/// Flags of every command that makes canonical URIs.
#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    /// Resolve relative references against this absolute IRI, if their record has no base of its own
    #[arg(long, value_name = "URI", help_heading = "Canonical form")]
    base: Option<String>,
    /// Specification whose syntax and repairs apply: rfc3987, duerst-00, duerst-01, masinter-07, weber-00 or whatwg. The
    /// rungs are those of RFC 3987, except for whatwg: there the text of syntax and scheme is the href of a browser
    #[arg(long, value_name = "NAME", value_parser = PROFILES, hide_possible_values = true, default_value = "rfc3987",
          help_heading = "Canonical form")]
    profile: &'static Profile,
    /// Charset of the inputs, a label of the Encoding Standard. Records are converted to UTF-8, and to NFC unless the
    /// charset is a Unicode one (RFC 3987 section 3.1); a record that is not valid in it is a fault. Strings of Parquet
    /// and Arrow files and of JSON are not converted. UTF-16 is also recognized by its byte order mark
    #[arg(long, value_name = "LABEL", value_parser = parse_charset, help_heading = "Canonical form")]
    charset: Option<Charset>,
    /// Charset of the documents in which the URLs were found: queries of http and https URLs are percent-encoded in it,
    /// as browsers do, instead of in UTF-8
    #[arg(long, value_name = "LABEL", value_parser = parse_charset, help_heading = "Canonical form")]
    query_charset: Option<Charset>,
    /// Resolve exactly as in RFC 3986 section 5.2, keeping the dot segments of the base itself. Needs --base or
    /// --base-column
    #[arg(long, help_heading = "Canonical form")]
    literal_base: bool,
    /// Treat what RFC 3987 does not allow as a fault, instead of repairing or keeping and flagging it
    #[arg(long, help_heading = "Canonical form")]
    strict: bool,
    /// Rung of RFC 3987 section 5.3 for the columns uri and key
    #[arg(long, value_name = "RUNG", value_parser = RUNGS, default_value = "scheme", help_heading = "Canonical form")]
    pub(crate) rung: Rung,
    /// Hash function of the keys
    #[arg(long, value_name = "HASH", value_parser = KEY_HASHES, default_value = "xxh3", help_heading = "Canonical form")]
    key_hash: KeyAlgorithm,
    /// Remove fragments from URIs and from the keys of the rungs syntax and scheme, because they do not change what is retrieved
    /// (RFC 3987 section 5.1)
    #[arg(long, help_heading = "Canonical form")]
    drop_fragment: bool,
    /// Scheme to put before URLs without one that look like host/path, such as https. They are flagged
    #[arg(long, value_name = "SCHEME", value_parser = parse_scheme, help_heading = "Canonical form")]
    assume_scheme: Option<String>,
    /// Longest URL in bytes, as it is in the record, before it is decoded and resolved. A longer one has a fault; it gets a key,
    /// but no URI. At most 64M
    #[arg(long, value_name = "BYTES", value_parser = parse_size_up_to::<{ MaxUrlLen::MAX.0 }>, default_value = "1M",
          help_heading = "Canonical form")]
    max_url: usize,
    #[command(flatten)]
    repairs: RepairArgs,
}

/// Repairs of fields of documents (draft-weber-iri-guidelines-00 sections 4 and 7). None is made by default; rows that
/// were repaired are flagged.
#[derive(Debug, Args)]
struct RepairArgs {
    /// Remove spaces, tabs and line ends from both ends of URLs. Profile weber-00 always does
    #[arg(long, help_heading = "Repairs")]
    trim: bool,
    /// What to do with white space inside URLs [default: percent-encode and flag it; a fault with --strict]
    #[arg(long, value_name = "CHOICE", value_parser = INNER_SPACES, help_heading = "Repairs")]
    inner_spaces: Option<Spaces>,
    /// Replace character references such as &amp; once, in URLs that were copied from markup without decoding
    #[arg(long, value_name = "MARKUP", value_parser = CHARACTER_REFERENCES, help_heading = "Repairs")]
    character_references: Option<CharacterReferences>,
    /// What to do with backslashes [default: percent-encode and flag them; a fault with --strict]
    #[arg(long, value_name = "CHOICE", value_parser = BACKSLASHES, help_heading = "Repairs")]
    backslashes: Option<Backslashes>,
}

impl PolicyArgs {
    /// The policy, without what the columns of the output add to it.
    pub(crate) fn policy(&self, input: &InputArgs) -> Result<Policy, CommandError> {
        if self.literal_base && self.base.is_none() && input.base_column.is_none() {
            return Err(CommandError::usage("--literal-base needs a base: add --base or --base-column"));
        }
        Ok(Policy {
            has_record_charsets: input.charset_column.is_some(),
            has_record_query_charsets: input.query_charset_column.is_some(),
            ..self.own_policy()?
        })
    }

    /// The policy for IRIs that are arguments of the command, so that they have no bases and charsets of their own.
    pub(crate) fn policy_of_arguments(&self) -> Result<Policy, CommandError> {
        match self.literal_base && self.base.is_none() {
            true => Err(CommandError::usage("--literal-base needs a base: add --base")),
            false => self.own_policy(),
        }
    }

    /// What these flags alone choose.
    fn own_policy(&self) -> Result<Policy, CommandError> {
        self.check()?;
        let policy = Policy {
            profile: self.profile,
            mode: if self.strict { ParseMode::Strict } else { ParseMode::Lenient },
            rung: self.rung,
            algorithm: self.key_hash,
            base: self.base.as_ref().map(|base| base.clone().into_bytes()),
            literal_base: self.literal_base,
            drop_fragment: self.drop_fragment,
            assume_scheme: self.assume_scheme.clone(),
            preprocess: PreprocessOptions {
                character_references: self.repairs.character_references.unwrap_or_default(),
                is_trimmed: self.repairs.trim || self.profile.is_field_of_references,
                spaces: self.repairs.inner_spaces.unwrap_or_default(),
                backslashes: self.repairs.backslashes.unwrap_or_default(),
            },
            charset: self.charset,
            query_charset: self.query_charset,
            max_url_len: MaxUrlLen(self.max_url),
            ..Policy::default()
        };
        policy.check_base().map_err(|fault| {
            let base = self.base.as_deref().unwrap_or_default();
            CommandError::Usage(format!("--base {base}: {}", describe_fault_of_base(fault)))
        })?;
        Ok(policy)
    }

    fn check(&self) -> Result<(), CommandError> {
        let rfc_only = [("--strict", self.strict), ("--literal-base", self.literal_base)];
        if let Some((flag, _)) = rfc_only.iter().find(|(_, is_given)| *is_given && self.profile.is_whatwg()) {
            let message =
                format!("{flag} has no effect on --profile whatwg, which parses every URL in one way; remove it");
            return Err(CommandError::Usage(message));
        }
        Ok(())
    }
}

/// Why a text cannot be a base.
pub(crate) fn describe_fault_of_base(fault: Fault) -> String {
    match fault.component {
        Component::Reference => "not an absolute IRI; it needs a scheme, such as https://example.org/".to_string(),
        component => format!("not an absolute IRI; correct the {component} at byte {}", fault.at),
    }
}

/// Flags of every command that makes keys.
#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// Table of equivalences for --key protocol, written by irikey learn with the same --profile, --key-hash and
    /// --drop-fragment
    #[arg(long, value_name = "FILE", value_parser = named_path(), help_heading = "Canonical form")]
    equivalences: Option<PathBuf>,
    /// Define the recipe for --key rules: by rules, such as +www,+fragment, or by the name of a recipe and changes to its
    /// rules, such as surt-wayback,-path-case. A change without effect is an error. `irikey schema` lists recipes and rules
    #[arg(long, value_name = "LIST", value_parser = RULE_NAMES, hide_possible_values = true, allow_hyphen_values = true,
          help_heading = "Canonical form")]
    rules: Option<Recipe>,
}

impl KeyArgs {
    /// The file of equivalences.
    pub(crate) fn equivalences_file(&self) -> Option<&Path> {
        self.equivalences.as_deref()
    }

    /// Adds the files that these flags name.
    pub(crate) fn add_to(&self, files: FileRoles) -> FileRoles {
        files.input("--equivalences", self.equivalences.as_deref())
    }

    /// `policy` with everything that the keys of these columns need, and which of its keys they are.
    pub(crate) fn complete(&self, policy: Policy, keys: &[ColumnId]) -> Result<(Policy, Vec<RowKey>), CommandError> {
        let (recipes, has_protocol) = (ColumnSet::of(keys).recipes(), keys.contains(&ColumnId::KeyProtocol));
        let (recipes, equivalences) = (self.recipes(&recipes)?, self.equivalences(&policy, has_protocol)?);
        let mut policy = Policy { recipes, equivalences, ..policy };
        let keys = keys.iter().map(|key| RowKey::of_column(*key, &mut policy)).collect();
        Ok((policy, keys))
    }

    /// The equivalences for the keys of `policy`. `is_needed`: some key is of the rung `protocol`.
    ///
    /// # Errors
    /// Such a key without the file, or the file without such a key; a file that cannot be read or does not fit.
    fn equivalences(&self, policy: &Policy, is_needed: bool) -> Result<Option<Arc<Equivalences>>, CommandError> {
        let usage = |message| Err(CommandError::usage(message));
        match &self.equivalences {
            None if !is_needed => Ok(None),
            None => usage("--key protocol needs --equivalences FILE, written by irikey learn"),
            Some(_) if !is_needed => usage("--equivalences is used only by --key protocol; add it"),
            Some(_) if policy.rung != Rung::Scheme => usage("--equivalences needs the rung scheme; remove --rung"),
            Some(path) => Ok(Some(Arc::new(read_equivalences(path, policy)?))),
        }
    }

    /// The recipes with these names.
    ///
    /// # Errors
    /// `rules` is a name without `--rules`, or the other way round.
    fn recipes(&self, names: &[&'static str]) -> Result<Vec<RecipeColumn>, CommandError> {
        if self.rules.is_some() && !names.contains(&OWN_RULES) {
            let message = "--rules is used only by --key rules (columns key_rules and url_rules); add it";
            return Err(CommandError::usage(message));
        }
        let recipe = |name: &'static str| match &self.rules {
            Some(rules) if name == OWN_RULES => Ok(rules.clone()),
            None if name == OWN_RULES => {
                Err(CommandError::usage("--key rules (columns key_rules and url_rules) needs --rules"))
            }
            _ => Recipe::parse(name).map_err(|error| CommandError::Usage(error.to_string())),
        };
        names.iter().map(|column| Ok(RecipeColumn { column, recipe: recipe(column)? })).collect()
    }
}

fn read_equivalences(path: &Path, policy: &Policy) -> Result<Equivalences, CommandError> {
    run::read_equivalences(path, policy).map_err(|error| CommandError::unusable("--equivalences", path, &error))
}

/// Flags of the commands that write columns.
#[derive(Debug, Args)]
pub(crate) struct ColumnArgs {
    #[command(flatten)]
    keys: KeyArgs,
    /// Public Suffix List for the columns url_host_*, a public_suffix_list.dat [default: the embedded one]
    #[arg(long, value_name = "FILE", value_parser = named_path(), help_heading = "Canonical form")]
    psl: Option<PathBuf>,
}

impl ColumnArgs {
    /// Adds the files that these flags name.
    pub(crate) fn add_to(&self, files: FileRoles) -> FileRoles {
        self.keys.add_to(files).input("--psl", self.psl.as_deref())
    }

    /// `policy` with everything that rows of these columns need.
    ///
    /// # Errors
    /// Columns without the flags that they need, or the other way round; a file that cannot be read.
    pub(crate) fn complete(&self, policy: Policy, columns: &ColumnSet) -> Result<Policy, CommandError> {
        Ok(columns.complete_policy(Policy {
            recipes: self.keys.recipes(&columns.recipes())?,
            suffixes: self.suffixes(columns)?,
            equivalences: self.keys.equivalences(&policy, columns.contains(ColumnId::KeyProtocol))?,
            ..policy
        }))
    }

    fn suffixes(&self, columns: &ColumnSet) -> Result<SuffixList, CommandError> {
        let Some(path) = &self.psl else { return Ok(SuffixList::default()) };
        let parse = |text: String| SuffixList::parse(&text).map_err(|error| error.to_string());
        let not_text = "not a Public Suffix List; expected UTF-8 text such as public_suffix_list.dat";
        let suffixes = read_text("--psl", path, not_text, parse)?;
        match columns.names().any(|name| name.starts_with("url_host_")) {
            true => Ok(suffixes),
            false => Err(CommandError::usage("--psl is used only by the columns url_host_*; add one with --columns")),
        }
    }
}

/// The name in `--key` of the rung that needs observations (RFC 3987 section 5.3.4).
pub(crate) const PROTOCOL: &str = "protocol";

/// The name in `--key` of a key column; `None` for other columns.
pub(crate) fn name_of_key(id: ColumnId) -> Option<&'static str> {
    match id {
        ColumnId::KeyOf(rung) => Some(rung.name()),
        ColumnId::KeyProtocol => Some(PROTOCOL),
        ColumnId::RecipeKey(name) => Some(name),
        _ => None,
    }
}

/// The names of rungs and recipes.
pub(crate) const KEYS: Named<ColumnId> = Named {
    parse: |name| {
        // A space may follow a comma of the list.
        let name = name.trim();
        let found = COLUMNS.iter().map(|column| column.id).find(|id| name_of_key(*id) == Some(name));
        found.ok_or_else(|| format!("expected one of {}", (KEYS.names)().join(", ")))
    },
    names: || COLUMNS.iter().filter_map(|column| name_of_key(column.id)).collect(),
};

const PROFILES: Named<&'static Profile> = Named {
    parse: |name| Profile::named(name).ok_or_else(|| format!("expected one of {}", (PROFILES.names)().join(", "))),
    names: || Profile::ALL.map(|profile| profile.name).to_vec(),
};

pub(crate) fn parse_charset(label: &str) -> Result<Charset, String> {
    Charset::named(label).ok_or_else(|| {
        "unknown charset; expected a label of the Encoding Standard such as windows-1251, Shift_JIS, GB18030"
            .to_string()
    })
}

/// `scheme = ALPHA *( ALPHA / DIGIT / "+" / "-" / "." )`, RFC 3986 section 3.1; returned in lower case.
fn parse_scheme(text: &str) -> Result<String, String> {
    match is_scheme(text.as_bytes()) {
        true => Ok(text.to_ascii_lowercase()),
        false => Err(SCHEME_FORM.to_string()),
    }
}

/// A recipe and changes to its rules, each of which has a sign.
const RULE_NAMES: Named<Recipe> = Named {
    parse: |text| Recipe::parse(text).map_err(|error| error.to_string()),
    names: || Recipe::names().chain(RULES.iter().map(|rule| rule.name)).collect(),
};
