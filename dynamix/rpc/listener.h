// Listener: the door of the service. Accepts connections itself and hands them on.
//
// gRPC 1.51 stops listening for ever when a process runs out of descriptors once. This does not: it
// leaves descriptors for everything else, turns away connections above its limit, and tries again
// when the system refuses. A private header of this room: only its .cc files include it.
// Thread-safe. An address that cannot be used is an Error.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "dynamix/core/result.h"

namespace dynamix {

struct ListenerOptions {
  std::string address;         // HOST:PORT, [V6]:PORT or unix:PATH; port 0: a free one
  int max_connections = 8192;  // open at once; fewer when the process may open fewer files
  // Told when connections are turned away, from the listener's thread.
  std::function<void(const std::string&)> warn;
};

class Listener {
 public:
  // Connections wait in the system's queue until Run.
  static Result<std::unique_ptr<Listener>> Open(const ListenerOptions& options);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Hands every connection to `take`, which owns it, on a thread of its own.
  void Run(std::function<void(int connection)> take);
  void Stop();

  int port() const { return port_; }  // 0 for unix:PATH
  std::int64_t turned_away() const { return turned_away_; }

 private:
  explicit Listener(const ListenerOptions& options) : options_(options) {}
  Status Bind();
  Status BindUnix(const std::string& path);
  // Listens on one resolved address; false when the system refuses.
  bool Add(int family, const void* address, std::size_t size);
  void Accept();
  void AcceptFrom(int socket);
  void TurnAway(const std::string& why);

  const ListenerOptions options_;
  std::vector<int> sockets_;
  std::string path_;  // of a unix socket, removed at the end
  int port_ = 0;
  int wake_ = -1;               // an event that ends the thread
  int highest_ = 0;             // the largest descriptor a connection may have
  std::int64_t told_away_ = 0;  // turned away when it was last told
  std::atomic<std::int64_t> turned_away_ = 0;
  std::atomic<bool> stopping_ = false;
  std::function<void(int)> take_;
  std::thread thread_;
};

}  // namespace dynamix
