//! What each id adds to the text, worked out from the tokenizer's decoder, so
//! that a stream can be decoded id by id.

use std::collections::HashMap;

use tokenizers::decoders::DecoderWrapper;
use tokenizers::{Decoder, Tokenizer};

use crate::{Error, Loan, LtBytes, LtIds};

#[repr(C)]
pub struct LtVocabulary {
    byte_fallback: bool,
    strip_leading_spaces: u32,
    bytes: LtBytes,
    ends: LtIds,
    kinds: LtBytes,
}

impl LtVocabulary {
    /// # Safety
    /// As `Loan::give_back`.
    pub unsafe fn give_back(&mut self) {
        unsafe {
            self.bytes.give_back();
            self.ends.give_back();
            self.kinds.give_back();
        }
    }
}

pub const NONE: u8 = 0;
const TEXT: u8 = 1;
const BYTE: u8 = 2;
pub const SPECIAL: u8 = 4;

/// Vocabularies end at a quarter of a million; what is far beyond is a mistake
/// in the file that should not cost gigabytes.
const MAX_ID: u32 = 1 << 24;

/// What a decoder does to one token, and to the text they make.
enum Rule {
    ByteLevel,
    ByteFallback {
        before: Vec<DecoderWrapper>,
        strip_leading_spaces: u32,
    },
}

pub fn of(tokenizer: &Tokenizer) -> Result<LtVocabulary, Error> {
    let rule = rule_of(tokenizer.get_decoder())?;
    let byte_of = byte_level_alphabet();
    let added = tokenizer.get_added_vocabulary();
    let known = tokenizer.get_vocab(true);
    let last = known.values().copied().max().unwrap_or(0);
    if last > MAX_ID {
        return Err(format!("the vocabulary has the id {last}; the limit is {MAX_ID}").into());
    }
    let (mut bytes, mut ends, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
    for id in 0..=last {
        // As `decode` looks them up.
        let token = added
            .simple_id_to_token(id)
            .or_else(|| tokenizer.id_to_token(id));
        let kind = match token {
            None => NONE,
            Some(token) => {
                let special = if added.is_special_token(&token) {
                    SPECIAL
                } else {
                    0
                };
                special | rule.append(token, &byte_of, &mut bytes)?
            }
        };
        ends.push(u32::try_from(bytes.len())?);
        kinds.push(kind);
    }
    let (byte_fallback, strip_leading_spaces) = match rule {
        Rule::ByteLevel => (false, 0),
        Rule::ByteFallback {
            strip_leading_spaces,
            ..
        } => (true, strip_leading_spaces),
    };
    Ok(LtVocabulary {
        byte_fallback,
        strip_leading_spaces,
        bytes: Loan::of(bytes),
        ends: Loan::of(ends),
        kinds: Loan::of(kinds),
    })
}

impl Rule {
    /// Appends what `token` stands for; its kind is returned.
    fn append(
        &self,
        token: String,
        byte_of: &HashMap<char, u8>,
        bytes: &mut Vec<u8>,
    ) -> Result<u8, Error> {
        match self {
            Rule::ByteLevel => {
                // A token with a character outside the alphabet stands for itself.
                let plain: Option<Vec<u8>> =
                    token.chars().map(|c| byte_of.get(&c).copied()).collect();
                bytes.extend(plain.unwrap_or_else(|| token.into_bytes()));
                Ok(TEXT)
            }
            Rule::ByteFallback { before, .. } => {
                let mut token = token;
                for decoder in before {
                    token = decoder.decode_chain(vec![token])?.concat();
                }
                match byte_token(&token) {
                    Some(byte) => {
                        bytes.push(byte);
                        Ok(BYTE)
                    }
                    None => {
                        bytes.extend(token.into_bytes());
                        Ok(TEXT)
                    }
                }
            }
        }
    }
}

/// The byte of a token like `<0x0A>`, as the decoder ByteFallback reads it.
fn byte_token(token: &str) -> Option<u8> {
    if token.len() != 6 || !token.starts_with("<0x") || !token.ends_with('>') {
        return None;
    }
    u8::from_str_radix(&token[3..5], 16).ok()
}

/// `Replace… ByteFallback Fuse [Strip]`, or `ByteLevel`: what language models
/// use. Anything else is refused by its name.
fn rule_of(decoder: Option<&DecoderWrapper>) -> Result<Rule, Error> {
    let Some(decoder) = decoder else {
        return Err("the tokenizer has no decoder".into());
    };
    let steps = match decoder {
        DecoderWrapper::Sequence(sequence) => sequence.get_decoders(),
        one => std::slice::from_ref(one),
    };
    if let [DecoderWrapper::ByteLevel(_)] = steps {
        return Ok(Rule::ByteLevel);
    }
    let fallback = steps
        .iter()
        .position(|step| matches!(step, DecoderWrapper::ByteFallback(_)))
        .ok_or_else(|| refusal(decoder))?;
    let (before, after) = (&steps[..fallback], &steps[fallback + 1..]);
    if !before
        .iter()
        .all(|step| matches!(step, DecoderWrapper::Replace(_)))
    {
        return Err(refusal(decoder));
    }
    let strip_leading_spaces = match after {
        [DecoderWrapper::Fuse(_)] => 0,
        [DecoderWrapper::Fuse(_), DecoderWrapper::Strip(strip)]
            if strip.content == ' ' && strip.stop == 0 =>
        {
            u32::try_from(strip.start)?
        }
        _ => return Err(refusal(decoder)),
    };
    Ok(Rule::ByteFallback {
        before: before.to_vec(),
        strip_leading_spaces,
    })
}

fn refusal(decoder: &DecoderWrapper) -> Error {
    let words = serde_json::to_string(decoder).unwrap_or_default();
    format!("the decoder {words} is not supported: byte level and byte fallback are").into()
}

/// The byte behind each character of byte-level tokens (GPT-2,
/// `bytes_to_unicode`): printable bytes stand for themselves, the others are
/// numbered from U+0100.
fn byte_level_alphabet() -> HashMap<char, u8> {
    let mut next = 0x100;
    let mut alphabet = HashMap::new();
    for byte in 0..=255u8 {
        let printable = matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
        let code = if printable {
            u32::from(byte)
        } else {
            next += 1;
            next - 1
        };
        if let Some(character) = char::from_u32(code) {
            alphabet.insert(character, byte);
        }
    }
    alphabet
}
