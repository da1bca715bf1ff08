#include "dynamix/host/testing/test_network.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

namespace dynamix::test {
namespace {

constexpr int kNetworkPatienceMs = 60000;

enum class Order { kOpen, kSend, kSendFor, kClose };
struct Command {
  Order order;
  std::uint64_t bytes;
  double seconds;
};

void WriteAll(int file, const void* bytes, std::size_t length) {
  const char* next = static_cast<const char*>(bytes);
  while (length > 0) {
    const ssize_t wrote = send(file, next, length, MSG_NOSIGNAL);
    Must(wrote > 0);
    next += wrote;
    length -= static_cast<std::size_t>(wrote);
  }
}

// False at the end of the stream.
bool ReadAll(int file, void* bytes, std::size_t length) {
  char* next = static_cast<char*>(bytes);
  while (length > 0) {
    const ssize_t got = recv(file, next, length, 0);
    if (got <= 0) return false;
    next += got;
    length -= static_cast<std::size_t>(got);
  }
  return true;
}

// A message is its length and so many bytes; the answer is the reader's TCP_INFO.
void WriteMessage(int file, std::uint64_t bytes) {
  static const std::vector<char> kChunk(1 << 16, 'x');
  WriteAll(file, &bytes, sizeof bytes);
  while (bytes > 0) {
    const std::size_t part = std::min<std::uint64_t>(bytes, kChunk.size());
    WriteAll(file, kChunk.data(), part);
    bytes -= part;
  }
}

void AnswerMessages(int file) {
  std::vector<char> chunk(1 << 16);
  std::uint64_t bytes = 0;
  while (ReadAll(file, &bytes, sizeof bytes)) {
    while (bytes > 0) {
      const std::size_t part = std::min<std::uint64_t>(bytes, chunk.size());
      Must(ReadAll(file, chunk.data(), part));
      bytes -= part;
    }
    const TcpSample sample = TcpInfoOf(file);
    WriteAll(file, &sample, sizeof sample);
  }
}

// Of either family: an address with a colon is one of IPv6.
struct SocketAddress {
  SocketAddress(const std::string& address, std::uint16_t port) {
    if (address.find(':') != std::string::npos) {
      auto* six = reinterpret_cast<sockaddr_in6*>(&storage);
      six->sin6_family = AF_INET6;
      six->sin6_port = htons(port);
      Must(inet_pton(AF_INET6, address.c_str(), &six->sin6_addr) == 1);
      length = sizeof *six;
    } else {
      auto* four = reinterpret_cast<sockaddr_in*>(&storage);
      four->sin_family = AF_INET;
      four->sin_port = htons(port);
      Must(inet_pton(AF_INET, address.c_str(), &four->sin_addr) == 1);
      length = sizeof *four;
    }
  }
  int family() const { return storage.ss_family; }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  std::uint16_t port() const {  // at the same place in both
    return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
  }

  sockaddr_storage storage{};
  socklen_t length = 0;
};

FileDescriptor ListenOn(const std::string& address, std::uint16_t* port) {
  SocketAddress where(address, 0);
  FileDescriptor listener(socket(where.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  Must(bind(listener.get(), where.get(), where.length) == 0 && listen(listener.get(), 8) == 0 &&
       getsockname(listener.get(), where.get(), &where.length) == 0);
  *port = where.port();
  return listener;
}

FileDescriptor ConnectTo(const std::string& address, std::uint16_t port) {
  SocketAddress where(address, port);
  FileDescriptor file(socket(where.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  // BBR, the default of some kernels, hardly reacts to loss. Not every user may choose.
  (void)setsockopt(file.get(), IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
  Must(connect(file.get(), where.get(), where.length) == 0);
  return file;
}

void WaitUntilAcknowledged(int file) {
  for (int i = 0; i < kNetworkPatienceMs; ++i) {
    tcp_info info{};
    socklen_t length = sizeof info;
    Must(getsockopt(file, IPPROTO_TCP, TCP_INFO, &info, &length) == 0);
    if (info.tcpi_unacked == 0) return;
    usleep(1000);
  }
  Must(false);
}

void ReceiverMain(Channel& test, const std::string& address) {
  std::uint16_t port = 0;
  const FileDescriptor listener = ListenOn(address, &port);
  test.Send(port);
  while (true) {
    const FileDescriptor connection(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    Must(connection.valid());
    AnswerMessages(connection.get());
  }
}

Transfer AwaitAnswer(int file) {
  Transfer transfer;
  Must(ReadAll(file, &transfer.receiver, sizeof transfer.receiver));
  WaitUntilAcknowledged(file);
  transfer.sender = TcpInfoOf(file);
  return transfer;
}

TcpSample CloseInOrder(FileDescriptor& connection) {
  Must(shutdown(connection.get(), SHUT_WR) == 0);
  char rest = 0;
  Must(!ReadAll(connection.get(), &rest, 1));  // the receiver has closed as well
  const TcpSample last = TcpInfoOf(connection.get());
  connection = FileDescriptor();
  return last;
}

// Small messages, a bounded number of them unanswered, and the answer to the last one left unread.
void SendFor(int file, double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr int kMostUnanswered = 64;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  int unanswered = 0;
  while (Clock::now() < end || unanswered == 0 || unanswered > 1) {
    if (Clock::now() < end || unanswered == 0) {
      WriteMessage(file, 1 << 16);
      ++unanswered;
    }
    if (unanswered < kMostUnanswered && Clock::now() < end) continue;
    TcpSample ignored;
    if (unanswered > 1) Must(ReadAll(file, &ignored, sizeof ignored));
    if (unanswered > 1) --unanswered;
  }
}

void SenderMain(Channel& test, const std::string& address, std::uint16_t port) {
  FileDescriptor connection;
  while (true) {
    const auto command = test.Receive<Command>();
    switch (command.order) {
      case Order::kOpen:
        connection = ConnectTo(address, port);
        test.Send(true);
        break;
      case Order::kSend:
        WriteMessage(connection.get(), command.bytes);
        test.Send(AwaitAnswer(connection.get()));
        break;
      case Order::kSendFor:
        SendFor(connection.get(), command.seconds);
        test.Send(AwaitAnswer(connection.get()));
        break;
      case Order::kClose:
        test.Send(CloseInOrder(connection));
        break;
    }
  }
}

}  // namespace

Receiver::Receiver(Child::Place place, const std::string& address)
    : child_(place, [&](Channel& test) { ReceiverMain(test, address); }),
      port_(child_.channel().Receive<std::uint16_t>()) {}

Sender::Sender(Child::Place place, const std::string& address, std::uint16_t port)
    : child_(place, [&](Channel& test) { SenderMain(test, address, port); }) {}

void Sender::Open() {
  child_.channel().Send(Command{Order::kOpen, 0, 0});
  EXPECT_TRUE(child_.channel().Receive<bool>());
}

Transfer Sender::Send(std::uint64_t bytes) {
  child_.channel().Send(Command{Order::kSend, bytes, 0});
  return child_.channel().Receive<Transfer>();
}

void Sender::StartSending(double seconds) {
  child_.channel().Send(Command{Order::kSendFor, 0, seconds});
}

Transfer Sender::Finish() { return child_.channel().Receive<Transfer>(); }

TcpSample Sender::Close() {
  child_.channel().Send(Command{Order::kClose, 0, 0});
  return child_.channel().Receive<TcpSample>();
}

TcpSample TcpInfoOf(int file) {
  std::array<std::byte, 512> info;
  socklen_t length = info.size();
  Must(getsockopt(file, IPPROTO_TCP, TCP_INFO, info.data(), &length) == 0);
  return ParseTcpInfo({info.data(), length});
}

std::pair<FileDescriptor, FileDescriptor> LoopbackPair() {
  std::uint16_t port = 0;
  const FileDescriptor listener = ListenOn("127.0.0.1", &port);
  FileDescriptor one = ConnectTo("127.0.0.1", port);
  FileDescriptor other(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  Must(other.valid());
  return {std::move(one), std::move(other)};
}

void Pump(const std::pair<FileDescriptor, FileDescriptor>& pair, std::size_t bytes) {
  std::vector<char> chunk(1 << 14, 'x');
  for (; bytes > 0; bytes -= std::min(bytes, chunk.size())) {
    const std::size_t part = std::min(bytes, chunk.size());
    WriteAll(pair.first.get(), chunk.data(), part);
    Must(ReadAll(pair.second.get(), chunk.data(), part));
  }
  WaitUntilAcknowledged(pair.first.get());
}

}  // namespace dynamix::test
