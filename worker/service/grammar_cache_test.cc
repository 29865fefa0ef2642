#include "worker/service/grammar_cache.h"

#include <absl/synchronization/mutex.h>
#include <absl/synchronization/notification.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/testing/grammar/tiny_token_bytes.h"

namespace lockstep {
namespace {

using ::lockstep::testing::kTinyEos;
using ::lockstep::testing::TinyIds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Result = absl::StatusOr<GrammarCache::Lease>;

v1::Grammar Regex(const std::string& regex) {
  v1::Grammar grammar;
  grammar.set_regex(regex);
  return grammar;
}

class GrammarCacheTest : public ::testing::Test {
 protected:
  Result Get(const std::string& regex) {
    absl::Notification done;
    std::optional<Result> result;
    cache_.Get(Regex(regex), [&](Result lease) {
      result = std::move(lease);
      done.Notify();
    });
    done.WaitForNotification();
    return *std::move(result);
  }

  // What the ranks were told since the last call.
  std::vector<std::string> Told() {
    std::vector<std::string> messages, told;
    EXPECT_TRUE(inbox_.Drain(/*idle=*/false, 1000, &messages).ok());
    for (const std::string& bytes : messages) {
      v1::RankMessage message;
      EXPECT_TRUE(message.ParseFromString(bytes));
      if (message.has_prepare_grammar()) {
        told.push_back("prepare " +
                       std::to_string(message.prepare_grammar().number()) +
                       " " + message.prepare_grammar().grammar().regex());
      } else {
        told.push_back("release " +
                       std::to_string(message.release_grammar().number()));
      }
    }
    return told;
  }

  absl::Notification go_on_;  // for who holds up the store's threads
  RequestInbox inbox_{RequestInbox::Limits{}};
  TimerThread timers_;
  GrammarStore store_{testing::MakeTinyTokenBytes(),
                      {.vocab_size = 512, .eos_token_ids = {kTinyEos}}};
  GrammarCache cache_{&store_,
                      &inbox_,
                      &timers_,
                      {.max_idle = 2, .timeout = std::chrono::hours(1)}};
};

TEST_F(GrammarCacheTest, NumbersAGrammarAndTellsTheRanksOnce) {
  const Result first = Get("a"), second = Get("b"), again = Get("a");
  ASSERT_TRUE(first.ok() && second.ok() && again.ok());
  EXPECT_EQ(**first, 1);
  EXPECT_EQ(**second, 2);
  EXPECT_EQ(**again, 1);
  EXPECT_THAT(Told(), ElementsAre("prepare 1 a", "prepare 2 b"));
  EXPECT_TRUE(store_.Begin(1).ok());
}

TEST_F(GrammarCacheTest, WhoAsksMeanwhileWaitsForTheSame) {
  constexpr int kAsking = 20;
  absl::Mutex mutex;
  std::vector<uint64_t> numbers;
  for (int i = 0; i < kAsking; ++i) {
    cache_.Get(Regex("[a-z]{3}"), [&](const Result& lease) {
      absl::MutexLock lock(&mutex);
      numbers.push_back(lease.ok() ? **lease : 0);
    });
  }
  absl::MutexLock lock(&mutex);
  const auto all = [&] { return numbers.size() == kAsking; };
  mutex.Await(absl::Condition(&all));
  EXPECT_EQ(numbers, std::vector<uint64_t>(kAsking, 1));
  EXPECT_THAT(Told(), ElementsAre("prepare 1 [a-z]{3}"));
}

// The leader's own step thread is told as all ranks are, and may be quick.
TEST_F(GrammarCacheTest, HearsOfACompilationThatTheInboxAskedForToo) {
  std::atomic<bool> stops = false;
  std::thread steps([&] {
    std::vector<std::string> messages;
    while (!stops) {
      messages.clear();
      ASSERT_TRUE(inbox_.Drain(/*idle=*/false, 1000, &messages).ok());
      for (const std::string& bytes : messages) {
        v1::RankMessage message;
        ASSERT_TRUE(message.ParseFromString(bytes));
        if (!message.has_prepare_grammar()) continue;
        store_.Prepare(message.prepare_grammar().number(),
                       message.prepare_grammar().grammar());
      }
    }
  });
  for (int i = 0; i < 200; ++i) {
    const Result lease = Get("a{" + std::to_string(i) + "}b");
    EXPECT_TRUE(lease.ok()) << lease.status();
  }
  stops = true;
  steps.join();
}

TEST_F(GrammarCacheTest, KeepsThoseUsedLast) {
  for (const char* regex : {"a", "b"}) ASSERT_TRUE(Get(regex).ok());
  EXPECT_THAT(Told(), ElementsAre("prepare 1 a", "prepare 2 b"));
  for (const char* regex : {"a", "c"}) ASSERT_TRUE(Get(regex).ok());
  EXPECT_THAT(Told(), ElementsAre("prepare 3 c", "release 2"));
  ASSERT_TRUE(Get("b").ok());
  EXPECT_THAT(Told(), ElementsAre("prepare 4 b", "release 1"));
  EXPECT_EQ(cache_.sizes().idle, 2);
}

TEST_F(GrammarCacheTest, ALeaseKeepsItsGrammar) {
  Result lease = Get("a");
  for (const char* regex : {"b", "c"}) ASSERT_TRUE(Get(regex).ok());
  EXPECT_THAT(Told(), ElementsAre("prepare 1 a", "prepare 2 b", "prepare 3 c"));
  ASSERT_TRUE(Get("d").ok());
  EXPECT_THAT(Told(), ElementsAre("prepare 4 d", "release 2"));
  EXPECT_EQ(cache_.sizes().leased, 1);
  lease = absl::CancelledError("");
  EXPECT_THAT(Told(), ElementsAre("release 3"));
  EXPECT_EQ(cache_.sizes().leased, 0);
}

TEST_F(GrammarCacheTest, ABadOneIsRefusedAndForgotten) {
  for (int i = 1; i <= 2; ++i) {
    const Result refused = Get("(");
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(refused.status().message(), HasSubstr("unclosed group"));
    EXPECT_THAT(Told(), ElementsAre());  // before any step has begun
    EXPECT_EQ(store_.Begin(i).status().code(), absl::StatusCode::kNotFound);
  }
  EXPECT_EQ(cache_.sizes().idle, 0);
  EXPECT_EQ(cache_.sizes().compiling, 0);
}

// However many clients ask while a step hangs.
TEST_F(GrammarCacheTest, WhatNobodyHasAnyMoreDoesNotWaitForAStep) {
  constexpr int kAsked = 300;
  for (int i = 1; i <= kAsked; ++i) {
    ASSERT_TRUE(Get("a{" + std::to_string(i) + "}").ok());
  }
  EXPECT_THAT(Told(), ElementsAre("prepare 299 a{299}", "prepare 300 a{300}"));
  for (int i = 1; i <= kAsked - 2; ++i) EXPECT_FALSE(store_.Begin(i).ok());
}

TEST_F(GrammarCacheTest, MoreBytesThanMayWaitForAStepAreRefused) {
  RequestInbox small({.max_grammar_bytes = 100});
  GrammarCache cache(&store_, &small, &timers_, {});
  absl::Status status;
  cache.Get(Regex(std::string(200, 'a')),
            [&](const Result& lease) { status = lease.status(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the limit is 100"));
  EXPECT_EQ(cache.sizes().compiling, 0);
}

TEST_F(GrammarCacheTest, MoreThanMayBeCompiledAtATimeAreRefused) {
  GrammarCache none(&store_, &inbox_, &timers_, {.max_compiling = 0});
  none.Get(Regex("a"), [](const Result& lease) {
    EXPECT_EQ(lease.status().code(), absl::StatusCode::kResourceExhausted);
  });
  EXPECT_THAT(Told(), ElementsAre());
}

TEST_F(GrammarCacheTest, WaitsOnlySoLong) {
  // The store's threads are held up by those who are told.
  for (const char* regex : {"x", "y"}) {
    store_.Prepare(100 + regex[0], Regex(regex),
                   [&](const absl::Status&) { go_on_.WaitForNotification(); });
  }
  GrammarCache hasty(&store_, &inbox_, &timers_,
                     {.timeout = std::chrono::milliseconds(1)});
  absl::Notification done;
  hasty.Get(Regex("a"), [&](const Result& lease) {
    EXPECT_EQ(lease.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(lease.status().message(), HasSubstr("after 1 ms"));
    done.Notify();
  });
  done.WaitForNotification();
  go_on_.Notify();
  // It was compiled all the same.
  const Result later = [&] {
    absl::Notification told;
    std::optional<Result> result;
    GrammarCache* patient = &hasty;
    while (patient->sizes().compiling > 0) continue;
    patient->Get(Regex("a"), [&](Result lease) {
      result = std::move(lease);
      told.Notify();
    });
    told.WaitForNotification();
    return *std::move(result);
  }();
  EXPECT_TRUE(later.ok()) << later.status();
}

// Compilations and leases outlive the leader's inbox and timers.
TEST_F(GrammarCacheTest, OnceClosedItTellsTheWaitingAndNobodyElse) {
  const Result lease = Get("a");
  for (const uint64_t number : {100, 101}) {
    store_.Prepare(number, Regex("x"),
                   [&](const absl::Status&) { go_on_.WaitForNotification(); });
  }
  std::vector<absl::Status> told;
  const auto tell = [&](const Result& of) { told.push_back(of.status()); };
  for (const char* regex : {"b", "(", "("}) cache_.Get(Regex(regex), tell);
  Told();
  const absl::Status why = absl::UnavailableError("closed.");
  cache_.Close(why);
  cache_.Close(absl::UnavailableError("again."));
  cache_.Get(Regex("a"), tell);
  EXPECT_THAT(told, ElementsAre(why, why, why, why));
  go_on_.Notify();
  while (cache_.sizes().compiling > 0) std::this_thread::yield();
  EXPECT_THAT(Told(), ElementsAre());
}

TEST_F(GrammarCacheTest, ALeaseMayOutliveTheInbox) {
  auto inbox = std::make_unique<RequestInbox>(RequestInbox::Limits{});
  auto cache = std::make_unique<GrammarCache>(
      &store_, inbox.get(), &timers_, GrammarCache::Options{.max_idle = 0});
  absl::Notification done;
  Result lease = absl::CancelledError("");
  cache->Get(Regex("a"), [&](Result result) {
    lease = std::move(result);
    done.Notify();
  });
  done.WaitForNotification();
  ASSERT_TRUE(lease.ok());
  cache.reset();
  inbox.reset();
  lease = absl::CancelledError("");
}

TEST_F(GrammarCacheTest, WhatIsResumedMustBeOfTheGrammar) {
  const Result lease = Get("ab*");
  ASSERT_TRUE(lease.ok());
  v1::AddRequest request;
  request.mutable_sampling()->set_n(2);
  for (const uint32_t id : TinyIds("aba")) request.add_resume_token_ids(id);
  request.add_resume_token_counts(2);
  request.add_resume_token_counts(1);
  EXPECT_TRUE(cache_.CheckResume(*lease, request).ok());
  request.set_resume_token_counts(0, 1);
  request.set_resume_token_counts(1, 2);
  EXPECT_EQ(cache_.CheckResume(*lease, request).message(),
            "resume_token_ids has 101 as token 0 of choice 1, which the "
            "grammar does not allow there.");
  request.add_ended_choices(1);
  EXPECT_TRUE(cache_.CheckResume(*lease, request).ok());
}

}  // namespace
}  // namespace lockstep
