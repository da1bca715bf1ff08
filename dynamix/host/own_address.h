// The IPv4 address by which the other machines of a job reach this one. A machine's own name does not
// tell: on Debian /etc/hosts gives it 127.0.1.1, which is somewhere else for everybody else.
//
// Thread-safe; sends nothing. Empty when no address can be told.
#pragma once

#include <string>

namespace dynamix {

// That of `interface`, when one is named. Else the one from which this machine reaches `peer` (a name
// or a number); when that is this machine's loopback, the one from which it reaches the world, or of
// its first other interface that is up.
std::string OwnAddress(const std::string& peer, const std::string& interface);

// The name of the interface that has OwnAddress(peer), for libraries that want one.
std::string InterfaceTowards(const std::string& peer);

}  // namespace dynamix
