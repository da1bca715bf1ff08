#include "dynamix/host/socket_guard.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>

#include "dynamix/host/file_descriptor.h"

namespace dynamix {
namespace {

// Listens on all interfaces, as a library may.
class SocketGuardTest : public testing::Test {
 protected:
  void SetUp() override {
    listener_ = FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    socklen_t size = sizeof address;
    ASSERT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    ASSERT_EQ(listen(listener_.get(), 4), 0);
    ASSERT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }

  // Over loopback.
  bool Connects() const {
    const FileDescriptor client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port_));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
    pollfd file{client.get(), POLLOUT, 0};
    return poll(&file, 1, 300) == 1 && (file.revents & (POLLERR | POLLHUP)) == 0;
  }
  static std::string AnotherInterface() {
    std::string name;
    struct if_nameindex* all = if_nameindex();
    for (struct if_nameindex* one = all; one != nullptr && one->if_index != 0; ++one)
      if (std::string(one->if_name) != "lo") name = one->if_name;
    if_freenameindex(all);
    return name;
  }

  FileDescriptor listener_;
  int port_ = 0;
};

TEST_F(SocketGuardTest, LetsOnlyTheNamedInterfacesIn) {
  EXPECT_TRUE(Connects());
  ASSERT_TRUE(AcceptOnlyFrom(port_, {"lo"}).ok());
  EXPECT_TRUE(Connects());
  const std::string other = AnotherInterface();
  if (other.empty()) GTEST_SKIP() << "this machine has only loopback";
  ASSERT_TRUE(AcceptOnlyFrom(port_, {other}).ok());
  EXPECT_FALSE(Connects()) << "loopback is not " << other;
  ASSERT_TRUE(AcceptOnlyFrom(port_, {other, "lo"}).ok());
  EXPECT_TRUE(Connects());
}

TEST_F(SocketGuardTest, SaysWhatItCannotGuard) {
  EXPECT_THAT(AcceptOnlyFrom(1, {"lo"}).error(), testing::HasSubstr("nobody listens"));
  EXPECT_THAT(AcceptOnlyFrom(port_, {"none0"}).error(), testing::HasSubstr("none0"));
}

TEST_F(SocketGuardTest, KnowsTheInterfaceOfAnAddress) {
  EXPECT_THAT(InterfacesOf("127.0.0.1"), testing::ElementsAre("lo"));
  EXPECT_THAT(InterfacesOf("192.0.2.1"), testing::IsEmpty()) << "nobody's";
}

}  // namespace
}  // namespace dynamix
