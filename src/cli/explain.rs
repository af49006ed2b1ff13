//! `explain`: shows what irikey finds in one IRI: components, the steps that change it, the text and key of each rung,
//! flags, spoofing flags, and the fault with a caret under its byte.

use bstr::ByteSlice;
use serde_json::{Value, json};

use super::error::CommandError;
use super::eval::fault_value;
use super::explain_equivalences::{AppliedEquivalences, KnownEquivalences};
use super::single_iri::{SingleIriArgs, fault_of};
use super::terminal::{print_json, print_lines, visible};
use crate::iri::{
    Base, BidiProblem, BidiRules, Changes, Fault, Flags, HostMapping, OwnedComponents, ParseMode, Parts, Rung,
    SpoofingFlags, SpoofingReport, bidi_visual, check_bidi, find_scheme, find_spoofing, is_bidi, spoofing_flags,
    to_iri, whatwg_href,
};
use crate::key::{KeyAlgorithm, KeyBytes};

const EXAMPLES: &str = "\
Examples:
  irikey explain 'HTTP://Example.org:80/%7Euser/../a b'
  irikey explain ../c --base http://example.org/a/b --json

  Which learned rules apply to a URL, and why:
      irikey explain --equivalences equivalences.parquet 'http://example.org/?sid=1'";

/// Show what irikey finds in an IRI: components, steps, rungs, keys, flags, fault
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// The IRIs to explain
    #[arg(required = true, value_name = "IRI")]
    iris: Vec<std::ffi::OsString>,
    #[command(flatten)]
    iri: SingleIriArgs,
    /// Also show which classes, patterns and rules of this file lead to the key of the rung protocol, with their evidence
    #[arg(long, value_name = "FILE")]
    equivalences: Option<std::path::PathBuf>,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

/// The explanation of one IRI.
struct Explanation {
    input: Vec<u8>,
    /// The target, if the input was resolved.
    target: Option<Vec<u8>>,
    parts: Parts,
    flags: Flags,
    /// The steps that changed the text: rung, step, and text after it.
    steps: Vec<(Rung, Changes, Vec<u8>)>,
    /// Text and key by rung.
    rungs: Vec<(Rung, Vec<u8>)>,
    fault: Option<Fault>,
    /// The scheme rung's text as an IRI.
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

pub(crate) fn run(args: &ExplainArgs) -> Result<u8, CommandError> {
    let text = text(args)?;
    Ok(if args.json { print_json(&text) } else { print_lines(&text) })
}

/// What the command prints.
pub(super) fn text(args: &ExplainArgs) -> Result<String, CommandError> {
    let base = args.iri.base()?;
    let mut text = String::new();
    let known = args.equivalences.as_deref().map(|path| KnownEquivalences::read(path, &args.iri.policy(Rung::Scheme)));
    let known = known.transpose()?;
    for (i, iri) in args.iris.iter().enumerate() {
        let mut explanation = Explanation::new(iri.as_encoded_bytes(), base.as_ref(), &args.iri);
        explanation.equivalences = match (&known, explanation.rungs.last()) {
            (Some(known), Some((Rung::Scheme, uri))) if explanation.fault.is_none() => Some(known.apply(uri)?),
            _ => None,
        };
        if args.json {
            text.push_str(&format!("{}\n", explanation.json()));
        } else {
            text.push_str(if i > 0 { "\n" } else { "" });
            text.push_str(&explanation.show());
        }
    }
    Ok(text)
}

impl Explanation {
    fn new(input: &[u8], base: Option<&Base>, args: &SingleIriArgs) -> Explanation {
        let mut explanation = Explanation {
            input: input.to_vec(),
            target: None,
            parts: Parts::split(input),
            flags: Flags::NONE,
            steps: Vec::new(),
            rungs: Vec::new(),
            fault: None,
            iri: None,
            spoofing: find_spoofing(input),
            spoofing_flags: SpoofingFlags::NONE,
            browser: browser(input, base),
            equivalences: None,
        };
        explanation.fault = match args.is_rfc3987() {
            true => explanation.normalize(base, args.parse_mode()).err(),
            false => explanation.canonicalize(args),
        };
        if explanation.fault.is_some() {
            explanation.rungs.clear();
        }
        let uri = explanation.rungs.last().map_or(&[][..], |(_, uri)| uri);
        explanation.spoofing_flags = spoofing_flags(input, uri);
        explanation
    }

    /// The rungs of another profile, without steps.
    fn canonicalize(&mut self, args: &SingleIriArgs) -> Option<Fault> {
        let mut rungs = Vec::new();
        if find_scheme(&self.input).is_some() {
            rungs.push((Rung::Simple, self.input.clone()));
        }
        for rung in [Rung::Syntax, Rung::Scheme] {
            let rows = args.rows(&[&self.input], rung);
            if let Some(fault) = fault_of(&rows, 0) {
                return Some(fault);
            }
            self.flags = Flags(rows.flags[0]);
            rungs.push((rung, rows.uri.get(0).to_vec()));
        }
        self.iri = rungs.last().map(|(_, uri)| to_iri(&String::from_utf8_lossy(uri), HostMapping::Unicode));
        self.rungs = rungs;
        None
    }

    fn normalize(&mut self, base: Option<&Base>, intake: ParseMode) -> Result<(), Fault> {
        if let Some(base) = base.filter(|_| find_scheme(&self.input).is_none()) {
            let target = base.target(&self.input)?;
            self.parts = Parts::split(&target);
            self.steps.push((Rung::Simple, Changes::RESOLVED, target.clone()));
            self.target = Some(target);
        }
        let text = self.target.as_ref().unwrap_or(&self.input);
        let mut components = OwnedComponents::new(text, intake)?;
        self.rungs.push((Rung::Simple, text.clone()));
        for (rung, steps) in
            [(Rung::Syntax, &OwnedComponents::SYNTAX_STEPS[..]), (Rung::Scheme, &OwnedComponents::SCHEME_STEPS)]
        {
            for (change, step) in steps {
                let before = components.text();
                step(&mut components);
                if components.text() != before {
                    self.steps.push((rung, *change, components.text()));
                }
            }
            self.rungs.push((rung, components.text()));
        }
        self.flags = components.flags;
        self.iri = Some(to_iri(&String::from_utf8_lossy(&components.text()), HostMapping::Unicode));
        Ok(())
    }

    fn fault_key(&self) -> Option<KeyBytes> {
        self.fault.map(|_| KeyAlgorithm::default().fault_key(&self.input))
    }

    /// Name, text and byte offset of the components that exist.
    fn components(&self) -> Vec<(&'static str, &[u8], usize)> {
        let text = &self.target.as_ref().unwrap_or(&self.input)[..];
        // Components are slices of the text, so the distance of their starts is their offset.
        let at = |part: &[u8]| part.as_ptr().addr() - text.as_ptr().addr();
        let all = self.parts.components(text);
        all.into_iter().filter_map(|(name, part)| Some((name, part?, at(part?)))).collect()
    }

    fn show(&self) -> String {
        let mut text = format!("{}\n", shown(&self.input));
        if let Some(fault) = self.fault {
            let before = &self.input[..self.input.len().min(fault.at as usize)];
            text.push_str(&format!("{}^ fault: {fault}\n", " ".repeat(shown(before).chars().count())));
        }
        text.push_str("\ncomponents\n");
        for (name, part, at) in self.components() {
            text.push_str(&format!("  {name:9} {at:>4}..{:<4} {}\n", at + part.len(), shown(part)));
        }
        if !self.steps.is_empty() {
            text.push_str("\nsteps\n");
        }
        for (_, change, after) in &self.steps {
            let (name, meaning) = describe(*change);
            text.push_str(&format!("  {name:13} {meaning}\n  {:13} {}\n", "", shown(after)));
        }
        text.push_str(if self.fault.is_some() { "\nkey\n" } else { "\nrungs\n" });
        for (rung, rung_text) in &self.rungs {
            text.push_str(&format!("  {:9} {}  {}\n", rung.name(), hex(key(rung_text)), shown(rung_text)));
        }
        if let Some(key) = self.fault_key() {
            text.push_str(&format!("  {}  on every rung, because of the fault\n", hex(key)));
        }
        if let Some(applied) = &self.equivalences {
            text.push_str(&format!("  {:9} {}\n", "protocol", hex(applied.key)));
            text.push_str(&applied.show());
        }
        if !self.flags.is_empty() {
            text.push_str("\nflags\n");
        }
        for (_, name, meaning) in Flags::ALL.iter().filter(|(flag, ..)| self.flags.intersects(*flag)) {
            text.push_str(&format!("  {name:13} {meaning}\n"));
        }
        self.show_looks(&mut text);
        text
    }

    /// The IRI, if it has right-to-left characters, and where these break the rules of section 4.2.
    fn bidi(&self) -> Option<(&str, Vec<BidiProblem>)> {
        let iri = self.iri.as_deref().filter(|iri| is_bidi(iri))?;
        Some((iri, check_bidi(iri, BidiRules::Rfc3987)))
    }

    /// The IRI, how it is displayed, and what may mislead its readers.
    fn show_looks(&self, text: &mut String) {
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
        let step = |(rung, change, text): &(Rung, Changes, Vec<u8>)| {
            let (name, meaning) = describe(*change);
            json!({"rung": rung.name(), "step": name, "meaning": meaning, "text": lossy(text)})
        };
        let rung =
            |(rung, text): &(Rung, Vec<u8>)| (rung.name().into(), json!({"text": lossy(text), "key": hex(key(text))}));
        let mut value = json!({
            "input": lossy(&self.input),
            "components": components,
            "steps": self.steps.iter().map(step).collect::<Vec<_>>(),
            "rungs": self.rungs.iter().map(rung).collect::<serde_json::Map<_, _>>(),
            "flags": self.flags.names().collect::<Vec<_>>(),
            "iri": self.iri,
            "whatwg_href": self.browser,
            "visual": self.bidi().map(|(iri, _)| bidi_visual(iri, BidiRules::Rfc3987).into_owned()),
            "bidi": self.bidi().map(|(_, problems)| problems.iter().map(bidi_value).collect::<Vec<_>>()),
            "spoofing_flags": self.spoofing_flags.names().collect::<Vec<_>>(),
            "fault": self.fault.map(fault_value),
            "fault_key": self.fault_key().map(hex),
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
fn browser(input: &[u8], base: Option<&Base>) -> Option<String> {
    let base = base.and_then(|base| std::str::from_utf8(base.text()).ok());
    whatwg_href(std::str::from_utf8(input).ok()?, base, None).ok()
}

fn bidi_value(problem: &BidiProblem) -> Value {
    json!({"violation": problem.violation.name(), "part": problem.part.name(), "at": problem.at})
}

fn describe(change: Changes) -> (&'static str, &'static str) {
    let known = Changes::ALL.iter().find(|(bit, ..)| *bit == change);
    known.map_or(("", ""), |&(_, name, meaning)| (name, meaning))
}

fn key(text: &[u8]) -> KeyBytes {
    KeyAlgorithm::default().key(text)
}

fn hex(key: KeyBytes) -> String {
    format!("{:032x}", u128::from_be_bytes(key))
}
