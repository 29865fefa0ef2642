// The C door to the Rust crates `tokenizers` and `minijinja`.
//
// A function that can fail returns an LtResult and, where that is not LT_OK,
// puts a sentence into `error`. Neither an error nor a panic leaves Rust any
// other way. What a function hands out belongs to the caller, who gives it back
// to the free function beside it. Texts are UTF-8, pointer and size; a null
// pointer is the empty text. Objects are immutable: any thread, several at
// once.

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

// Panics inside, for the test that the panic stays there.
LtResult lt_panic(LtBytes* error);

#ifdef __cplusplus
}  // extern "C"
#endif
