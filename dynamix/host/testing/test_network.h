// TCP between the hosts of test_host.h, and what TCP_INFO of both ends says of it. Tests only. One
// thread: children are forked, so nothing else may run.
//
// Children die with the test, so nothing is left behind, however the test ends. What the machine
// refuses shows as a failed expectation; ask CannotMakeNamespaces() first, and skip.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "dynamix/host/tcp_info.h"
#include "dynamix/host/testing/test_host.h"

namespace dynamix::test {

// What a transfer left in TCP_INFO of the two sockets.
struct Transfer {
  TcpSample sender, receiver;
};

// Takes connections on one port of its host, one after the other, and reads what comes.
class Receiver {
 public:
  // On all addresses of IPv4; "::" for those of both families.
  explicit Receiver(Child::Place place, const std::string& address = "0.0.0.0");
  std::uint16_t port() const { return port_; }

 private:
  Child child_;
  std::uint16_t port_;
};

// Sends from its host to a receiver, by order of the test.
class Sender {
 public:
  Sender(Child::Place place, const std::string& address, std::uint16_t port);
  void Open();
  // Sends, waits until every byte is read and acknowledged, and tells TCP_INFO of both ends.
  Transfer Send(std::uint64_t bytes);
  // For so long; does not wait for the end. Finish() does.
  void StartSending(double seconds);
  Transfer Finish();
  // Closes in good order; TCP_INFO of the sender just before the socket goes.
  TcpSample Close();
  int pid() const { return child_.pid(); }

 private:
  Child child_;
};

// TCP_INFO of an own socket.
TcpSample TcpInfoOf(int file);

// For children that talk TCP themselves, in one process: a connected pair over loopback.
std::pair<FileDescriptor, FileDescriptor> LoopbackPair();
// Sends so many bytes through the pair and waits until they are acknowledged.
void Pump(const std::pair<FileDescriptor, FileDescriptor>& pair, std::size_t bytes);

}  // namespace dynamix::test
