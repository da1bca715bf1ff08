#include "dynamix/host/own_sockets.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "dynamix/host/file_descriptor.h"

namespace dynamix {
namespace {

TEST(OwnSocketsTest, ANewConnectionIsFoundAndEndsOnBothSides) {
  const FileDescriptor listener(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  ASSERT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::vector<OwnSocket> before = ConnectedSockets();

  FileDescriptor near(socket(AF_INET, SOCK_STREAM, 0));
  ASSERT_EQ(connect(near.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  const FileDescriptor far(accept(listener.get(), nullptr, nullptr));
  const std::vector<OwnSocket> made = NewSockets(before, ConnectedSockets());
  ASSERT_EQ(made.size(), 2u) << "both sides, but not the listener";

  // Another file that has got the number is not touched.
  ShutDown({far.get(), made[0].number + made[1].number});
  ASSERT_EQ(send(near.get(), "x", 1, 0), 1);
  char byte = 0;
  ASSERT_EQ(recv(far.get(), &byte, 1, 0), 1);
  for (const OwnSocket& one : made)
    if (one.file == near.get()) ShutDown(one);
  EXPECT_EQ(recv(far.get(), &byte, 1, 0), 0);
  EXPECT_EQ(recv(near.get(), &byte, 1, 0), 0);
}

}  // namespace
}  // namespace dynamix
