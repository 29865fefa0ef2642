#include "frontend/options.h"

#include <gflags/gflags.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

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
  EXPECT_EQ(options->workers, std::vector<std::string>{"127.0.0.1:50052"});
  EXPECT_EQ(options->routing_policy, "prefix_affinity");
  EXPECT_EQ(options->routing.silence.first_token, absl::Seconds(120));
  EXPECT_EQ(options->routing.silence.between_tokens, absl::Seconds(60));
  EXPECT_EQ(options->routing.request_timeout, absl::Minutes(30));
  EXPECT_EQ(options->routing.retry.max_retries, 2);
  EXPECT_EQ(options->tool_call_parser, "auto");
  EXPECT_EQ(options->reasoning_parser, "auto");
  EXPECT_GE(options->pipeline.encode_threads, 2);
  EXPECT_EQ(options->pipeline.max_inflight_requests, 1024);
  EXPECT_EQ(options->pipeline.max_inflight_prompt_tokens, 4 << 20);
  EXPECT_EQ(options->drain_timeout, absl::Seconds(300));
}

TEST(GatewayOptions, HttpCanBeLeftOut) {
  const auto options = Parse({{"model", "m.gguf"}, {"http_listen", ""}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->http_listen, "");
}

TEST(GatewayOptions, SeveralGroupsByAddressOrByName) {
  const auto listed = Parse({{"model", "m"}, {"workers", "a:1,b:2"}});
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_EQ(listed->workers, (std::vector<std::string>{"a:1", "b:2"}));
  const auto named =
      Parse({{"model", "m"}, {"worker_discovery", "dns:workers:50052"}});
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_TRUE(named->workers.empty());
  EXPECT_EQ(named->worker_discovery.where, "dns:workers:50052");
}

TEST(GatewayOptions, NamesTheFlagItsValueAndTheLimit) {
  const struct {
    Flags flags;
    std::string error;
  } kCases[] = {
      {{},
       "--model is not set; name the worker's model, a Hugging Face folder, a "
       "GGUF file or a hub's owner/name, or a tokenizer service with "
       "--tokenizer_address."},
      {{{"tokenizer_address", "host:1"}, {"chat_template", "t"}},
       "--chat_template and --tokenizer_address are both set; give the "
       "template to the tokenizer service."},
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
      {{{"model", "m"}, {"workers", "host:0"}},
       "--workers is \"host:0\"; it must be host:port with a port of 1 to "
       "65535."},
      {{{"model", "m"}, {"workers", "host:1,"}},
       "--workers is \"\"; it must be host:port with a port of 1 to 65535."},
      {{{"model", "m"}, {"workers", "host:1,other:1,host:1"}},
       "--workers names host:1 twice."},
      {{{"model", "m"}, {"worker_discovery", "host:1"}},
       "--worker_discovery is \"host:1\"; it must be dns:name:port with a port "
       "of 1 to 65535 or kubernetes:namespace/service."},
      {{{"model", "m"}, {"routing_policy", "random"}},
       "--routing_policy is \"random\"; it must be round_robin, least_load, "
       "prefix_hash or prefix_affinity."},
      {{{"model", "m"}, {"first_token_timeout", "0"}},
       "--first_token_timeout is 0; it must be 1 to 86400."},
      {{{"model", "m"}, {"token_timeout", "0"}},
       "--token_timeout is 0; it must be 1 to 86400."},
      {{{"model", "m"}, {"request_timeout", "0"}},
       "--request_timeout is 0; it must be 1 to 86400."},
      {{{"model", "m"}, {"group_wait", "-1"}},
       "--group_wait is -1; it must be 0 to 86400."},
      {{{"model", "m"}, {"tokenizer_cache_mib", "65537"}},
       "--tokenizer_cache_mib is 65537; it must be 0 to 65536."},
      {{{"model", "m"}, {"max_connection_age", "86401"}},
       "--max_connection_age is 86401; it must be 0 to 86400."},
      {{{"model", "m"}, {"max_retries", "11"}},
       "--max_retries is 11; it must be 0 to 10."},
      {{{"model", "m"}, {"retry_budget_percent", "101"}},
       "--retry_budget_percent is 101; it must be 0 to 100."},
      {{{"model", "m"}, {"encode_threads", "257"}},
       "--encode_threads is 257; it must be 0 to 256."},
      {{{"model", "m"}, {"max_inflight_prompt_tokens", "0"}},
       "--max_inflight_prompt_tokens is 0; it must be 1 to 1000000000."},
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
