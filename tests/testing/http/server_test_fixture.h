#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "frontend/http/message.h"
#include "frontend/http/response_writer.h"
#include "frontend/http/router.h"
#include "frontend/http/server.h"

namespace lockstep::testing {

// An HTTP server in this process, on a port of its own, that says hello, echoes
// and holds: a GET of /held is answered by the test.
//
//   TEST_F(HttpServerTest, Answers) {
//     Start();
//     EXPECT_EQ(Fetch(port(), "/hello").body, "hello");
//   }
//
// What is to be other than usual is said in options_ and routes_ before Start.
class HttpServerTest : public ::testing::Test {
 protected:
  using Writer = std::shared_ptr<http::ResponseWriter>;

  HttpServerTest() {
    options_.listen = "127.0.0.1:0";
    options_.render = [](const http::Refusal& refusal) {
      return http::Response{refusal.status, {}, refusal.message};
    };
    routes_ = {{"GET", "/hello",
                [](http::Request, Writer writer) {
                  writer->Send({200, {}, "hello"});
                }},
               {"POST", "/echo",
                [](http::Request request, Writer writer) {
                  writer->Send({200, {}, request.body});
                },
                "application/json"},
               {"GET", "/held", [this](http::Request, Writer writer) {
                  absl::MutexLock lock(&mutex_);
                  held_.push_back(std::move(writer));
                }}};
  }

  void Start() {
    auto server = http::Server::Start(options_, routes_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  int port() const { return server_->port(); }

  // Waits for a request of /held, which it no longer holds.
  Writer AwaitHeld() {
    const auto is_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !held_.empty();
    };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&is_there));
    Writer writer = std::move(held_.back());
    held_.pop_back();
    return writer;
  }

  http::ServerOptions options_;
  std::vector<http::Route> routes_;
  absl::Mutex mutex_;
  std::vector<Writer> held_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<http::Server> server_;
};

}  // namespace lockstep::testing
