//! What a template may keep in a namespace: data, neither deep nor a namespace.
//!
//! Namespaces are the only values that change. One that holds itself, or a list
//! nested deeper with every round of a loop, would overflow the stack of
//! whatever walks over it, and no one can catch that. Everything else a
//! template makes is as deep as its text.

use minijinja::value::ValueKind;
use minijinja::{Error, State, Value};

use crate::bounds::{check_clock, refusal, MAX_VALUES};

const MAX_DEPTH: usize = 64;

/// Values looked at for one unit of fuel: a list that grows by one message a
/// round is looked at anew each time, and may grow to thousands.
const VALUES_PER_FUEL: u64 = 16;

/// The filter that every value for a namespace's attribute goes through.
pub fn storable(state: &State, value: Value) -> Result<Value, Error> {
    check_clock()?;
    let mut seen = 0;
    check(&value, 0, &mut seen)?;
    state.consume_fuel(seen / VALUES_PER_FUEL)?;
    Ok(value)
}

fn check(value: &Value, depth: usize, seen: &mut u64) -> Result<(), Error> {
    *seen += 1;
    if *seen > MAX_VALUES {
        return Err(unfit("more than a million values"));
    }
    if depth > MAX_DEPTH {
        return Err(unfit("values nested deeper than 64"));
    }
    if let Some(what) = machinery(value) {
        return Err(unfit(what));
    }
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => {
            for item in value.try_iter()? {
                check(&item, depth + 1, seen)?;
            }
            Ok(())
        }
        ValueKind::Map => {
            for key in value.try_iter()? {
                check(&value.get_item(&key)?, depth + 1, seen)?;
            }
            Ok(())
        }
        ValueKind::Plain => Err(unfit("objects")),
        _ => Ok(()),
    }
}

/// What a value is that refers to the variables around it, or can come to.
fn machinery(value: &Value) -> Option<&'static str> {
    let name = value.as_object()?.type_name();
    if name.ends_with("::Namespace") {
        Some("namespaces")
    } else if name.starts_with("minijinja::vm::") {
        Some("macros and loops")
    } else {
        None
    }
}

fn unfit(what: &str) -> Error {
    refusal(format!("a namespace can not hold {what}"))
}
