//! Chat templates, rendered as Hugging Face's transformers renders them with
//! Jinja2 (`utils/chat_template_utils.py`): block tags take their line break
//! with them, loops have `break` and `continue`, values have Python's methods.

use std::fmt;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{Environment, ErrorKind, Value};

use crate::bounds::{bounded, start_clock, FUEL};
use crate::storable::storable;
use crate::{free, guard, object, put, python, source, text, Error, Loan, LtBytes, LtResult};

pub struct LtTemplate(Environment<'static>);

const NAME: &str = "chat_template";

/// The message of raise_exception.
#[derive(Debug)]
struct Raised(String);

impl fmt::Display for Raised {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

fn raise_exception(message: String) -> Result<Value, minijinja::Error> {
    let error = minijinja::Error::new(ErrorKind::InvalidOperation, "raise_exception");
    Err(error.with_source(Raised(message)))
}

/// A template's own words if it raised, else what was wrong and where.
fn words_of(error: minijinja::Error) -> Error {
    let mut cause: Option<&dyn std::error::Error> = Some(&error);
    while let Some(inner) = cause {
        if let Some(Raised(message)) = inner.downcast_ref() {
            return message.clone().into();
        }
        cause = inner.source();
    }
    if error.kind() == ErrorKind::OutOfFuel {
        return format!(
            "the chat template takes more than {FUEL} instructions, or makes more than {} bytes, \
             the most allowed for one prompt",
            FUEL * 64
        )
        .into();
    }
    format!("the chat template failed: {error}").into()
}

fn environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_syntax(
        SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()?,
    );
    environment.set_fuel(Some(FUEL));
    environment.set_unknown_method_callback(python::method);
    environment.add_filter("tojson", python::tojson);
    environment.add_filter("trim", python::trim);
    environment.add_filter("bounded", bounded);
    environment.add_filter("storable", storable);
    environment.add_test("iterable", python::is_iterable);
    environment.add_test("sequence", python::is_sequence);
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", python::strftime_now);
    // What transformers always passes.
    environment.add_global("tools", ());
    environment.add_global("documents", ());
    environment.add_global("add_generation_prompt", false);
    Ok(environment)
}

/// The variables in a JSON object.
fn variables(json: &str, what: &str) -> Result<Value, Error> {
    let value: Value = serde_json::from_str(json).map_err(|e| format!("{what}: {e}"))?;
    if value.kind() != ValueKind::Map {
        return Err(format!("{what} is no JSON object").into());
    }
    Ok(value)
}

#[no_mangle]
pub unsafe extern "C" fn lt_template_new(
    source: *const u8,
    source_size: usize,
    variables_json: *const u8,
    variables_json_size: usize,
    out: *mut *mut LtTemplate,
    error: *mut LtBytes,
) -> LtResult {
    guard(error, || {
        let source = unsafe { text(source, source_size) }?;
        let json = unsafe { text(variables_json, variables_json_size) }?;
        let variables = variables(json, "variables_json")?;
        let mut environment = environment()?;
        for name in variables.try_iter()? {
            let value = variables.get_item(&name)?;
            environment.add_global(name.to_string(), value);
        }
        environment.add_template_owned(NAME, source::prepared(source)?)?;
        let boxed = Box::new(LtTemplate(environment));
        unsafe { put(out, Box::into_raw(boxed)) }
    })
}

#[no_mangle]
pub unsafe extern "C" fn lt_template_free(template: *mut LtTemplate) {
    unsafe { free(template) };
}

#[no_mangle]
pub unsafe extern "C" fn lt_render(
    template: *const LtTemplate,
    context_json: *const u8,
    context_json_size: usize,
    out: *mut LtBytes,
    error: *mut LtBytes,
) -> LtResult {
    guard(error, || {
        let environment = &unsafe { object(template) }?.0;
        let json = unsafe { text(context_json, context_json_size) }?;
        let context = variables(json, "context_json")?;
        let template = environment.get_template(NAME).map_err(words_of)?;
        start_clock();
        let rendered = template.render(context).map_err(words_of)?;
        unsafe { put(out, Loan::of(rendered.into_bytes())) }
    })
}
