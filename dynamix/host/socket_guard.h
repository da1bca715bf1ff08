// Keeps the network away from a listening socket of this process that a library opened for
// everybody: c10d's TCPStore listens on all interfaces and knows neither passwords nor limits.
//
// A filter in the kernel drops packets that come over other interfaces; whoever sends them sees a
// closed door that does not even answer. Needs no privilege. What is connected already stays so.
#pragma once

#include <string>
#include <vector>

#include "dynamix/core/result.h"

namespace dynamix {

// `interfaces` by name. An Error when this process does not listen on the port, an interface does
// not exist, or the system refuses.
Status AcceptOnlyFrom(int port, const std::vector<std::string>& interfaces);

// The interfaces over which ranks reach `address` (a name or a number) of this machine: the one that
// has it, and loopback, over which a machine talks to itself. Empty when no interface has it.
std::vector<std::string> InterfacesOf(const std::string& address);

}  // namespace dynamix
