// What somebody may have meant who mistyped a name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dynamix {

// Letters to insert, leave out, change or swap with a neighbour that make one word of the other.
int EditDistance(std::string_view a, std::string_view b);

// "; did you mean NAME?" for the choice nearest to `word`; empty when none is near: at most a third
// of the word's letters, and two at least, may be wrong, or the choice begins with the word.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& choices);

}  // namespace dynamix
