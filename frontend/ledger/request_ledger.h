#pragma once

#include <absl/strings/string_view.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "frontend/ledger/access_log.h"
#include "frontend/ledger/access_record.h"

namespace lockstep {

// The book of all requests, whatever they ask for and by whichever protocol:
// each is entered when it has arrived and, at its end, counted and written into
// the access log.
//
//   RequestLedger ledger(std::move(access_log));
//   const std::shared_ptr<AccessRecord> record = ledger.Begin({…});
//   record->SetHttpStatus(200);
//
// A request has ended when the last of those who hold its record lets go: the
// connection, and whoever answers. Any thread. A record may outlive the ledger,
// as its holders are let go of when no gateway waits for them any more.
class RequestLedger {
 public:
  // Lines of requests that were refused for their API key, or for the lack of
  // one: who guesses keys is not to fill the disk.
  static constexpr int kMostRefusedKeysAMinute = 600;

  using Clock = std::function<absl::Time()>;

  // `log` may be null; then nothing is written.
  explicit RequestLedger(std::unique_ptr<AccessLog> log,
                         Clock clock = absl::Now);

  std::shared_ptr<AccessRecord> Begin(AccessRecord::Request request);

  // Requests that have ended, by route and code. As many as there are routes
  // and codes, whatever clients send.
  using Counts = std::map<std::pair<std::string, std::string>, uint64_t>;
  Counts counts(absl::string_view surface) const;

  const AccessLog* log() const;  // may be null
  // Lines that were not given to it, as there were too many of refused keys.
  uint64_t withheld() const;

 private:
  struct Book;

  const std::shared_ptr<Book> book_;  // each record's, too
};

}  // namespace lockstep
