#include "dynamix/rpc/pem.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace dynamix {
namespace {

using Text = std::unique_ptr<BIO, decltype(&BIO_free)>;

Text Open(const std::string& pem) {
  return {BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free};
}

// Without this OpenSSL asks the terminal for a password.
int NoPassword(char*, int, int, void*) { return -1; }

}  // namespace

Certificate ReadCertificate(const std::string& pem) {
  return {PEM_read_bio_X509(Open(pem).get(), nullptr, NoPassword, nullptr), X509_free};
}

Key ReadKey(const std::string& pem) {
  return {PEM_read_bio_PrivateKey(Open(pem).get(), nullptr, NoPassword, nullptr), EVP_PKEY_free};
}

std::vector<std::string> UrisOf(const X509& certificate) {
  std::vector<std::string> uris;
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> names(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free);
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                      static_cast<std::size_t>(ASN1_STRING_length(uri)));
  }
  return uris;
}

}  // namespace dynamix
