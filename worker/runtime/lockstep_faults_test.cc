// Faults between the leader's plan and a follower's: in what a follower reads,
// in the bytes on the wire, in what a rank makes of them. Each is found before
// the follower enters the collectives of the step, and named with its step.

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/ranks/thread_group.h"
#include "worker/group/frame_codec.h"

namespace lockstep {
namespace {

using ::lockstep::testing::ThreadGroup;
using ::lockstep::testing::WireTap;
using ::testing::HasSubstr;
using Kind = WireTap::Kind;

// Heartbeats are frequent, as some faults show in the next one; a rank that
// waits for bytes that never come is found by its step's limit, or its lag.
constexpr PeerWatch::Options kWatch = {.interval = absl::Milliseconds(50),
                                       .timeout = absl::Seconds(2)};
constexpr absl::Duration kStepTimeout = absl::Seconds(1);

constexpr int kFaulty = 2;  // the rank

// The last step that the engine of `rank` was asked to execute.
void RecordExecuted(testing::ThreadRank& rank, std::atomic<uint64_t>* last) {
  rank.engine.set_before_step([last](const StepPlan& plan) {
    *last = plan.step;
    return absl::OkStatus();
  });
}

// Requests that keep a group busy for some 50 steps, two of them at once.
void AddRequests(ThreadGroup& group) {
  for (uint64_t number = 1; number <= 6; ++number) {
    group.Add(number, {1, 2, 3, static_cast<uint32_t>(number)}, 40);
  }
  group.Abort(99);  // of nobody: it shows in no plan
}

struct Outcome {
  GroupFailure::Cause cause = {};  // the leader's
  uint64_t executed = 0;           // by the faulty rank
};

// Every rank gives the same verdict, but where several report at once.
Outcome RunToFailure(ThreadGroup& group, bool one_reports = true) {
  std::atomic<uint64_t> executed = 0;
  RecordExecuted(*group.ranks[kFaulty], &executed);
  AddRequests(group);
  group.Start();
  group.Join();
  Outcome outcome{.executed = executed};
  for (const auto& rank : group.ranks) {
    EXPECT_FALSE(rank->result.ok());
    if (one_reports) {
      EXPECT_EQ(rank->result, group.ranks[0]->result);
    }
  }
  const auto cause = group.ranks[0]->failure.cause();
  if (cause.has_value()) outcome.cause = *cause;
  return outcome;
}

// The frame of step 1 has all requests, so that each message matters.
TEST(LockstepFaults, AnotherFrameIsFoundInItsStep) {
  struct Fault {
    const char* name;
    v1::FailureKind kind;
    std::function<void(Frame&)> change;
  };
  const Fault kFaults[] = {
      {"abort dropped", v1::DIGEST_MISMATCH,
       [](Frame& frame) { frame.messages.pop_back(); }},
      {"request dropped", v1::DIGEST_MISMATCH,
       [](Frame& frame) { frame.messages.erase(frame.messages.begin()); }},
      {"all dropped", v1::DIGEST_MISMATCH,
       [](Frame& frame) { frame.messages.clear(); }},
      {"abort doubled", v1::DIGEST_MISMATCH,
       [](Frame& frame) { frame.messages.push_back(frame.messages.back()); }},
      {"request doubled", v1::PROTOCOL_VIOLATED,
       [](Frame& frame) { frame.messages.push_back(frame.messages.front()); }},
      {"request and abort reordered", v1::DIGEST_MISMATCH,
       [](Frame& frame) {
         frame.messages.back().swap(frame.messages.end()[-2]);
       }},
      {"requests reordered", v1::PROTOCOL_VIOLATED,
       [](Frame& frame) { frame.messages[0].swap(frame.messages[1]); }},
      {"request changed", v1::DIGEST_MISMATCH,
       [](Frame& frame) {
         v1::RankMessage message;
         ASSERT_TRUE(message.ParseFromString(frame.messages[1]));
         message.mutable_add()->mutable_sampling()->set_seed(99);
         frame.messages[1] = message.SerializeAsString();
       }},
  };
  for (const Fault& fault : kFaults) {
    SCOPED_TRACE(fault.name);
    ThreadGroup group(3, kWatch);
    group.ranks[kFaulty]->source->tap = [&](Frame& frame) {
      if (frame.step == 1) fault.change(frame);
    };
    const Outcome outcome = RunToFailure(group);
    EXPECT_EQ(outcome.executed, 0);
    EXPECT_EQ(outcome.cause.rank, kFaulty);
    EXPECT_THAT(outcome.cause.reason, HasSubstr("step 1 "));
    EXPECT_EQ(outcome.cause.kind, fault.kind);
  }
}

TEST(LockstepFaults, AMessageThatComesAStepLateIsFoundWhereItWasDue) {
  ThreadGroup group(3, kWatch);
  std::string late;
  group.ranks[kFaulty]->source->tap = [&](Frame& frame) {
    if (frame.step == 1) {
      late = frame.messages.back();
      frame.messages.pop_back();
    } else if (frame.step == 2) {
      frame.messages.push_back(late);
    }
  };
  const Outcome outcome = RunToFailure(group);
  EXPECT_EQ(outcome.executed, 0);
  EXPECT_EQ(outcome.cause.rank, kFaulty);
  EXPECT_THAT(outcome.cause.reason,
              HasSubstr("step 1 differs from the leader's"));
}

TEST(LockstepFaults, APlanThatDiffersIsFoundInItsStep) {
  ThreadGroup group(3, kWatch);
  // The leader's first step has four prompts of four tokens.
  group.ranks[kFaulty]->scheduler.max_step_tokens = 14;
  const Outcome outcome = RunToFailure(group);
  EXPECT_EQ(outcome.executed, 0);
  EXPECT_EQ(outcome.cause.rank, kFaulty);
  EXPECT_EQ(outcome.cause.kind, v1::DIGEST_MISMATCH);
  EXPECT_THAT(outcome.cause.reason,
              HasSubstr("step 1 differs from the leader's"));
}

TEST(LockstepFaults, AnotherDigestIsFoundInItsStepOnEitherSide) {
  for (const int rank : {0, kFaulty}) {
    SCOPED_TRACE(absl::StrCat("rank ", rank));
    ThreadGroup group(3, kWatch);
    int step = 0;
    group.ranks[rank]->source->tap_digest = [&](Digest digest) {
      if (++step == 7) digest[15] ^= 1;
      return digest;
    };
    const Outcome outcome = RunToFailure(group, /*one_reports=*/rank != 0);
    EXPECT_LE(outcome.executed, 6);
    EXPECT_EQ(outcome.cause.kind, v1::DIGEST_MISMATCH);
    EXPECT_THAT(outcome.cause.reason,
                HasSubstr("step 7 differs from the leader's"));
  }
}

// What a fault on the wire does with a part of what the leader sends.
struct WireFault {
  const char* name;
  Kind kind;
  std::function<std::string(const std::string& bytes)> change;
};

std::string WithoutSize(const std::string& bytes) { return bytes.substr(4); }

std::string OfAnotherEpoch(const std::string& bytes) {
  v1::FrameHeader header;
  EXPECT_TRUE(header.ParseFromString(WithoutSize(bytes)));
  header.set_epoch(header.epoch() + 1);
  std::string changed;
  AppendSized(header.SerializeAsString(), &changed);
  return changed;
}

std::string OfSomeMoreMessages(const std::string& bytes, int more) {
  v1::FrameHeader header;
  EXPECT_TRUE(header.ParseFromString(WithoutSize(bytes)));
  header.set_message_count(header.message_count() + more);
  std::string changed;
  AppendSized(header.SerializeAsString(), &changed);
  return changed;
}

std::string Twice(const std::string& bytes) { return bytes + bytes; }
std::string Never(const std::string&) { return ""; }
std::string CutShort(const std::string& bytes) {
  return bytes.substr(0, bytes.size() - 3);
}
std::string Flipped(std::string bytes) {
  bytes.back() ^= 0x10;
  return bytes;
}

const WireFault kWireFaults[] = {
    {"frame header dropped", Kind::kFrame, Never},
    {"frame header doubled", Kind::kFrame, Twice},
    {"frame header cut short", Kind::kFrame, CutShort},
    {"frame of another epoch", Kind::kFrame, OfAnotherEpoch},
    {"frame of one message more", Kind::kFrame,
     [](const std::string& bytes) { return OfSomeMoreMessages(bytes, 1); }},
    {"frame of one message less", Kind::kFrame,
     [](const std::string& bytes) { return OfSomeMoreMessages(bytes, -1); }},
    {"message dropped", Kind::kMessage, Never},
    {"message doubled", Kind::kMessage, Twice},
    {"message cut short", Kind::kMessage, CutShort},
    {"message changed", Kind::kMessage, Flipped},
    {"digest dropped", Kind::kDigest, Never},
    {"digest doubled", Kind::kDigest, Twice},
    {"digest cut short", Kind::kDigest, CutShort},
    {"digest changed", Kind::kDigest, Flipped},
    {"digest of another epoch", Kind::kDigest, OfAnotherEpoch},
};

// Runs a group of three whose leader's words to the faulty rank pass `change`.
Outcome RunWith(WireTap::Change change) {
  std::vector<WireTap::Change> changes(2);
  changes[kFaulty - 1] = std::move(change);
  ThreadGroup group(3, kWatch, std::move(changes));
  group.ranks[kFaulty]->step_timeout = kStepTimeout;
  return RunToFailure(group);
}

void ExpectFoundInStep(const Outcome& outcome, uint64_t step) {
  EXPECT_LT(outcome.executed, step + 1);
  EXPECT_EQ(outcome.cause.rank, kFaulty);
  EXPECT_TRUE(outcome.cause.kind == v1::PROTOCOL_VIOLATED ||
              outcome.cause.kind == v1::DIGEST_MISMATCH ||
              outcome.cause.kind == v1::STEP_OVERDUE ||
              outcome.cause.kind == v1::TOO_FAR_BEHIND)
      << v1::FailureKind_Name(outcome.cause.kind);
  EXPECT_TRUE(
      absl::StrContains(outcome.cause.reason, absl::StrCat("step ", step)) ||
      absl::StrContains(outcome.cause.reason,
                        absl::StrCat("step ", step - 1)) ||
      absl::StrContains(outcome.cause.reason,
                        absl::StrCat("step is ", step - 1)))
      << outcome.cause.reason;
}

TEST(LockstepFaults, AFaultOnTheWireIsFoundBeforeTheStepIsExecuted) {
  for (const WireFault& fault : kWireFaults) {
    SCOPED_TRACE(fault.name);
    bool done = false;
    // Step 1 has all the messages.
    const uint64_t step = fault.kind == Kind::kDigest ? 4 : 1;
    const Outcome outcome = RunWith([&](const WireTap::Part& part) {
      if (done || part.kind != fault.kind || part.step != step) {
        return part.bytes;
      }
      done = true;
      return fault.change(part.bytes);
    });
    ExpectFoundInStep(outcome, step);
    // One digest too many is found with what comes next.
    if (absl::string_view(fault.name) == "digest doubled") continue;
    EXPECT_LT(outcome.executed, step);
  }
}

TEST(LockstepFaults, MessagesInAnotherOrderOnTheWireAreFound) {
  std::string held;
  const Outcome outcome = RunWith([&](const WireTap::Part& part) {
    if (part.kind != Kind::kMessage) return part.bytes;
    if (held.empty()) {
      held = part.bytes;
      return std::string();
    }
    return part.bytes + std::exchange(held, "");
  });
  ExpectFoundInStep(outcome, 1);
  EXPECT_EQ(outcome.executed, 0);
}

// A frame that is lost as a whole leaves a stream without a gap.
TEST(LockstepFaults, AWholeFrameThatIsLostIsFound) {
  const Outcome outcome = RunWith([&](const WireTap::Part& part) {
    const bool is_step = part.kind == Kind::kFrame ||
                         part.kind == Kind::kMessage ||
                         part.kind == Kind::kDigest;
    return is_step && part.step == 5 ? std::string() : part.bytes;
  });
  ExpectFoundInStep(outcome, 5);
  EXPECT_EQ(outcome.cause.kind, v1::PROTOCOL_VIOLATED);
  EXPECT_LE(outcome.executed, 4);
}

// Any bytes of any part, wherever that leaves the reader.
TEST(LockstepFaults, AnyFaultOnTheWireIsFound) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    const uint64_t part_number = random() % 60;
    const uint64_t where = random();
    const int what = random() % 4;
    uint64_t parts = 0;
    uint64_t step = 0;  // of the fault
    const Outcome outcome = RunWith([&](const WireTap::Part& part) {
      const bool is_step =
          part.kind != Kind::kHeartbeat && part.kind != Kind::kFailure;
      if (!is_step || parts++ != part_number) return part.bytes;
      step = part.step;
      std::string bytes = part.bytes;
      const size_t at = where % bytes.size();
      if (what == 0) bytes[at] ^= 1 << (where >> 32) % 8;
      if (what == 1) bytes.erase(at, 1 + (where >> 32) % 20);
      if (what == 2) bytes.insert(at, bytes.substr(0, 1 + (where >> 32) % 20));
      if (what == 3) bytes.resize(at);
      return bytes;
    });
    ExpectFoundInStep(outcome, step);
  }
}

}  // namespace
}  // namespace lockstep
