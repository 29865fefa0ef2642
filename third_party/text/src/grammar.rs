//! Which tokens may come next, by a grammar.

use std::panic::resume_unwind;
use std::thread;

use llguidance::api::{ParserLimits, TopLevelGrammar};
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{ApproximateTokEnv, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie};
use llguidance::{Matcher, ParserFactory};
use regex::Regex;
use serde_json::{json, Value};

use crate::vocabulary::{NONE, SPECIAL};
use crate::{free, guard, items, object, put, text, Error, LtBytes, LtResult};

/// A vocabulary made ready for grammars.
pub struct LtGrammarVocabulary(ParserFactory);

/// A grammar, and how far it has been followed.
pub struct LtMatcher(Matcher);

const JSON_SCHEMA: u32 = 0;
const REGEX: u32 = 1;
const LARK: u32 = 2;

/// Definitions may refer to each other as deep as there are lines, and brackets
/// nest: both are followed by recursion, on a stack of this size.
const MAX_LINES: usize = 4096;
const MAX_NESTING: usize = 512;
const STACK_BYTES: usize = 64 << 20;

/// Of a refusal: some list all that would have been right.
const MAX_WORDS: usize = 500;

/// In JSON, where there is any: a space, or a line break with an indent; once in
/// a place, so that no answer is white space without an end.
const JSON_SPACE: &str = r" |\n[ \t]{0,32}";

/// The masks of one step take a few milliseconds at most; states are a kilobyte
/// or two each.
fn limits() -> ParserLimits {
    ParserLimits {
        max_items_in_row: 2000,
        initial_lexer_fuel: 1_000_000,
        step_lexer_fuel: 100_000,
        step_max_items: 50_000,
        max_lexer_states: 50_000,
        max_grammar_size: 500_000,
        precompute_large_lexemes: true,
        verbose_errors: false,
    }
}

/// A text never has special tokens, and nothing but the end itself is one.
fn words(
    bytes: &[u8],
    ends: &[u32],
    kinds: &[u8],
    eos_ids: &[u32],
) -> Result<Vec<Vec<u8>>, Error> {
    if ends.len() != kinds.len() {
        return Err(format!("{} ends of {} tokens", ends.len(), kinds.len()).into());
    }
    let mut begin = 0;
    let mut words = Vec::with_capacity(ends.len());
    for (id, (&end, &kind)) in ends.iter().zip(kinds).enumerate() {
        let token = bytes
            .get(begin..end as usize)
            .ok_or_else(|| format!("token {id} ends at {end} of {} bytes", bytes.len()))?;
        begin = end as usize;
        let is_special = kind & SPECIAL != 0 || eos_ids.contains(&(id as u32));
        words.push(match (kind & !SPECIAL == NONE, is_special) {
            (true, _) => Vec::new(),
            (_, true) => [&[TokTrie::SPECIAL_TOKEN_MARKER], token].concat(),
            // The marker is no text's.
            _ if token.contains(&TokTrie::SPECIAL_TOKEN_MARKER) => Vec::new(),
            _ => token.to_vec(),
        });
    }
    Ok(words)
}

fn factory(words: &[Vec<u8>], eos_ids: &[u32]) -> Result<ParserFactory, Error> {
    let size = u32::try_from(words.len())?;
    if let Some(id) = eos_ids.iter().find(|&&id| id >= size) {
        return Err(format!("end-of-text id {id} is beyond the {size} tokens").into());
    }
    let Some(&first) = eos_ids.first() else {
        return Err("a vocabulary without an end-of-text id".into());
    };
    let trie = TokTrie::from(&TokRxInfo::new(size, first), words).with_eos_tokens(eos_ids);
    let env: TokEnv = std::sync::Arc::new(ApproximateTokEnv::new(trie));
    let slices = SlicedBiasComputer::general_slices();
    let mut factory =
        ParserFactory::new(&env, InferenceCapabilities::default(), &slices).map_err(said)?;
    factory.quiet();
    *factory.limits_mut() = limits();
    Ok(factory)
}

/// What the library says, without what it adds for its authors.
fn said(error: impl std::fmt::Display) -> Error {
    let words = format!("{error:#}");
    let words = words.trim_end_matches("<non-verbose/>").trim();
    let end = (0..=words.len().min(MAX_WORDS))
        .rev()
        .find(|&at| words.is_char_boundary(at))
        .unwrap_or(0);
    words[..end].to_owned().into()
}

/// Brackets in strings count too: they come in pairs, or are few.
fn check_shape(source: &str) -> Result<(), Error> {
    let lines = source.lines().count();
    if lines > MAX_LINES {
        return Err(format!("it has {lines} lines; at most {MAX_LINES} are allowed").into());
    }
    let mut nesting = 0usize;
    for byte in source.bytes() {
        match byte {
            b'(' | b'[' | b'{' => nesting += 1,
            b')' | b']' | b'}' => nesting = nesting.saturating_sub(1),
            _ => continue,
        }
        if nesting > MAX_NESTING {
            return Err(
                format!("its brackets nest deeper than the {MAX_NESTING} levels allowed").into(),
            );
        }
    }
    Ok(())
}

fn json_schema(source: &str) -> Result<Value, Error> {
    let mut schema: Value =
        serde_json::from_str(source).map_err(|e| format!("it is no JSON: {e}"))?;
    if schema == Value::Bool(true) {
        schema = json!({});
    }
    let Some(members) = schema.as_object_mut() else {
        return Err("a schema is a JSON object, or true".into());
    };
    members
        .entry("x-guidance")
        .or_insert_with(|| json!({ "whitespace_pattern": JSON_SPACE }));
    Ok(schema)
}

/// A whole answer is matched, so anchors at its ends say nothing.
fn without_anchors(regex: &str) -> &str {
    let regex = regex.strip_prefix('^').unwrap_or(regex);
    let Some(rest) = regex.strip_suffix('$') else {
        return regex;
    };
    let escapes = rest.len() - rest.trim_end_matches('\\').len();
    if escapes % 2 == 0 {
        rest
    } else {
        regex
    }
}

/// Rules that ask for a temperature of their own would be taken without one.
fn check_lark(source: &str) -> Result<(), Error> {
    // Texts, comments and regular expressions are passed over whole.
    let pattern = r#"(?s)"(?:\\.|[^"\\])*"|(?-s:(?:#|//).*)|/(?:\\.|[^/\\])+/|\b(temperature)\s*="#;
    let has_temperature = Regex::new(pattern)?
        .captures_iter(source)
        .any(|found| found.get(1).is_some());
    if has_temperature {
        return Err("a rule's temperature is not supported; the request has one".into());
    }
    Ok(())
}

fn compile(factory: &ParserFactory, kind: u32, source: &str) -> Result<Matcher, Error> {
    check_shape(source)?;
    let grammar = match kind {
        JSON_SCHEMA => TopLevelGrammar::from_json_schema(json_schema(source)?),
        REGEX => TopLevelGrammar::from_regex(without_anchors(source)),
        LARK => {
            check_lark(source)?;
            TopLevelGrammar::from_lark(source.to_owned())
        }
        _ => return Err(format!("grammars of kind {kind} are not known").into()),
    };
    let parser = factory.create_parser(grammar).map_err(said)?;
    let mut matcher = Matcher::new(Ok(parser));
    // A grammar that nothing satisfies shows here. And what the first mask
    // takes to find is found once for all that are cloned.
    matcher.compute_mask_or_eos().map_err(said)?;
    Ok(matcher)
}

fn on_a_large_stack<T: Send>(body: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    thread::scope(|scope| {
        let worker = thread::Builder::new()
            .name("grammar".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, body)?;
        worker.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

#[no_mangle]
pub unsafe extern "C" fn lt_grammar_vocabulary_new(
    bytes: *const u8,
    bytes_size: usize,
    ends: *const u32,
    kinds: *const u8,
    num_tokens: usize,
    eos_ids: *const u32,
    num_eos_ids: usize,
    out: *mut *mut LtGrammarVocabulary,
    error: *mut LtBytes,
) -> LtResult {
    guard(error, || {
        let eos_ids = unsafe { items(eos_ids, num_eos_ids) };
        let words = words(
            unsafe { items(bytes, bytes_size) },
            unsafe { items(ends, num_tokens) },
            unsafe { items(kinds, num_tokens) },
            eos_ids,
        )?;
        let boxed = Box::new(LtGrammarVocabulary(factory(&words, eos_ids)?));
        unsafe { put(out, Box::into_raw(boxed)) }
    })
}

#[no_mangle]
pub unsafe extern "C" fn lt_grammar_vocabulary_free(vocabulary: *mut LtGrammarVocabulary) {
    unsafe { free(vocabulary) };
}

#[no_mangle]
pub unsafe extern "C" fn lt_matcher_new(
    vocabulary: *const LtGrammarVocabulary,
    kind: u32,
    source: *const u8,
    source_size: usize,
    out: *mut *mut LtMatcher,
    error: *mut LtBytes,
) -> LtResult {
    guard(error, || {
        let factory = &unsafe { object(vocabulary) }?.0;
        let source = unsafe { text(source, source_size) }?;
        let matcher = on_a_large_stack(|| compile(factory, kind, source))?;
        unsafe { put(out, Box::into_raw(Box::new(LtMatcher(matcher)))) }
    })
}

#[no_mangle]
pub unsafe extern "C" fn lt_matcher_clone(
    matcher: *const LtMatcher,
    out: *mut *mut LtMatcher,
    error: *mut LtBytes,
) -> LtResult {
    guard(error, || {
        let clone = LtMatcher(unsafe { object(matcher) }?.0.deep_clone());
        unsafe { put(out, Box::into_raw(Box::new(clone))) }
    })
}

#[no_mangle]
pub unsafe extern "C" fn lt_matcher_free(matcher: *mut LtMatcher) {
    unsafe { free(matcher) };
}

#[no_mangle]
pub unsafe extern "C" fn lt_matcher_consume(
    matcher: *mut LtMatcher,
    ids: *const u32,
    num_ids: usize,
    num_consumed: *mut usize,
    error: *mut LtBytes,
) -> LtResult {
    guard(error, || {
        let matcher = unsafe { matcher.as_mut() }.ok_or("a null object")?;
        let consumed = matcher
            .0
            .try_consume_tokens(unsafe { items(ids, num_ids) })
            .map_err(said)?;
        unsafe { put(num_consumed, consumed) }
    })
}

#[no_mangle]
pub unsafe extern "C" fn lt_matcher_mask(
    matcher: *mut LtMatcher,
    mask: *mut u32,
    mask_words: usize,
    error: *mut LtBytes,
) -> LtResult {
    guard(error, || {
        let matcher = unsafe { matcher.as_mut() }.ok_or("a null object")?;
        let allowed = matcher.0.compute_mask_or_eos().map_err(said)?;
        let allowed = allowed.as_slice();
        if mask.is_null() || allowed.len() < mask_words {
            return Err(format!(
                "a mask of {mask_words} words, of which {} are known",
                allowed.len()
            )
            .into());
        }
        unsafe { mask.copy_from_nonoverlapping(allowed.as_ptr(), mask_words) };
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn lt_matcher_is_accepting(
    matcher: *mut LtMatcher,
    is_accepting: *mut bool,
    error: *mut LtBytes,
) -> LtResult {
    guard(error, || {
        let matcher = unsafe { matcher.as_mut() }.ok_or("a null object")?;
        let accepting = matcher.0.is_accepting().map_err(said)?;
        unsafe { put(is_accepting, accepting) }
    })
}
