// Real hosts for tests, on one machine: network namespaces and processes in cgroups. Tests only.
// One thread: children are forked, so nothing else may run.
//
// Namespaces have no names and children die with the test, so nothing is left behind, however the
// test ends. What the machine refuses shows as a failed expectation; ask CannotMakeNamespaces()
// first, and skip.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "dynamix/host/cgroup.h"
#include "dynamix/host/file_descriptor.h"
#include "dynamix/host/network_namespace.h"

namespace dynamix::test {

// Why the tests in namespaces cannot run here; nothing when they can.
std::optional<std::string> CannotMakeNamespaces();
std::optional<std::string> CannotUseIpv6();

// In children: a failure ends them, and the test sees its channel close.
void Must(bool condition);

// A name no other test run uses at the same time.
std::string UniqueName();
Cgroup MakeCgroup();

// The real one, with failures as failed expectations.
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

}  // namespace dynamix::test
