#include "frontend/http/session.h"

#include <absl/strings/match.h>
#include <absl/strings/str_join.h>
#include <absl/time/clock.h>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <utility>
#include <vector>

#include "common/request_id.h"
#include "common/tracing/trace_context.h"

namespace lockstep::http {
namespace {

// Of requests that a client sends before it has read the answer to the first.
constexpr size_t kMaxAheadBytes = 64 << 10;
// Of what a client sends that gets no answer: one that is refused, until it
// reads why.
constexpr size_t kMaxIgnoredBytes = 1 << 20;

// The values of all fields of a name, as one list. Two of traceparent are none
// then, as they should be.
std::string Join(const Request& request, absl::string_view name) {
  std::vector<absl::string_view> values;
  for (const auto& [key, value] : request.fields) {
    if (absl::EqualsIgnoreCase(key, name)) values.push_back(value);
  }
  return absl::StrJoin(values, ",");
}

}  // namespace

Session::Session(std::unique_ptr<ByteStream> stream, std::string client,
                 SessionContext* context, std::function<void(Session*)> on_end)
    : stream_(std::move(stream)),
      client_(std::move(client)),
      context_(context),
      on_end_(std::move(on_end)),
      timer_(stream_->executor()) {}

Session::~Session() { GiveBodyBudget(); }

void Session::Start() {
  timer_.Start([this] { return shared_from_this(); }, [this] { OnDeadline(); });
  timer_.Set(context_->timeouts.handshake);
  stream_->Handshake([self = shared_from_this()](const Error& failure) {
    self->OnHandshake(failure);
  });
}

void Session::OnHandshake(const Error& failure) {
  if (phase_ == Phase::kClosed) return;
  if (failure) return Close();
  phase_ = Phase::kIdle;
  timer_.Set(context_->timeouts.idle);
  AwaitReadable();
}

void Session::Drain() {
  if (phase_ == Phase::kHandshake || phase_ == Phase::kIdle) return Close();
  if (exchange_ != nullptr) exchange_->CloseAfter();
}

void Session::End() {
  if (exchange_ == nullptr && phase_ != Phase::kLinger) return Close();
  Drain();
}

void Session::Close() {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  const auto self = shared_from_this();
  if (const auto exchange = std::exchange(exchange_, nullptr)) {
    exchange->Detach();
  }
  timer_.Stop();
  stream_->Close();
  reader_.reset();
  GiveBodyBudget();
  on_end_(this);
}

void Session::AwaitReadable() {
  if (is_reading_ || phase_ == Phase::kClosed) return;
  is_reading_ = true;
  stream_->AwaitReadable([self = shared_from_this()](const Error& failure) {
    self->is_reading_ = false;
    if (self->phase_ == Phase::kClosed) return;
    if (failure) return self->Close();
    self->OnReadable();
  });
}

void Session::OnReadable() {
  Error failure;
  const size_t size =
      stream_->ReadSome(context_->scratch, context_->scratch_bytes, &failure);
  if (failure == boost::asio::error::would_block) return AwaitReadable();
  if (failure) return Close();  // the client has gone, or will send no more
  const absl::string_view bytes(context_->scratch, size);
  if (phase_ == Phase::kLinger || (phase_ == Phase::kAnswer && is_last_)) {
    ignored_bytes_ += size;
    if (ignored_bytes_ > kMaxIgnoredBytes) return Close();
  } else if (phase_ == Phase::kAnswer) {
    input_.append(bytes.data(), bytes.size());
    // Not read any further, it could leave unnoticed.
    if (input_.size() > kMaxAheadBytes) return Close();
  } else if (input_.empty()) {
    Process(bytes);
  } else {
    const std::string joined =
        std::exchange(input_, "").append(bytes.data(), bytes.size());
    Process(joined);
  }
  AwaitReadable();
}

void Session::Process(absl::string_view bytes) {
  const size_t used = ReadRequests(bytes);
  input_.append(bytes.data() + used, bytes.size() - used);
}

size_t Session::ReadRequests(const absl::string_view all) {
  absl::string_view bytes = all;
  while (!bytes.empty()) {
    if (phase_ == Phase::kIdle) {
      phase_ = Phase::kHeader;
      admission_ = {};
      arrived_ = absl::Now();
      reader_.emplace(context_->limits);
      timer_.Set(context_->timeouts.header);
    }
    const size_t used = reader_->Put(bytes);
    bytes.remove_prefix(used);
    if (reader_->refusal().status != 0) {
      Refuse(reader_->refusal());
      break;
    }
    if (phase_ == Phase::kHeader && reader_->has_header()) {
      if (!OnHeader()) break;
    } else if (used == 0) {
      break;
    }
    if (!TakeBodyBudget()) break;
    if (reader_->is_complete()) {
      Dispatch();
      break;
    }
  }
  return all.size() - bytes.size();
}

bool Session::OnHeader() {
  admission_ = Admit(*reader_, *context_->router);
  if (admission_.refusal.status == 0 && admission_.route != nullptr &&
      context_->guard != nullptr) {
    admission_.refusal = context_->guard(reader_->request());
  }
  if (admission_.refusal.status != 0) {
    Refuse(admission_.refusal);
    return false;
  }
  if (!reader_->has_body()) return true;
  phase_ = Phase::kBody;
  timer_.Set(context_->timeouts.body);
  if (reader_->expects_continue()) {
    output_ += "HTTP/1.1 100 Continue\r\n\r\n";
    BeginWrite();
  }
  return true;
}

bool Session::TakeBodyBudget() {
  const size_t more = reader_->body_bytes() - budgeted_bytes_;
  if (context_->bodies->TryTake(more)) {
    budgeted_bytes_ += more;
    return true;
  }
  Refuse({503,
          "the server reads too many large requests already; try again "
          "later."});
  return false;
}

void Session::GiveBodyBudget() {
  context_->bodies->Give(std::exchange(budgeted_bytes_, 0));
}

void Session::Dispatch() {
  const Request& head = reader_->request();
  Fields preflight;
  if (admission_.route == nullptr) {
    preflight = context_->cross_origin->PreflightFields(head, admission_.allow);
  }
  auto access = OpenExchange(head.method == "HEAD", !reader_->wants_close());
  const auto writer = Exchange::WriterOf(exchange_);
  Request request = reader_->TakeRequest();
  request.request_id = admission_.request_id;
  request.wildcard = std::move(admission_.wildcard);
  request.access = std::move(access);
  reader_.reset();
  GiveBodyBudget();
  if (admission_.route == nullptr) {
    preflight.emplace_back("allow", admission_.allow);
    return writer->Send({204, std::move(preflight), ""});
  }
  admission_.route->handle(std::move(request), writer);
}

void Session::Refuse(Refusal refusal) {
  const bool is_head =
      reader_->has_header() && reader_->request().method == "HEAD";
  // A refusal by the header leaves nothing unread where there is no body.
  const bool keep_alive = (refusal.status == 401 || refusal.status == 404 ||
                           refusal.status == 405) &&
                          reader_->refusal().status == 0 &&
                          !reader_->has_body() && !reader_->wants_close();
  OpenExchange(is_head, keep_alive);
  reader_.reset();
  GiveBodyBudget();
  Response response = context_->render(refusal);
  if (refusal.status == 405) {
    response.fields.emplace_back("allow", admission_.allow);
  }
  exchange_->Send(std::move(response));
}

std::shared_ptr<AccessRecord> Session::OpenExchange(bool is_head,
                                                    bool keep_alive) {
  phase_ = Phase::kAnswer;
  is_last_ = !keep_alive || context_->draining;
  if (output_.empty()) timer_.Clear();  // else it is the write's
  Exchange::Facts facts;
  facts.version = reader_->has_header() ? reader_->version() : 11;
  facts.is_head = is_head;
  facts.keep_alive = !is_last_;
  if (admission_.request_id.empty()) {
    admission_.request_id = MakeRequestId("req");
  }
  facts.request_id = admission_.request_id;
  if (reader_->has_header()) {
    facts.fields = context_->cross_origin->AnswerFields(reader_->request());
  }
  facts.access = EnterIntoLedger();
  facts.room = context_->answers;
  const std::shared_ptr<AccessRecord> access = facts.access;
  const auto wake = [executor = stream_->executor(), weak = weak_from_this()] {
    boost::asio::post(executor, [weak] {
      if (const auto session = weak.lock()) session->OnWoken();
    });
  };
  exchange_ = std::make_shared<Exchange>(std::move(facts), wake);
  return access;
}

std::shared_ptr<AccessRecord> Session::EnterIntoLedger() const {
  if (context_->ledger == nullptr) return nullptr;
  AccessRecord::Request entry;
  entry.surface = "http";
  entry.route = admission_.route == nullptr ? "none" : admission_.route->path;
  entry.client = client_;
  entry.request_id = admission_.request_id;
  entry.arrived = arrived_;
  std::string traceparent, tracestate;
  if (reader_->has_header()) {
    const Request& request = reader_->request();
    entry.method = request.method;
    traceparent = Join(request, "traceparent");
    tracestate = Join(request, "tracestate");
  }
  entry.trace = ContinueTrace(traceparent, tracestate);
  return context_->ledger->Begin(std::move(entry));
}

void Session::OnWoken() {
  // It may be let go of meanwhile.
  if (const auto exchange = exchange_) exchange->ResumeIfEnded();
  Flush();
}

void Session::Flush() {
  if (!output_.empty() || exchange_ == nullptr) return;
  Exchange::Output output = exchange_->Take();
  if (output.bytes.empty()) {
    if (output.is_last) OnAnswered(output.closes);
    return;
  }
  output_ = std::move(output.bytes);
  counted_ = true;
  BeginWrite();
}

void Session::BeginWrite() {
  timed_bytes_ = 0;
  timer_.Set(context_->timeouts.write);
  WriteSome();
}

void Session::WriteSome() {
  stream_->WriteSome(
      absl::string_view(output_).substr(written_bytes_),
      [self = shared_from_this()](const Error& failure, size_t bytes) {
        self->OnWritten(failure, bytes);
      });
}

void Session::OnWritten(const Error& failure, size_t bytes) {
  if (phase_ == Phase::kClosed) return;
  if (failure) return Close();
  written_bytes_ += bytes;
  timed_bytes_ += bytes;
  if (counted_) exchange_->OnWritten(bytes);
  if (phase_ == Phase::kClosed) return;
  if (written_bytes_ < output_.size()) {
    // One that takes less is as good as gone.
    if (timed_bytes_ >= context_->timeouts.least_write_bytes) {
      return BeginWrite();
    }
    return WriteSome();
  }
  output_.clear();
  written_bytes_ = 0;
  counted_ = false;
  timer_.Set(phase_ == Phase::kAnswer ? context_->timeouts.keep_alive
                                      : context_->timeouts.body);
  Flush();
}

void Session::OnAnswered(bool closes) {
  std::exchange(exchange_, nullptr)->Detach();
  if (closes || context_->draining) return Linger();
  phase_ = Phase::kIdle;
  timer_.Set(context_->timeouts.idle);
  const std::string ahead = std::exchange(input_, "");
  Process(ahead);
  AwaitReadable();
}

void Session::Linger() {
  phase_ = Phase::kLinger;
  timer_.Set(context_->timeouts.linger);
  input_.clear();
  Error failure;
  stream_->ShutdownSend(&failure);
  if (failure) return Close();
  AwaitReadable();
}

void Session::OnDeadline() {
  if (!output_.empty()) return Close();  // it reads nothing any more
  switch (phase_) {
    case Phase::kHeader:
      return Refuse({408, "the header of the request did not come in time."});
    case Phase::kBody:
      return Refuse({408, "the body of the request did not come in time."});
    case Phase::kAnswer:
      if (exchange_->KeepAlive()) timer_.Set(context_->timeouts.keep_alive);
      return;
    case Phase::kHandshake:
    case Phase::kIdle:
    case Phase::kLinger:
      return Close();
    case Phase::kClosed:
      return;
  }
}

}  // namespace lockstep::http
