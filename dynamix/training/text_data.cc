#include "dynamix/training/text_data.h"

#include <fstream>
#include <iterator>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"
#include "dynamix/host/checksum.h"

namespace dynamix {
namespace {

constexpr int kBytes = 256;  // what a token can be

// Every token but the last has a successor, so the labels are the text from the second byte on.
SampleSet Sequences(std::string_view text, int tokens) {
  const std::size_t used = (text.size() - 1) / tokens * tokens;
  SampleSet set{.inputs = {text.begin(), text.begin() + used},
                .labels = {text.begin() + 1, text.begin() + 1 + used},
                .labels_per_sample = tokens};
  return set;
}

}  // namespace

std::string ReadTextData(const std::filesystem::path& path, std::string_view sha256) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError("cannot read " + path.string());
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (const std::string sum = Sha256({text}); sum != sha256)
    throw InputError("cannot use " + path.string() + ": its sha256 is " + sum + ", expected " +
                     std::string(sha256));
  return text;
}

void SetText(Dataset& data, std::string_view text, int tokens) {
  DYNAMIX_CHECK(tokens > 0 && text.size() > 20 * static_cast<std::size_t>(tokens),
                "a text of some sequences");
  const std::size_t first_held_out = text.size() / 10 * 9;
  data.shape = {.tokens = tokens};
  data.classes = kBytes;
  data.training = Sequences(text.substr(0, first_held_out), tokens);
  data.held_out = Sequences(text.substr(first_held_out), tokens);
}

}  // namespace dynamix
