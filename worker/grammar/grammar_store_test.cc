#include "worker/grammar/grammar_store.h"

#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "proto/grammar.pb.h"
#include "tests/testing/grammar/tiny_token_bytes.h"

namespace lockstep {
namespace {

using ::lockstep::testing::kTinyEos;

v1::Grammar Regex(const std::string& regex) {
  v1::Grammar grammar;
  grammar.set_regex(regex);
  return grammar;
}

std::unique_ptr<GrammarStore> MakeStore() {
  return std::make_unique<GrammarStore>(
      testing::MakeTinyTokenBytes(),
      GrammarStore::Options{.vocab_size = 512, .eos_token_ids = {kTinyEos}});
}

TEST(GrammarStore, ItsEndCompilesNothingThatHadNotBegun) {
  constexpr int kThreads = 2, kQueued = 100;
  auto store = MakeStore();
  absl::Notification go_on;
  std::atomic<int> held = 0, compiled = 0;
  for (int i = 0; i < kThreads; ++i) {
    store->Prepare(1 + i, Regex("a"), [&](const absl::Status&) {
      ++held;
      go_on.WaitForNotification();
    });
  }
  while (held < kThreads) std::this_thread::yield();
  const auto queued = std::make_shared<int>(0);
  for (int i = 0; i < kQueued; ++i) {
    store->Prepare(10 + i, Regex("b"),
                   [&, queued](const absl::Status&) { ++compiled; });
  }
  std::thread end([&] { store.reset(); });
  // The limit only bounds a test that fails.
  const auto limit =
      std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (queued.use_count() > 1 && std::chrono::steady_clock::now() < limit) {
    std::this_thread::yield();
  }
  go_on.Notify();
  end.join();
  EXPECT_EQ(compiled, 0);
}

// One that is being compiled may wait for the vocabulary.
TEST(GrammarStore, ItsEndMayComeAtAnyTime) {
  for (int prepared = 0; prepared < 50; ++prepared) {
    auto store = MakeStore();
    for (int i = 0; i < prepared; ++i) store->Prepare(1 + i, Regex("a{3}"));
    if (prepared % 3 == 0) std::this_thread::yield();
  }
}

}  // namespace
}  // namespace lockstep
