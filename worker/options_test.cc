#include "worker/options.h"

#include <gflags/gflags.h>
#include <gtest/gtest.h>

#include "proto/group.pb.h"

namespace lockstep {
namespace {

class OptionsTest : public ::testing::Test {
 protected:
  OptionsTest() { Set("model", "/models/tiny.gguf"); }

  static void Set(const std::string& flag, const std::string& value) {
    EXPECT_FALSE(
        gflags::SetCommandLineOption(flag.c_str(), value.c_str()).empty());
  }

 private:
  gflags::FlagSaver saver_;
};

TEST_F(OptionsTest, AGroupOfOneHostTakesAnyPortAndStartsItsRanks) {
  Set("tensor_parallel_size", "4");
  const auto options = OptionsFromFlags();
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->is_leader());
  EXPECT_TRUE(options->starts_local_ranks);
  EXPECT_EQ(options->rank.local_ranks, 4);
  EXPECT_EQ(options->leader_address, "127.0.0.1:0");
  EXPECT_EQ(options->served_model_name, "tiny");
}

TEST_F(OptionsTest, WeightsMayBeRoundedOrRandom) {
  EXPECT_FALSE(OptionsFromFlags()->rank.weights.rounded_to.has_value());
  Set("quantize", "q4_0");
  Set("load_format", "dummy");
  Set("verify_weights", "true");
  const auto options = OptionsFromFlags();
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->rank.weights.rounded_to, kernels::DType::kQ4_0);
  EXPECT_TRUE(options->rank.weights.random);
  EXPECT_TRUE(options->rank.weights.verified);
  Set("quantize", "int4");
  EXPECT_EQ(OptionsFromFlags().status().message(),
            "--quantize is \"int4\"; it must be none, q8_0 or q4_0.");
  Set("quantize", "none");
  Set("load_format", "pt");
  EXPECT_EQ(OptionsFromFlags().status().message(),
            "--load_format is \"pt\"; it must be auto or dummy.");
}

TEST_F(OptionsTest, LoadingHasHalfAnHourUnlessItIsSaid) {
  EXPECT_EQ(OptionsFromFlags()->load_timeout, absl::Minutes(30));
  Set("load_timeout", "7200");
  EXPECT_EQ(OptionsFromFlags()->load_timeout, absl::Hours(2));
  Set("load_timeout", "0");
  EXPECT_EQ(OptionsFromFlags().status().message(),
            "--load_timeout is 0; it must be 1 to 1048576.");
}

TEST_F(OptionsTest, TheDeviceIsAutoUnlessItIsSaid) {
  EXPECT_EQ(OptionsFromFlags()->rank.device.kind, DeviceKind::kAuto);
  Set("device", "cuda");
  Set("gpu_memory_utilization", "0.5");
  Set("kv_cache_type", "bf16");
  const auto options = OptionsFromFlags();
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->rank.device.kind, DeviceKind::kCuda);
  EXPECT_EQ(options->rank.device.gpu_memory_utilization, 0.5);
  EXPECT_FALSE(options->rank.device.has_default_kv_type);
  EXPECT_TRUE(options->rank.device.takes_nccl);
  EXPECT_EQ(options->rank.device.steps_in_flight, 0);
  Set("steps_in_flight", "3");
  EXPECT_EQ(OptionsFromFlags().status().message(),
            "--steps_in_flight is 3; it must be from 0 to 2.");
  Set("steps_in_flight", "2");
  Set("collective", "gloo");
  EXPECT_EQ(OptionsFromFlags()->rank.device.steps_in_flight, 2);
  EXPECT_FALSE(OptionsFromFlags()->rank.device.takes_nccl);
  Set("device", "gpu");
  EXPECT_EQ(OptionsFromFlags().status().message(),
            "--device is \"gpu\"; it must be cpu, cuda or auto.");
  Set("device", "cpu");
  for (const char* bad : {"0", "1.01", "nan"}) {
    Set("gpu_memory_utilization", bad);
    EXPECT_EQ(OptionsFromFlags().status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(OptionsTest, ARankThatWasStartedByTheFirstStartsNone) {
  Set("tensor_parallel_size", "4");
  Set("rank", "3");
  Set("local_index", "1");
  Set("local_ranks", "2");
  Set("leader_address", "10.0.0.1:7000");
  const auto options = OptionsFromFlags();
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_FALSE(options->is_leader());
  EXPECT_FALSE(options->starts_local_ranks);
  EXPECT_EQ(options->leader_address, "10.0.0.1:7000");
}

TEST_F(OptionsTest, RanksOnOtherHostsNeedAKnownPort) {
  Set("tensor_parallel_size", "4");
  Set("local_ranks", "2");
  EXPECT_EQ(OptionsFromFlags()->leader_address, "127.0.0.1:7000");
}

TEST_F(OptionsTest, AHostStartsItsShareOfTheRanks) {
  Set("tensor_parallel_size", "6");
  Set("num_nodes", "3");
  Set("node_rank", "2");
  Set("leader_address", "10.0.0.1:7000");
  const auto options = OptionsFromFlags();
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->rank.rank, 4);
  EXPECT_EQ(options->rank.local_ranks, 2);
  EXPECT_TRUE(options->starts_local_ranks);
  EXPECT_EQ(options->rank.collective, CollectiveKind::kGloo);
}

// What it gives its children comes after its own flags.
TEST_F(OptionsTest, ARankThatAHostStartedIsWhatItWasTold) {
  Set("tensor_parallel_size", "6");
  Set("num_nodes", "3");
  Set("node_rank", "2");
  Set("leader_address", "10.0.0.1:7000");
  Set("rank", "5");
  Set("local_index", "1");
  Set("local_ranks", "2");
  const auto options = OptionsFromFlags();
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->rank.rank, 5);
  EXPECT_EQ(options->rank.local_ranks, 2);
  EXPECT_FALSE(options->starts_local_ranks);
}

TEST_F(OptionsTest, RanksOfSeveralHostsMustDivideAndFollowFromTheHosts) {
  Set("tensor_parallel_size", "4");
  Set("num_nodes", "3");
  EXPECT_EQ(OptionsFromFlags().status().message(),
            "--num_nodes is 3; it must divide --tensor_parallel_size of 4.");
  Set("num_nodes", "8");
  EXPECT_EQ(OptionsFromFlags().status().message(),
            "--num_nodes is 8; it must be 1 to 4.");
  Set("num_nodes", "2");
  EXPECT_EQ(OptionsFromFlags().status().message(),
            "--leader_address is not given; with --num_nodes it is the "
            "host:port of the first host at which the others reach it.");
  Set("node_rank", "2");
  EXPECT_EQ(OptionsFromFlags().status().message(),
            "--node_rank is 2; it must be 0 to 1.");
  Set("node_rank", "1");
  Set("rank", "2");
  EXPECT_EQ(OptionsFromFlags().status().message(),
            "--rank is 2; with --num_nodes it follows from --node_rank: leave "
            "it out.");
  Set("rank", "0");
  Set("local_ranks", "2");
  EXPECT_EQ(OptionsFromFlags().status().message(),
            "--local_ranks is 2; with --num_nodes it follows from --node_rank: "
            "leave it out.");
}

TEST_F(OptionsTest, OneRankOfAHostTellsOfItsHealth) {
  EXPECT_EQ(OptionsFromFlags()->health_listen, "127.0.0.1:50053");
  Set("tensor_parallel_size", "4");
  Set("rank", "2");
  EXPECT_EQ(OptionsFromFlags()->health_listen, "");
  Set("health_listen", "0.0.0.0:50053");
  EXPECT_EQ(OptionsFromFlags()->health_listen, "0.0.0.0:50053");
  Set("local_index", "1");  // its first rank has the port
  EXPECT_EQ(OptionsFromFlags()->health_listen, "");
  Set("local_index", "0");
  Set("rank", "0");
  Set("health_listen", "");
  EXPECT_EQ(OptionsFromFlags()->health_listen, "");
}

TEST_F(OptionsTest, ABadValueIsNamedWithItsLimits) {
  const struct {
    const char* flag;
    const char* value;
    const char* message;
  } kCases[] = {
      {"model", "",
       "--model is not given; it names a Hugging Face folder, a .gguf file or "
       "a hub's owner/name."},
      {"tensor_parallel_size", "0",
       "--tensor_parallel_size is 0; it must be 1 to 64."},
      {"rank", "1", "--rank is 1; it must be 0 to 0."},
      {"step_timeout", "-1", "--step_timeout is -1; it must be 0 to 1048576."},
      {"heartbeat_timeout", "1",
       "--heartbeat_timeout is 1; it must be 2 to 86400."},
      {"page_size", "17", "--page_size is 17; it must be a power of two."},
      {"page_size", "512", "--page_size is 512; it must be 1 to 256."},
      {"max_step_tokens", "63",
       "--max_step_tokens is 63; it must be 64 to 1048576."},
      {"listen", "50052",
       "--listen is \"50052\"; it must be host:port with a port of 0 to "
       "65535."},
      {"health_listen", "50053",
       "--health_listen is \"50053\"; it must be host:port with a port of 0 "
       "to 65535."},
      {"kv_cache_memory", "2GB",
       "--kv_cache_memory is \"2GB\"; it must be auto or a size such as "
       "512MiB, 2GiB or 65536 (bytes)."},
      {"kv_cache_memory", "0",
       "--kv_cache_memory is \"0\"; it must be auto or a size such as "
       "512MiB, 2GiB or 65536 (bytes)."},
      {"arithmetic", "exact",
       "--arithmetic is \"exact\"; it must be fast or strict."},
      {"kv_cache_type", "",
       "--kv_cache_type is \"\"; it must be auto, fp32, fp16, bf16 or int8."},
      {"collective", "mpi",
       "--collective is \"mpi\"; it must be auto, shared_memory, gloo or "
       "nccl."},
      {"served_model_name", "my \"model\"",
       "--served_model_name is \"my \\\"model\\\"\"; it must be at most 128 "
       "characters of [A-Za-z0-9._/:@+-]."},
      {"max_queued_requests", "0",
       "--max_queued_requests is 0; it must be 1 to 1048576."},
  };
  for (const auto& [flag, value, message] : kCases) {
    gflags::FlagSaver saver;
    Set(flag, value);
    const auto options = OptionsFromFlags();
    EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(options.status().message(), message);
  }
}

TEST_F(OptionsTest, TheArithmeticDecidesTheTypeOfTheKvCache) {
  Numerics numerics = OptionsFromFlags()->rank.numerics;
  EXPECT_STREQ(numerics.arithmetic_name(), "fast");
  EXPECT_STREQ(numerics.kv_type_name(), "fp16");
  Set("arithmetic", "strict");
  numerics = OptionsFromFlags()->rank.numerics;
  EXPECT_STREQ(numerics.arithmetic_name(), "strict");
  EXPECT_STREQ(numerics.kv_type_name(), "fp32");
  Set("kv_cache_type", "int8");
  EXPECT_STREQ(OptionsFromFlags()->rank.numerics.kv_type_name(), "int8");
}

TEST_F(OptionsTest, TheMemoryOfTheKvCacheIsASize) {
  EXPECT_EQ(OptionsFromFlags()->rank.kv_cache_memory_bytes, 0);
  Set("kv_cache_memory", "512MiB");
  EXPECT_EQ(OptionsFromFlags()->rank.kv_cache_memory_bytes, 512 << 20);
}

// A rank whose flag differs is refused by its name.
TEST_F(OptionsTest, WhatTheRanksCompareAreFlags) {
  const auto& fields = *v1::RankFlags::GetDescriptor();
  for (int i = 0; i < fields.field_count(); ++i) {
    gflags::CommandLineFlagInfo flag;
    EXPECT_TRUE(
        gflags::GetCommandLineFlagInfo(fields.field(i)->name().c_str(), &flag))
        << fields.field(i)->name();
  }
}

TEST_F(OptionsTest, TheContextHasTwoNames) {
  Set("max_model_len", "77");
  EXPECT_EQ(OptionsFromFlags()->rank.max_context, 77);
  Set("max_context", "77");
  EXPECT_EQ(OptionsFromFlags()->rank.max_context, 77);
  Set("max_context", "78");
  EXPECT_EQ(OptionsFromFlags().status().message(),
            "--max_model_len is 77 and --max_context is 78; they are one "
            "thing: leave one of them out.");
}

TEST_F(OptionsTest, SamplingIsTheModelsUnlessItIsSwitchedOff) {
  EXPECT_TRUE(OptionsFromFlags()->rank.sampling_defaults);
  Set("generation_config", "none");
  EXPECT_FALSE(OptionsFromFlags()->rank.sampling_defaults);
  Set("generation_config", "auto");
  EXPECT_EQ(OptionsFromFlags().status().message(),
            "--generation_config is \"auto\"; it must be model or none.");
}

TEST_F(OptionsTest, AreWrittenAsFlags) {
  Set("max_context", "77");
  Set("tensor_parallel_size", "2");
  const std::string text = OptionsFromFlags()->ToString();
  EXPECT_EQ(text.find("--model=/models/tiny.gguf "), 0);
  EXPECT_NE(text.find(" --max_context=77 "), text.npos);
  EXPECT_NE(text.find(" --kv_cache_memory=auto "), text.npos);
  EXPECT_NE(text.find(" --num_nodes=1 --node_rank=0 "
                      "--collective=shared_memory "),
            text.npos);
  EXPECT_NE(text.find(" --arithmetic=fast --kv_cache_type=fp16 "), text.npos);
}

}  // namespace
}  // namespace lockstep
