//! What one rendering may use: instructions and bytes (fuel), items of a list,
//! seconds. A template comes with a model, which is trusted more than a
//! client; still it must not hold up a thread for long, or the process.

use std::cell::Cell;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, State, Value};

/// So many instructions, or 64 times as many bytes made: ten times what the
/// longest chat takes.
pub const FUEL: u64 = 1 << 22;

const MAX_TIME: Duration = Duration::from_secs(5);

/// The most items of a list, or values in a nested one.
pub const MAX_VALUES: u64 = 1 << 20;

/// More than the longest context that comes in.
const MAX_JSON_BYTES: u64 = 64 << 20;

/// Bytes of JSON for one unit of fuel, as the engine charges its own.
const JSON_BYTES_PER_FUEL: u64 = 4;

/// What a value takes on its way to JSON, besides its text.
const BYTES_PER_VALUE: u64 = 32;

thread_local! {
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The time of this thread's rendering begins.
pub fn start_clock() {
    DEADLINE.set(Some(Instant::now() + MAX_TIME));
}

/// Called by all of our filters and methods.
pub fn check_clock() -> Result<(), Error> {
    match DEADLINE.get() {
        Some(deadline) if Instant::now() > deadline => Err(refusal(format!(
            "it takes longer than {} seconds",
            MAX_TIME.as_secs()
        ))),
        _ => Ok(()),
    }
}

pub fn refusal(what: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, what)
}

/// The filter that every value for a variable goes through: a sum of lists is
/// made item by item later on, where nobody counts, and can double with every
/// tag.
pub fn bounded(value: Value) -> Result<Value, Error> {
    check_clock()?;
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Ok(value);
    }
    match value.len() {
        Some(size) if size as u64 > MAX_VALUES => Err(refusal(format!(
            "a list has {size} items; at most {MAX_VALUES} are allowed"
        ))),
        _ => Ok(value),
    }
}

/// Pays for the JSON of a value before it is made.
pub fn pay_for_json(state: &State, value: &Value) -> Result<(), Error> {
    let bytes = json_bytes(value, 0)?;
    state.consume_fuel(bytes / JSON_BYTES_PER_FUEL)
}

/// Lists are as deep as the template's text.
fn json_bytes(value: &Value, before: u64) -> Result<u64, Error> {
    let mut bytes = before + BYTES_PER_VALUE;
    if let Some(text) = value.as_str() {
        bytes += text.len() as u64;
    } else if matches!(
        value.kind(),
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map
    ) {
        for item in value.try_iter()? {
            bytes = json_bytes(&item, bytes)?;
            if value.kind() == ValueKind::Map {
                bytes = json_bytes(&value.get_item(&item)?, bytes)?;
            }
        }
    }
    if bytes > MAX_JSON_BYTES {
        return Err(too_much_json());
    }
    Ok(bytes)
}

fn too_much_json() -> Error {
    refusal(format!(
        "JSON of more than the {MAX_JSON_BYTES} bytes allowed"
    ))
}

/// A buffer that fails where it would grow too large.
#[derive(Default)]
pub struct JsonBuffer(pub Vec<u8>);

impl Write for JsonBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if (self.0.len() + bytes.len()) as u64 > MAX_JSON_BYTES {
            return Err(io::Error::other(too_much_json()));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
