//! An explanation as text for the terminal, and as JSON.

use bstr::ByteSlice;
use serde_json::{Map, Value, json};

use super::equivalences::lossy;
use super::{Explanation, KeyedText, Step};
use crate::cli::eval::fault_value;
use crate::cli::terminal::visible;
use crate::iri::{BidiProblem, Flags, Rung, SpoofingFlags, bidi_visual, check_bidi, is_bidi};
use crate::kernel::offset_in;
use crate::key::KeyBytes;

impl Explanation {
    /// The text that the components are parts of, and that a fault refers to.
    fn text(&self) -> &[u8] {
        self.target.as_ref().unwrap_or(&self.input)
    }

    /// Name, text and byte offset of the components that exist.
    fn components(&self) -> Vec<(&'static str, &[u8], usize)> {
        let text = self.text();
        let all = self.parts.components(text);
        all.into_iter().filter_map(|(name, part)| Some((name, part?, offset_in(text, part?)))).collect()
    }

    pub(super) fn show(&self) -> String {
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
        Some((iri, check_bidi(iri, self.bidi_rules)))
    }

    /// The IRI, how it is displayed, and what may mislead its readers.
    fn show_appearance(&self, text: &mut String) {
        if let Some(iri) = &self.iri {
            text.push_str(&format!("\niri\n  {}\n", visible(iri)));
        }
        if let Some((iri, problems)) = self.bidi() {
            text.push_str(&format!("  {}  in visual order, left to right\n", bidi_visual(iri, self.bidi_rules)));
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

    pub(super) fn json(&self) -> Value {
        let component = |(name, part, at): (&str, &[u8], usize)| {
            (name.to_string(), json!({"text": lossy(part), "at": at, "len": part.len()}))
        };
        let rung = |(rung, text, key): &(Rung, Vec<u8>, KeyBytes)| (rung.name().to_string(), key_to_json(text, key));
        let recipe = |(name, found): &(&'static str, Option<KeyedText>)| {
            (name.to_string(), found.as_ref().map_or(Value::Null, |(text, key)| key_to_json(text, key)))
        };
        let mut value = json!({
            "input": lossy(&self.input),
            "components": self.components().into_iter().map(component).collect::<Map<_, _>>(),
            "steps": self.steps.iter().map(step_to_json).collect::<Vec<_>>(),
            "rungs": self.rungs.iter().map(rung).collect::<Map<_, _>>(),
            "recipes": self.recipes.iter().map(recipe).collect::<Map<_, _>>(),
            "flags": self.flags.names().collect::<Vec<_>>(),
            "iri": self.iri,
            "whatwg_href": self.browser,
            "visual": self.bidi().map(|(iri, _)| bidi_visual(iri, self.bidi_rules).into_owned()),
            "bidi": self.bidi().map(|(_, problems)| problems.iter().map(bidi_to_json).collect::<Vec<_>>()),
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

fn step_to_json(step: &Step) -> Value {
    let text = step.text.as_deref().map(lossy);
    json!({"rung": step.rung.name(), "step": step.name, "meaning": step.meaning, "text": text})
}

fn key_to_json(text: &[u8], key: &KeyBytes) -> Value {
    json!({"text": lossy(text), "key": hex(*key)})
}

/// Text as it is shown on one line.
fn shown(text: &[u8]) -> String {
    visible(&text.to_str_lossy()).into_owned()
}

fn bidi_to_json(problem: &BidiProblem) -> Value {
    json!({"violation": problem.violation.name(), "part": problem.part.name(), "at": problem.at})
}

fn hex(key: KeyBytes) -> String {
    format!("{:032x}", u128::from_be_bytes(key))
}
