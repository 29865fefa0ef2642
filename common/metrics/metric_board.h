#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <prometheus/metric_family.h>

#include <functional>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "common/metrics/metric_writer.h"

namespace lockstep {

// The metrics of a program: its table, and the parts of it that know their
// values. Nothing is counted here; parts count by themselves, in atomics, and
// are asked at each scrape.
//
//   MetricBoard board(GatewayMetrics());
//   const MetricBoard::Registration registration =
//       board.Register([this](MetricWriter& writer) { Collect(writer); });
//   board.Text();
//
// Any thread. The lock is held by those who scrape, register and leave alone.
class MetricBoard {
 public:
  // Called by whoever scrapes; must not block, nor register.
  using Source = std::function<void(MetricWriter& writer)>;

  // While it lives the source is asked; once destroyed, it does not run.
  class Registration {
   public:
    Registration() = default;
    Registration(Registration&& other) noexcept
        : board_(std::exchange(other.board_, nullptr)), at_(other.at_) {}
    Registration& operator=(Registration&& other) noexcept {
      std::swap(board_, other.board_);
      std::swap(at_, other.at_);
      return *this;
    }
    ~Registration() {
      if (board_ != nullptr) board_->Leave(at_);
    }

   private:
    friend class MetricBoard;
    Registration(MetricBoard* board, std::list<Source>::iterator at)
        : board_(board), at_(at) {}

    MetricBoard* board_ = nullptr;
    std::list<Source>::iterator at_;
  };

  explicit MetricBoard(std::vector<MetricInfo> table)
      : table_(std::move(table)) {}

  // Must not outlive the board.
  [[nodiscard]] Registration Register(Source source);

  // In the order of the table, with the families nobody knows a value of.
  std::vector<prometheus::MetricFamily> Collect() const;
  // As Prometheus reads it, of the media type kMetricsMediaType.
  std::string Text() const;

 private:
  void Leave(std::list<Source>::iterator at);

  const std::vector<MetricInfo> table_;
  mutable absl::Mutex mutex_;
  std::list<Source> sources_ ABSL_GUARDED_BY(mutex_);
};

inline constexpr char kMetricsMediaType[] =
    "text/plain; version=0.0.4; charset=utf-8";

}  // namespace lockstep
