// The official openai library with structured output, against a group of two
// ranks whose model is random.

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include "tests/clients/client_programs.h"
#include "tests/e2e/tiny_model_test_fixture.h"
#include "tests/testing/process.h"

namespace lockstep::testing {
namespace {

using StructuredClientsTest = TinyModelTest;

TEST_F(StructuredClientsTest, TheOpenAiLibraryGetsWhatItAskedFor) {
  const auto worker = *Process::Start(
      "worker/worker",
      {absl::StrCat("--model=", ModelPath()), "--served_model_name=tiny",
       "--tensor_parallel_size=2", "--listen=127.0.0.1:0", "--threads=1",
       "--num_pages=4096"});
  const auto port = worker->WaitForPort(kTimeout);
  ASSERT_TRUE(port.ok()) << port.status();
  const auto gateway = *Process::Start(
      "frontend/gateway",
      {absl::StrCat("--model=", ModelPath()), "--tool_call_parser=hermes",
       "--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0",
       absl::StrCat("--workers=127.0.0.1:", *port)});
  const auto line = gateway->WaitForLine("gateway: HTTP on ", kTimeout);
  ASSERT_TRUE(line.ok()) << line.status();
  RunPython(
      "openai_structured_sdk.py",
      {absl::StrCat("http://", line->substr(line->rfind(' ') + 1), "/v1")});
}

}  // namespace
}  // namespace lockstep::testing
