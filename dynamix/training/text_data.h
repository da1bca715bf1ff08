// A text as data: its bytes are the tokens, and each token's label is the byte after it. Pure, but
// for the reading; ReadTextData throws InputError.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "dynamix/training/dataset.h"

namespace dynamix {

inline constexpr int kSequenceTokens = 64;

// The file's bytes; an InputError unless it is there and its SHA-256 is `sha256`.
std::string ReadTextData(const std::filesystem::path& path, std::string_view sha256);

// Makes `data` the text: sequences of `tokens` tokens, one after another. The last tenth of the
// text is held out. `text` has at least 20 sequences.
void SetText(Dataset& data, std::string_view text, int tokens = kSequenceTokens);

}  // namespace dynamix
