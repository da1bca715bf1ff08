#include "dynamix/host/own_sockets.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "dynamix/host/file_descriptor.h"

namespace dynamix {
namespace {

sockaddr_storage NameOf(const FileDescriptor& file) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  EXPECT_EQ(getsockname(file.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
  return name;
}

TEST(OwnSocketsTest, AConnectionIsFoundByItsNameAndEndsOnBothSides) {
  const FileDescriptor listener(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  ASSERT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  EXPECT_TRUE(ConnectedSockets({NameOf(listener)}).empty()) << "a listener is not connected";

  FileDescriptor near(socket(AF_INET, SOCK_STREAM, 0));
  ASSERT_EQ(connect(near.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  const FileDescriptor far(accept(listener.get(), nullptr, nullptr));
  const std::vector<OwnSocket> made = ConnectedSockets({NameOf(near)});
  ASSERT_EQ(made.size(), 1u) << "not its other side";
  EXPECT_EQ(made[0].file, near.get());
  EXPECT_EQ(ConnectedSockets({NameOf(near), NameOf(far)}).size(), 2u);
  EXPECT_TRUE(IsOpen(made[0]));

  // Another file that has got the number is not touched.
  ShutDown({near.get(), made[0].number + 1});
  ASSERT_EQ(send(near.get(), "x", 1, 0), 1);
  char byte = 0;
  ASSERT_EQ(recv(far.get(), &byte, 1, 0), 1);
  ShutDown(made[0]);
  EXPECT_EQ(recv(far.get(), &byte, 1, 0), 0);
  EXPECT_EQ(recv(near.get(), &byte, 1, 0), 0);
  EXPECT_TRUE(IsOpen(made[0])) << "shut down is not closed";
  near = FileDescriptor(socket(AF_INET, SOCK_STREAM, 0));
  EXPECT_FALSE(IsOpen(made[0]));
}

}  // namespace
}  // namespace dynamix
