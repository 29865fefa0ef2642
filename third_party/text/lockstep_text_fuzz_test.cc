// Whatever a tokenizer.json, a chat template or its variables hold: the door
// answers, with a result or an error. An input that begins with "{" is a
// tokenizer.json; else all but its first byte is a template, and a NUL
// parts a template from its variables.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "third_party/text/lockstep_text.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

void FuzzTokenizer(const uint8_t* json, size_t size) {
  static const char kText[] = "the caf\xc3\xa9 \xf0\x9f\x98\x80 12 <s>";
  LtTokenizer* tokenizer = nullptr;
  LtBytes error = {}, text = {};
  LtIds ids = {};
  LtVocabulary vocabulary = {};
  if (lt_tokenizer_new(json, size, &tokenizer, &error) == LT_OK) {
    const auto* data = reinterpret_cast<const uint8_t*>(kText);
    if (lt_encode(tokenizer, data, sizeof(kText) - 1, true, &ids, &error) ==
        LT_OK) {
      lt_bytes_free(&error);
      lt_decode(tokenizer, ids.data, ids.size, false, &text, &error);
    }
    lt_bytes_free(&error);
    if (lt_vocabulary(tokenizer, &vocabulary, &error) == LT_OK) {
      Require(vocabulary.ends.size == vocabulary.kinds.size);
      Require(vocabulary.ends.data[vocabulary.ends.size - 1] ==
              vocabulary.bytes.size);
    }
  }
  lt_vocabulary_free(&vocabulary);
  lt_ids_free(&ids);
  lt_bytes_free(&text);
  lt_bytes_free(&error);
  lt_tokenizer_free(tokenizer);
}

void FuzzTemplate(const uint8_t* data, size_t size) {
  static const char kNone[] = "{}";
  const auto* none = reinterpret_cast<const uint8_t*>(kNone);
  const auto* end = static_cast<const uint8_t*>(std::memchr(data, 0, size));
  const size_t source_size = end == nullptr ? size : end - data;
  const uint8_t* context = end == nullptr ? none : end + 1;
  const size_t context_size = end == nullptr ? 2 : size - source_size - 1;
  LtTemplate* chat_template = nullptr;
  LtBytes error = {}, text = {};
  if (lt_template_new(data, source_size, none, 2, &chat_template, &error) ==
      LT_OK) {
    lt_render(chat_template, context, context_size, &text, &error);
  }
  lt_bytes_free(&text);
  lt_bytes_free(&error);
  lt_template_free(chat_template);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  if (data[0] == '{') {
    FuzzTokenizer(data, size);
  } else {
    FuzzTemplate(data + 1, size - 1);
  }
  return 0;
}
