// Settings that all ranks of a job, and all runs that go on with it, have in common: lines of the form
// "name = value". A private header of this room.
#pragma once

#include <string>
#include <vector>

namespace dynamix {

// "rule = linear (the checkpoint has none); ..." for every setting both name, with other values;
// empty when there is none. `whose` is who says `theirs`.
std::string Differences(const std::vector<std::string>& own, const std::vector<std::string>& theirs,
                        const std::string& whose);

}  // namespace dynamix
