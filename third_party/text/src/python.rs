//! What chat templates use of Python beyond minijinja and its pycompat.

use std::borrow::Cow;
use std::ffi::CString;
use std::io::{self, Write};

use minijinja::value::{from_args, Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat;
use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, Serializer};

use crate::bounds::{check_clock, pay_for_json, refusal, JsonBuffer};

/// The widest indent of JSON, and the most digits of a width in a format.
const MAX_INDENT: usize = 64;
const MAX_WIDTH_DIGITS: usize = 4;

/// Bytes looked at for one unit of fuel, as the engine charges its own.
const BYTES_PER_FUEL: usize = 64;

/// `str.isspace` takes four separators for space that Unicode does not.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// The ends of a string that `strip` and its kin look at.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    Left,
    Right,
    Both,
}

fn strip<'a>(text: &'a str, chars: Option<&str>, ends: Ends) -> &'a str {
    let unwanted = |c: char| chars.map_or_else(|| is_space(c), |chars| chars.contains(c));
    let text = if ends == Ends::Right {
        text
    } else {
        text.trim_start_matches(unwanted)
    };
    if ends == Ends::Left {
        text
    } else {
        text.trim_end_matches(unwanted)
    }
}

/// The filter `trim`.
pub fn trim(text: Cow<'_, str>, chars: Option<Cow<'_, str>>) -> Result<String, Error> {
    check_clock()?;
    Ok(strip(&text, chars.as_deref(), Ends::Both).to_owned())
}

/// The test `sequence`: whatever has a length and items, so texts and maps too.
pub fn is_sequence(value: &Value) -> bool {
    matches!(
        value.kind(),
        ValueKind::String | ValueKind::Seq | ValueKind::Map
    )
}

/// The test `iterable`: none is not.
pub fn is_iterable(value: &Value) -> bool {
    !value.is_none() && value.try_iter().is_ok()
}

/// Methods of Python's built-in types.
pub fn method(
    state: &mut State,
    value: &Value,
    name: &str,
    args: &[Value],
) -> Result<Value, Error> {
    check_clock()?;
    if let Some(text) = value.as_str() {
        state.consume_fuel((text.len() / BYTES_PER_FUEL) as u64)?;
        if name == "format" {
            check_widths(text)?;
        }
    }
    let ends = match name {
        "strip" => Ends::Both,
        "lstrip" => Ends::Left,
        "rstrip" => Ends::Right,
        _ => return pycompat::unknown_method_callback(state, value, name, args),
    };
    let Some(text) = value.as_str() else {
        return Err(Error::from(ErrorKind::UnknownMethod));
    };
    let (chars,): (Option<&str>,) = from_args(args)?;
    Ok(Value::from(strip(text, chars, ends)))
}

/// Nothing pays for the padding that a format asks for.
fn check_widths(format: &str) -> Result<(), Error> {
    let is_digit = |c: char| c.is_ascii_digit();
    match format
        .split(|c| !is_digit(c))
        .find(|digits| digits.len() > MAX_WIDTH_DIGITS)
    {
        Some(_) => Err(refusal(format!(
            "a format with a number of more than {MAX_WIDTH_DIGITS} digits"
        ))),
        None => Ok(()),
    }
}

/// The local time, as C's strftime writes it.
pub fn strftime_now(format: &str) -> Result<String, Error> {
    let wrong =
        |what: &str| Error::new(ErrorKind::InvalidOperation, format!("strftime_now: {what}"));
    let format = CString::new(format).map_err(|_| wrong("the format has a NUL"))?;
    let mut buffer = vec![0u8; 1024];
    let size = unsafe {
        let now = libc::time(std::ptr::null_mut());
        let mut local: libc::tm = std::mem::zeroed();
        libc::localtime_r(&now, &mut local);
        libc::strftime(
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            format.as_ptr(),
            &local,
        )
    };
    if size == 0 && !format.is_empty() {
        return Err(wrong("the time is longer than 1023 bytes"));
    }
    buffer.truncate(size);
    String::from_utf8(buffer).map_err(|_| wrong("the time is no UTF-8"))
}

/// The filter `tojson` as transformers has it: json.dumps, without the
/// escaping of `<`, `>`, `&` and `'` that Jinja2's own does.
pub fn tojson(state: &State, value: Value, options: Kwargs) -> Result<String, Error> {
    check_clock()?;
    let indent: Option<usize> = options.get("indent")?;
    if let Some(width) = indent.filter(|&width| width > MAX_INDENT) {
        return Err(refusal(format!(
            "tojson: the indent is {width}; at most {MAX_INDENT} is allowed"
        )));
    }
    let separators: Option<(String, String)> = match options.get::<Option<Value>>("separators")? {
        Some(pair) if !pair.is_none() => Some((
            pair.get_item_by_index(0)?.to_string(),
            pair.get_item_by_index(1)?.to_string(),
        )),
        _ => None,
    };
    let ensure_ascii = options
        .get::<Option<bool>>("ensure_ascii")?
        .unwrap_or(false);
    let sort_keys = options.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    options.assert_all_used()?;

    let bad = |what: String| Error::new(ErrorKind::BadSerialization, what);
    if value.kind() == ValueKind::Undefined {
        return Err(bad("an undefined value is no JSON".into()));
    }
    pay_for_json(state, &value)?;
    let mut json = serde_json::to_value(&value).map_err(|e| bad(e.to_string()))?;
    if sort_keys {
        json.sort_all_objects();
    }
    let (item, key) = separators.unwrap_or_else(|| {
        let item = if indent.is_some() { "," } else { ", " };
        (item.into(), ": ".into())
    });
    let style = JsonStyle {
        item,
        key,
        indent,
        ensure_ascii,
        depth: 0,
        empty: true,
    };
    let mut out = JsonBuffer::default();
    json.serialize(&mut Serializer::with_formatter(&mut out, style))
        .map_err(|e| bad(e.to_string()))?;
    String::from_utf8(out.0).map_err(|e| bad(e.to_string()))
}

/// How json.dumps writes.
struct JsonStyle {
    item: String, // between items
    key: String,  // between a key and its value
    indent: Option<usize>,
    ensure_ascii: bool,
    depth: usize,
    empty: bool, // nothing was written yet into the innermost array or object
}

impl JsonStyle {
    fn open<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.empty = true;
        out.write_all(bracket)
    }

    fn next<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if !first {
            out.write_all(self.item.as_bytes())?;
        }
        self.empty = false;
        self.line_break(out)
    }

    fn close<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if !self.empty {
            self.line_break(out)?;
        }
        self.empty = false;
        out.write_all(bracket)
    }

    fn line_break<W: ?Sized + Write>(&self, out: &mut W) -> io::Result<()> {
        let Some(width) = self.indent else {
            return Ok(());
        };
        out.write_all(b"\n")?;
        for _ in 0..self.depth {
            out.write_all(&[b' '; MAX_INDENT][..width])?;
        }
        Ok(())
    }
}

impl Formatter for JsonStyle {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.open(out, b"[")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.next(out, first)
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"]")
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.open(out, b"{")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.next(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(self.key.as_bytes())
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"}")
    }

    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        out.write_all(float(value).as_bytes())
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        text: &str,
    ) -> io::Result<()> {
        if !self.ensure_ascii {
            return out.write_all(text.as_bytes());
        }
        for c in text.chars() {
            if (' '..='~').contains(&c) {
                out.write_all(&[c as u8])?;
                continue;
            }
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
        }
        Ok(())
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        let code = match escape {
            CharEscape::Quote => return out.write_all(b"\\\""),
            CharEscape::ReverseSolidus => return out.write_all(b"\\\\"),
            CharEscape::Solidus => return out.write_all(b"/"),
            CharEscape::Backspace => return out.write_all(b"\\b"),
            CharEscape::FormFeed => return out.write_all(b"\\f"),
            CharEscape::LineFeed => return out.write_all(b"\\n"),
            CharEscape::CarriageReturn => return out.write_all(b"\\r"),
            CharEscape::Tab => return out.write_all(b"\\t"),
            CharEscape::AsciiControl(code) => code,
        };
        write!(out, "\\u{code:04x}")
    }
}

/// A float as Python's repr writes it: the shortest digits that read back as
/// the same number, with an exponent below 1e-4 and from 1e16 on.
fn float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let plain = value.to_string();
    if plain.contains('.') {
        plain
    } else {
        plain + ".0"
    }
}
