#include "frontend/http/exchange.h"

#include <absl/strings/str_cat.h>

#include <ctime>
#include <utility>

#include "frontend/http/response_head.h"

namespace lockstep::http {

Exchange::Exchange(Facts facts, std::function<void()> wake)
    : facts_(std::move(facts)),
      wake_(std::move(wake)),
      keep_alive_(facts_.keep_alive) {}

Exchange::~Exchange() {
  if (facts_.room != nullptr) facts_.room->budget.Give(held_bytes_);
}

std::shared_ptr<ResponseWriter> Exchange::WriterOf(
    std::shared_ptr<Exchange> exchange) {
  ResponseWriter* const writer = exchange.get();
  return {writer, [exchange = std::move(exchange)](ResponseWriter*) {
            exchange->OnDropped();
          }};
}

void Exchange::AddFields(Response* response) const {
  response->fields.insert(response->fields.end(), facts_.fields.begin(),
                          facts_.fields.end());
}

void Exchange::Send(Response response) {
  std::function<void()> dropped;
  absl::MutexLock lock(&mutex_);
  if (started_) return;
  if (!facts_.is_head && !HoldLocked(response.body.size())) {
    response = facts_.room->full;
  }
  AddFields(&response);
  started_ = ended_ = true;
  NoteStatus(response.status);
  dropped = std::exchange(on_gone_, nullptr);
  Framing framing;
  framing.content_length = response.body.size();
  if (response.status == 204) framing.content_length.reset();
  framing.keep_alive = keep_alive_;
  Append(FormatHead(response, framing, facts_.request_id, std::time(nullptr)));
  if (!facts_.is_head) Append(response.body);
}

bool Exchange::Hold(size_t bytes) {
  absl::MutexLock lock(&mutex_);
  return HoldLocked(bytes);
}

bool Exchange::HoldLocked(size_t bytes) {
  if (facts_.room == nullptr || detached_) return true;
  if (bytes <= kMaxBufferedBytes + held_bytes_) return true;
  const size_t more = bytes - kMaxBufferedBytes - held_bytes_;
  if (!facts_.room->budget.TryTake(more)) return false;
  held_bytes_ += more;
  return true;
}

void Exchange::StartStream(Response head, std::string keep_alive) {
  AddFields(&head);
  absl::MutexLock lock(&mutex_);
  if (started_) return;
  started_ = true;
  NoteStatus(head.status);
  Framing framing;
  framing.chunked = chunked_ = facts_.version >= 11;
  keep_alive_ = framing.keep_alive = keep_alive_ && chunked_;
  keep_alive_bytes_ = std::move(keep_alive);
  Append(FormatHead(head, framing, facts_.request_id, std::time(nullptr)));
}

void Exchange::Write(absl::string_view bytes) {
  absl::MutexLock lock(&mutex_);
  if (started_ && !ended_) AppendFramed(bytes);
}

void Exchange::End(After after) {
  std::function<void()> dropped;  // outlives the lock
  absl::MutexLock lock(&mutex_);
  if (!started_ || ended_) return;
  ended_ = true;
  dropped = std::exchange(on_gone_, nullptr);
  if (after == After::kCloseConnection) keep_alive_ = false;
  Append(chunked_ && !facts_.is_head ? "0\r\n\r\n" : "");
  // Not from here, as they may call whoever ends it.
  if (!resumes_.empty() && !detached_) wake_();
}

void Exchange::AwaitRoom(std::function<void()> resume) {
  {
    absl::MutexLock lock(&mutex_);
    if (!HasRoom()) {
      resumes_.push_back(std::move(resume));
      return;
    }
  }
  resume();
}

void Exchange::OnGone(std::function<void()> gone) {
  {
    absl::MutexLock lock(&mutex_);
    if (ended_) return;
    if (!gone_) {
      on_gone_ = std::move(gone);
      return;
    }
  }
  gone();
}

void Exchange::ResumeIfEnded() {
  std::vector<std::function<void()>> resumes;
  {
    absl::MutexLock lock(&mutex_);
    if (!ended_) return;
    resumes.swap(resumes_);
  }
  for (const auto& resume : resumes) resume();
}

Exchange::Output Exchange::Take() {
  absl::MutexLock lock(&mutex_);
  awake_ = false;
  Output output;
  output.bytes = std::exchange(pending_, "");
  in_flight_bytes_ += output.bytes.size();
  output.is_last = ended_;
  output.closes = !keep_alive_;
  return output;
}

void Exchange::OnWritten(size_t bytes) {
  std::vector<std::function<void()>> resumes;
  {
    absl::MutexLock lock(&mutex_);
    in_flight_bytes_ -= bytes;
    if (HasRoom()) resumes.swap(resumes_);
  }
  for (const auto& resume : resumes) resume();
}

bool Exchange::KeepAlive() {
  absl::MutexLock lock(&mutex_);
  if (!started_ || ended_ || !pending_.empty()) return false;
  AppendFramed(keep_alive_bytes_);
  return true;
}

void Exchange::CloseAfter() {
  absl::MutexLock lock(&mutex_);
  keep_alive_ = false;
}

void Exchange::Detach() {
  std::vector<std::function<void()>> resumes;
  std::function<void()> gone;
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(detached_, true)) return;
    gone_ = !ended_;
    if (!started_) NoteStatus(AccessRecord::kClientGone);
    pending_.clear();
    resumes.swap(resumes_);
    if (facts_.room != nullptr) {
      facts_.room->budget.Give(std::exchange(held_bytes_, 0));
    }
    gone = std::exchange(on_gone_, nullptr);
  }
  if (gone != nullptr) gone();
  for (const auto& resume : resumes) resume();
}

void Exchange::NoteStatus(int status) {
  if (facts_.access != nullptr) facts_.access->SetHttpStatus(status);
}

void Exchange::Append(absl::string_view bytes) {
  if (detached_) return;
  pending_.append(bytes.data(), bytes.size());
  if (!std::exchange(awake_, true)) wake_();
}

void Exchange::AppendFramed(absl::string_view bytes) {
  if (bytes.empty() || facts_.is_head) return;
  if (!chunked_) return Append(bytes);
  Append(absl::StrCat(absl::Hex(bytes.size()), "\r\n", bytes, "\r\n"));
}

void Exchange::OnDropped() {
  bool started = false;
  {
    absl::MutexLock lock(&mutex_);
    started = started_;
  }
  if (started) {
    End(After::kCloseConnection);
  } else {
    Send({500, {}, ""});
  }
}

}  // namespace lockstep::http
