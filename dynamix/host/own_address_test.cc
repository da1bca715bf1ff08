#include "dynamix/host/own_address.h"

#include <gtest/gtest.h>
#include <net/if.h>

#include "dynamix/host/socket_guard.h"

namespace dynamix {
namespace {

bool OnlyLoopback() {
  bool only = true;
  struct if_nameindex* all = if_nameindex();
  for (struct if_nameindex* one = all; one != nullptr && one->if_index != 0; ++one)
    only &= std::string(one->if_name) == "lo" || OwnAddress("", one->if_name).empty();
  if_freenameindex(all);
  return only;
}

TEST(OwnAddressTest, IsThatOfTheNamedInterface) {
  EXPECT_EQ(OwnAddress("192.0.2.7", "lo"), "127.0.0.1");
  EXPECT_EQ(OwnAddress("192.0.2.7", "nosuch0"), "");
}

// What rank 0's own name means on a Debian machine: others cannot reach it there.
TEST(OwnAddressTest, IsNotLoopbackWhereThePeerIsThisMachine) {
  if (OnlyLoopback()) GTEST_SKIP() << "this machine has no address but loopback";
  const std::string address = OwnAddress("127.0.1.1", "");
  EXPECT_FALSE(address.empty() || address.starts_with("127.")) << address;
  EXPECT_FALSE(InterfacesOf(address).empty()) << address;
  EXPECT_EQ(OwnAddress(address, ""), address);
  EXPECT_EQ(OwnAddress("", InterfaceTowards("127.0.1.1")), address);
  EXPECT_EQ(OwnAddress("no.such.name.invalid", ""), address);
}

}  // namespace
}  // namespace dynamix
