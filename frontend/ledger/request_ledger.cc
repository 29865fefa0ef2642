#include "frontend/ledger/request_ledger.h"

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/clock.h>

namespace lockstep {

struct RequestLedger::Book {
  explicit Book(std::unique_ptr<AccessLog> log) : log(std::move(log)) {}

  void Close(const AccessRecord& record) {
    const AccessRecord::Request& request = record.request();
    std::string code = record.code();
    {
      absl::MutexLock lock(&mutex);
      ++counts[std::string(request.surface)][{request.route, std::move(code)}];
    }
    if (log != nullptr) log->Write(record.ToJson(absl::Now()));
  }

  const std::unique_ptr<AccessLog> log;
  absl::Mutex mutex;
  std::map<std::string, Counts> counts ABSL_GUARDED_BY(mutex);  // a surface
};

RequestLedger::RequestLedger(std::unique_ptr<AccessLog> log)
    : book_(std::make_shared<Book>(std::move(log))) {}

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

}  // namespace lockstep
