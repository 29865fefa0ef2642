#include "hub/download_progress.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/time/clock.h>

#include <utility>

namespace lockstep {

std::string ByteSizeText(int64_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? absl::StrCat(bytes, " bytes")
                   : absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

DownloadProgress::DownloadProgress(std::string what, int64_t all_bytes,
                                   Tell tell, absl::Duration every)
    : what_(std::move(what)),
      all_bytes_(all_bytes),
      tell_(std::move(tell)),
      every_(every),
      begin_(absl::Now()),
      told_(begin_) {}

void DownloadProgress::Skip(int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  skipped_bytes_ += bytes;
}

void DownloadProgress::Add(int64_t bytes) {
  std::string text;
  {
    absl::MutexLock lock(&mutex_);
    bytes_ += bytes;
    const absl::Time now = absl::Now();
    if (tell_ == nullptr || now < told_ + every_) return;
    told_ = now;
    text = Text();
  }
  tell_(text);
}

std::string DownloadProgress::Text() const {
  const int64_t there = skipped_bytes_ + bytes_;
  const double seconds = absl::ToDoubleSeconds(told_ - begin_);
  const auto speed = static_cast<int64_t>(bytes_ / (seconds > 0 ? seconds : 1));
  return absl::StrCat(what_, ": ", ByteSizeText(there), " of ",
                      ByteSizeText(all_bytes_), ", ",
                      all_bytes_ > 0 ? 100 * there / all_bytes_ : 100, "%, ",
                      ByteSizeText(speed), "/s");
}

}  // namespace lockstep
