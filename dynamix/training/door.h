// A member's door: a small TCP port on which it answers the other members of its job, on a thread
// of its own, also while the member computes. A question is one line of JSON, and so is the answer;
// each has a connection of its own.
//
// Questions without the job's key get no answer. The thread lives as long as the object. `answer`
// is called on it, one question at a time, and must not wait. Asking is thread-safe. Throws
// std::system_error when the machine gives no port. A private header of this room.
#pragma once

#include <atomic>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <thread>

#include "dynamix/host/file_descriptor.h"

namespace dynamix {

class Door {
 public:
  using Answer = std::function<nlohmann::json(const nlohmann::json& question)>;

  // Listens on this IPv4 address only, on a free port.
  Door(const std::string& host, std::string key, Answer answer);
  ~Door();

  const std::string& address() const { return address_; }  // HOST:PORT

 private:
  void Serve();
  void AnswerOne(int connection);

  std::string key_;
  Answer answer_;
  FileDescriptor listener_;
  std::string address_;
  std::atomic<bool> closing_ = false;
  std::thread thread_;
};

enum class Heard {
  kAnswer,
  kNothing,  // in time
  kRefused,  // the machine answers, and nobody listens there: that process has ended
};

// Asks the door at HOST:PORT; waits `patience_s` at most.
Heard AskDoor(const std::string& address, const std::string& key, const nlohmann::json& question,
              double patience_s, nlohmann::json* answer);

}  // namespace dynamix
