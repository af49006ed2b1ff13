//! `explain`: shows what irikey finds in one IRI: components, the steps that change it, the text and key of each rung,
//! flags, spoofing flags, and the fault with a caret under its byte.

use bstr::ByteSlice;
use serde_json::{Value, json};

use super::args::{KEYS, KeyArgs, PolicyArgs};
use super::error::CommandError;
use super::eval::fault_value;
use super::explain_equivalences::{AppliedEquivalences, KnownEquivalences};
use super::single_iri::{LITERAL_BASE_HELP, rows_of};
use super::terminal::{print_json, print_lines, visible};
use crate::batch::ColumnId;
use crate::canon::{Canonicalizer, Policy, Rows};
use crate::iri::{
    Base, BidiProblem, BidiRules, Changes, Fault, Flags, HostMapping, OwnedComponents, ParseMode, Parts, Rung,
    SpoofingFlags, SpoofingReport, bidi_visual, check_bidi, find_spoofing, is_bidi, spoofing_flags, to_iri,
    whatwg_href,
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
    fault: Option<Fault>,
    /// The key of a row with a fault.
    fault_key: Option<KeyBytes>,
    /// The last rung's text as an IRI.
    iri: Option<String>,
    /// What may mislead readers of the input.
    spoofing: SpoofingReport,
    /// All flags of a row: those of `spoofing`, and what only the IRI shows.
    spoofing_flags: SpoofingFlags,
    /// The href that a browser makes of the input; `None` if it rejects the input.
    browser: Option<String>,
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
        Ok(Policy { more_keys, ..policy })
    }
}

impl Explanation {
    /// The explanation of the text of a record, and of its row.
    fn new(input: &[u8], policy: &Policy, (rows, row): (&Rows, usize)) -> Explanation {
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
            spoofing: find_spoofing(input),
            spoofing_flags: spoofing_flags(input, rows.uri.get(row)),
            browser: browser(input, policy.base.as_deref()),
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
            texts.resize(policy.more_keys.len(), uri.to_vec());
        } else {
            self.add_ladder(policy, &mut texts);
        }
        let keys = rows.more_keys.iter().map(|keys| keys[row]);
        self.rungs =
            policy.more_keys.iter().zip(texts).zip(keys).map(|((rung, text), key)| (*rung, text, key)).collect();
        self.iri = Some(to_iri(&String::from_utf8_lossy(uri), HostMapping::Unicode));
    }

    /// Adds the steps that made the text to whose bytes the fault refers, if it is not the input. A reference is checked before
    /// it is resolved.
    fn add_text_of_fault(&mut self, policy: &Policy) {
        let mut canonicalizer = Canonicalizer::new(&Policy { intake: ParseMode::Lenient, ..policy.clone() });
        let simple = canonicalizer.simple_text(&self.input).ok();
        let assumed = simple.filter(|(_, flags, _)| flags.intersects(Flags::ASSUMED_SCHEME));
        if let Some((text, flags, changes)) = assumed.or_else(|| canonicalizer.repaired_text(&self.input)) {
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

    /// The text that the components are parts of, and that a fault refers to.
    fn text(&self) -> &[u8] {
        self.target.as_ref().unwrap_or(&self.input)
    }

    /// Name, text and byte offset of the components that exist.
    fn components(&self) -> Vec<(&'static str, &[u8], usize)> {
        let text = self.text();
        // Components are slices of the text, so the distance of their starts is their offset.
        let at = |part: &[u8]| part.as_ptr().addr() - text.as_ptr().addr();
        let all = self.parts.components(text);
        all.into_iter().filter_map(|(name, part)| Some((name, part?, at(part?)))).collect()
    }

    fn show(&self) -> String {
        let mut text = format!("{}\n", shown(&self.input));
        if let Some(fault) = self.fault {
            text.push_str(&self.target.as_deref().map_or(String::new(), |target| shown(target) + "\n"));
            let before = &self.text()[..self.text().len().min(fault.at as usize)];
            text.push_str(&format!("{}^ fault: {fault}\n", " ".repeat(shown(before).chars().count())));
        }
        text.push_str("\ncomponents\n");
        for (name, part, at) in self.components() {
            text.push_str(&format!("  {name:9} {at:>4}..{:<4} {}\n", at + part.len(), shown(part)));
        }
        if !self.steps.is_empty() {
            text.push_str("\nsteps\n");
        }
        for Step { name, meaning, text: after, .. } in &self.steps {
            text.push_str(&format!("  {name:13} {meaning}\n"));
            if let Some(after) = after {
                text.push_str(&format!("  {:13} {}\n", "", shown(after)));
            }
        }
        self.show_keys(&mut text);
        if !self.flags.is_empty() {
            text.push_str("\nflags\n");
        }
        for (_, name, meaning) in Flags::ALL.iter().filter(|(flag, ..)| self.flags.intersects(*flag)) {
            text.push_str(&format!("  {name:13} {meaning}\n"));
        }
        self.show_appearance(&mut text);
        text
    }

    /// The keys by rung and recipe, and what the equivalences do.
    fn show_keys(&self, text: &mut String) {
        text.push_str(if self.fault.is_some() { "\nkey\n" } else { "\nrungs\n" });
        for (rung, rung_text, key) in &self.rungs {
            text.push_str(&format!("  {:9} {}  {}\n", rung.name(), hex(*key), shown(rung_text)));
        }
        if let Some(key) = self.fault_key {
            text.push_str(&format!("  {}  on every rung, because of the fault\n", hex(key)));
        }
        if let Some(applied) = &self.equivalences {
            text.push_str(&format!("  {:9} {}\n", "protocol", hex(applied.key)));
            text.push_str(&applied.show());
        }
        if !self.recipes.is_empty() {
            text.push_str("\nrecipes\n");
        }
        for (name, found) in &self.recipes {
            match found {
                Some((key_text, key)) => text.push_str(&format!("  {name:19} {}  {}\n", hex(*key), shown(key_text))),
                None => text.push_str(&format!("  {name:19} no key\n")),
            }
        }
    }

    /// The IRI, if it has right-to-left characters, and where these break the rules of section 4.2.
    fn bidi(&self) -> Option<(&str, Vec<BidiProblem>)> {
        let iri = self.iri.as_deref().filter(|iri| is_bidi(iri))?;
        Some((iri, check_bidi(iri, BidiRules::Rfc3987)))
    }

    /// The IRI, how it is displayed, and what may mislead its readers.
    fn show_appearance(&self, text: &mut String) {
        if let Some(iri) = &self.iri {
            text.push_str(&format!("\niri\n  {}\n", visible(iri)));
        }
        if let Some((iri, problems)) = self.bidi() {
            text.push_str(&format!("  {}  in visual order, left to right\n", bidi_visual(iri, BidiRules::Rfc3987)));
            for problem in problems {
                let (part, at, meaning) = (problem.part.name(), problem.at, problem.violation.meaning());
                text.push_str(&format!("  {part} at byte {at} of the IRI: {meaning}\n"));
            }
        }
        let browser = self.browser.as_deref().unwrap_or("rejected");
        text.push_str(&format!("\nbrowser (WHATWG URL Standard)\n  {browser}\n"));
        if !self.spoofing_flags.is_empty() {
            text.push_str("\nspoofing flags\n");
        }
        for (flag, name, meaning) in
            SpoofingFlags::ALL.iter().filter(|(flag, ..)| self.spoofing_flags.intersects(*flag))
        {
            let mut found = self.spoofing.findings.iter().filter(|found| found.flag == *flag).peekable();
            if found.peek().is_none() {
                text.push_str(&format!("  {name:18} in the IRI: {meaning}\n"));
            }
            for found in found {
                text.push_str(&format!("  {name:18} {} at byte {}: {meaning}\n", found.component, found.at));
            }
        }
    }

    fn json(&self) -> Value {
        let lossy = |text: &[u8]| text.to_str_lossy().into_owned();
        let components: serde_json::Map<_, _> = self
            .components()
            .into_iter()
            .map(|(name, part, at)| (name.into(), json!({"text": lossy(part), "at": at, "len": part.len()})))
            .collect();
        let step = |step: &Step| {
            let text = step.text.as_deref().map(lossy);
            json!({"rung": step.rung.name(), "step": step.name, "meaning": step.meaning, "text": text})
        };
        let key_value = |text: &[u8], key: &KeyBytes| json!({"text": lossy(text), "key": hex(*key)});
        let rung = |(rung, text, key): &(Rung, Vec<u8>, KeyBytes)| (rung.name().into(), key_value(text, key));
        let recipe = |(name, found): &(&'static str, Option<KeyedText>)| {
            (name.to_string(), found.as_ref().map_or(Value::Null, |(text, key)| key_value(text, key)))
        };
        let mut value = json!({
            "input": lossy(&self.input),
            "components": components,
            "steps": self.steps.iter().map(step).collect::<Vec<_>>(),
            "rungs": self.rungs.iter().map(rung).collect::<serde_json::Map<_, _>>(),
            "recipes": self.recipes.iter().map(recipe).collect::<serde_json::Map<_, _>>(),
            "flags": self.flags.names().collect::<Vec<_>>(),
            "iri": self.iri,
            "whatwg_href": self.browser,
            "visual": self.bidi().map(|(iri, _)| bidi_visual(iri, BidiRules::Rfc3987).into_owned()),
            "bidi": self.bidi().map(|(_, problems)| problems.iter().map(bidi_value).collect::<Vec<_>>()),
            "spoofing_flags": self.spoofing_flags.names().collect::<Vec<_>>(),
            "fault": self.fault.map(fault_value),
            "fault_key": self.fault_key.map(hex),
        });
        if let Some(applied) = &self.equivalences {
            value["rungs"]["protocol"] = json!({"key": hex(applied.key)});
            value["equivalences"] = applied.json();
        }
        value
    }
}

/// Text as it is shown on one line.
fn shown(text: &[u8]) -> String {
    visible(&text.to_str_lossy()).into_owned()
}

/// The href by the URL Standard, on which no rung depends.
fn browser(input: &[u8], base: Option<&[u8]>) -> Option<String> {
    let base = base.and_then(|base| Base::new(base).ok());
    let base = base.as_ref().and_then(|base| std::str::from_utf8(base.text()).ok());
    whatwg_href(std::str::from_utf8(input).ok()?, base, None).ok()
}

fn bidi_value(problem: &BidiProblem) -> Value {
    json!({"violation": problem.violation.name(), "part": problem.part.name(), "at": problem.at})
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

fn hex(key: KeyBytes) -> String {
    format!("{:032x}", u128::from_be_bytes(key))
}
