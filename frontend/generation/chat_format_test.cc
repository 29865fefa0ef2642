#include "frontend/generation/chat_format.h"

#include <gtest/gtest.h>

#include <string>

#include "frontend/generation/error_detail.h"
#include "tests/testing/fake_tokenizer.h"
#include "tokenizer_service/chat_template.h"

namespace lockstep {
namespace {

// A model that has `source` for a chat template, and a special token.
class TemplateTokenizer : public FakeTokenizer {
 public:
  explicit TemplateTokenizer(const std::string& source)
      : template_(*ChatTemplate::Compile(source, {})),
        info_(FakeTokenizer::info()),
        vocabulary_(Vocabulary::Join::kByteLevel) {
    info_.chat_template = source;
    vocabulary_.Add("<tool_call>", Vocabulary::Kind::kText);
    vocabulary_.Add("</tool_call>", Vocabulary::Kind::kText, /*special=*/true);
    vocabulary_.Add("<|end|>", Vocabulary::Kind::kText, /*special=*/true);
  }

  absl::StatusOr<std::string> RenderChat(
      absl::string_view context_json) const override {
    return template_->Render(context_json);
  }
  const TokenizerInfo& info() const override { return info_; }
  const Vocabulary& vocabulary() const override { return vocabulary_; }

 private:
  const std::unique_ptr<ChatTemplate> template_;
  TokenizerInfo info_;
  Vocabulary vocabulary_;
};

std::string Looping(const std::string& call) {
  return "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}" +
         call + "{% endfor %}{% endfor %}";
}

TEST(ChatFormat, ShowsTheMarksThatAreSpecial) {
  const TemplateTokenizer tokenizer("x");
  const auto ids = [&](ToolFormat tools) {
    return MakeChatFormat({tools, ReasoningFormat::kNone}, tokenizer).mark_ids;
  };
  EXPECT_EQ(ids(ToolFormat::kHermes), std::vector<uint32_t>{1});
  EXPECT_EQ(ids(ToolFormat::kNone), std::vector<uint32_t>{});
}

TEST(ChatFormat, FindsOutHowTheTemplateWantsArguments) {
  const struct {
    std::string source;
    bool are_text;
  } kCases[] = {
      {Looping("{{ c.function.arguments | tojson }}"), false},
      // As DeepSeek V3: a text that is added to others.
      {Looping("{{ '```json\n' + c['function']['arguments'] + '\n```' }}"),
       true},
      // As Qwen 3: either will do.
      {Looping("{% if c.function.arguments is string %}{{ c.function.arguments "
               "}}{% else %}{{ c.function.arguments | tojson }}{% endif %}"),
       false},
      // An object would be written as Python writes it.
      {Looping("{{ c.function.arguments }}"), true},
      {"{{ raise_exception('no') }} tool_calls", false},
      {"{{ messages[0].content }}", false},
  };
  for (const auto& c : kCases) {
    const TemplateTokenizer tokenizer(c.source);
    EXPECT_EQ(MakeChatFormat({}, tokenizer).arguments_are_text, c.are_text)
        << c.source;
  }
}

TEST(ChatFormat, FindsOutWhetherATemplateWithoutCallsTakesNoContent) {
  const auto is_empty = [](const std::string& source) {
    return MakeChatFormat({}, TemplateTokenizer(source)).no_content_is_empty;
  };
  EXPECT_FALSE(is_empty("{{ messages[0].content }}"));
  EXPECT_TRUE(is_empty("{{ '<|im_start|>' + messages[0].content }}"));
}

TEST(ChatFormat, ToolsNeedAParser) {
  ChatPrompt chat = {{{"user", "hi"}}};
  ChatFormat format;
  EXPECT_TRUE(CheckTools({chat}, format).ok());
  EXPECT_TRUE(CheckTools({TextPrompt{"hi"}}, format).ok());
  chat.tools = {{"f", "{}"}};
  const absl::Status status = CheckTools({chat}, format);
  EXPECT_EQ(status.message(),
            "tools is not supported: it is not known how this model writes "
            "calls; --tool_call_parser of the gateway says it.");
  EXPECT_EQ(FieldOf(status), "tools");
  EXPECT_EQ(ReasonOf(status), kUnsupportedParameter);
  format.output.tools = ToolFormat::kHermes;
  EXPECT_TRUE(CheckTools({chat}, format).ok());
}

}  // namespace
}  // namespace lockstep
