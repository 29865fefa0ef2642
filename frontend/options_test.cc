#include "frontend/options.h"

#include <gflags/gflags.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace lockstep {
namespace {

using Flags = std::map<std::string, std::string>;

absl::StatusOr<GatewayOptions> Parse(const Flags& flags) {
  gflags::FlagSaver saver;
  for (const auto& [name, value] : flags) {
    EXPECT_NE(gflags::SetCommandLineOption(name.c_str(), value.c_str()), "");
  }
  return GatewayOptionsFromFlags();
}

TEST(GatewayOptions, Defaults) {
  const auto options = Parse({{"model", "m.gguf"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->listen, "0.0.0.0:50051");
  EXPECT_EQ(options->health_listen, "127.0.0.1:50054");
  EXPECT_EQ(Parse({{"model", "m.gguf"}, {"health_listen", ""}})->health_listen,
            "");
  EXPECT_EQ(options->http_listen, "0.0.0.0:8080");
  EXPECT_EQ(options->worker_address, "127.0.0.1:50052");
  EXPECT_GE(options->pipeline.encode_threads, 2);
  EXPECT_EQ(options->pipeline.max_inflight_requests, 1024);
  EXPECT_EQ(options->drain_timeout, absl::Seconds(30));
}

TEST(GatewayOptions, HttpCanBeLeftOut) {
  const auto options = Parse({{"model", "m.gguf"}, {"http_listen", ""}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->http_listen, "");
}

TEST(GatewayOptions, NamesTheFlagItsValueAndTheLimit) {
  const struct {
    Flags flags;
    std::string error;
  } kCases[] = {
      {{},
       "--model is not set; name the worker's model, a Hugging Face folder or "
       "a GGUF file, or a tokenizer service with --tokenizer_address."},
      {{{"model", "m"}, {"tokenizer_address", "host:1"}},
       "--model and --tokenizer_address are both set; the tokenizer is either "
       "in this process or the service's."},
      {{{"tokenizer_address", "host"}},
       "--tokenizer_address is \"host\"; it must be host:port with a port of 1 "
       "to 65535."},
      {{{"model", "m"}, {"listen", ":5"}},
       "--listen is \":5\"; it must be host:port with a port of 0 to 65535."},
      {{{"model", "m"}, {"health_listen", "5"}},
       "--health_listen is \"5\"; it must be host:port with a port of 0 to "
       "65535."},
      {{{"model", "m"}, {"http_listen", "8080"}},
       "--http_listen is \"8080\"; it must be host:port with a port of 0 to "
       "65535."},
      {{{"model", "m"}, {"http_threads", "0"}},
       "--http_threads is 0; it must be 1 to 64."},
      {{{"model", "m"}, {"http_max_connections", "0"}},
       "--http_max_connections is 0; it must be 1 to 1000000."},
      {{{"model", "m"}, {"worker_address", "host:0"}},
       "--worker_address is \"host:0\"; it must be host:port with a port of 1 "
       "to 65535."},
      {{{"model", "m"}, {"encode_threads", "257"}},
       "--encode_threads is 257; it must be 0 to 256."},
      {{{"model", "m"}, {"max_inflight_requests", "0"}},
       "--max_inflight_requests is 0; it must be 1 to 100000."},
      {{{"model", "m"}, {"drain_timeout", "-1"}},
       "--drain_timeout is -1; it must be 0 to 86400."},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(Parse(c.flags).status(), absl::InvalidArgumentError(c.error));
  }
}

}  // namespace
}  // namespace lockstep
