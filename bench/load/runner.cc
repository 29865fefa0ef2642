#include "bench/load/runner.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

namespace lockstep::bench {
namespace {

double SecondsBetween(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

Clock::time_point After(Clock::time_point start, double seconds) {
  return start + std::chrono::duration_cast<Clock::duration>(
                     std::chrono::duration<double>(seconds));
}

// A dialogue, and the request of its that waits or runs.
class Speaker : public Listener {
 public:
  // What it tells of itself: it has ended, and whether it says more.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual double NowS() const = 0;
    virtual void OnGap(double due_s, double seconds) = 0;
    virtual void OnAnswer(Speaker* speaker, Record record) = 0;
  };

  Speaker(const DialogueOptions& options, uint64_t number,
          const Arrival& arrival, double due_s, Owner* owner)
      : dialogue_(options, number, arrival), due_s_(due_s), owner_(owner) {}

  double due_s() const { return due_s_; }
  bool has_more() const { return dialogue_.has_more() && !failed_; }
  void set_due_s(double due_s) { due_s_ = due_s; }

  void Ask(Transport& transport) {
    const Prompt prompt = dialogue_.NextPrompt(answer_);
    answer_.clear();
    record_ = {.due_s = due_s_,
               .prompt_tokens = static_cast<int>(prompt.ids.size())};
    transport.Start(prompt, this);
  }

  void OnTokens(absl::Span<const uint32_t> ids) override {
    const double now_s = owner_->NowS();
    if (record_.tokens == 0) {
      record_.first_s = now_s;
    } else {
      owner_->OnGap(due_s_, now_s - last_s_);
    }
    last_s_ = now_s;
    record_.tokens += ids.size();
    answer_.insert(answer_.end(), ids.begin(), ids.end());
  }

  void OnEnd(const absl::Status& status) override {
    record_.end_s =
        status.ok() && record_.tokens > 0 ? last_s_ : owner_->NowS();
    failed_ = !status.ok();
    if (failed_) record_.error = absl::StatusCodeToString(status.code());
    owner_->OnAnswer(this, std::move(record_));
  }

 private:
  Dialogue dialogue_;
  double due_s_;
  Owner* const owner_;
  bool failed_ = false;
  Record record_;
  double last_s_ = 0;  // of the last tokens
  std::vector<uint32_t> answer_;
};

class Load : public Speaker::Owner {
 public:
  Load(const RunOptions& options, Transport& transport)
      : options_(options), transport_(transport), start_(transport.Now()) {}

  LoadRun Execute() {
    if (options_.arrivals.empty()) {
      for (int i = 0; i < options_.clients; ++i) Arrive({});
    }
    while (BeginDue() || !running_.empty() || !waiting_.empty()) {
      transport_.HandleOne(NextDue());
    }
    run_.seconds = NowS();
    std::stable_sort(
        run_.records.begin(), run_.records.end(),
        [](const Record& a, const Record& b) { return a.due_s < b.due_s; });
    return std::move(run_);
  }

 private:
  struct IsDueLater {
    bool operator()(const std::unique_ptr<Speaker>& a,
                    const std::unique_ptr<Speaker>& b) const {
      return a->due_s() > b->due_s();
    }
  };

  double NowS() const override {
    return SecondsBetween(start_, transport_.Now());
  }

  bool IsOver(double seconds) const {
    return transport_.Now() >= After(start_, seconds);
  }

  void Arrive(const Arrival& arrival) {
    const bool is_open = !options_.arrivals.empty();
    Wait(std::make_unique<Speaker>(options_.dialogues, begun_++, arrival,
                                   is_open ? arrival.at_s : NowS(), this));
  }

  void Wait(std::unique_ptr<Speaker> speaker) {
    waiting_.push_back(std::move(speaker));
    std::push_heap(waiting_.begin(), waiting_.end(), IsDueLater());
  }

  Clock::time_point NextDue() const {
    double next_s = -1;
    if (arrived_ < options_.arrivals.size()) {
      next_s = options_.arrivals[arrived_].at_s;
    }
    if (!waiting_.empty() &&
        (next_s < 0 || waiting_.front()->due_s() < next_s)) {
      next_s = waiting_.front()->due_s();
    }
    return next_s < 0 ? Clock::time_point::max() : After(start_, next_s);
  }

  // Whether more are to arrive.
  bool BeginDue() {
    while (arrived_ < options_.arrivals.size() &&
           IsOver(options_.arrivals[arrived_].at_s)) {
      Arrive(options_.arrivals[arrived_++]);
    }
    while (!waiting_.empty() && IsOver(waiting_.front()->due_s())) {
      std::pop_heap(waiting_.begin(), waiting_.end(), IsDueLater());
      Speaker* speaker = waiting_.back().get();
      running_.emplace(speaker, std::move(waiting_.back()));
      waiting_.pop_back();
      speaker->Ask(transport_);
    }
    return arrived_ < options_.arrivals.size();
  }

  void OnGap(double due_s, double seconds) override {
    if (due_s >= options_.warmup_s) run_.inter_token.Record(seconds);
  }

  void OnAnswer(Speaker* speaker, Record record) override {
    auto running = running_.extract(speaker);
    std::unique_ptr<Speaker> owned = std::move(running.mapped());
    if (record.due_s >= options_.warmup_s) {
      run_.records.push_back(std::move(record));
    }
    if (owned->has_more()) {
      owned->set_due_s(NowS() + options_.dialogues.think_s);
      Wait(std::move(owned));
    } else if (options_.arrivals.empty() && NowS() < options_.seconds) {
      Arrive({});
    }
  }

  const RunOptions& options_;
  Transport& transport_;
  const Clock::time_point start_;
  size_t arrived_ = 0;
  uint64_t begun_ = 0;
  std::map<Speaker*, std::unique_ptr<Speaker>> running_;
  // A heap, the first due first.
  std::vector<std::unique_ptr<Speaker>> waiting_;
  LoadRun run_;
};

}  // namespace

LoadRun RunLoad(const RunOptions& options, Transport& transport) {
  return Load(options, transport).Execute();
}

}  // namespace lockstep::bench
