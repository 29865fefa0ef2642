#include "tests/testing/ranks/thread_group.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "worker/runtime/rank_loop.h"

namespace lockstep::testing {
namespace {

using boost::asio::ip::tcp;

constexpr uint64_t kEpoch = 1;

const GroupFailure::Options kPatient = {.exit_within = absl::InfiniteDuration(),
                                        .last_resort = nullptr};

}  // namespace

const SchedulerOptions ThreadGroup::kScheduler = {.num_pages = 24,
                                                  .page_size = 4,
                                                  .max_step_tokens = 32,
                                                  .max_sequences = 8,
                                                  .max_logits_rows = 64,
                                                  .max_context = 64};

ThreadRank::ThreadRank(int rank, const SchedulerOptions& scheduler,
                       uint32_t vocabulary)
    : rank(rank),
      scheduler(scheduler),
      failure(kPatient),
      engine({.num_pages = scheduler.num_pages,
              .page_size = scheduler.page_size,
              .vocabulary_size = vocabulary}) {}

void ThreadRank::Start(OutputSink* sink,
                       std::function<void(const SchedulerStats&)> on_step_end) {
  thread = std::thread([this, sink, on_step_end] {
    result = RunRankLoop({.rank = rank,
                          .scheduler = scheduler,
                          .source = source.get(),
                          .engine = device == nullptr ? &engine : device.get(),
                          .sink = sink,
                          .failure = &failure,
                          .step_timeout = step_timeout,
                          .on_step_end = on_step_end,
                          .progress = progress,
                          .warm_up_steps = 0});
  });
}

ThreadGroup::ThreadGroup(int size, const PeerWatch::Options& watch,
                         std::vector<WireTap::Change> changes)
    : watch_(watch) {
  changes.resize(size - 1);
  Membership membership;
  membership.epoch = kEpoch;
  membership.io = std::make_unique<IoThread>();
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(
        std::make_unique<ThreadRank>(rank, kScheduler, kVocabulary));
    if (rank == 0) continue;
    membership.links.push_back(
        Connect(membership.io->context(), *ranks.back(), changes[rank - 1]));
  }
  ThreadRank& leader = *ranks[0];
  auto source = std::make_unique<LeaderSource>(std::move(membership), &inbox,
                                               &leader.failure, watch_);
  leader.failure.OnFailure([this, source = source.get()](const auto& cause) {
    inbox.Close(ranks[0]->failure.status());
    source->TellFailure(cause);
  });
  leader.progress = source->progress();
  leader.source = std::make_unique<TappedSource>(std::move(source));
}

ThreadGroup::~ThreadGroup() {
  for (auto& rank : ranks) rank->failure.Disarm();
}

void ThreadGroup::Start() {
  ranks[0]->Start(&outputs, [this](const SchedulerStats& stats) {
    leader_stats = stats;
    if (at_step_end) at_step_end();
    if (stop_when_all_ended_ && HaveAllEnded()) inbox.Stop();
  });
  for (size_t i = 1; i < ranks.size(); ++i) ranks[i]->Start(&silent_, {});
}

void ThreadGroup::StopWhenAllEnded() {
  stop_when_all_ended_ = true;
  Abort(/*number=*/0);  // of nobody: an idle group makes one more step
}

void ThreadGroup::Join() {
  for (auto& rank : ranks) {
    if (rank->thread.joinable()) rank->thread.join();
  }
}

void ThreadGroup::Add(uint64_t number, const std::vector<uint32_t>& prompt,
                      uint32_t max_tokens) {
  v1::AddRequest add;
  add.set_request(number);
  add.mutable_prompt_token_ids()->Assign(prompt.begin(), prompt.end());
  v1::ResolvedSampling& sampling = *add.mutable_sampling();
  sampling.set_top_p(1);
  sampling.set_repetition_penalty(1);
  sampling.set_max_tokens(max_tokens);
  sampling.set_n(1);
  requests.push_back(add);
  // A group that has failed takes none.
  inbox.Add(add).IgnoreError();
}

void ThreadGroup::Abort(uint64_t number) {
  v1::AbortSequences abort;
  abort.set_request(number);
  inbox.Abort(abort);
}

bool ThreadGroup::HaveAllEnded() {
  return std::all_of(requests.begin(), requests.end(), [&](const auto& add) {
    return outputs.finished({.request = add.request()});
  });
}

tcp::socket ThreadGroup::Connect(boost::asio::io_context& leader,
                                 ThreadRank& follower,
                                 const WireTap::Change& change) {
  Membership membership;
  membership.epoch = kEpoch;
  membership.io = std::make_unique<IoThread>();
  boost::asio::io_context& context = membership.io->context();
  tcp::socket leaders_end(leader);
  if (change) {
    taps_.push_back(std::make_unique<WireTap>(change));
    leaders_end = taps_.back()->ConnectLeader(leader);
    membership.links.push_back(taps_.back()->ConnectFollower(context));
    taps_.back()->Start();
  } else {
    tcp::acceptor acceptor(
        leader, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
    tcp::socket socket(context);
    socket.connect(acceptor.local_endpoint());
    membership.links.push_back(std::move(socket));
    leaders_end = acceptor.accept();
  }
  auto source = std::make_unique<FollowerSource>(
      follower.rank, std::move(membership), &follower.failure,
      FollowerSource::Options{.watch = watch_});
  follower.failure.OnFailure([source = source.get()](const auto& cause) {
    source->TellFailure(cause);
  });
  follower.progress = source->progress();
  follower.source = std::make_unique<TappedSource>(std::move(source));
  return leaders_end;
}

}  // namespace lockstep::testing
