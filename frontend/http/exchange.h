#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "frontend/http/byte_budget.h"
#include "frontend/http/message.h"
#include "frontend/http/response_writer.h"
#include "frontend/ledger/access_record.h"

namespace lockstep::http {

// A client may lag behind by this much; then its answer waits for it.
inline constexpr size_t kMaxBufferedBytes = 256 << 10;

// One answer on its way from the handler's threads to the connection's: bytes,
// framed as HTTP wants them, in a bounded buffer.
//
//   auto exchange = std::make_shared<Exchange>(facts, [this] { PostFlush(); });
//   handle(request, Exchange::WriterOf(exchange));
//   …on the I/O thread, woken:
//   Exchange::Output output = exchange->Take();
//
// Two own it: the connection until it is closed or the answer has gone, the
// handler until it has nothing more to say. Any thread.
class Exchange : public ResponseWriter {
 public:
  // A bound on answers that are held as a whole, of those above
  // kMaxBufferedBytes, which each may have.
  struct Room {
    Room(size_t bytes, Response when_full)
        : budget(bytes), full(std::move(when_full)) {}

    ByteBudget budget;
    const Response full;  // in the place of one that it has no room for
  };

  struct Facts {
    int version = 11;
    bool is_head = false;    // the answer has no body
    bool keep_alive = true;  // if the answer allows it
    std::string request_id;
    Fields fields = {};  // of the answer, besides the handler's
    // Is told the status; may be null.
    std::shared_ptr<AccessRecord> access = nullptr;
    std::shared_ptr<Room> room = nullptr;  // null: there is no bound
  };

  // `wake` is called with the lock held whenever there may be something to
  // Take, or somebody to resume, not after Detach: it only posts.
  Exchange(Facts facts, std::function<void()> wake);
  ~Exchange() override;

  // For the handler; answers 500 if it is dropped without an answer.
  static std::shared_ptr<ResponseWriter> WriterOf(
      std::shared_ptr<Exchange> exchange);

  void Send(Response response) override;
  bool Hold(size_t bytes) override;
  void StartStream(Response head, std::string keep_alive) override;
  void Write(absl::string_view bytes) override;
  void End(After after) override;
  void AwaitRoom(std::function<void()> resume) override;
  void OnGone(std::function<void()> gone) override;

  // The connection's side, all from its thread.

  struct Output {
    std::string bytes;  // to be written
    bool is_last = false;
    bool closes = false;  // the connection, behind the last
  };
  // Whoever waits for room in an answer that has ended waits for nothing. On
  // each wake, also while the client takes nothing.
  void ResumeIfEnded();
  // What waits to be written; counted as buffered until OnWritten.
  Output Take();
  void OnWritten(size_t bytes);
  // Whether a stream is open and has nothing to write; then this adds what
  // keeps it alive.
  bool KeepAlive();
  // No answer keeps the connection any more.
  void CloseAfter();
  // The client has gone, or has got all of the answer; no wake after it.
  void Detach();

 private:
  void AddFields(Response* response) const;
  bool HoldLocked(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteStatus(int status);
  void Append(absl::string_view bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AppendFramed(absl::string_view bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return detached_ || ended_ ||
           pending_.size() + in_flight_bytes_ < kMaxBufferedBytes;
  }
  void OnDropped();

  const Facts facts_;
  const std::function<void()> wake_;

  absl::Mutex mutex_;
  std::string pending_ ABSL_GUARDED_BY(mutex_);
  size_t in_flight_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t held_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // taken from the budget
  bool keep_alive_ ABSL_GUARDED_BY(mutex_);
  bool chunked_ ABSL_GUARDED_BY(mutex_) = false;
  std::string keep_alive_bytes_ ABSL_GUARDED_BY(mutex_);
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool detached_ ABSL_GUARDED_BY(mutex_) = false;
  bool awake_ ABSL_GUARDED_BY(mutex_) = false;  // woken since the last Take
  bool gone_ ABSL_GUARDED_BY(mutex_) = false;   // before the answer had ended
  std::vector<std::function<void()>> resumes_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> on_gone_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::http
