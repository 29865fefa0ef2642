// The C door to the Rust crates `tokenizers`, `minijinja` and `llguidance`.
//
// A function that can fail returns an LtResult and, where that is not LT_OK,
// puts a sentence into `error`. Neither an error nor a panic leaves Rust any
// other way. What a function hands out belongs to the caller, who gives it back
// to the free function beside it. Texts are UTF-8, pointer and size; a null
// pointer is the empty text. Objects are immutable: any thread, several at
// once. Only a matcher changes: one thread at a time.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  LT_OK = 0,
  LT_INVALID = 1,  // the input's fault
  LT_PANIC = 2,    // a fault of the library, caught
} LtResult;

// Zero one before its first use; freeing leaves it zero.
typedef struct {
  uint8_t* data;
  size_t size;
} LtBytes;

typedef struct {
  uint32_t* data;
  size_t size;
} LtIds;

void lt_bytes_free(LtBytes* bytes);
void lt_ids_free(LtIds* ids);

// ---- tokenizers ----

typedef struct LtTokenizer LtTokenizer;

// From the contents of a tokenizer.json. Truncation and padding that it asks
// for are left out, as for every text to be generated from.
LtResult lt_tokenizer_new(const uint8_t* json, size_t json_size,
                          LtTokenizer** out, LtBytes* error);
void lt_tokenizer_free(LtTokenizer* tokenizer);

LtResult lt_encode(const LtTokenizer* tokenizer, const uint8_t* text,
                   size_t text_size, bool add_special_tokens, LtIds* out,
                   LtBytes* error);

// Ids without a token decode as if they were not there.
LtResult lt_decode(const LtTokenizer* tokenizer, const uint32_t* ids,
                   size_t ids_size, bool skip_special_tokens, LtBytes* out,
                   LtBytes* error);

// The id of one token, by its text; *found says whether there is one.
LtResult lt_token_id(const LtTokenizer* tokenizer, const uint8_t* token,
                     size_t token_size, uint32_t* id, bool* found,
                     LtBytes* error);

// What decoding is made of: see tokenizer_service/vocabulary.h.
typedef struct {
  bool byte_fallback;  // else byte level
  uint32_t strip_leading_spaces;
  LtBytes bytes;  // of all tokens, in the order of their ids
  LtIds ends;     // for each id, where its bytes end
  LtBytes kinds;  // for each id, one of LT_TOKEN_…, maybe | LT_TOKEN_SPECIAL
} LtVocabulary;

enum {
  LT_TOKEN_NONE = 0,
  LT_TOKEN_TEXT = 1,
  LT_TOKEN_BYTE = 2,
  LT_TOKEN_SPECIAL = 4,
};

// LT_INVALID names a decoder that is neither byte level nor byte fallback.
LtResult lt_vocabulary(const LtTokenizer* tokenizer, LtVocabulary* out,
                       LtBytes* error);
void lt_vocabulary_free(LtVocabulary* vocabulary);

// ---- chat templates ----

typedef struct LtTemplate LtTemplate;

// Compiles a Jinja chat template as Hugging Face's transformers does.
// variables_json is an object of variables that every rendering has.
LtResult lt_template_new(const uint8_t* source, size_t source_size,
                         const uint8_t* variables_json,
                         size_t variables_json_size, LtTemplate** out,
                         LtBytes* error);
void lt_template_free(LtTemplate* chat_template);

// context_json is an object; what it has goes before variables_json. Where the
// template calls raise_exception, the error is its message and nothing else.
LtResult lt_render(const LtTemplate* chat_template, const uint8_t* context_json,
                   size_t context_json_size, LtBytes* out, LtBytes* error);

// ---- grammars ----

typedef struct LtGrammarVocabulary LtGrammarVocabulary;

// The tokens as LtVocabulary has them, and the ids that end an answer, at least
// one: these are no text, whatever their bytes. Takes about a second for the
// largest vocabularies.
LtResult lt_grammar_vocabulary_new(const uint8_t* bytes, size_t bytes_size,
                                   const uint32_t* ends, const uint8_t* kinds,
                                   size_t num_tokens, const uint32_t* eos_ids,
                                   size_t num_eos_ids,
                                   LtGrammarVocabulary** out, LtBytes* error);
void lt_grammar_vocabulary_free(LtGrammarVocabulary* vocabulary);

enum {
  LT_JSON_SCHEMA = 0,  // draft 2020-12
  LT_REGEX = 1,        // of the whole answer, as Rust's crate `regex` has them
  LT_LARK = 2,         // with llguidance's additions
};

// A grammar at its beginning. Its size, its depth and what it takes to compile
// are bounded, and so is what a mask takes to find; nothing of it depends on
// time. LT_INVALID says what is wrong, and where.
typedef struct LtMatcher LtMatcher;
LtResult lt_matcher_new(const LtGrammarVocabulary* vocabulary, uint32_t kind,
                        const uint8_t* source, size_t source_size,
                        LtMatcher** out, LtBytes* error);
// Shares nothing with the original. One of these at a time.
LtResult lt_matcher_clone(const LtMatcher* matcher, LtMatcher** out,
                          LtBytes* error);
void lt_matcher_free(LtMatcher* matcher);

// Follows the ids up to the first that is not allowed; *num_consumed says how
// many were.
LtResult lt_matcher_consume(LtMatcher* matcher, const uint32_t* ids,
                            size_t num_ids, size_t* num_consumed,
                            LtBytes* error);

// A bit for each id, that of id 0 the lowest of the first word: whether it may
// come next. The ids of the end may where the answer is complete; where nothing
// else may, they do. LT_INVALID where that exceeds the bounds.
LtResult lt_matcher_mask(LtMatcher* matcher, uint32_t* mask, size_t mask_words,
                         LtBytes* error);

// Whether the answer so far is complete.
LtResult lt_matcher_is_accepting(LtMatcher* matcher, bool* is_accepting,
                                 LtBytes* error);

// Panics inside, for the test that the panic stays there.
LtResult lt_panic(LtBytes* error);

#ifdef __cplusplus
}  // extern "C"
#endif
