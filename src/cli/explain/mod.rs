//! `explain`: shows what irikey finds in one IRI: components, the steps that change it, the text and key of each rung,
//! flags, spoofing flags, and the fault with a caret under its byte.

mod equivalences;
mod output;

use self::equivalences::{AppliedEquivalences, KnownEquivalences};
use super::args::{KEYS, KeyArgs, PolicyArgs};
use super::error::CommandError;
use super::single_iri::{LITERAL_BASE_HELP, rows_of};
use super::terminal::{print_json, print_lines};
use crate::batch::ColumnId;
use crate::canon::{Canonicalizer, Policy, Rows, assumed_delimiter};
use crate::iri::{
    BidiRules, Changes, Fault, Flags, HostMapping, OwnedComponents, ParseMode, Parts, Profile, Rung, SpoofingFlags,
    SpoofingReport, find_spoofing,
};
use crate::key::KeyBytes;

const EXAMPLES: &str = "\
Examples:
  irikey explain 'HTTP://Example.org:80/%7Euser/../a b'
  irikey explain ../c --base http://example.org/a/b --json

  What canon writes with the same flags, and the keys of two recipes:
      irikey explain --assume-scheme https --key surt-ia,nutch 'www.example.org/?b&a'

  Which learned rules apply to a URL, and why:
      irikey explain --equivalences equivalences.parquet 'http://example.org/?sid=1'";

/// The help of a flag that shows more here than elsewhere.
const EQUIVALENCES_HELP: &str = "\
Also show which classes, patterns and rules of this file lead to the key of the rung protocol, with their evidence";

const KEY_HELP: &str = "\
Also show the keys of these recipes, separated by commas: surt-wayback, surt-ia, crawler-commons, nutch, w3lib, \
urlcanon-aggressive, heritrix, and rules (with --rules). Keys of rungs are always shown";

/// Show what irikey finds in an IRI: components, steps, rungs, keys, flags, fault
///
/// An IRI is read as canon reads a record of these bytes with the same flags.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("literal_base", |flag| flag.help(LITERAL_BASE_HELP)),
          mut_arg("rung", |flag| flag.help("Highest rung of RFC 3987 section 5.3 to show")),
          mut_arg("equivalences", |flag| flag.help(EQUIVALENCES_HELP)))]
pub(crate) struct ExplainArgs {
    /// The IRIs to explain
    #[arg(required = true, value_name = "IRI")]
    iris: Vec<std::ffi::OsString>,
    #[command(flatten)]
    policy: PolicyArgs,
    #[arg(long, value_name = "LIST", value_parser = KEYS, hide_possible_values = true, value_delimiter = ',',
          help_heading = "Canonical form", help = KEY_HELP)]
    key: Vec<ColumnId>,
    #[command(flatten)]
    keys: KeyArgs,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

/// The explanation of one IRI.
struct Explanation {
    input: Vec<u8>,
    /// The text of the simple rung, if it is not the input: decoded, repaired or resolved. Of a row with a fault, the text to
    /// whose bytes the fault refers.
    target: Option<Vec<u8>>,
    parts: Parts,
    flags: Flags,
    /// What changed the text.
    steps: Vec<Step>,
    /// Text and key by rung.
    rungs: Vec<(Rung, Vec<u8>, KeyBytes)>,
    /// Name, text and key of recipes; `None` if the recipe gives no key.
    recipes: Vec<(&'static str, Option<KeyedText>)>,
    /// The fault of the row, with its place in the text that is shown.
    fault: Option<Fault>,
    /// The key of a row with a fault.
    fault_key: Option<KeyBytes>,
    /// The last rung's text as an IRI.
    iri: Option<String>,
    /// What may mislead readers of the input, after it was decoded and repaired.
    spoofing: SpoofingReport,
    /// All flags of a row: those of `spoofing`, and what only the IRI shows.
    spoofing_flags: SpoofingFlags,
    /// The href that a browser makes of the input; `None` if it rejects the input.
    browser: Option<String>,
    /// The rules for right-to-left characters of the IRI.
    bidi_rules: BidiRules,
    /// What the equivalences of a file do to the text of the scheme rung.
    equivalences: Option<AppliedEquivalences>,
}

/// The text of a key, and the key.
type KeyedText = (Vec<u8>, KeyBytes);

/// A step that changed the text.
struct Step {
    rung: Rung,
    name: &'static str,
    meaning: &'static str,
    /// The text after the step; `None` if the next step of the same kind has it.
    text: Option<Vec<u8>>,
}

pub(crate) fn run(args: &ExplainArgs) -> Result<u8, CommandError> {
    let text = text(args)?;
    Ok(if args.json { print_json(&text) } else { print_lines(&text) })
}

/// What the command prints.
pub(super) fn text(args: &ExplainArgs) -> Result<String, CommandError> {
    let policy = args.policy()?;
    let known = args.keys.equivalences_file().and_then(|path| KnownEquivalences::new(path, &policy));
    let mut text = String::new();
    for iri in &args.iris {
        let (inputs, rows) = rows_of(&policy, &[iri.as_encoded_bytes()]);
        for (row, input) in inputs.iter().enumerate() {
            let mut explanation = Explanation::new(input, &policy, (&rows, row));
            explanation.equivalences = match (&known, explanation.rungs.last()) {
                (Some(known), Some((_, uri, _))) => Some(known.apply(uri)?),
                _ => None,
            };
            if args.json {
                text.push_str(&format!("{}\n", explanation.json()));
            } else {
                text.push_str(if text.is_empty() { "" } else { "\n" });
                text.push_str(&explanation.show());
            }
        }
    }
    Ok(text)
}

impl ExplainArgs {
    /// The policy of `canon` with these flags, and the keys of all rungs.
    fn policy(&self) -> Result<Policy, CommandError> {
        let protocol = self.keys.equivalences_file().map(|_| ColumnId::KeyProtocol);
        let is_rung = |key: &ColumnId| matches!(key, ColumnId::KeyOf(_));
        let keys: Vec<_> = self.key.iter().copied().filter(|key| !is_rung(key)).chain(protocol).collect();
        let (policy, _) = self.keys.complete(self.policy.policy_of_arguments()?, &keys)?;
        let more_keys = policy.rung.up_to().collect();
        Ok(Policy { more_keys, spoofing_flags: true, ..policy })
    }
}

impl Explanation {
    /// The explanation of the text of a record, and of its row.
    fn new(input: &[u8], policy: &Policy, (rows, row): (&Rows, usize)) -> Explanation {
        let mut canonicalizer = Canonicalizer::new(policy);
        let spoofing_text = canonicalizer.spoofing_text(input);
        let mut explanation = Explanation {
            input: input.to_vec(),
            target: None,
            parts: Parts::split(input),
            flags: Flags(rows.flags[row]),
            steps: Vec::new(),
            rungs: Vec::new(),
            recipes: recipes(policy, rows, row),
            fault: rows.fault(row),
            fault_key: None,
            iri: None,
            spoofing: find_spoofing(&spoofing_text),
            spoofing_flags: SpoofingFlags(rows.spoofing_flags[row]),
            browser: browser(input, policy),
            bidi_rules: policy.profile.bidi_rules.unwrap_or_default(),
            equivalences: None,
        };
        match explanation.fault {
            Some(_) => {
                explanation.fault_key = Some(rows.key[row]);
                explanation.add_text_of_fault(policy);
            }
            None => explanation.add_rungs(policy, (rows, row)),
        }
        explanation
    }

    /// Adds the steps and the rungs of a row without a fault.
    fn add_rungs(&mut self, policy: &Policy, (rows, row): (&Rows, usize)) {
        let mut canonicalizer = Canonicalizer::new(policy);
        let Ok((simple, flags, changes)) = canonicalizer.simple_text(&self.input) else { return };
        self.add_preparation(&simple, flags, changes);
        let uri = rows.uri.get(row);
        let mut texts = vec![simple];
        if policy.profile.is_whatwg() {
            self.add_browser_step(&texts[0], uri);
            texts.resize(policy.more_keys.len(), uri.to_vec());
        } else {
            self.add_ladder(policy, &mut texts);
        }
        let keys = rows.more_keys.iter().map(|keys| keys[row]);
        self.rungs =
            policy.more_keys.iter().zip(texts).zip(keys).map(|((rung, text), key)| (*rung, text, key)).collect();
        self.iri = Some(policy.profile.to_iri(&String::from_utf8_lossy(uri), HostMapping::Unicode));
    }

    /// Adds the steps that made the text that is shown with the fault, if it is not the input, and moves the fault to its place
    /// there: in a row, it has its place before the scheme was assumed. A reference is checked before it is resolved.
    fn add_text_of_fault(&mut self, policy: &Policy) {
        let mut canonicalizer = Canonicalizer::new(&Policy { mode: ParseMode::Lenient, ..policy.clone() });
        let repaired = canonicalizer.repaired_text(&self.input);
        let simple = canonicalizer.simple_text(&self.input).ok();
        let assumed = simple.filter(|(_, flags, _)| flags.intersects(Flags::ASSUMED_SCHEME));
        if let (Some(_), Some(scheme), Some(fault)) = (&assumed, &policy.assume_scheme, &mut self.fault) {
            let text = repaired.as_ref().map_or(&self.input, |(text, ..)| text);
            fault.at += (scheme.len() + assumed_delimiter(text).len()) as u32;
        }
        if let Some((text, flags, changes)) = assumed.or(repaired) {
            self.add_preparation(&text, flags, changes);
        }
    }

    /// Adds the steps that made the text of the simple rung, if it is not the input.
    fn add_preparation(&mut self, simple: &[u8], flags: Flags, changes: Changes) {
        if *simple == self.input {
            return;
        }
        let assumed = Flags::ALL.iter().filter(|(flag, ..)| *flag == Flags::ASSUMED_SCHEME && flags.intersects(*flag));
        let assumed = assumed.map(|&(_, name, meaning)| (name, meaning));
        let changed = Changes::ALL.iter().filter(|(change, ..)| changes.intersects(*change));
        let changed = changed.map(|&(_, name, meaning)| (name, meaning));
        let steps =
            changed.chain(assumed).map(|(name, meaning)| Step { rung: Rung::Simple, name, meaning, text: None });
        self.steps.extend(steps);
        if let Some(step) = self.steps.last_mut() {
            step.text = Some(simple.to_vec());
        }
        self.parts = Parts::split(simple);
        self.target = Some(simple.to_vec());
    }

    /// Adds the step of the profile whatwg from the text of the simple rung to the URI: the parser of the URL Standard gives no
    /// steps in between.
    fn add_browser_step(&mut self, simple: &[u8], uri: &[u8]) {
        if simple != uri {
            let (name, meaning) = describe(Changes::WHATWG);
            self.steps.push(Step { rung: Rung::Syntax, name, meaning, text: Some(uri.to_vec()) });
        }
    }

    /// Adds the steps of the ladder from the text of the simple rung on, and the texts of the next rungs.
    fn add_ladder(&mut self, policy: &Policy, texts: &mut Vec<Vec<u8>>) {
        // The row has no fault, also if the policy is strict.
        let Ok(mut components) = OwnedComponents::new(&texts[0], ParseMode::Lenient) else { return };
        let of_rung = |rung| match rung {
            Rung::Simple => &[][..],
            Rung::Syntax => &OwnedComponents::SYNTAX_STEPS[..],
            Rung::Scheme => &OwnedComponents::SCHEME_STEPS,
        };
        let without_fragment = (Changes::FRAGMENT, OwnedComponents::remove_fragment as fn(&mut OwnedComponents));
        for rung in &policy.more_keys[1..] {
            let first = (policy.drop_fragment && *rung == Rung::Syntax).then_some(&without_fragment);
            for (change, step) in first.into_iter().chain(of_rung(*rung)) {
                let before = components.text();
                step(&mut components);
                if components.text() != before {
                    let (name, meaning) = describe(*change);
                    self.steps.push(Step { rung: *rung, name, meaning, text: Some(components.text()) });
                }
            }
            texts.push(components.text());
        }
    }
}

/// The href by the URL Standard of a record that is read with the charsets, the base and the repairs of `policy`; `None` if the
/// standard's parser fails.
fn browser(input: &[u8], policy: &Policy) -> Option<String> {
    let policy = Policy {
        profile: Profile::named("whatwg")?,
        mode: ParseMode::Lenient,
        literal_base: false,
        drop_fragment: false,
        recipes: Vec::new(),
        equivalences: None,
        spoofing_flags: false,
        ..policy.clone()
    };
    let (_, rows) = rows_of(&policy, &[input]);
    rows.fault(0).is_none().then(|| String::from_utf8_lossy(rows.uri.get(0)).into_owned())
}

fn describe(change: Changes) -> (&'static str, &'static str) {
    let known = Changes::ALL.iter().find(|(bit, ..)| *bit == change);
    known.map_or(("", ""), |&(_, name, meaning)| (name, meaning))
}

/// The keys of a policy's recipes in a row.
fn recipes(policy: &Policy, rows: &Rows, row: usize) -> Vec<(&'static str, Option<KeyedText>)> {
    let key = |text: &[u8]| (!text.is_empty()).then(|| (text.to_vec(), policy.algorithm.key(text)));
    let texts = rows.recipe_texts.iter().map(|texts| key(texts.get(row)));
    policy.recipes.iter().map(|recipe| recipe.column).zip(texts).collect()
}
