#include "bench/gateway/vllm_echo_engine.h"

#include <absl/strings/str_cat.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/unknown_field_set.h>

#include <chrono>
#include <vector>

#include "common/grpc_server.h"

namespace lockstep::bench {
namespace {

// A message, as the numbers of its fields and their values.
class Fields : public google::protobuf::UnknownFieldSet {
 public:
  Fields() = default;
  Fields(Fields&& other) { Swap(&other); }
};

constexpr char kService[] = "/vllm.grpc.engine.VllmEngine/";
constexpr uint32_t kContextTokens = 1 << 20;

std::string Bytes(const Fields& fields) {
  std::string bytes;
  fields.SerializeToString(&bytes);
  return bytes;
}

grpc::ByteBuffer ToBuffer(const Fields& fields) {
  const grpc::Slice slice(Bytes(fields));
  return grpc::ByteBuffer(&slice, 1);
}

Fields ToFields(const std::string& bytes) {
  Fields fields;
  fields.ParseFromString(bytes);
  return fields;
}

Fields ToFields(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  if (!buffer.DumpToSingleSlice(&slice).ok()) return {};
  return ToFields(std::string(slice.begin(), slice.end()));
}

// 0, or empty, where there is none.
uint64_t NumberAt(const Fields& fields, int number) {
  for (int i = 0; i < fields.field_count(); ++i) {
    const auto& field = fields.field(i);
    if (field.number() != number) continue;
    if (field.type() == field.TYPE_VARINT) return field.varint();
  }
  return 0;
}

std::string BytesAt(const Fields& fields, int number) {
  for (int i = 0; i < fields.field_count(); ++i) {
    const auto& field = fields.field(i);
    if (field.number() != number) continue;
    if (field.type() == field.TYPE_LENGTH_DELIMITED) {
      return field.length_delimited();
    }
  }
  return "";
}

std::vector<uint32_t> Unpack(const std::string& packed) {
  google::protobuf::io::CodedInputStream input(
      reinterpret_cast<const uint8_t*>(packed.data()), packed.size());
  std::vector<uint32_t> ids;
  for (uint32_t id; input.ReadVarint32(&id);) ids.push_back(id);
  return ids;
}

std::string Pack(uint32_t id) {
  uint8_t bytes[10];
  uint8_t* const end =
      google::protobuf::io::CodedOutputStream::WriteVarint32ToArray(id, bytes);
  return std::string(bytes, end);
}

// GenerateResponse{chunk = 1}; GenerateStreamChunk{token_ids = 1,
// prompt_tokens = 2, completion_tokens = 3: this chunk's}.
grpc::ByteBuffer ChunkOf(uint32_t id, size_t prompt_tokens) {
  Fields chunk, response;
  chunk.AddLengthDelimited(1, Pack(id));
  chunk.AddVarint(2, prompt_tokens);
  chunk.AddVarint(3, 1);
  response.AddLengthDelimited(1, Bytes(chunk));
  return ToBuffer(response);
}

// GenerateResponse{complete = 2}; GenerateComplete{finish_reason = 2,
// prompt_tokens = 3, completion_tokens = 4: all}.
grpc::ByteBuffer CompleteOf(uint32_t tokens, size_t prompt_tokens) {
  Fields complete, response;
  complete.AddLengthDelimited(2, "length");
  complete.AddVarint(3, prompt_tokens);
  complete.AddVarint(4, tokens);
  response.AddLengthDelimited(2, Bytes(complete));
  return ToBuffer(response);
}

// HealthCheckResponse{healthy = 1, message = 2}.
Fields Health() {
  Fields fields;
  fields.AddVarint(1, 1);
  fields.AddLengthDelimited(2, "ok");
  return fields;
}

// GetModelInfoResponse{model_path = 1, is_generation = 2, max_context_length =
// 3, vocab_size = 4, served_model_name = 6}.
Fields ModelInfo(uint32_t vocabulary_size) {
  Fields fields;
  fields.AddLengthDelimited(1, "echo");
  fields.AddVarint(2, 1);
  fields.AddVarint(3, kContextTokens);
  fields.AddVarint(4, vocabulary_size);
  fields.AddLengthDelimited(6, "echo");
  return fields;
}

// GetServerInfoResponse{server_type = 5}.
Fields ServerInfo() {
  Fields fields;
  fields.AddLengthDelimited(5, "vllm-grpc");
  return fields;
}

}  // namespace

// To a call with one response.
class VllmEchoEngine::Reply : public grpc::ServerGenericBidiReactor {
 public:
  explicit Reply(const Fields& fields) : response_(ToBuffer(fields)) {
    StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void OnDone() override { delete this; }

 private:
  const grpc::ByteBuffer response_;
};

// To Generate: a message a token, one write at a time, and the last one.
class VllmEchoEngine::Answer : public grpc::ServerGenericBidiReactor {
 public:
  explicit Answer(VllmEchoEngine* engine)
      : engine_(*engine), clock_(engine->pace_, &engine->pacer_) {
    StartRead(&message_);
  }

  // GenerateRequest{tokenized = 2, sampling_params = 4};
  // TokenizedInput{input_ids = 2}; SamplingParams{max_tokens = 8, seed = 24}.
  void OnReadDone(bool ok) override {
    const Fields request = ok ? ToFields(message_) : Fields();
    const Fields sampling = ToFields(BytesAt(request, 4));
    ids_ = Unpack(BytesAt(ToFields(BytesAt(request, 2)), 2));
    tokens_ = NumberAt(sampling, 8);
    stream_ = NumberAt(sampling, 24);
    const SentTimes& sent = *engine_.sent_;
    if (ids_.empty() || tokens_ > sent.tokens() || stream_ >= sent.streams()) {
      return Finish(
          grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                       "an echo needs ids, and max_tokens and a seed that the "
                       "benchmark has given."));
    }
    WriteToken();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    if (sent_ < tokens_) return clock_.AtNext([this] { WriteToken(); });
    message_ = CompleteOf(tokens_, ids_.size());
    StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
  }

  void OnDone() override { delete this; }

 private:
  void WriteToken() {
    message_ = ChunkOf(ids_[sent_ % ids_.size()], ids_.size());
    engine_.sent_->Set(stream_, sent_++, SteadyClock::now());
    StartWrite(&message_);
  }

  VllmEchoEngine& engine_;
  EchoClock clock_;
  std::vector<uint32_t> ids_;
  uint32_t tokens_ = 0;
  uint64_t stream_ = 0;
  uint32_t sent_ = 0;
  grpc::ByteBuffer message_;
};

absl::StatusOr<std::unique_ptr<VllmEchoEngine>> VllmEchoEngine::Start(
    uint32_t vocabulary_size, SentTimes* sent) {
  std::unique_ptr<VllmEchoEngine> engine(
      new VllmEchoEngine(vocabulary_size, sent));
  grpc::ServerBuilder builder;
  SetServerLimits(&builder);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &engine->port_);
  builder.RegisterCallbackGenericService(engine.get());
  engine->server_ = builder.BuildAndStart();
  if (engine->server_ != nullptr) return engine;
  return absl::UnavailableError("there is no port for an echo engine.");
}

VllmEchoEngine::~VllmEchoEngine() {
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

std::string VllmEchoEngine::address() const {
  return absl::StrCat("127.0.0.1:", port_);
}

grpc::ServerGenericBidiReactor* VllmEchoEngine::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  const std::string& method = context->method();
  const auto is = [&](const char* name) {
    return method == absl::StrCat(kService, name);
  };
  if (is("Generate")) return new Answer(this);
  if (is("HealthCheck")) return new Reply(Health());
  if (is("GetModelInfo")) return new Reply(ModelInfo(vocabulary_size_));
  if (is("GetServerInfo")) return new Reply(ServerInfo());
  return grpc::CallbackGenericService::CreateReactor(context);
}

}  // namespace lockstep::bench
