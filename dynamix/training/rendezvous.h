// Where the members of an elastic job meet when one is lost or wants to join, and agree on the next
// team (the protocol is in team.h). It has no host: every member has a door, so the loss of any
// member, the first one included, leaves the others a place to meet.
//
// A member that finds itself left out (it was stopped, or cut off, and the others went on) asks to
// join like a new one. One thread calls Meet, Join and Fetch; the door's thread answers meanwhile.
// Errors: no quorum within twice the timeout, nobody to join, or another process in the slot.
// A private header of this room.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dynamix/core/result.h"
#include "dynamix/training/team.h"

namespace dynamix {

class Door;
enum class Heard;

struct RendezvousOptions {
  int slot = 0;
  int slots = 1;                   // of the job; nobody has a higher one
  int started = 1;                 // slots that had a member at the start
  std::string host = "127.0.0.1";  // IPv4, of this machine
  std::string key;                 // of the job: who knows it is believed
  double timeout_s = 60;           // a member that computes longer than this is left out
  int least_members = 1;           // a smaller team is not made
};

class Rendezvous {
 public:
  // `wanted` is called on the door's thread when others meet and this member is not there: it must
  // make the member's collectives fail.
  Rendezvous(const RendezvousOptions& options, std::function<void()> wanted);
  ~Rendezvous();

  const Member& self() const { return self_; }
  const std::string& key() const { return options_.key; }
  int started() const { return options_.started; }
  Team team() const;
  // The first team, which all members know.
  void Begin(const std::vector<Member>& members);
  // Waits for the next team with this member in it. `take_joiners`: those who asked to be taken in
  // come into the team if this member makes it.
  Result<Team> Meet(bool take_joiners = false);
  // Asks these members to be taken into their team, and waits for that.
  Result<Team> Join(const std::vector<std::string>& doors);
  bool JoinWaiting() const;                // somebody asked to be taken in
  bool joined() const { return joined_; }  // the last team took this member in, or back in

  // Leaves bytes for the other members of this epoch, and takes theirs; waits for them up to
  // `patience_s`, unless that member has ended.
  void Publish(const std::string& name, const std::string& bytes);
  Result<std::string> Fetch(int rank, const std::string& name, double patience_s);

 private:
  using Clock = std::chrono::steady_clock;
  // What the others said to one question.
  struct Answers;

  nlohmann::json Answer(const nlohmann::json& question);
  nlohmann::json AnswerMember(const nlohmann::json& question);
  nlohmann::json AnswerVote(const nlohmann::json& question);
  nlohmann::json NoteJoiner(const nlohmann::json& question);
  nlohmann::json OfferSlot();
  void Learn(const Team& team);
  std::optional<Team> TakeDecision();

  nlohmann::json Question(const std::string& ask) const;
  Heard Ask(const Member& member, nlohmann::json question, double patience_s,
            nlohmann::json* answer);
  Answers AskAll(const std::vector<Member>& members, const nlohmann::json& question);
  bool Gone(const Member& member) const;  // silent or ended
  void Note(const Member& member, Heard heard);
  bool MayDecide(const Team& team, const std::vector<Member>& members) const;
  bool MayLead(bool patient);
  void Lead(bool patient);
  std::vector<Member> Propose(const Answers& promises);
  void Decide(const Team& team, const Answers& promises, std::int64_t ballot);

  const RendezvousOptions options_;
  const std::function<void()> wanted_;
  const double patience_s_;  // with a member that does not answer

  mutable std::mutex mutex_;
  std::condition_variable decided_or_not_;
  Team team_;
  bool arrived_ = false;
  Vote vote_;
  std::optional<Team> decided_;
  struct Joiner {
    Member member;
    Clock::time_point asked;
  };
  std::map<int, Joiner> joiners_;             // by slot
  std::map<int, Clock::time_point> offered_;  // slots, and when
  std::map<std::string, std::string> published_;

  // Of this meeting; its thread only.
  std::set<std::uint64_t> silent_, ended_;  // incarnations
  bool take_joiners_ = false, joined_ = false;
  int too_few_ = 0;  // members that would have made a team, had they been enough
  std::int64_t highest_ballot_ = 0;

  Member self_;
  std::unique_ptr<Door> door_;  // last: its thread uses everything above
};

}  // namespace dynamix
