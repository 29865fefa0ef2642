//! Text to ids and back.

use tokenizers::Tokenizer;

use crate::vocabulary::{self, LtVocabulary};
use crate::{free, guard, items, object, put, text, Loan, LtBytes, LtIds, LtResult};

pub struct LtTokenizer(Tokenizer);

#[no_mangle]
pub unsafe extern "C" fn lt_tokenizer_new(
    json: *const u8,
    json_size: usize,
    out: *mut *mut LtTokenizer,
    error: *mut LtBytes,
) -> LtResult {
    guard(error, || {
        let json = unsafe { items(json, json_size) };
        // Where it is no JSON at all, some of tokenizers' parsers panic.
        serde_json::from_slice::<serde::de::IgnoredAny>(json)?;
        let mut tokenizer = Tokenizer::from_bytes(json)?;
        tokenizer.with_truncation(None)?;
        tokenizer.with_padding(None);
        let boxed = Box::new(LtTokenizer(tokenizer));
        unsafe { put(out, Box::into_raw(boxed)) }
    })
}

#[no_mangle]
pub unsafe extern "C" fn lt_tokenizer_free(tokenizer: *mut LtTokenizer) {
    unsafe { free(tokenizer) };
}

#[no_mangle]
pub unsafe extern "C" fn lt_encode(
    tokenizer: *const LtTokenizer,
    data: *const u8,
    size: usize,
    add_special_tokens: bool,
    out: *mut LtIds,
    error: *mut LtBytes,
) -> LtResult {
    guard(error, || {
        let tokenizer = &unsafe { object(tokenizer) }?.0;
        let encoding = tokenizer.encode_fast(unsafe { text(data, size) }?, add_special_tokens)?;
        unsafe { put(out, Loan::of(encoding.get_ids().to_vec())) }
    })
}

#[no_mangle]
pub unsafe extern "C" fn lt_decode(
    tokenizer: *const LtTokenizer,
    ids: *const u32,
    ids_size: usize,
    skip_special_tokens: bool,
    out: *mut LtBytes,
    error: *mut LtBytes,
) -> LtResult {
    guard(error, || {
        let tokenizer = &unsafe { object(tokenizer) }?.0;
        let decoded = tokenizer.decode(unsafe { items(ids, ids_size) }, skip_special_tokens)?;
        unsafe { put(out, Loan::of(decoded.into_bytes())) }
    })
}

#[no_mangle]
pub unsafe extern "C" fn lt_token_id(
    tokenizer: *const LtTokenizer,
    token: *const u8,
    token_size: usize,
    id: *mut u32,
    found: *mut bool,
    error: *mut LtBytes,
) -> LtResult {
    guard(error, || {
        let tokenizer = &unsafe { object(tokenizer) }?.0;
        let known = tokenizer.token_to_id(unsafe { text(token, token_size) }?);
        unsafe { put(id, known.unwrap_or(0)) }?;
        unsafe { put(found, known.is_some()) }
    })
}

#[no_mangle]
pub unsafe extern "C" fn lt_vocabulary(
    tokenizer: *const LtTokenizer,
    out: *mut LtVocabulary,
    error: *mut LtBytes,
) -> LtResult {
    guard(error, || {
        let tokenizer = &unsafe { object(tokenizer) }?.0;
        unsafe { put(out, vocabulary::of(tokenizer)?) }
    })
}

#[no_mangle]
pub unsafe extern "C" fn lt_vocabulary_free(vocabulary: *mut LtVocabulary) {
    if let Some(vocabulary) = unsafe { vocabulary.as_mut() } {
        unsafe { vocabulary.give_back() };
    }
}
