#include "dynamix/page/document.h"

#include <charconv>

#include "dynamix/host/checksum.h"
#include "dynamix/page/assets.h"
#include "dynamix/page/text.h"

namespace dynamix {
namespace {

// As a content-security policy names a script: the base64 of its SHA-256.
std::string ScriptHash(const std::string& script) {
  const std::string hex = Sha256({script});
  std::string bits;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    unsigned byte = 0;
    std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    for (int bit = 7; bit >= 0; --bit) bits += (byte >> bit & 1) != 0 ? '1' : '0';
  }
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bits.size(); i += 6) {
    std::string six = bits.substr(i, 6);
    six.resize(6, '0');
    unsigned digit = 0;
    std::from_chars(six.data(), six.data() + six.size(), digit, 2);
    text += kDigits[digit];
  }
  return "'sha256-" + text + "='";  // 256 bits leave one sign of padding
}

// JSON that cannot end the element it stands in.
std::string Embedded(const nlohmann::json& data) {
  std::string text;
  for (const char c : data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
    text += c == '<' ? "\\u003c" : std::string(1, c);
  return text;
}

}  // namespace

std::string Document(const std::string& title, const std::string& body, const nlohmann::json& data,
                     const std::string& script) {
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta "
      "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'" +
      (script.empty() ? "" : "; script-src " + ScriptHash(script)) +
      "\">\n<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>" +
      Escape(title) + "</title>\n<style>" + kStyleSheet + "</style></head>\n<body>" + body;
  if (!script.empty())
    html +=
        "\n<noscript><p class=\"lead\">The charts need scripts.</p></noscript>"
        "<script type=\"application/json\" id=\"data\">" +
        Embedded(data) + "</script>\n<script>" + script + "</script>";
  return html + "</body></html>\n";
}

}  // namespace dynamix
