#include "dynamix/rpc/security.h"

#include <algorithm>

#include "dynamix/rpc/pem.h"

namespace dynamix {
namespace {

bool HasExpired(const X509& certificate) {
  return X509_cmp_current_time(X509_get0_notAfter(&certificate)) < 0;
}

bool Holds(const std::vector<std::string>& names, std::string_view wanted) {
  return std::find(names.begin(), names.end(), wanted) != names.end();
}

}  // namespace

std::string CheckTls(const TlsFiles& files) {
  if (files.authority.empty() || files.certificate.empty() || files.key.empty())
    return "TLS needs a certificate authority, a certificate and a key";
  const Certificate authority = ReadCertificate(files.authority);
  if (!authority) return "the authority is not a certificate (PEM)";
  const Certificate own = ReadCertificate(files.certificate);
  if (!own) return "the certificate is not one (PEM)";
  const Key key = ReadKey(files.key);
  if (!key) return "the key is not one (PEM, without a password)";
  if (X509_check_private_key(own.get(), key.get()) != 1)
    return "the key is not that of the certificate";
  if (HasExpired(*own) || HasExpired(*authority)) return "the certificate has expired";
  return "";
}

bool MaySpeakAs(const std::vector<std::string>& names, const WorkerName& worker) {
  const std::string job = "dynamix://job/" + worker.job + "/rank/";
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return name == job + "*" || name == job + std::to_string(worker.rank);
  });
}

bool MayAdminister(const std::vector<std::string>& names) {
  return Holds(names, "dynamix://admin");
}

bool MayReadMetrics(const std::vector<std::string>& names) {
  return Holds(names, "dynamix://metrics") || MayAdminister(names);
}

bool SameToken(std::string_view given, std::string_view wanted) {
  unsigned difference = given.size() == wanted.size() ? 0 : 1;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    difference |= static_cast<unsigned char>(wanted[i]) ^
                  static_cast<unsigned char>(given.empty() ? 0 : given[i % given.size()]);
  return difference == 0;
}

}  // namespace dynamix
