#include "frontend/structured_output/gbnf.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstddef>

#include "common/status_macros.h"
#include "frontend/structured_output/lark_pieces.h"

namespace lockstep {
namespace {

constexpr absl::string_view kDefines = "::=";
constexpr int kMaxDepth = 64;
// What says something in a regex.
constexpr absl::string_view kOperators = "\\.+*?()|[]{}^$#&-~";

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(c) || c == '_' || c == '-';
}

// A rule is one whose name begins in lower case, a terminal the other; all of
// GBNF's are rules.
std::string RuleName(absl::string_view name) {
  if (name == "root") return "start";
  std::string rule = "r_";
  for (const char c : name) {
    // Lark's names have no capitals in a rule.
    if (absl::ascii_isupper(c)) absl::StrAppend(&rule, "_");
    rule.push_back(absl::ascii_tolower(c));
  }
  return rule;
}

// Goes over the text once, writing Lark as it reads.
class Converter {
 public:
  explicit Converter(absl::string_view text) : text_(text) {}

  absl::StatusOr<std::string> Convert() {
    SkipSpace();
    while (!IsAtEnd()) LOCKSTEP_RETURN_IF_ERROR(Rule());
    if (!has_root_) return absl::InvalidArgumentError("it has no rule root");
    return lark_;
  }

 private:
  absl::Status Wrong(absl::string_view what) const {
    const auto line =
        1 + std::count(text_.begin(), text_.begin() + at_, '\n');
    return absl::InvalidArgumentError(
        absl::StrCat("line ", line, " has ", what));
  }

  bool IsAtEnd() const { return at_ == text_.size(); }
  char Peek() const { return IsAtEnd() ? '\0' : text_[at_]; }
  absl::string_view Rest() const { return text_.substr(at_); }

  void SkipSpace() {
    while (!IsAtEnd()) {
      if (Peek() == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (absl::ascii_isspace(Peek())) {
        ++at_;
      } else {
        return;
      }
    }
  }

  absl::string_view Name() {
    const size_t begin = at_;
    while (IsNameCharacter(Peek())) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  // A name that defines the next rule ends this one.
  bool IsAtRule() {
    const size_t before = at_;
    const bool has_name = !Name().empty();
    SkipSpace();
    const bool is_rule = has_name && absl::StartsWith(Rest(), kDefines);
    at_ = before;
    return is_rule;
  }

  absl::Status Rule() {
    if (!IsAtRule()) return Wrong("no rule where one must begin");
    const absl::string_view name = Name();
    has_root_ |= name == "root";
    SkipSpace();
    at_ += kDefines.size();
    absl::StrAppend(&lark_, RuleName(name), ":");
    LOCKSTEP_RETURN_IF_ERROR(Alternatives());
    if (!IsAtEnd() && !IsAtRule()) return Wrong("a ) too many");
    lark_ += "\n";
    return absl::OkStatus();
  }

  absl::Status Alternatives() {
    if (++depth_ > kMaxDepth) return Wrong("groups that nest too deep");
    while (true) {
      LOCKSTEP_RETURN_IF_ERROR(Sequence());
      if (Peek() != '|') break;
      ++at_;
      lark_ += " |";
    }
    --depth_;
    return absl::OkStatus();
  }

  absl::Status Sequence() {
    bool is_empty = true;
    for (SkipSpace(); !IsAtEnd() && Peek() != '|' && Peek() != ')';
         SkipSpace()) {
      if (IsAtRule()) break;
      lark_ += " ";
      LOCKSTEP_RETURN_IF_ERROR(Item());
      LOCKSTEP_RETURN_IF_ERROR(Repetition());
      is_empty = false;
    }
    if (is_empty) lark_ += " \"\"";
    return absl::OkStatus();
  }

  absl::Status Item() {
    switch (Peek()) {
      case '"':
        return Text();
      case '[':
        return Class();
      case '(':
        return Group();
      case '.':
        ++at_;
        lark_ += "/(?s:.)/";
        return absl::OkStatus();
      default:
        break;
    }
    const absl::string_view name = Name();
    if (name.empty()) {
      return Wrong(absl::StrCat("\"", Rest().substr(0, 1),
                                "\", which begins nothing"));
    }
    lark_ += RuleName(name);
    return absl::OkStatus();
  }

  absl::Status Group() {
    ++at_;
    lark_ += "(";
    LOCKSTEP_RETURN_IF_ERROR(Alternatives());
    if (Peek() != ')') return Wrong("a ( that nothing closes");
    ++at_;
    lark_ += ")";
    return absl::OkStatus();
  }

  // Up to the unescaped `close`, which is behind it then.
  absl::Status Quoted(char close, absl::string_view* inside) {
    const size_t begin = ++at_;
    while (!IsAtEnd() && Peek() != close && Peek() != '\n') {
      at_ += Peek() == '\\' ? 2 : 1;
      at_ = std::min(at_, text_.size());
    }
    if (Peek() != close) return Wrong("a text or class that nothing closes");
    *inside = text_.substr(begin, at_ - begin);
    ++at_;
    return absl::OkStatus();
  }

  // A text is a regex of its characters: all of its escapes are a regex's.
  absl::Status Text() {
    absl::string_view inside;
    LOCKSTEP_RETURN_IF_ERROR(Quoted('"', &inside));
    if (inside.empty()) {
      lark_ += "\"\"";
      return absl::OkStatus();
    }
    std::string regex;
    for (size_t i = 0; i < inside.size(); ++i) {
      const char c = inside[i];
      if (c == '\\' && i + 1 < inside.size()) {
        regex += {c, inside[++i]};
      } else if (absl::StrContains(kOperators, c)) {
        regex += {'\\', c};
      } else {
        regex.push_back(c);
      }
    }
    lark_ += LarkRegex(regex);
    return absl::OkStatus();
  }

  absl::Status Class() {
    absl::string_view inside;
    LOCKSTEP_RETURN_IF_ERROR(Quoted(']', &inside));
    // What a class of GBNF has not, and one of a regex has.
    std::string regex = "[";
    for (size_t i = 0; i < inside.size(); ++i) {
      const char c = inside[i];
      const bool is_operator = c == '[' || c == '&' || c == '~' ||
                               (c == '^' && i > 0);
      if (c == '\\' && i + 1 < inside.size()) {
        regex += {c, inside[++i]};
      } else if (is_operator) {
        regex += {'\\', c};
      } else {
        regex.push_back(c);
      }
    }
    lark_ += LarkRegex(regex + "]");
    return absl::OkStatus();
  }

  absl::Status Repetition() {
    const char c = Peek();
    if (c == '*' || c == '+' || c == '?') {
      ++at_;
      lark_.push_back(c);
    } else if (c == '{') {
      const size_t end = Rest().find('}');
      if (end == absl::string_view::npos) return Wrong("a { without its }");
      const absl::string_view counts = Rest().substr(0, end + 1);
      for (const char digit : counts.substr(1, end - 1)) {
        if (!absl::ascii_isdigit(digit) && digit != ',' && digit != ' ') {
          return Wrong("a { that no numbers follow");
        }
      }
      absl::StrAppend(&lark_, counts);
      at_ += counts.size();
    }
    return absl::OkStatus();
  }

  const absl::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  bool has_root_ = false;
  std::string lark_;
};

}  // namespace

bool IsGbnf(absl::string_view text) {
  return absl::StrContains(text, kDefines);
}

absl::StatusOr<std::string> GbnfToLark(absl::string_view text) {
  return Converter(text).Convert();
}

}  // namespace lockstep
