#include "dynamix/training/team.h"

#include <algorithm>

namespace dynamix {

int Team::RankOf(const Member& member) const {
  const auto found = std::find(members.begin(), members.end(), member);
  return found == members.end() ? -1 : static_cast<int>(found - members.begin());
}

bool IsQuorum(const Team& team, const std::vector<int>& slots, const std::vector<int>& ended) {
  const auto in = [](const std::vector<int>& list, int slot) {
    return std::find(list.begin(), list.end(), slot) != list.end();
  };
  std::size_t present = 0, known = 0;
  for (const Member& member : team.members) {
    present += in(slots, member.slot) ? 1 : 0;
    known += in(slots, member.slot) || in(ended, member.slot) ? 1 : 0;
  }
  const std::size_t all = team.members.size();
  if (present == 0) return false;
  return 2 * present > all || known == all ||
         (2 * present == all && in(slots, team.members.front().slot));
}

bool Vote::Promise(std::int64_t ballot) {
  if (ballot <= promised_) return false;
  promised_ = ballot;
  return true;
}

bool Vote::Accept(std::int64_t ballot, const std::vector<Member>& members) {
  if (ballot < promised_) return false;
  promised_ = accepted_ballot_ = ballot;
  accepted_ = members;
  return true;
}

}  // namespace dynamix
