//! Values of the functions for every type of argument, nulls, literals, faults and policies.

use std::sync::Arc;

use datafusion_common::arrow::array::{Array, ArrayRef, AsArray, StringArray, new_empty_array, new_null_array};
use datafusion_common::arrow::compute::cast;
use datafusion_common::arrow::datatypes::{DataType, Field};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::type_coercion::functions::fields_with_udf;
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs};
use irikey::canon::{Policy, Rung};
use irikey::key::KeyAlgorithm;

const URLS: [Option<&str>; 5] =
    [Some("HTTP://h:80"), Some("../x"), None, Some("http://h:x/"), Some("http://www.h/%7e")];
const PAGES: [Option<&str>; 5] = [Some("http://a/"), Some("http://b/c/d"), Some("http://a/"), None, None];

fn call(name: &str, policy: &Policy, args: Vec<ColumnarValue>, rows: usize) -> Result<ColumnarValue> {
    let functions = irikey_datafusion::functions("irikey_", policy);
    let function = functions.iter().find(|function| function.name() == format!("irikey_{name}")).expect(name);
    let types: Vec<_> = args.iter().map(ColumnarValue::data_type).collect();
    let fields = types.iter().map(|kind| Arc::new(Field::new("", kind.clone(), true))).collect();
    let return_field = Arc::new(Field::new("", function.return_type(&types)?, true));
    let config_options = Arc::new(ConfigOptions::default());
    function.invoke_with_args(ScalarFunctionArgs {
        args,
        arg_fields: fields,
        number_rows: rows,
        return_field,
        config_options,
    })
}

fn column(name: &str, policy: &Policy, arrays: &[ArrayRef]) -> ArrayRef {
    let args = arrays.iter().cloned().map(ColumnarValue::Array).collect();
    call(name, policy, args, arrays[0].len()).and_then(|value| value.into_array(arrays[0].len())).unwrap()
}

fn texts(array: &ArrayRef) -> Vec<Option<&str>> {
    array.as_string::<i32>().iter().collect()
}

fn array(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn key(text: &str) -> Vec<u8> {
    KeyAlgorithm::Xxh3.key(text.as_bytes()).to_vec()
}

#[test]
fn every_type_of_text_and_bytes_gives_the_same_values() {
    use DataType::{Binary, BinaryView, LargeBinary, LargeUtf8, Utf8, Utf8View};
    let policy = Policy::default();
    for kind in [Utf8, LargeUtf8, Utf8View, Binary, LargeBinary, BinaryView] {
        let urls = cast(&array(&URLS), &kind).unwrap();
        let pages = cast(&array(&PAGES), &kind).unwrap();
        let expected = [Some("http://h/"), None, None, None, Some("http://www.h/~")];
        assert_eq!(texts(&column("uri", &policy, std::slice::from_ref(&urls))), expected, "{kind}");
        let found = column("uri_from", &policy, &[urls.clone(), pages.clone()]);
        assert_eq!(
            texts(&found),
            [Some("http://h/"), Some("http://b/x"), None, None, Some("http://www.h/~")],
            "{kind}"
        );
        assert_eq!(texts(&column("surt", &policy, std::slice::from_ref(&urls)))[4], Some("h)/~"), "{kind}");
        let found = column("key", &policy, std::slice::from_ref(&urls));
        let keys: Vec<_> = found.as_fixed_size_binary().iter().map(|key| key.map(<[u8]>::to_vec)).collect();
        assert_eq!((&keys[0], &keys[2]), (&Some(key("http://h/")), &None), "{kind}");
        // A URL that cannot be parsed has the key of its bytes.
        assert!(keys[3].is_some() && keys[1].is_some(), "{kind}");
        let found = column("key_from", &policy, &[urls.slice(1, 1), pages.slice(1, 1)]);
        assert_eq!(found.as_fixed_size_binary().value(0), key("http://b/x"), "{kind}");
        assert_eq!(column("uri", &policy, &[new_empty_array(&kind)]).len(), 0, "{kind}");
    }
}

#[test]
fn literals_give_literals_and_mix_with_columns() {
    let policy = Policy::default();
    let literal = |text: &str| ColumnarValue::Scalar(ScalarValue::Utf8(Some(text.to_string())));
    let found = call("uri", &policy, vec![literal("HTTP://h")], 1000).unwrap();
    assert!(matches!(found, ColumnarValue::Scalar(ScalarValue::Utf8(Some(text))) if text == "http://h/"));
    let found = call("uri", &policy, vec![ColumnarValue::Scalar(ScalarValue::Utf8(None))], 1).unwrap();
    assert!(matches!(found, ColumnarValue::Scalar(ScalarValue::Utf8(None))));
    let found =
        call("uri_from", &policy, vec![ColumnarValue::Array(array(&[Some("x"), Some("y")])), literal("http://b/")], 2);
    assert_eq!(texts(&found.unwrap().into_array(2).unwrap()), [Some("http://b/x"), Some("http://b/y")]);
}

#[test]
fn the_policy_is_applied() {
    let policy = Policy { rung: Rung::Syntax, drop_fragment: true, ..Policy::default() };
    assert_eq!(texts(&column("uri", &policy, &[array(&[Some("HTTP://h:80/#a")])])), [Some("http://h:80/")]);
    let functions = [Policy::default(), policy].map(|policy| irikey_datafusion::functions("f_", &policy).remove(0));
    assert_ne!(functions[0], functions[1], "functions with different policies are different");
    assert_eq!(functions[0], irikey_datafusion::functions("f_", &Policy::default()).remove(0));
    let functions = [b"http://h/\xFE/", b"http://h/\xFF/"].map(|base| {
        let policy = Policy { base: Some(base.to_vec()), ..Policy::default() };
        irikey_datafusion::functions("f_", &policy).remove(0)
    });
    assert_ne!(functions[0], functions[1], "functions with different bases are different");
}

#[test]
fn many_rows_are_processed_in_chunks() {
    let urls: Vec<_> = (0..20_000).map(|i| format!("HTTP://h/{i}/{}", "x".repeat(i % 100))).collect();
    let urls: Vec<_> = urls.iter().map(|url| Some(url.as_str())).collect();
    let found = column("uri", &Policy::default(), &[array(&urls)]);
    let expected: Vec<_> = urls.iter().map(|url| url.map(|url| url.replace("HTTP", "http"))).collect();
    assert!(texts(&found).into_iter().eq(expected.iter().map(Option::as_deref)));
}

#[test]
fn other_types_are_refused() {
    let numbers = cast(&array(&[Some("1")]), &DataType::Int64).unwrap();
    let error = call("uri", &Policy::default(), vec![ColumnarValue::Array(numbers)], 1).unwrap_err().to_string();
    assert!(error.contains("irikey_uri: an argument has the type Int64; expected text or bytes"), "{error}");
}

/// The planner converts dictionaries only, and refuses what is neither text nor bytes.
#[test]
fn types_of_arguments_stay_as_they_are() {
    use DataType::{Binary, Boolean, Dictionary, Int32, Int64, LargeBinary, LargeUtf8, Null, Utf8, Utf8View};
    let functions = irikey_datafusion::functions("", &Policy::default());
    let coerce = |name: &str, types: &[DataType]| {
        let function = functions.iter().find(|function| function.name() == name).unwrap();
        fields_with_udf(&types.iter().map(field).collect::<Vec<_>>(), function)
            .map(|fields| fields.iter().map(|field| field.data_type().clone()).collect::<Vec<_>>())
            .map_err(|error| error.to_string())
    };
    let dictionary = |values: DataType| Dictionary(Box::new(Int32), Box::new(values));
    for kind in [Utf8, LargeUtf8, Utf8View, Binary, LargeBinary, DataType::BinaryView, Null] {
        let same = std::slice::from_ref(&kind);
        assert_eq!(coerce("key", same).as_deref(), Ok(same));
        assert_eq!(coerce("key", &[dictionary(kind.clone())]).as_deref(), Ok(same));
        // Bytes may not be UTF-8, also if the base is text.
        assert_eq!(coerce("uri_from", &[kind.clone(), Utf8View]).as_deref(), Ok(&[kind, Utf8View][..]));
    }
    for kind in [Int64, Boolean, dictionary(Int64)] {
        let error = coerce("uri", &[kind]).unwrap_err();
        assert!(error.contains("expected text or bytes"), "{error}");
    }
    assert!(coerce("uri_from", &[Utf8]).unwrap_err().contains("expected 2 arguments, found 1"));
    assert!(coerce("uri", &[]).is_err());
}

fn field(kind: &DataType) -> Arc<Field> {
    Arc::new(Field::new("", kind.clone(), true))
}

#[test]
fn nulls_without_a_type_are_null() {
    let nulls = new_null_array(&DataType::Null, 3);
    assert_eq!(texts(&column("uri", &Policy::default(), std::slice::from_ref(&nulls))), [None; 3]);
    assert_eq!(column("key", &Policy::default(), &[nulls]).null_count(), 3);
    let bytes = cast(&array(&[Some("x")]), &DataType::Binary).unwrap();
    let found = column("uri_from", &Policy::default(), &[bytes, array(&[Some("http://b/")])]);
    assert_eq!(texts(&found), [Some("http://b/x")]);
}
