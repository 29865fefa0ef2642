#include "common/strict_json.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "common/mapped_file.h"
#include "common/status_macros.h"
#include "common/utf8.h"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 32;
// Of the parser's words, which quote what it was reading: a number or a string,
// however long.
constexpr size_t kMaxErrorBytes = 160;

std::string CutError(const std::string& words) {
  if (words.size() <= kMaxErrorBytes) return words;
  return RepairUtf8(words.substr(0, kMaxErrorBytes)) + "…";
}

// Makes the value of what the parser finds; false stops it. nlohmann's own
// parser with a callback looks through all that an object lies in when the
// object ends, which takes time that grows with the square of a text.
class Builder : public nlohmann::json_sax<json> {
 public:
  json& value() { return value_; }
  // What is wrong, after the name of the text.
  const std::string& error() const { return error_; }

  bool null() override { return Add(nullptr) != nullptr; }
  bool boolean(bool value) override { return Add(value) != nullptr; }
  bool number_integer(number_integer_t value) override {
    return Add(value) != nullptr;
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Add(value) != nullptr;
  }
  bool number_float(number_float_t value, const string_t&) override {
    return Add(value) != nullptr;
  }
  bool string(string_t& value) override {
    return Add(std::move(value)) != nullptr;
  }
  bool binary(binary_t&) override { return false; }  // there is none in texts
  bool start_object(size_t) override { return Open(json::object()); }
  bool start_array(size_t) override { return Open(json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(string_t& key) override {
    auto& members = open_.back()->get_ref<json::object_t&>();
    const auto [member, is_new] = members.emplace(key, nullptr);
    member_ = &member->second;
    return is_new ||
           Fail(absl::StrCat(" is refused: the key \"",
                             absl::Utf8SafeCHexEscape(key.substr(0, 100)),
                             "\" is there twice."));
  }

  bool parse_error(size_t, const std::string&,
                   const nlohmann::detail::exception& error) override {
    return Fail(
        absl::StrCat(" is not valid JSON: ", CutError(error.what()), "."));
  }

 private:
  // Where it is then, until its parent gets the next.
  json* Add(json value) {
    json* const place = open_.empty()               ? &value_
                        : open_.back()->is_object() ? member_
                                                    : AddItem(open_.back());
    *place = std::move(value);
    return place;
  }

  static json* AddItem(json* array) {
    array->push_back(nullptr);
    return &array->back();
  }

  bool Open(json value) {
    if (open_.size() == kMaxDepth) {
      return Fail(absl::StrCat(" is refused: it is nested deeper than ",
                               kMaxDepth, " levels."));
    }
    open_.push_back(Add(std::move(value)));
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  bool Fail(std::string error) {
    error_ = std::move(error);
    return false;
  }

  json value_;
  std::vector<json*> open_;  // each in the one before it
  json* member_ = nullptr;   // of the innermost one, whose key came last
  std::string error_;
};

}  // namespace

absl::StatusOr<json> ParseStrictJson(absl::string_view text,
                                     const std::string& name) {
  Builder builder;
  if (json::sax_parse(text.begin(), text.end(), &builder)) {
    return std::move(builder.value());
  }
  return absl::InvalidArgumentError(absl::StrCat(name, builder.error()));
}

absl::StatusOr<json> ReadStrictJson(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path));
  return ParseStrictJson(file->text(), path);
}

absl::StatusOr<json> ReadStrictJsonObject(const std::string& path) {
  auto value = ReadStrictJson(path);
  if (absl::IsNotFound(value.status())) return json::object();
  if (!value.ok() || value->is_object()) return value;
  return absl::InvalidArgumentError(
      absl::StrCat(path, " holds no JSON object."));
}

}  // namespace lockstep
