#include "dynamix/training/door.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

namespace dynamix {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kLongestLine = 1 << 20;
constexpr double kPatienceWithClientS = 1;  // a question comes at once, or from a stranger

// Waits until the file is ready; false when it is not until `end`.
bool WaitFor(int file, short events, SteadyClock::time_point end) {
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - SteadyClock::now()).count();
    pollfd entry{file, events, 0};
    const int ready = poll(&entry, 1, left > 0 ? static_cast<int>(left) + 1 : 0);
    if (ready > 0) return true;
    if (ready == 0 && left <= 0) return false;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool SendLine(int file, std::string line, SteadyClock::time_point end) {
  line += '\n';
  std::size_t sent = 0;
  while (sent < line.size() && WaitFor(file, POLLOUT, end)) {
    const ssize_t count = send(file, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (count > 0) sent += static_cast<std::size_t>(count);
  }
  return sent == line.size();
}

std::optional<std::string> ReceiveLine(int file, SteadyClock::time_point end) {
  std::string line;
  char buffer[4096];
  while (line.size() < kLongestLine && WaitFor(file, POLLIN, end)) {
    const ssize_t count = recv(file, buffer, sizeof buffer, 0);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return std::nullopt;
    line.append(buffer, static_cast<std::size_t>(count));
    if (line.back() != '\n') continue;
    line.pop_back();
    return line;
  }
  return std::nullopt;
}

sockaddr_in AddressOf(const std::string& host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1)
    throw std::system_error(EINVAL, std::generic_category(), "not an IPv4 address: " + host);
  return address;
}

SteadyClock::time_point In(double seconds) {
  return SteadyClock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

// Connects until `end`; the error number of what went wrong, 0 when nothing did.
int Connect(int file, const sockaddr_in& address, SteadyClock::time_point end) {
  if (connect(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!WaitFor(file, POLLOUT, end)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

}  // namespace

Door::Door(const std::string& host, std::string key, Answer answer)
    : key_(std::move(key)),
      answer_(std::move(answer)),
      listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  sockaddr_in address = AddressOf(host, 0);
  socklen_t size = sizeof address;
  if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener_.get(), SOMAXCONN) != 0 ||
      getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::system_error(errno, std::generic_category(), "no port for the member's door");
  address_ = host + ":" + std::to_string(ntohs(address.sin_port));
  thread_ = std::thread([this] { Serve(); });
}

Door::~Door() {
  closing_ = true;
  shutdown(listener_.get(), SHUT_RDWR);  // wakes the thread
  thread_.join();
}

void Door::Serve() {
  while (!closing_) {
    WaitFor(listener_.get(), POLLIN, In(1));
    const FileDescriptor connection(
        accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection.valid() && !closing_) AnswerOne(connection.get());
  }
}

void Door::AnswerOne(int connection) {
  const SteadyClock::time_point end = In(kPatienceWithClientS);
  const std::optional<std::string> line = ReceiveLine(connection, end);
  if (!line) return;
  try {
    const auto question = nlohmann::json::parse(*line);
    if (question.at("key") != key_) return;
    SendLine(connection, answer_(question).dump(), end);
  } catch (const nlohmann::json::exception&) {
    // Not of the job.
  }
}

Heard AskDoor(const std::string& address, const std::string& key, const nlohmann::json& question,
              double patience_s, nlohmann::json* answer) {
  const SteadyClock::time_point end = In(patience_s);
  const std::size_t colon = address.rfind(':');
  const FileDescriptor file(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  try {
    const sockaddr_in door =
        AddressOf(address.substr(0, colon), std::stoi(address.substr(colon + 1)));
    const int error = Connect(file.get(), door, end);
    if (error == ECONNREFUSED) return Heard::kRefused;
    if (error != 0) return Heard::kNothing;
    nlohmann::json keyed = question;
    keyed["key"] = key;
    if (!SendLine(file.get(), keyed.dump(), end)) return Heard::kNothing;
    const std::optional<std::string> line = ReceiveLine(file.get(), end);
    if (!line) return Heard::kNothing;
    *answer = nlohmann::json::parse(*line);
    return Heard::kAnswer;
  } catch (const std::exception&) {  // an address or an answer that is none
    return Heard::kNothing;
  }
}

}  // namespace dynamix
