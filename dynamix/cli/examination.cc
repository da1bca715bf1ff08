#include "dynamix/cli/examination.h"

#include <netdb.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sstream>

#include "dynamix/cli/data_folder.h"
#include "dynamix/cli/helper_program.h"
#include "dynamix/host/blas_kernels.h"
#include "dynamix/host/cgroup.h"
#include "dynamix/host/network_namespace.h"
#include "dynamix/job/catalogue.h"
#include "dynamix/monitor/network_source.h"
#include "dynamix/monitor/nvml.h"
#include "dynamix/ppo/policy_file.h"
#include "dynamix/rpc/address.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;
using State = Finding::State;

constexpr const char* kRoot = "run it as root, or give the program the capabilities it needs";

bool OnPath(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  return false;
}

Finding ExamineTrainer() {
  const fs::path trainer = HelperProgram("dynamix-train");
  if (fs::exists(trainer)) return {"training", State::kGood, trainer.string(), ""};
  return {"training", State::kBad, "no " + trainer.string() + ": train and compare do not work",
          "build with libtorch (DYNAMIX_WITH_TORCH=ON)"};
}

// On a processor that OpenBLAS does not know, other programs than ours train at a part of their speed.
Finding ExamineKernels() {
  const std::string taken = BlasKernels();
  if (taken.empty())
    return {"matrix products", State::kLess, "not by OpenBLAS: training may be slow",
            "apt-get install libopenblas0-pthread"};
  const std::string better = BetterBlasKernels();
  if (better.empty()) return {"matrix products", State::kGood, "OpenBLAS for " + taken, ""};
  return {"matrix products", State::kLess,
          "OpenBLAS does not know this processor, and works as on a " + taken +
              " (dynamix train, compare, evaluate and launch mend it themselves)",
          std::string("export ") + kBlasKernelsVariable + "=" + better};
}

Finding ExamineData() {
  try {
    const std::string file = FindData("policy", "default", "policies", ".safetensors");
    if (const Result<PolicyModel> policy = LoadPolicy(file); !policy)
      return {"policies", State::kBad, policy.error(), "install dynamix anew"};
    return {"policies", State::kGood, file + " is intact", ""};
  } catch (const std::exception& error) {
    return {"policies", State::kBad, error.what(), "export DYNAMIX_DATA=FOLDER"};
  }
}

Finding ExamineDataset(const KnownDataset& dataset) {
  const std::string folder = DatasetFolder(std::string(dataset.name));
  std::error_code error;
  const bool there = fs::is_directory(folder, error) && !fs::is_empty(folder, error);
  const std::string subject = "data set " + std::string(dataset.name);
  if (there) return {subject, State::kGood, folder, ""};
  return {subject, State::kLess, "not in " + folder, std::string(dataset.remedy)};
}

// A cgroup of its own and the eBPF program on it: what every rank of a launched job gets.
void ExamineMeasuring(std::vector<Finding>& findings) {
  const Result<Cgroup> made = Cgroup::Create("doctor-" + std::to_string(getpid()));
  if (!made) {
    findings.push_back({"cgroups", State::kLess, made.error(), kRoot});
    findings.push_back({"network metrics", State::kLess, "inet_diag: eBPF needs a cgroup", kRoot});
    return;
  }
  findings.push_back({"cgroups", State::kGood, "each rank can have its own", ""});
  std::string note;
  const OpenedSource source = OpenEbpfSource(made.value().path(), &note);
  if (!source)
    findings.push_back({"network metrics", State::kLess, "inet_diag: " + source.error(), kRoot});
  else if (!note.empty())
    findings.push_back({"network metrics", State::kLess, "eBPF: " + note, kRoot});
  else
    findings.push_back({"network metrics", State::kGood, "eBPF, exact to the byte", ""});
}

Finding ExamineNamespaces() {
  std::string missing;
  for (const char* program : {"ip", "iptables"})
    if (!OnPath(program)) missing += std::string(missing.empty() ? "" : " and ") + program;
  if (!missing.empty())
    return {"emulated clusters", State::kLess, "no " + missing + ": plain processes only",
            "apt-get install iproute2 iptables"};
  if (const Result<NetworkNamespace> made = NetworkNamespace::Create(); !made)
    return {"emulated clusters", State::kLess, "plain processes only: " + made.error(), kRoot};
  return {"emulated clusters", State::kGood, "network namespaces can be made", ""};
}

Finding ExamineDevice() {
  const Result<Nvml> device = Nvml::Open(0);
  if (device) return {"GPU metrics", State::kGood, "NVML answers for device 0", ""};
  return {"GPU metrics", State::kLess, device.error(),
          "install NVIDIA's driver, if there is a GPU"};
}

// The address can be bound now; whoever holds it else.
Finding ExaminePort(const std::string& address) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  const std::optional<HostPort> wanted = ParseHostPort(address);
  const std::string port = wanted ? std::to_string(wanted->port) : "";
  if (!wanted || getaddrinfo(wanted->host.c_str(), port.c_str(), &hints, &found) != 0)
    return {"arbitrator's port", State::kBad, address + " is no address",
            "name " + std::string(kHostPortForm)};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  const int file = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool bound = bind(file, found->ai_addr, found->ai_addrlen) == 0 && listen(file, 1) == 0;
  const std::string why = std::strerror(errno);
  close(file);
  if (bound) return {"arbitrator's port", State::kGood, address + " is free", ""};
  return {"arbitrator's port", State::kLess, address + ": " + why,
          "ss -ltnp 'sport = :" + port + "' shows who has it; --listen names another"};
}

Finding ExamineCertificate(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "r"), std::fclose);
  const std::unique_ptr<X509, void (*)(X509*)> certificate(
      file ? PEM_read_X509(file.get(), nullptr, nullptr, nullptr) : nullptr, X509_free);
  if (!certificate)
    return {"certificate", State::kBad, path + " is no certificate", "scripts/make-certs"};
  int days = 0, seconds = 0;
  ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(certificate.get()));
  if (days < 0 || seconds < 0)
    return {"certificate", State::kBad, path + " has expired", "scripts/make-certs"};
  return {"certificate", days < 14 ? State::kLess : State::kGood,
          path + " is valid for " + std::to_string(days) + " days",
          days < 14 ? "scripts/make-certs, then SIGHUP to the arbitrator" : ""};
}

Finding ExamineTools() {
  if (OnPath("openssl")) return {"certificates", State::kGood, "openssl can make them", ""};
  return {"certificates", State::kLess, "no openssl: none can be made", "apt-get install openssl"};
}

// Times of a job are of the steady clock; records and certificates are of this one.
Finding ExamineClock() {
  timex clock{};
  const int state = adjtimex(&clock);
  if (state >= 0 && state != TIME_ERROR)
    return {"clock", State::kGood, "kept by a time server", ""};
  return {"clock", State::kLess, "not kept by a time server: records of machines may disagree",
          "timedatectl set-ntp true"};
}

Finding ExamineFiles() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const std::string text = std::to_string(limit.rlim_max) + " files at most";
  if (limit.rlim_max >= 8192) return {"open files", State::kGood, text, ""};
  return {"open files", State::kLess, text + ": so many connections has an arbitrator",
          "ulimit -Hn 8192 as root, or LimitNOFILE= of the service"};
}

}  // namespace

std::vector<Finding> Examine(const ExaminationOptions& options) {
  std::vector<Finding> findings = {ExamineTrainer(), ExamineKernels(), ExamineData()};
  for (const KnownDataset& dataset : KnownDatasets()) findings.push_back(ExamineDataset(dataset));
  ExamineMeasuring(findings);
  findings.push_back(ExamineNamespaces());
  findings.push_back(ExamineDevice());
  findings.push_back(ExaminePort(options.address));
  findings.push_back(ExamineTools());
  if (!options.certificate.empty()) findings.push_back(ExamineCertificate(options.certificate));
  findings.push_back(ExamineClock());
  findings.push_back(ExamineFiles());
  return findings;
}

}  // namespace dynamix
