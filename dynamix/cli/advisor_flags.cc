#include "dynamix/cli/advisor_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>

#include "dynamix/core/input_error.h"
#include "dynamix/host/atomic_file.h"

namespace dynamix {
namespace {

constexpr std::size_t kMostPemBytes = 1 << 20;    // a long chain has some 100 KiB
constexpr std::size_t kMostTokenBytes = 1 << 10;  // it goes with every call, beside other headers

std::string ReadText(const std::string& flag, const std::string& path, std::size_t most) {
  if (path.empty()) return {};
  const Result<std::string> text = ReadBytes(path, most);
  if (!text) throw InputError(flag + ": " + text.error());
  return text.value();
}

std::string ReadPem(const std::string& flag, const std::string& path) {
  std::string text = ReadText(flag, path, kMostPemBytes);
  if (text.empty() && !path.empty()) throw InputError::OutOfRange(flag, path, "a PEM file");
  return text;
}

}  // namespace

void AddTlsFlags(CLI::App& command, TlsFlags& flags) {
  command.add_option("--tls-ca", flags.authority, "certificate of the private authority (PEM)");
  command.add_option("--tls-cert", flags.certificate, "own certificate (PEM)");
  command.add_option("--tls-key", flags.key, "own key (PEM)");
  command.add_option("--token-file", flags.token, "file that holds the shared token");
}

void AddAdvisorFlags(CLI::App& command, AdvisorFlags& flags) {
  command.add_option(
      "--advisor", flags.address,
      "live: HOST:PORT of an arbitrator, several with commas; default: inside rank 0");
  command.add_option("--job", flags.job, "live: name of the job at the arbitrator");
  command.add_option("--advisor-timeout", flags.timeout_s, "live: seconds to wait for advice")
      ->check(CLI::Range(0.01, 600.0))
      ->capture_default_str();
  command.add_option("--tls-name", flags.tls_name, "name in the arbitrator's certificate");
  AddTlsFlags(command, flags.tls);
}

TlsFiles ReadTls(const TlsFlags& flags) {
  return {ReadPem("--tls-ca", flags.authority), ReadPem("--tls-cert", flags.certificate),
          ReadPem("--tls-key", flags.key)};
}

std::string ReadToken(const TlsFlags& flags) {
  std::string token = ReadText("--token-file", flags.token, kMostTokenBytes);
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  // An empty token would admit everybody, and one that no header can carry, or carries without the
  // spaces at its ends, nobody.
  const bool sendable =
      std::all_of(token.begin(), token.end(), [](unsigned char c) { return std::isprint(c) != 0; });
  const bool spaced = !token.empty() && (token.front() == ' ' || token.back() == ' ');
  if (!flags.token.empty() && (token.empty() || !sendable || spaced))
    throw InputError::OutOfRange(
        "--token-file", flags.token,
        "a file with one line of printable characters, no space at its ends");
  return token;
}

RemoteAdvisorOptions MakeAdvisorOptions(const AdvisorFlags& flags) {
  RemoteAdvisorOptions options;
  options.addresses = flags.address;
  options.job = flags.job;
  options.tls = ReadTls(flags.tls);
  options.tls_name = flags.tls_name;
  options.token = ReadToken(flags.tls);
  options.timeout_s = options.patience_s = flags.timeout_s;
  return options;
}

}  // namespace dynamix
