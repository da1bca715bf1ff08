#include "dynamix/monitor/inet_diag_message.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cstring>
#include <optional>

namespace dynamix {
namespace {

constexpr std::size_t Aligned(std::size_t length) { return (length + 3) & ~std::size_t{3}; }

template <typename T>
std::optional<T> Take(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

std::span<const std::byte> Skip(std::span<const std::byte> bytes, std::size_t length) {
  return bytes.subspan(std::min(Aligned(length), bytes.size()));
}

// One socket's message and its attributes; nothing when it carries no TCP_INFO.
std::optional<SocketSample> ParseSocket(std::span<const std::byte> payload) {
  const auto message = Take<inet_diag_msg>(payload);
  if (!message) return std::nullopt;
  SocketSample sample;
  sample.cookie =
      std::uint64_t{message->id.idiag_cookie[0]} | std::uint64_t{message->id.idiag_cookie[1]} << 32;
  sample.inode = message->idiag_inode;
  payload = Skip(payload, sizeof(inet_diag_msg));
  while (const auto attribute = Take<nlattr>(payload)) {
    if (attribute->nla_len < sizeof(nlattr) || attribute->nla_len > payload.size()) break;
    if (attribute->nla_type == INET_DIAG_INFO) {
      sample.tcp =
          ParseTcpInfo(payload.subspan(sizeof(nlattr), attribute->nla_len - sizeof(nlattr)));
      return sample;
    }
    payload = Skip(payload, attribute->nla_len);
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::byte> DumpRequest(int family, std::uint32_t sequence) {
  struct {
    nlmsghdr header;
    inet_diag_req_v2 request;
  } message;
  std::memset(&message, 0, sizeof message);
  message.header.nlmsg_len = sizeof message;
  message.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  message.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  message.header.nlmsg_seq = sequence;
  message.request.sdiag_family = static_cast<std::uint8_t>(family);
  message.request.sdiag_protocol = IPPROTO_TCP;
  message.request.idiag_ext = 1 << (INET_DIAG_INFO - 1);
  message.request.idiag_states = 1 << TCP_ESTABLISHED | 1 << TCP_FIN_WAIT1 | 1 << TCP_FIN_WAIT2 |
                                 1 << TCP_CLOSE_WAIT | 1 << TCP_LAST_ACK | 1 << TCP_CLOSING;
  std::vector<std::byte> bytes(sizeof message);
  std::memcpy(bytes.data(), &message, sizeof message);
  return bytes;
}

DiagMessages ParseDiagMessages(std::span<const std::byte> bytes, std::uint32_t sequence) {
  DiagMessages messages;
  while (!bytes.empty()) {
    const auto header = Take<nlmsghdr>(bytes);
    if (!header || header->nlmsg_len < sizeof(nlmsghdr) || header->nlmsg_len > bytes.size()) {
      messages.malformed = true;
      return messages;
    }
    const auto payload = bytes.subspan(sizeof(nlmsghdr), header->nlmsg_len - sizeof(nlmsghdr));
    bytes = Skip(bytes, header->nlmsg_len);
    if (header->nlmsg_seq != sequence) continue;
    if (header->nlmsg_type == NLMSG_DONE) {
      messages.done = true;
    } else if (header->nlmsg_type == NLMSG_ERROR) {
      const auto error = Take<nlmsgerr>(payload);
      // Wraps like the kernel's own negation; an error of 0 is an acknowledgement.
      messages.error_number =
          error ? static_cast<int>(0U - static_cast<unsigned>(error->error)) : 0;
      messages.done = true;
    } else if (header->nlmsg_type == SOCK_DIAG_BY_FAMILY) {
      if (auto sample = ParseSocket(payload)) messages.sockets.push_back(*sample);
    }
  }
  return messages;
}

}  // namespace dynamix
