#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proto/group.pb.h"
#include "worker/group/io_thread.h"

namespace lockstep {

// What a rank holds once its group has formed.
struct Membership {
  uint64_t epoch = 0;
  int num_pages = 0;  // the minimum over the ranks
  // What this rank joins the collectives of the others by.
  v1::CollectiveAddress collective_address;
  // Of `links`; not started yet.
  std::unique_ptr<IoThread> io;
  // The leader's: ranks 1, 2, …; a follower's: the leader.
  std::vector<boost::asio::ip::tcp::socket> links;
  // A follower's: what the leader has sent since.
  std::string received;
};

}  // namespace lockstep
