// Certificates and keys as OpenSSL has them, read from PEM texts. Pure functions; what cannot be
// read is null. A private header of this room: only its .cc files include it.
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <vector>

namespace dynamix {

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Certificate ReadCertificate(const std::string& pem);
Key ReadKey(const std::string& pem);
// The URIs among the subject's alternative names.
std::vector<std::string> UrisOf(const X509& certificate);

}  // namespace dynamix
