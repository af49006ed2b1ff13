//! [`Function`]: one scalar function.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion_common::arrow::array::{ArrayRef, FixedSizeBinaryArray, StringArray};
use datafusion_common::arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use datafusion_common::arrow::datatypes::DataType;
use datafusion_common::{Result, ScalarValue, plan_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use irikey::canon::{Policy, Rows, TextColumn};

use crate::rows::canonicalize;

/// Bytes of a key.
const KEY_LEN: i32 = 16;

/// What a function returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Output {
    Uri,
    Key,
    /// The text of the key of the policy's recipe.
    Recipe,
}

/// A function of URLs, and of bases if its arity is 2.
#[derive(Debug)]
pub(crate) struct Function {
    name: String,
    output: Output,
    arity: usize,
    signature: Signature,
    policy: Policy,
}

impl Function {
    pub(crate) fn new(name: String, arity: usize, output: Output, policy: &Policy) -> Function {
        // DataFusion would convert arguments of other signatures to text: numbers, and bytes beside text, which may not be UTF-8.
        let signature = Signature::user_defined(Volatility::Immutable);
        Function { name, output, arity, signature, policy: policy.clone() }
    }

    /// Returns the column of the rows; `nulls` are those of the URLs.
    fn column(&self, rows: &mut Rows, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        match self.output {
            Output::Key => {
                let keys = std::mem::take(&mut rows.key).into_flattened();
                Ok(Arc::new(FixedSizeBinaryArray::try_new(KEY_LEN, Buffer::from_vec(keys), nulls)?))
            }
            Output::Uri => texts(std::mem::take(&mut rows.uri), nulls),
            Output::Recipe => texts(rows.recipe_texts.pop().unwrap_or_default(), nulls),
        }
    }
}

/// Returns the type in which a function takes an argument; `None` if it holds neither text nor bytes.
fn accepted(argument: &DataType) -> Option<&DataType> {
    use DataType::{Binary, BinaryView, Dictionary, LargeBinary, LargeUtf8, Null, Utf8, Utf8View};
    match argument {
        Dictionary(_, values) => accepted(values),
        Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView | Null => Some(argument),
        _ => None,
    }
}

/// Returns an array of texts; an empty text is null.
fn texts(texts: TextColumn, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let is_text: NullBuffer = texts.offsets.windows(2).map(|ends| ends[0] < ends[1]).collect();
    let offsets = OffsetBuffer::new(ScalarBuffer::from(texts.offsets));
    let nulls = NullBuffer::union(Some(&is_text), nulls.as_ref());
    Ok(Arc::new(StringArray::try_new(offsets, Buffer::from_vec(texts.values), nulls)?))
}

impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        // A description shows bytes of the base that are not UTF-8 as U+FFFD.
        self.name == other.name
            && self.output == other.output
            && self.policy.base == other.policy.base
            && self.policy.describe() == other.policy.describe()
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.name, self.output).hash(state);
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Arguments stay as they are, except for dictionaries, which become arrays of their values.
    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let (name, arity, count) = (&self.name, self.arity, arguments.len());
        if count != arity {
            return plan_err!("{name}: expected {arity} arguments, found {count}");
        }
        let coerced = |argument: &DataType| match accepted(argument) {
            Some(accepted) => Ok(accepted.clone()),
            None => plan_err!("{name}: an argument has the type {argument}; expected text or bytes"),
        };
        arguments.iter().map(coerced).collect()
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(if self.output == Output::Key { DataType::FixedSizeBinary(KEY_LEN) } else { DataType::Utf8 })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_literal = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let count = if is_literal { 1 } else { args.number_rows };
        let arrays = args.args.into_iter().map(|value| value.into_array(count)).collect::<Result<Vec<_>>>()?;
        let mut rows = canonicalize(&self.name, &self.policy, &arrays)?;
        let column = self.column(&mut rows, arrays[0].logical_nulls())?;
        Ok(match is_literal {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&column, 0)?),
            false => ColumnarValue::Array(column),
        })
    }
}
