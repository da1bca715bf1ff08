// Real hosts for the monitor's tests, on one machine: network namespaces, processes in cgroups, and
// TCP between them. Tests only. One thread: children are forked, so nothing else may run.
//
// Namespaces have no names and children die with the test, so nothing is left behind, however the
// test ends. What the machine refuses shows as a failed expectation; ask CannotMakeNamespaces()
// first, and skip.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "dynamix/monitor/cgroup.h"
#include "dynamix/monitor/file_descriptor.h"
#include "dynamix/monitor/socket_ledger.h"
#include "dynamix/testbed/network_namespace.h"

namespace dynamix::test {

// Why the tests in namespaces cannot run here; nothing when they can.
std::optional<std::string> CannotMakeNamespaces();
// The same for the eBPF source (needs namespaces as well).
std::optional<std::string> CannotLoadEbpf();

std::optional<std::string> CannotUseIpv6();

// A name no other test run uses at the same time.
std::string UniqueName();
Cgroup MakeCgroup();

// The testbed's, with failures as failed expectations.
class NetworkNamespace : public dynamix::NetworkNamespace {
 public:
  NetworkNamespace();  // new, with loopback up
  // Runs a shell command inside; expects it to succeed.
  void Run(const std::string& command) const;
};

// Two hosts, 10.77.0.1 and 10.77.0.2, on a cable with interface "wire" at both ends.
struct TwoHosts {
  NetworkNamespace left, right;
};
TwoHosts Cabled();

// One end of a pair of messages between test and child. A value is a trivially copyable struct; a
// child whose test is gone ends.
class Channel {
 public:
  explicit Channel(FileDescriptor file, bool in_child = false)
      : file_(std::move(file)), in_child_(in_child) {}
  template <typename Value>
  void Send(const Value& value) const {
    static_assert(std::is_trivially_copyable_v<Value>);
    SendBytes(&value, sizeof value);
  }
  template <typename Value>
  Value Receive() const {
    Value value{};
    ReceiveBytes(&value, sizeof value);
    return value;
  }

 private:
  void SendBytes(const void* bytes, std::size_t length) const;
  void ReceiveBytes(void* bytes, std::size_t length) const;
  FileDescriptor file_;
  bool in_child_;
};

// A child process. Killed and waited for when the object goes.
class Child {
 public:
  struct Place {
    const dynamix::NetworkNamespace* space = nullptr;
    const Cgroup* cgroup = nullptr;
  };
  Child(Place place, const std::function<void(Channel&)>& work);
  Child(const Child&) = delete;
  ~Child() { Kill(); }

  void Kill();  // SIGKILL, and waits
  // Waits for its own end; true when it ended well.
  bool Ended();
  int pid() const { return pid_; }
  Channel& channel() { return channel_; }

 private:
  explicit Child(std::pair<FileDescriptor, FileDescriptor> ends, Place place,
                 const std::function<void(Channel&)>& work);
  int pid_ = -1;
  Channel channel_;
};

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
