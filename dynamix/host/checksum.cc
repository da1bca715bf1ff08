#include "dynamix/host/checksum.h"

#include <openssl/evp.h>

#include <memory>

#include "dynamix/core/check.h"

namespace dynamix {

std::string Sha256(std::initializer_list<std::string_view> parts) {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                  &EVP_MD_CTX_free);
  unsigned char digest[32] = {};
  bool good = context != nullptr && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1;
  for (const std::string_view part : parts)
    good = good && EVP_DigestUpdate(context.get(), part.data(), part.size()) == 1;
  good = good && EVP_DigestFinal_ex(context.get(), digest, nullptr) == 1;
  DYNAMIX_CHECK(good, "SHA-256 is available");
  std::string text;
  for (const unsigned char byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

}  // namespace dynamix
