#include "tests/simulation/routing/sessions.h"

#include <algorithm>
#include <cmath>

#include "frontend/routing/policy/page_chain.h"

namespace lockstep::testing {
namespace {

constexpr uint64_t kSystemPrompts = 50;
constexpr uint64_t kDocuments = 3000;

}  // namespace

Session Sessions::Begin() {
  Session session;
  const int64_t kind = Draw(0, 99);
  if (kind < 60) {
    const uint64_t prompt = DrawSkewed(kSystemPrompts - 1);
    session.parts.push_back(
        {prompt, 300 + static_cast<int64_t>(MixHashes(1, prompt) % 1200)});
    session.parts.push_back(Unique(Draw(30, 400)));
    session.turns_left = static_cast<int>(Draw(1, 7));
  } else if (kind < 85) {
    const uint64_t document = kSystemPrompts + DrawSkewed(kDocuments - 1);
    session.parts.push_back(
        {document, 1500 + static_cast<int64_t>(MixHashes(2, document) % 2000)});
    session.parts.push_back(Unique(Draw(20, 60)));
    session.turns_left = static_cast<int>(Draw(0, 2));
  } else {
    session.parts.push_back(Unique(Draw(200, 2000)));
  }
  DrawOutput(&session);
  return session;
}

void Sessions::GoOn(Session* session) {
  session->parts.push_back(Unique(session->output_tokens));
  session->parts.push_back(Unique(Draw(20, 200)));
  --session->turns_left;
  DrawOutput(session);
}

uint64_t Sessions::DrawSkewed(uint64_t most) {
  const double u = std::uniform_real_distribution<double>(0, 1)(random_);
  const double drawn = std::pow(static_cast<double>(most + 2), u) - 1;
  return std::min(most, static_cast<uint64_t>(drawn));
}

void Sessions::DrawOutput(Session* session) {
  session->output_tokens =
      std::clamp<int64_t>(static_cast<int64_t>(Exponential(200)), 8, 1000);
}

std::vector<uint32_t> PromptOf(const Session& session) {
  std::vector<uint32_t> ids;
  for (const Session::Part& part : session.parts) {
    for (int64_t i = 0; i < part.tokens; ++i) {
      ids.push_back(static_cast<uint32_t>(part.content * 31 + i * 7));
    }
  }
  return ids;
}

}  // namespace lockstep::testing
