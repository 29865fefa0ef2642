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
       "rank 1 has another --tensor_parallel_size than the leader: its is 4, "
       "the leader's is 2."},
      {[](v1::Hello& h) { h.set_build_id("build-b"); },
       "rank 1 has another build than the leader: its is build-b, the "
       "leader's is build-a."},
      {[](v1::Hello& h) { h.set_model_fingerprint("model-b"); },
       "its is model-b, the leader's is model-a."},
      {[](v1::Hello& h) { h.mutable_flags()->set_page_size(32); },
       "rank 1 has another --page_size than the leader: its is 32, the "
       "leader's is 16."},
      {[](v1::Hello& h) { h.mutable_flags()->clear_max_context(); },
       "rank 1 has another --max_context than the leader: its is 0, the "
       "leader's is 4096."},
      {[](v1::Hello& h) { h.mutable_flags()->set_arithmetic("strict"); },
       "rank 1 has another --arithmetic than the leader: its is strict, the "
       "leader's is fast."},
      {[](v1::Hello& h) { h.mutable_flags()->set_kv_cache_type("int8"); },
       "rank 1 has another --kv_cache_type than the leader: its is int8, the "
       "leader's is bf16."},
      {[](v1::Hello& h) { h.set_boot_id("host-b"); },
       "rank 1 runs on another host than the leader (boot id host-b, the "
       "leader's is host-a); ranks exchange tensors over shared memory, so "
       "all of --tensor_parallel_size must run on one host."},
      {[](v1::Hello& h) { h.set_pid_namespace("pid:[2]"); },
       "rank 1 can not see the leader's process (its PID namespace is pid:[2], "
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

}  // namespace
}  // namespace lockstep
