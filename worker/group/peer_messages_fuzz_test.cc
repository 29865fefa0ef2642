// Any bytes in the place of what ranks say to each other beside frames: read
// whole or cut at a place they choose they give the same messages and the same
// status, what was read can be written and read again, and a Hello fits the
// leader's or is refused by a sentence.

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "proto/group.pb.h"
#include "worker/group/frame_codec.h"
#include "worker/group/hello_check.h"

namespace {

using lockstep::v1::FollowerReport;
using lockstep::v1::Hello;
using lockstep::v1::HelloReply;

struct Outcome {
  std::vector<std::string> messages;  // serialized
  absl::StatusCode code = absl::StatusCode::kOk;

  bool operator==(const Outcome&) const = default;
};

template <typename Message>
void CheckIsReadAgain(const std::string& bytes) {
  Message message;
  if (!message.ParseFromString(bytes)) std::abort();
  if (message.SerializeAsString() != bytes) std::abort();
}

Outcome ReadReports(absl::string_view first, absl::string_view second) {
  lockstep::ReportReader reader;
  Outcome outcome;
  for (const absl::string_view piece : {first, second}) {
    reader.Append(piece);
    while (true) {
      const auto report = reader.Next();
      outcome.code = report.status().code();
      if (!report.ok() && reader.bytes_held() > 0) std::abort();
      if (!report.ok()) return outcome;
      if (!report->has_value()) break;
      outcome.messages.push_back((*report)->SerializeAsString());
      CheckIsReadAgain<FollowerReport>(outcome.messages.back());
    }
  }
  return outcome;
}

// As both ends of the rendezvous do: one message alone.
template <typename Message, typename Take>
Outcome ReadOne(absl::string_view first, absl::string_view second, Take take) {
  std::string buffer;
  Outcome outcome;
  for (const absl::string_view piece : {first, second}) {
    buffer.append(piece.data(), piece.size());
    const auto message = take(&buffer);
    outcome.code = message.status().code();
    if (!message.ok()) return outcome;
    if (!message->has_value()) continue;
    outcome.messages.push_back((*message)->SerializeAsString());
    CheckIsReadAgain<Message>(outcome.messages.back());
    return outcome;
  }
  return outcome;
}

// Of a group of four over TCP, or in one memory.
Hello LeadersOwn(bool shares_memory) {
  Hello hello;
  hello.set_tensor_parallel_size(4);
  hello.set_build_id("build");
  hello.set_model_fingerprint("model");
  hello.set_boot_id("boot");
  hello.set_pid_namespace("pid:[1]");
  if (shares_memory) {
    hello.mutable_collective_address()->mutable_shared_memory();
  } else {
    for (int rank = 0; rank < 4; ++rank) {
      hello.mutable_collective_address()->add_gloo("address");
    }
  }
  return hello;
}

void CheckIsWelcomeOrRefused(const Hello& hello) {
  for (const bool shares_memory : {true, false}) {
    const Hello own = LeadersOwn(shares_memory);
    const absl::Status fits = lockstep::CheckHello(own, hello);
    if (!fits.ok() && fits.message().empty()) std::abort();
    if (!fits.ok()) continue;
    if (hello.rank() == 0 || hello.rank() >= 4) std::abort();
    const int addresses = hello.collective_address().gloo_size();
    if (addresses != own.collective_address().gloo_size()) std::abort();
  }
}

Outcome Read(uint8_t kind, absl::string_view first, absl::string_view second) {
  switch (kind % 3) {
    case 0:
      return ReadOne<Hello>(first, second, lockstep::TakeHello);
    case 1:
      return ReadOne<HelloReply>(first, second, lockstep::TakeHelloReply);
    default:
      return ReadReports(first, second);
  }
}

}  // namespace

// The first byte says what they are taken for, the second where they are cut.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 2,
                                size - 2);
  const Outcome whole = Read(data[0], bytes, "");
  const size_t cut = data[1] % (bytes.size() + 1);
  if (Read(data[0], bytes.substr(0, cut), bytes.substr(cut)) != whole) {
    std::abort();
  }
  if (data[0] % 3 != 0 || whole.messages.empty()) return 0;
  Hello hello;
  if (!hello.ParseFromString(whole.messages[0])) std::abort();
  CheckIsWelcomeOrRefused(hello);
  return 0;
}
