//! The functions: their signatures, and the callback that computes a vector of rows.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use irikey::canon::{Policy, RecipeColumn, Rows, UrlCanonicalizer};
use irikey::key::Recipe;
use quack_rs::connection::{Connection, Registrar};
use quack_rs::data_chunk::DataChunk;
use quack_rs::error::ExtensionError;
use quack_rs::scalar::{ScalarFunctionInfo, ScalarFunctionSetBuilder, ScalarOverloadBuilder};
use quack_rs::types::{NullHandling, TypeId};
use quack_rs::vector::{VectorReader, VectorWriter};

/// Most bytes of the arguments of a call whose buffers are kept as long as the database is open: a hundred times those of usual
/// URLs.
const MAX_KEPT_LEN: usize = 16 << 20;

/// What a function returns.
#[derive(Clone, Copy, PartialEq)]
enum Output {
    Uri,
    Key,
    /// The text of the key of the policy's recipe.
    Recipe,
}

/// A function, shared by its overloads and by the threads of DuckDB.
struct Function {
    output: Output,
    policy: Policy,
    /// Buffers that no thread uses at the moment.
    idle: Mutex<Vec<UrlCanonicalizer>>,
}

/// Registers all functions.
///
/// # Errors
/// DuckDB refuses a function, for example because there is another one of its name.
pub(crate) fn register(connection: &Connection) -> Result<(), ExtensionError> {
    let recipe = Recipe::parse("surt-wayback").map_err(|error| ExtensionError::new(error.to_string()))?;
    let surt = Policy { recipes: vec![RecipeColumn { column: "surt-wayback", recipe }], ..Policy::default() };
    let functions = [
        ("irikey_uri", 1, Output::Uri, &Policy::default()),
        ("irikey_key", 1, Output::Key, &Policy::default()),
        ("irikey_surt", 1, Output::Recipe, &surt),
        ("irikey_uri_from", 2, Output::Uri, &Policy::default()),
        ("irikey_key_from", 2, Output::Key, &Policy::default()),
    ];
    for (name, arity, output, policy) in functions {
        let function = Arc::new(Function { output, policy: policy.clone(), idle: Mutex::default() });
        let set = overloads(&function, arity)
            .into_iter()
            .fold(ScalarFunctionSetBuilder::new(name), |set, made| set.overload(made));
        // SAFETY: the connection is the one that DuckDB gave to the entry point.
        unsafe { connection.register_scalar_set(set)? };
    }
    Ok(())
}

/// Returns one overload per combination of text and bytes.
fn overloads(function: &Arc<Function>, arity: usize) -> Vec<ScalarOverloadBuilder> {
    let kinds = [TypeId::Varchar, TypeId::Blob];
    let combinations: Vec<Vec<TypeId>> = match arity {
        1 => kinds.iter().map(|kind| vec![*kind]).collect(),
        _ => kinds.iter().flat_map(|url| kinds.map(|base| vec![*url, base])).collect(),
    };
    combinations.into_iter().map(|kinds| overload(function, &kinds)).collect()
}

fn overload(function: &Arc<Function>, kinds: &[TypeId]) -> ScalarOverloadBuilder {
    let result = if function.output == Output::Key { TypeId::Blob } else { TypeId::Varchar };
    let builder = kinds.iter().fold(ScalarOverloadBuilder::new(), |builder, kind| builder.param(*kind));
    // A null base is no null result.
    let builder = builder.returns(result).null_handling(NullHandling::SpecialNullHandling).function(compute);
    let data = Arc::into_raw(function.clone()).cast_mut().cast();
    // SAFETY: each overload owns a count of the function, which can be shared between threads, until `destroy` is called.
    unsafe { builder.extra_info(data, Some(destroy)) }
}

/// Releases the function of an overload.
unsafe extern "C" fn destroy(function: *mut c_void) {
    // SAFETY: the pointer is that of `overload`, and DuckDB passes it once.
    drop(unsafe { Arc::from_raw(function.cast_const().cast::<Function>()) });
}

quack_rs::scalar_callback!(compute, |info, input, output| {
    // SAFETY: DuckDB passes valid structures, which live until the callback returns; `overload` set the function.
    let (info, function, chunk, mut writer) = unsafe {
        let info = ScalarFunctionInfo::new(info);
        let function = &*info.get_extra_info().cast::<Function>().cast_const();
        (info, function, DataChunk::from_raw(input), VectorWriter::from_vector(output))
    };
    if let Err(message) = function.write(&chunk, &mut writer) {
        info.set_error(&format!("irikey: {message}"));
    }
});

impl Function {
    /// Writes the results for a chunk of arguments.
    fn write(&self, chunk: &DataChunk, writer: &mut VectorWriter) -> Result<(), String> {
        // SAFETY: the chunk has as many columns as the signature has parameters, which are text or bytes.
        let readers: Vec<_> = (0..chunk.column_count()).map(|column| unsafe { chunk.reader(column) }).collect();
        let columns: Vec<_> = readers.iter().map(values).collect();
        let text_len: usize = columns.iter().flatten().map(|text| text.len()).sum();
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut urls = idle.unwrap_or_else(|| UrlCanonicalizer::new(&self.policy));
        let base = |row: usize| columns.get(1).map(|bases| bases[row]);
        let rows = urls
            .canonicalize(columns[0].iter().enumerate().map(|(row, url)| (*url, base(row))))
            .map_err(|error| error.to_string())?;
        for row in 0..columns[0].len() {
            // SAFETY: the result has as many rows as the arguments.
            unsafe {
                match self.value(rows, row)? {
                    Some(value) if readers[0].is_valid(row) => {
                        writer.try_write_blob(row, value).map_err(|error| error.to_string())?
                    }
                    _ => writer.set_null(row),
                }
            }
        }
        if text_len <= MAX_KEPT_LEN {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(urls);
        }
        Ok(())
    }

    /// Returns the bytes of a result; texts are UTF-8.
    fn value<'a>(&self, rows: &'a Rows, row: usize) -> Result<Option<&'a [u8]>, String> {
        let text = match self.output {
            Output::Key => return Ok(Some(&rows.key[row])),
            Output::Uri => rows.uri.get(row),
            Output::Recipe => rows.recipe_texts[0].get(row),
        };
        match std::str::from_utf8(text) {
            Ok("") => Ok(None),
            Ok(_) => Ok(Some(text)),
            Err(_) => Err(format!("the text of row {row} of a vector is not UTF-8")),
        }
    }
}

/// Returns the bytes of each row; none if it is null.
fn values(reader: &VectorReader) -> Vec<&[u8]> {
    let value = |row| {
        // SAFETY: the row exists, and VARCHAR is stored as BLOB is. Values that are null are not read.
        unsafe { if reader.is_valid(row) { reader.read_blob(row) } else { &[] } }
    };
    (0..reader.row_count()).map(value).collect()
}
