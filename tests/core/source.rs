//! A reader of this crate's own source, just able enough for [`super::structure`]: comments, strings and test code are
//! removed, then `use` declarations and paths are found and resolved to files.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use super::structure::rust_files;

/// One file of `src` without comments, strings and test code.
pub(super) struct SourceFile {
    /// Relative to the package, such as `src/iri/resolve.rs`.
    pub(super) path: String,
    /// Names from the crate's root: `["iri", "dots"]`.
    pub(super) module: Vec<String>,
    /// The code that is left.
    pub(super) code: String,
    /// Names that `pub use` declarations define here, with the paths that they stand for.
    exports: BTreeMap<String, Vec<String>>,
    /// Modules that this file declares.
    children: BTreeSet<String>,
    /// What `use` declarations that are not public name, in full paths.
    imports: Vec<Vec<String>>,
    /// The code without `use` declarations.
    body: String,
}

/// All files of `src` that are not only for tests.
pub(super) fn load() -> Vec<SourceFile> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    rust_files(&root.join("src"), &mut paths);
    paths.sort();
    let files = paths.iter().filter(|path| !path.ends_with("tests.rs")).map(|path| {
        let name = path.strip_prefix(root).expect("below the package").to_string_lossy().replace('\\', "/");
        SourceFile::new(name, &fs::read_to_string(path).expect("sources are UTF-8"))
    });
    files.collect()
}

impl SourceFile {
    fn new(path: String, text: &str) -> SourceFile {
        let code = without_tests(&without_comments_and_strings(text));
        let stem = path.trim_start_matches("src/").trim_end_matches(".rs");
        let mut module: Vec<String> = stem.split('/').map(str::to_string).collect();
        if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
            module.pop();
        }
        let words: Vec<&str> = code.split_whitespace().collect();
        let child = |pair: &[&str]| (pair[0] == "mod").then(|| pair[1].strip_suffix(';').map(str::to_string)).flatten();
        let children = words.windows(2).filter_map(child).collect();
        let (exports, imports, body) = (BTreeMap::new(), Vec::new(), String::new());
        let mut file = SourceFile { path, module, code, exports, children, imports, body };
        file.split_uses();
        file
    }

    /// Separates `use` declarations from the rest.
    fn split_uses(&mut self) {
        let code = self.code.clone();
        let mut rest = code.as_str();
        while let Some(at) = find_word(rest, "use") {
            let end = rest[at..].find(';').map_or(rest.len(), |len| at + len);
            let tree: String = rest[at + 3..end].split_whitespace().collect::<Vec<_>>().join(" ");
            let line = rest[..at].rfind('\n').map_or(0, |newline| newline + 1);
            let is_public = rest[line..at].trim_start().starts_with("pub");
            for (path, name) in expand(&tree) {
                let path = self.absolute(&path);
                if is_public && name != "*" {
                    self.exports.insert(name, path);
                } else if is_public {
                    self.exports.insert(format!("*{}", self.exports.len()), path);
                } else {
                    self.imports.push(path);
                }
            }
            self.body.push_str(&rest[..at]);
            rest = &rest[end..];
        }
        self.body.push_str(rest);
    }

    /// A path as it is written in this file, from the crate's root; empty if it is of another crate.
    fn absolute(&self, path: &[String]) -> Vec<String> {
        let mut place = self.module.clone();
        let mut segments = path.iter().peekable();
        match segments.peek().map(|first| first.as_str()) {
            Some("crate") => {
                place.clear();
                segments.next();
            }
            Some("self") => _ = segments.next(),
            Some("super") => {
                while segments.next_if(|segment| *segment == "super").is_some() {
                    place.pop();
                }
            }
            // A child of this module, or another crate: the resolver finds no file for that.
            Some(first) if !self.declares(first) => return Vec::new(),
            _ => {}
        }
        place.extend(segments.cloned());
        place
    }

    fn declares(&self, child: &str) -> bool {
        self.children.contains(child)
    }

    /// Full paths of everything that this file uses from this crate.
    pub(super) fn references(&self) -> Vec<Vec<String>> {
        let mut references: Vec<_> = self.imports.clone();
        references.extend(paths(&self.body).iter().map(|path| self.absolute(path)));
        // A re-exported name that the code below uses is an import as well.
        let words: BTreeSet<&str> = words(&self.body).collect();
        references.extend(
            self.exports.iter().filter(|(name, _)| words.contains(name.as_str())).map(|(_, path)| path.clone()),
        );
        references.retain(|path| !path.is_empty());
        references
    }

    /// The identifiers and keywords of the code.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        words(&self.code)
    }

    /// Whether the code contains `text` where a word begins.
    pub(super) fn uses(&self, text: &str) -> bool {
        let bytes = self.code.as_bytes();
        self.code.match_indices(text).any(|(at, _)| at == 0 || !is_word_byte(bytes[at - 1]))
    }

    /// Names of types that are declared `pub` or `pub(...)`.
    pub(super) fn public_types(&self) -> Vec<String> {
        let types = self.code.lines().filter_map(|line| {
            let line = line.trim_start().strip_prefix("pub")?;
            let line = line.strip_prefix('(').map_or(line, |rest| rest.split_once(')').map_or("", |(_, rest)| rest));
            let mut words =
                line.trim_start().trim_start_matches("unsafe ").split(|c: char| !(c.is_alphanumeric() || c == '_'));
            let is_type = ["struct", "enum", "trait", "type", "union"].contains(&words.next()?);
            words.next().filter(|name| is_type && !name.is_empty()).map(str::to_string)
        });
        types.collect()
    }
}

/// Resolves full paths to files.
pub(super) struct Resolver<'a> {
    by_module: HashMap<&'a [String], &'a SourceFile>,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(files: &'a [SourceFile]) -> Resolver<'a> {
        let modules = files.iter().filter(|file| file.path != "src/main.rs");
        Resolver { by_module: modules.map(|file| (file.module.as_slice(), file)).collect() }
    }

    /// The file that defines what `path` names, through re-exports.
    pub(super) fn file(&self, path: &[String]) -> Option<&'a SourceFile> {
        self.resolve(path, 0)
    }

    fn resolve(&self, path: &[String], depth: usize) -> Option<&'a SourceFile> {
        if depth > 8 {
            return None;
        }
        let (len, file) = (0..=path.len()).rev().find_map(|len| Some((len, *self.by_module.get(&path[..len])?)))?;
        let target = path.get(len).and_then(|name| file.exports.get(name)).filter(|target| !target.is_empty());
        target.and_then(|target| self.resolve(target, depth + 1)).or(Some(file))
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

fn find_word(text: &str, word: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    text.match_indices(word).map(|(at, _)| at).find(|&at| {
        let before = at == 0 || !is_word_byte(bytes[at - 1]);
        // Not `use<'a>` of a return type, nor a name such as `r#use`.
        before && bytes.get(at + word.len()).is_some_and(u8::is_ascii_whitespace)
    })
}

/// Paths of two or more segments in code.
fn paths(code: &str) -> Vec<Vec<String>> {
    let bytes = code.as_bytes();
    let (mut paths, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        if !is_word_byte(bytes[at]) || (at > 0 && bytes[at - 1] == b':') {
            at += 1;
            continue;
        }
        let mut segments = Vec::new();
        loop {
            let start = at;
            while at < bytes.len() && is_word_byte(bytes[at]) {
                at += 1;
            }
            segments.push(code[start..at].to_string());
            if !(code[at..].starts_with("::") && bytes.get(at + 2).is_some_and(|&byte| is_word_byte(byte))) {
                break;
            }
            at += 2;
        }
        if segments.len() > 1 {
            paths.push(segments);
        }
    }
    paths
}

/// The paths of a `use` tree, each with the name that it defines.
fn expand(tree: &str) -> Vec<(Vec<String>, String)> {
    let tree = tree.trim();
    if let Some(open) = tree.find('{') {
        let prefix: Vec<String> = segments(&tree[..open]);
        let inner = tree[open + 1..].strip_suffix('}').unwrap_or(&tree[open + 1..]);
        let mut found = Vec::new();
        for part in split_commas(inner) {
            for (path, name) in expand(part) {
                let mut whole = prefix.clone();
                whole.extend(path.into_iter().filter(|segment| segment != "self"));
                let name = if name == "self" { prefix.last().cloned().unwrap_or_default() } else { name };
                found.push((whole, name));
            }
        }
        return found;
    }
    let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias)));
    let path = segments(path);
    match path.last() {
        Some(last) => {
            let name = alias.map_or_else(|| last.clone(), |alias| alias.trim().to_string());
            vec![(path, name)]
        }
        None => Vec::new(),
    }
}

fn segments(path: &str) -> Vec<String> {
    path.split("::").map(str::trim).filter(|segment| !segment.is_empty()).map(str::to_string).collect()
}

/// The parts between commas that are not within braces.
fn split_commas(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.into_iter().filter(|part| !part.trim().is_empty()).collect()
}

/// `text` with comments, strings and characters replaced by spaces; newlines stay.
fn without_comments_and_strings(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = at + token_to_remove(&text[at..], at > 0 && is_word_byte(bytes[at - 1]));
        if end == at {
            out.push(bytes[at]);
            at += 1;
        } else {
            out.extend(bytes[at..end].iter().map(|&byte| if byte == b'\n' { byte } else { b' ' }));
            at = end;
        }
    }
    String::from_utf8(out).expect("tokens end at characters")
}

/// Length of the comment, string or character at the start of `text`, or 0.
fn token_to_remove(text: &str, is_within_word: bool) -> usize {
    let quoted = |from: usize| {
        let bytes = text.as_bytes();
        let mut at = from;
        while at < bytes.len() && bytes[at] != b'"' {
            at += 1 + usize::from(bytes[at] == b'\\');
        }
        (at + 1).min(bytes.len())
    };
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return text.find("*/").map_or(text.len(), |at| at + 2);
    }
    if text.starts_with('"') {
        return quoted(1);
    }
    if !is_within_word && (text.starts_with("r\"") || text.starts_with("r#") || text.starts_with("br")) {
        let hashes = text.trim_start_matches(['b', 'r']);
        let count = hashes.bytes().take_while(|&byte| byte == b'#').count();
        if hashes.as_bytes().get(count) == Some(&b'"') {
            let close = format!("\"{}", "#".repeat(count));
            let open = text.len() - hashes.len() + count + 1;
            return text[open..].find(&close).map_or(text.len(), |at| open + at + close.len());
        }
    }
    if let Some(rest) = text.strip_prefix('\'') {
        let mut chars = rest.chars();
        match (chars.next(), chars.next()) {
            // An escaped character; a character; otherwise a lifetime.
            (Some('\\'), _) => return rest[2..].find('\'').map_or(1, |at| at + 4),
            (Some(c), Some('\'')) => return c.len_utf8() + 2,
            _ => {}
        }
    }
    0
}

/// `code` without items that only tests compile.
fn without_tests(code: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(code.len()), code);
    let start = |text: &str| ["#[cfg(test)]", "#[cfg(all(test"].iter().filter_map(|mark| text.find(mark)).min();
    while let Some(at) = start(rest) {
        out.push_str(&rest[..at]);
        // Past the attribute, whose own brackets hold no braces.
        let item = &rest[at..];
        rest = &item[item_len(item)..];
    }
    out.push_str(rest);
    out
}

/// Length of an item: to its `;`, or to the end of its braces.
fn item_len(text: &str) -> usize {
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return at + 1,
            b'}' => depth -= 1,
            b';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[test]
fn code_is_read_as_it_is_compiled() {
    let text = "use crate::iri::{Fault, host::{self, Name as Other}};\npub use tail::Tail;\nmod tail;\n\
                // crate::no\nfn f<'a>(c: char) { if c == '\"' { super::g(\"crate::no\") } }\n\
                #[cfg(test)]\nmod tests { use crate::run::X; }\n";
    let file = SourceFile::new("src/key/mod.rs".to_string(), text);
    let references: Vec<_> = file.references().iter().map(|path| path.join("::")).collect();
    assert_eq!(references, ["iri::Fault", "iri::host", "iri::host::Name", "g"]);
    assert_eq!(file.exports["Tail"], ["key", "tail", "Tail"]);
    let file = SourceFile::new("src/a.rs".to_string(), "pub(crate) struct A<'a>;\npub enum B {}\nstruct C;\n");
    assert_eq!(file.public_types(), ["A", "B"]);
}
