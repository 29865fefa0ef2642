#include "frontend/openai/json_body.h"

#include <absl/strings/str_cat.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/status_macros.h"
#include "common/strict_json.h"
#include "tokenizer_service/tokenizer.h"

namespace lockstep::openai {
namespace {

using nlohmann::json;

constexpr size_t kMaxValues = kMaxDecodedIds + (64 << 10);

// Counts values without keeping them; false stops the parser.
class Counter : public nlohmann::json_sax<json> {
 public:
  bool is_full() const { return values_ > kMaxValues; }

  bool null() override { return Count(); }
  bool boolean(bool) override { return Count(); }
  bool number_integer(number_integer_t) override { return Count(); }
  bool number_unsigned(number_unsigned_t) override { return Count(); }
  bool number_float(number_float_t, const string_t&) override {
    return Count();
  }
  bool string(string_t&) override { return Count(); }
  bool binary(binary_t&) override { return Count(); }
  bool start_object(size_t) override { return Count(); }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return Count(); }
  bool end_array() override { return true; }
  // What is wrong is for the parser to say.
  bool parse_error(size_t, const std::string&,
                   const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool Count() { return ++values_ <= kMaxValues; }

  size_t values_ = 0;
};

}  // namespace

absl::StatusOr<json> ParseBody(absl::string_view body) {
  // So many values take at least as many bytes.
  if (body.size() > kMaxValues) {
    Counter counter;
    json::sax_parse(body.begin(), body.end(), &counter);
    if (counter.is_full()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the body holds more than ", kMaxValues,
                       " JSON values; at most as many are allowed."));
    }
  }
  LOCKSTEP_ASSIGN_OR_RETURN(json value, ParseStrictJson(body, "the body"));
  if (value.is_object()) return value;
  return absl::InvalidArgumentError("the body must be a JSON object.");
}

nlohmann::ordered_json OrderedMember(absl::string_view body,
                                     absl::string_view name) {
  return ParseOrderedMember(body, name, "the body").value();
}

}  // namespace lockstep::openai
