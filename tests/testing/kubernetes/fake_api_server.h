#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/testing/tls/test_ca.h"

namespace lockstep::testing {

// A Kubernetes API server in this process, on a port of its own of 127.0.0.1,
// over TLS, as far as lists and watches of one kind of object go: each change
// has a version, and a watch gets those after the one it names, even if that
// has not come yet. And whatever a test wants it to do wrong.
//
//   FakeApiServer server(::testing::TempDir() + "account");
//   server.Put(EndpointSlice("leaders-1", 50052, {{"10.0.0.1"}}));
//   …a client with the account of that folder lists and watches…
//   server.AwaitWatches(1);
//   server.Delete("leaders-1");
//
// Any thread, but for Start and Stop, which are one's.
class FakeApiServer {
 public:
  // Writes `token` and `ca.crt` into the folder, and starts.
  explicit FakeApiServer(std::string account_folder);
  ~FakeApiServer();
  FakeApiServer(const FakeApiServer&) = delete;
  FakeApiServer& operator=(const FakeApiServer&) = delete;

  // Again, on the same port.
  void Start();
  // Cuts all connections, and takes no others.
  void Stop();
  int port() const { return port_; }

  void Put(nlohmann::json object);
  void Delete(const std::string& name);
  // Tells watches of a version in which nothing of theirs has changed.
  void Bookmark();
  // Of versions so far no watch goes on: 410 as an event, or as the answer.
  void Forget(bool by_answer = false);
  // As from a backup: versions begin anew, with the objects of now. REQUIRES:
  // nobody watches.
  void SetBack();

  // To all watches that there are.
  void SendToWatches(const std::string& bytes);
  void EndWatches();  // as when their time is over
  void CutWatches();

  // The token that is wanted from now on, in the folder too.
  void ChangeToken(const std::string& token);
  // What every request gets from now on; 0: an answer again.
  void Refuse(int status, const std::string& message = "");
  // From now on nothing.
  void Hold();
  // What is sent goes in pieces of so many bytes.
  void SetPieceBytes(size_t bytes);

  // Of all requests so far.
  std::vector<std::string> targets() const;
  // Until there were so many: lists and watches that were answered, or requests
  // of any kind.
  void AwaitLists(int number) { Await(lists_, number); }
  void AwaitWatches(int number) { Await(watches_, number); }
  void AwaitRequests(int number) { Await(requests_, number); }

 private:
  struct Connection;
  // What watches from versions before `version` get.
  struct News {
    uint64_t version;
    enum class Kind { kChange, kBytes, kEnd, kCut } kind;
    std::string bytes = {};
  };

  void Accept();
  void Serve(boost::asio::ip::tcp::socket socket);
  void Answer(Connection& connection);
  void Watch(Connection& connection, uint64_t from);
  void Append(const char* type, nlohmann::json object)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tell(News::Kind kind, const std::string& bytes = "");
  void Await(const int& count, int number);
  std::string List() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const std::string account_folder_;
  const TestCa ca_{"cluster"};
  boost::asio::ssl::context context_{boost::asio::ssl::context::tls_server};
  int port_ = 0;
  std::thread acceptor_;

  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  int listening_ ABSL_GUARDED_BY(mutex_) = -1;
  std::set<int> sockets_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);  // a connection's

  std::string token_ ABSL_GUARDED_BY(mutex_);
  int refusal_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string refusal_message_ ABSL_GUARDED_BY(mutex_);
  bool holds_ ABSL_GUARDED_BY(mutex_) = false;
  size_t piece_bytes_ ABSL_GUARDED_BY(mutex_) = 64 << 10;

  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t forgotten_ ABSL_GUARDED_BY(mutex_) = 0;
  bool forgets_by_answer_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, nlohmann::json> objects_ ABSL_GUARDED_BY(mutex_);
  std::vector<News> news_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> targets_ ABSL_GUARDED_BY(mutex_);
  // All three are changed and read under the mutex.
  int lists_ = 0;
  int watches_ = 0;
  int requests_ = 0;
};

}  // namespace lockstep::testing
