#pragma once

#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "frontend/http/byte_budget.h"
#include "frontend/http/byte_stream.h"
#include "frontend/http/cross_origin.h"
#include "frontend/http/deadline_timer.h"
#include "frontend/http/exchange.h"
#include "frontend/http/request_gate.h"
#include "frontend/http/request_reader.h"
#include "frontend/http/router.h"
#include "frontend/http/timeouts.h"
#include "frontend/ledger/access_record.h"
#include "frontend/ledger/request_ledger.h"

namespace lockstep::http {

// What the connections of one I/O thread share.
struct SessionContext {
  const Router* router;
  const CrossOrigin* cross_origin;
  RequestLimits limits;
  Timeouts timeouts;
  // A refusal as the answer that clients expect.
  std::function<Response(const Refusal& refusal)> render;
  // Whether a request for a route is refused by its header; null: never.
  std::function<Refusal(const Request& request)> guard;
  ByteBudget* bodies;                       // of requests that are being read
  std::shared_ptr<Exchange::Room> answers;  // null: there is no bound on them
  RequestLedger* ledger;                    // of all requests; may be null
  char* scratch;                            // what is read passes through it
  size_t scratch_bytes;
  bool draining = false;
};

// One connection: requests in, one after the other, and their answers out. A
// read is always pending, so a client that hangs up is noticed at once; an idle
// connection holds no buffer.
//
//   auto session = std::make_shared<Session>(std::move(stream), &context, end);
//   session->Start();
//
// Of one I/O thread. Kept alive by its pending operations; `on_end` is called
// once, when it has closed.
class Session : public std::enable_shared_from_this<Session> {
 public:
  // `client` is its address, for the ledger; `context` must outlive this.
  Session(std::unique_ptr<ByteStream> stream, std::string client,
          SessionContext* context, std::function<void(Session*)> on_end);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void Start();
  // Ends once the answer in progress has gone; at once if it is idle.
  void Drain();
  // The same, and at once too if a request has not come whole.
  void End();
  void Close();

 private:
  using Error = ByteStream::Error;
  enum class Phase {
    kHandshake,
    kIdle,
    kHeader,
    kBody,
    kAnswer,
    kLinger,
    kClosed
  };

  void OnHandshake(const Error& failure);
  void AwaitReadable();
  void OnReadable();
  void Process(absl::string_view bytes);
  // Up to one that is to be answered; the number of bytes used.
  size_t ReadRequests(absl::string_view bytes);
  // Whether the request goes on to its body or its answer.
  bool OnHeader();
  bool TakeBodyBudget();
  void GiveBodyBudget();
  void Dispatch();
  // Answers by itself, and closes: what follows can not be told from the rest.
  // By value: it may be the reader's, which this ends.
  void Refuse(Refusal refusal);
  // Enters the request into the ledger; the result may be null.
  std::shared_ptr<AccessRecord> OpenExchange(bool is_head, bool keep_alive);
  std::shared_ptr<AccessRecord> EnterIntoLedger() const;

  void OnWoken();  // by the exchange
  void Flush();
  void BeginWrite();
  void WriteSome();
  void OnWritten(const Error& failure, size_t bytes);
  void OnAnswered(bool closes);
  void Linger();
  void OnDeadline();

  const std::unique_ptr<ByteStream> stream_;
  const std::string client_;  // its address
  SessionContext* const context_;
  const std::function<void(Session*)> on_end_;
  DeadlineTimer timer_;

  Phase phase_ = Phase::kHandshake;
  bool is_reading_ = false;  // a read is pending
  std::string input_;        // read and not used yet
  std::optional<RequestReader> reader_;
  Admission admission_;
  absl::Time arrived_;
  size_t budgeted_bytes_ = 0;
  bool is_last_ = false;  // the request that is answered: more is ignored
  size_t ignored_bytes_ = 0;

  std::shared_ptr<Exchange> exchange_;
  std::string output_;        // being written
  size_t written_bytes_ = 0;  // of output_
  size_t timed_bytes_ = 0;    // of them, since the time of the write began
  bool counted_ = false;      // output_ is the exchange's
};

}  // namespace lockstep::http
