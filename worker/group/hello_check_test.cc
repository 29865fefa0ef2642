#include "worker/group/hello_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace lockstep {
namespace {

using ::testing::HasSubstr;

v1::Hello HelloOf(int rank) {
  v1::Hello hello;
  hello.set_rank(rank);
  hello.set_tensor_parallel_size(2);
  hello.set_build_id("build-a");
  hello.set_model_fingerprint("model-a");
  hello.mutable_flags()->set_page_size(16);
  hello.mutable_flags()->set_max_context(4096);
  hello.mutable_flags()->set_arithmetic("fast");
  hello.mutable_flags()->set_kv_cache_type("bf16");
  hello.mutable_flags()->set_collective("shared_memory");
  hello.mutable_flags()->set_device("cpu");
  hello.mutable_flags()->set_steps_in_flight(1);
  if (rank == 0) hello.mutable_collective_address()->mutable_shared_memory();
  hello.set_host(rank == 0 ? "node-a" : "node-b");
  hello.set_boot_id("host-a");
  hello.set_pid_namespace("pid:[1]");
  return hello;
}

TEST(CheckHello, AcceptsARankOfTheSameGroup) {
  v1::Hello follower = HelloOf(1);
  follower.set_num_pages(77);  // may differ
  follower.set_process_id(123);
  EXPECT_TRUE(CheckHello(HelloOf(0), follower).ok());
}

TEST(CheckHello, NamesTheRankAndBothValues) {
  const struct {
    std::function<void(v1::Hello&)> change;
    std::string message;
  } kCases[] = {
      {[](v1::Hello& h) { h.set_tensor_parallel_size(4); },
       "rank 1 on node-b has another --tensor_parallel_size than the leader: "
       "its is 4, "
       "the leader's is 2."},
      {[](v1::Hello& h) { h.set_build_id("build-b"); },
       "rank 1 on node-b has another build than the leader: its is build-b, "
       "the "
       "leader's is build-a."},
      {[](v1::Hello& h) { h.set_model_fingerprint("model-b"); },
       "its is model-b, the leader's is model-a."},
      {[](v1::Hello& h) { h.set_token_bytes_digest("tokens-b"); },
       "rank 1 on node-b has another tokenizer (digest) than the leader: its "
       "is tokens-b, the leader's is ."},
      {[](v1::Hello& h) { h.mutable_flags()->set_page_size(32); },
       "rank 1 on node-b has another --page_size than the leader: its is 32, "
       "the "
       "leader's is 16."},
      {[](v1::Hello& h) { h.mutable_flags()->clear_max_context(); },
       "rank 1 on node-b has another --max_context than the leader: its is 0, "
       "the "
       "leader's is 4096."},
      {[](v1::Hello& h) { h.mutable_flags()->set_arithmetic("strict"); },
       "rank 1 on node-b has another --arithmetic than the leader: its is "
       "strict, the "
       "leader's is fast."},
      {[](v1::Hello& h) { h.mutable_flags()->set_kv_cache_type("int8"); },
       "rank 1 on node-b has another --kv_cache_type than the leader: its is "
       "int8, the "
       "leader's is bf16."},
      {[](v1::Hello& h) { h.mutable_flags()->set_expert_parallel(true); },
       "rank 1 on node-b has another --expert_parallel than the leader: its "
       "is true, the leader's is false."},
      {[](v1::Hello& h) { h.mutable_flags()->set_steps_in_flight(2); },
       "rank 1 on node-b has another --steps_in_flight than the leader: its "
       "is 2, the leader's is 1."},
      {[](v1::Hello& h) { h.mutable_flags()->set_device("cuda"); },
       "rank 1 on node-b has another --device than the leader: its is cuda, "
       "the leader's is cpu."},
      {[](v1::Hello& h) { h.set_boot_id("host-b"); },
       "rank 1 on node-b runs on another host than the leader (boot id "
       "host-b, the leader's is host-a), but --collective is shared_memory; "
       "give all ranks --collective=gloo, or --num_nodes."},
      {[](v1::Hello& h) { h.mutable_flags()->set_collective("gloo"); },
       "rank 1 on node-b has another --collective than the leader: its is "
       "gloo, the leader's is shared_memory."},
      {[](v1::Hello& h) { h.mutable_collective_address()->add_gloo("x"); },
       "rank 1 on node-b has another number of addresses than the leader: "
       "its is 1, the leader's is 0."},
      {[](v1::Hello& h) {
         h.clear_host();
         h.set_build_id("build-b");
       },
       "rank 1 has another build"},
      {[](v1::Hello& h) { h.set_pid_namespace("pid:[2]"); },
       "rank 1 on node-b can not see the leader's process (its PID namespace "
       "is pid:[2], "
       "the leader's is pid:[1])"},
      {[](v1::Hello& h) { h.set_rank(0); },
       "--rank is 0; the followers of this group are 1 to 1."},
      {[](v1::Hello& h) { h.set_rank(2); },
       "--rank is 2; the followers of this group are 1 to 1."},
  };
  for (const auto& [change, message] : kCases) {
    v1::Hello follower = HelloOf(1);
    change(follower);
    const absl::Status status = CheckHello(HelloOf(0), follower);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

TEST(CheckHello, RanksThatShareNoMemoryMayRunOnSeveralHosts) {
  v1::Hello leader = HelloOf(0), follower = HelloOf(1);
  for (v1::Hello* const hello : {&leader, &follower}) {
    hello->mutable_flags()->set_collective("gloo");
    hello->clear_collective_address();
    hello->mutable_collective_address()->add_gloo("a");
    hello->mutable_collective_address()->add_gloo("b");
  }
  follower.set_boot_id("host-b");
  follower.set_pid_namespace("pid:[2]");
  const absl::Status status = CheckHello(leader, follower);
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace lockstep
