#include "common/strict_json.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "common/mapped_file.h"
#include "common/status_macros.h"
#include "common/utf8.h"

namespace lockstep {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

using Keys = std::vector<std::string>;

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
  // Everything; or, with `keys`, its keys as well, in the order in which they
  // come; or, with `only`, of an object no member but the one of this name.
  explicit Builder(Keys* keys = nullptr,
                   std::optional<absl::string_view> only = std::nullopt)
      : keys_(keys), only_(only) {}

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
    if (only_.has_value() && open_.size() == 1) {
      skips_ = key != *only_;
      if (skips_) {
        member_ = &skipped_;
        return true;
      }
    }
    if (keys_ != nullptr && !skips_) keys_->push_back(key);
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

  Keys* keys_;
  std::optional<absl::string_view> only_;
  json value_;
  json skipped_;             // the last of the members that are left out
  bool skips_ = false;       // within one
  std::vector<json*> open_;  // each in the one before it
  json* member_ = nullptr;   // of the innermost one, whose key came last
  std::string error_;
};

// Takes `value` apart. `key` is the first of its keys in the order of the text,
// and is moved behind its last. Objects get their size first: growing, they
// would copy what they hold.
ordered_json InOrder(json value, Keys::iterator* key) {
  if (value.is_array()) {
    ordered_json items = ordered_json::array();
    items.get_ref<ordered_json::array_t&>().reserve(value.size());
    for (json& item : value) items.push_back(InOrder(std::move(item), key));
    return items;
  }
  if (!value.is_object()) return ordered_json(std::move(value));
  ordered_json object = ordered_json::object();
  auto& members = object.get_ref<ordered_json::object_t&>();
  members.reserve(value.size());
  for (size_t i = 0; i < value.size(); ++i) {
    std::string& name = *(*key)++;
    json member = std::move(value[name]);
    members.emplace_back(std::move(name), InOrder(std::move(member), key));
  }
  return object;
}

absl::StatusOr<json> Parse(absl::string_view text, const std::string& name,
                           Builder builder) {
  if (json::sax_parse(text.begin(), text.end(), &builder)) {
    return std::move(builder.value());
  }
  return absl::InvalidArgumentError(absl::StrCat(name, builder.error()));
}

absl::StatusOr<ordered_json> ParseInOrder(
    absl::string_view text, const std::string& name,
    std::optional<absl::string_view> only) {
  Keys keys;
  LOCKSTEP_ASSIGN_OR_RETURN(json value,
                            Parse(text, name, Builder(&keys, only)));
  Keys::iterator key = keys.begin();
  return InOrder(std::move(value), &key);
}

}  // namespace

absl::StatusOr<json> ParseStrictJson(absl::string_view text,
                                     const std::string& name) {
  return Parse(text, name, Builder());
}

absl::StatusOr<ordered_json> ParseOrderedJson(absl::string_view text,
                                              const std::string& name) {
  return ParseInOrder(text, name, std::nullopt);
}

absl::StatusOr<ordered_json> ParseOrderedMember(absl::string_view text,
                                                absl::string_view member,
                                                const std::string& name) {
  LOCKSTEP_ASSIGN_OR_RETURN(ordered_json object,
                            ParseInOrder(text, name, member));
  if (!object.is_object() || object.empty()) return ordered_json();
  return std::move(object.front());
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
