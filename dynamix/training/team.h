// The members of an elastic job, and how they agree on who goes on. Pure values and functions.
//
// A team is a list of members with an epoch; an iteration belongs to one team. A member that loses
// another one, or hears that somebody did, leaves the iteration under way and meets the others
// (rendezvous.h). They agree on the team of the next epoch by one Paxos decision (Lamport, "The
// part-time parliament", 1998), whose voters are the members of this epoch:
//
//   1. the lowest member that can be reached asks all for a promise (Prepare, with a ballot); a
//      member promises only once it has left its iteration, and names the value it accepted last
//   2. with a quorum of promises it proposes the value accepted under the highest ballot, or else
//      those who promised, and those who want to join (Accept)
//   3. with a quorum of acceptances the team is decided, and everybody is told (Learn)
//
// A quorum is more than half of the team; or half of it with its lowest member; or everybody whose
// process is not known to have ended (the machine refuses connections to its port). Any two have a
// living member in common, or the first left nobody alive who knows of its decision, but for those
// who joined it: these are in the members' file, which everybody reads before a meeting. So there is
// one next team, and those outside it can never go on beside it.
//
// Why no iteration is lost or counted twice: an iteration needs all members of a team, so members
// differ by one iteration at most, and nobody goes on in an epoch in which a member of the next
// team has left. The next team takes the state of its most advanced member. What that one has not
// trained, nobody in the team has, and the cursor says so: its samples are shared out again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dynamix {

struct Member {
  int slot = 0;                   // which worker of the job it is: its rank when the job started
  std::uint64_t incarnation = 0;  // another one for every process that takes the slot
  std::string door;               // ADDRESS:PORT on which it answers

  bool operator==(const Member&) const = default;
};

struct Team {
  std::int64_t epoch = 0;
  std::vector<Member> members;  // by slot, each slot once

  // Its place in the list, which is its rank; -1 when it is not a member.
  int RankOf(const Member& member) const;
};

// Whether these members of the team may decide. `ended`: slots whose process is known to have ended.
bool IsQuorum(const Team& team, const std::vector<int>& slots, const std::vector<int>& ended);

// One member's vote on the team after its own.
class Vote {
 public:
  // False when a higher ballot was promised.
  bool Promise(std::int64_t ballot);
  bool Accept(std::int64_t ballot, const std::vector<Member>& members);

  std::int64_t promised() const { return promised_; }
  std::int64_t accepted_ballot() const { return accepted_ballot_; }  // 0: nothing accepted
  const std::vector<Member>& accepted() const { return accepted_; }

 private:
  std::int64_t promised_ = 0, accepted_ballot_ = 0;
  std::vector<Member> accepted_;
};

}  // namespace dynamix
