//! `uri`, `iri` and `key` of single references. They take the options of a policy; a call with some of them uses a canonicalizer,
//! of which the package keeps the last ones.

use irikey::canon::Rung;
use irikey::iri::{HostMapping, to_iri};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::argument::{self, or_default};
use crate::canonicalizer::Canonicalizer;
use crate::scalars::{engine, raise, recipe_text, single, single_key, single_uri, text_of};

/// An argument that may be missing.
type Argument<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// The arguments of a call, besides the reference and its base.
struct Arguments<'a, 'py> {
    rung: Argument<'a, 'py>,
    recipe: Argument<'a, 'py>,
    strict: Argument<'a, 'py>,
    key_hash: Argument<'a, 'py>,
    equivalences: Argument<'a, 'py>,
    /// The other options of a policy by name.
    policy: [(&'static str, Argument<'a, 'py>); 11],
}

/// Defines a function of a reference, its base, the keyword arguments in brackets, and the options of a policy. They are written
/// out, because PyO3 calls functions with `**policy` in a slower way.
macro_rules! function_of_policy {
    ($(#[doc = $doc:tt])* fn $name:ident[$($own:ident),*] $signature:tt -> $result:ty = $function:ident) => {
        function_of_policy! {
            $(#[doc = $doc])* fn $name[$($own),*] $signature -> $result = $function;
            query_charset, drop_fragment, literal_base, assume_scheme, max_url, profile, trim, inner_spaces,
            character_references, backslashes, psl
        }
    };
    ($(#[doc = $doc:tt])* fn $name:ident[$($own:ident),*] $signature:tt -> $result:ty = $function:ident;
        $($option:ident),*) => {
        $(#[doc = $doc])*
        #[pyfunction]
        #[pyo3(signature = (reference, base=None, *, $($own=None,)* $($option=None),*), text_signature = $signature)]
        #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python, each with its default")]
        pub fn $name<'py>(
            reference: &Bound<'py, PyAny>,
            base: Option<&Bound<'py, PyAny>>,
            $($own: Option<&Bound<'py, PyAny>>,)*
            $($option: Option<&Bound<'py, PyAny>>),*
        ) -> PyResult<$result> {
            let policy = [$((stringify!($option), $option)),*];
            let mut arguments =
                Arguments { rung: None, recipe: None, strict: None, key_hash: None, equivalences: None, policy };
            $(arguments.$own = $own;)*
            $function(reference, base, &arguments)
        }
    };
}

function_of_policy! {
    /// Returns the canonical URI of a reference, which is ASCII. With rung="simple" it is that of "syntax", with rung="protocol"
    /// and equivalences that of "scheme"; with a recipe, it is the text of the recipe's key. key_hash has no effect. Options:
    /// irikey.Options.
    fn uri[rung, recipe, strict, key_hash, equivalences]
    "(reference, base=None, *, rung='scheme', recipe=None, strict=False, key_hash='xxh3', equivalences=None, \
     query_charset=None, drop_fragment=False, literal_base=False, assume_scheme=None, max_url=1048576, profile='rfc3987', \
     trim=False, inner_spaces=None, character_references=None, backslashes=None, psl=None)"
    -> Bound<'py, PyString> = uri_of
}

function_of_policy! {
    /// Returns the canonical IRI of a reference: the URI decoded by RFC 3987 section 3.2, with a Unicode host. key_hash has no
    /// effect. Options: irikey.Policy.
    fn iri[strict, key_hash]
    "(reference, base=None, *, strict=False, key_hash='xxh3', query_charset=None, drop_fragment=False, literal_base=False, \
     assume_scheme=None, max_url=1048576, profile='rfc3987', trim=False, inner_spaces=None, character_references=None, \
     backslashes=None, psl=None)"
    -> String = iri_of
}

function_of_policy! {
    /// Returns the key of a reference, 16 bytes. Options: irikey.Options.
    fn key[rung, recipe, strict, key_hash, equivalences]
    "(reference, base=None, *, rung='scheme', recipe=None, strict=False, key_hash='xxh3', equivalences=None, \
     query_charset=None, drop_fragment=False, literal_base=False, assume_scheme=None, max_url=1048576, profile='rfc3987', \
     trim=False, inner_spaces=None, character_references=None, backslashes=None, psl=None)"
    -> Bound<'py, PyBytes> = key_of
}

/// The options of a call without those of a policy.
struct SingleOptions<'a> {
    rung: &'a str,
    recipe: Option<&'a str>,
    strict: bool,
    key_hash: &'a str,
}

impl<'py> Arguments<'_, 'py> {
    fn options(&self) -> PyResult<SingleOptions<'_>> {
        Ok(SingleOptions {
            rung: self.rung.map_or(Ok(Rung::Scheme.name()), |rung| argument::text("rung", rung))?,
            recipe: self.recipe.map(|recipe| argument::text("recipe", recipe)).transpose()?,
            strict: or_default("strict", self.strict, false)?,
            key_hash: self.key_hash.map_or(Ok("xxh3"), |key_hash| argument::text("key_hash", key_hash))?,
        })
    }

    /// Returns the canonicalizer of a call with equivalences or other options of a policy; `None` if there are none of these.
    /// `name` is what the function returns, "uri" or "key".
    fn canonicalizer(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, Canonicalizer>>> {
        if self.equivalences.is_none() && self.policy.iter().all(|(_, value)| value.is_none()) {
            return Ok(None);
        }
        let own = [
            ("rung", self.rung),
            ("recipe", self.recipe),
            ("strict", self.strict),
            ("key_hash", self.key_hash),
            ("equivalences", self.equivalences),
        ];
        let options = PyDict::new(py);
        for (name, value) in self.policy.iter().chain(&own) {
            value.map_or(Ok(()), |value| options.set_item(name, value))?;
        }
        Ok(Some(py.import("irikey._policy")?.call_method1("of_single", (name, options))?.cast_into()?))
    }
}

/// Gives the URI or the text of the recipe to `convert`.
fn uri_text<'py, T>(
    reference: &Bound<'py, PyAny>,
    base: Argument<'_, 'py>,
    arguments: &Arguments<'_, 'py>,
    convert: impl FnOnce(&[u8]) -> PyResult<T>,
) -> PyResult<T> {
    let (py, options) = (reference.py(), arguments.options()?);
    if let Some(made) = arguments.canonicalizer(py, "uri")? {
        return made.get().0.key_text(&single(reference, base)?, convert)?.map_err(|fault| raise(py, fault))?;
    }
    let engine = engine(options.rung, options.strict, options.key_hash)?;
    match options.recipe {
        Some(recipe) => convert(&recipe_text(engine, reference, base, recipe)?),
        None => single_uri(engine, reference, base, convert),
    }
}

fn uri_of<'py>(
    reference: &Bound<'py, PyAny>,
    base: Argument<'_, 'py>,
    arguments: &Arguments<'_, 'py>,
) -> PyResult<Bound<'py, PyString>> {
    uri_text(reference, base, arguments, |uri| text_of(reference.py(), uri))
}

fn iri_of<'py>(
    reference: &Bound<'py, PyAny>,
    base: Argument<'_, 'py>,
    arguments: &Arguments<'_, 'py>,
) -> PyResult<String> {
    let iri = |uri: &[u8]| Ok(to_iri(&String::from_utf8_lossy(uri), HostMapping::Unicode));
    uri_text(reference, base, arguments, iri)
}

fn key_of<'py>(
    reference: &Bound<'py, PyAny>,
    base: Argument<'_, 'py>,
    arguments: &Arguments<'_, 'py>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (py, options) = (reference.py(), arguments.options()?);
    if let Some(made) = arguments.canonicalizer(py, "key")? {
        return single_key(&made.get().0, reference, base);
    }
    let engine = engine(options.rung, options.strict, options.key_hash)?;
    match options.recipe {
        Some(recipe) => {
            Ok(PyBytes::new(py, &engine.policy.algorithm.key(&recipe_text(engine, reference, base, recipe)?)))
        }
        None => single_key(engine, reference, base),
    }
}
