#include "frontend/ledger/request_ledger.h"

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include "frontend/access/minute_budget.h"

namespace lockstep {

struct RequestLedger::Book {
  Book(std::unique_ptr<AccessLog> log, Clock clock)
      : log(std::move(log)), clock(std::move(clock)) {
    refused_keys.SetRate(kMostRefusedKeysAMinute);
  }

  void Close(const AccessRecord& record) {
    const AccessRecord::Request& request = record.request();
    const std::string code = record.code();
    const absl::Time now = clock();
    {
      absl::MutexLock lock(&mutex);
      ++counts[std::string(request.surface)][{request.route, code}];
      if (IsOfRefusedKey(code) && !MayWriteRefusedKey(now)) return;
    }
    if (log != nullptr) log->Write(record.ToJson(now));
  }

  static bool IsOfRefusedKey(absl::string_view code) {
    return code == "401" || code == "UNAUTHENTICATED";
  }

  bool MayWriteRefusedKey(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const bool may = refused_keys.Wait(now) == absl::ZeroDuration();
    if (may) {
      refused_keys.Spend(1, now);
    } else {
      ++withheld;
    }
    return may;
  }

  const std::unique_ptr<AccessLog> log;
  const Clock clock;
  absl::Mutex mutex;
  MinuteBudget refused_keys ABSL_GUARDED_BY(mutex);
  uint64_t withheld ABSL_GUARDED_BY(mutex) = 0;
  std::map<std::string, Counts> counts ABSL_GUARDED_BY(mutex);  // a surface
};

RequestLedger::RequestLedger(std::unique_ptr<AccessLog> log, Clock clock)
    : book_(std::make_shared<Book>(std::move(log), std::move(clock))) {}

std::shared_ptr<AccessRecord> RequestLedger::Begin(
    AccessRecord::Request request) {
  return {new AccessRecord(std::move(request)),
          [book = book_](AccessRecord* record) {
            const std::unique_ptr<AccessRecord> owned(record);
            book->Close(*owned);
          }};
}

RequestLedger::Counts RequestLedger::counts(absl::string_view surface) const {
  absl::MutexLock lock(&book_->mutex);
  const auto found = book_->counts.find(std::string(surface));
  return found == book_->counts.end() ? Counts() : found->second;
}

const AccessLog* RequestLedger::log() const { return book_->log.get(); }

uint64_t RequestLedger::withheld() const {
  absl::MutexLock lock(&book_->mutex);
  return book_->withheld;
}

}  // namespace lockstep
