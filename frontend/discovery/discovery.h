#pragma once

#include <functional>
#include <string>
#include <vector>

namespace lockstep {

// Where worker groups are found while a gateway runs. What can not be learnt
// now stays as it was: groups are never lost because somebody who was asked for
// them was not there.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(auto discovery, MakeDiscovery(options,
//   listener)); discovery->Start();
//
// Start and Stop are the owner's, once each; Stop waits for the listener.
class Discovery {
 public:
  // Is given all addresses, "address:port" of each leader in order and without
  // doubles, when they have changed. On a thread of the discovery's.
  using Listener = std::function<void(const std::vector<std::string>&)>;

  virtual ~Discovery() = default;

  virtual void Start() = 0;
  virtual void Stop() = 0;

  // Whether what was told last is known to be so still. Any thread.
  virtual bool is_up() const = 0;
};

}  // namespace lockstep
