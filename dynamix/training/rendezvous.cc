#include "dynamix/training/rendezvous.h"

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <utility>

#include "dynamix/training/door.h"

namespace dynamix {

// Of nlohmann's making: found by these names.
void to_json(nlohmann::json& json, const Member& member) {
  json = {{"slot", member.slot}, {"incarnation", member.incarnation}, {"door", member.door}};
}
void from_json(const nlohmann::json& json, Member& member) {
  json.at("slot").get_to(member.slot);
  json.at("incarnation").get_to(member.incarnation);
  json.at("door").get_to(member.door);
}
void to_json(nlohmann::json& json, const Team& team) {
  json = {{"epoch", team.epoch}, {"members", team.members}};
}
void from_json(const nlohmann::json& json, Team& team) {
  json.at("epoch").get_to(team.epoch);
  json.at("members").get_to(team.members);
}

namespace {

using nlohmann::json;

constexpr auto kPause = std::chrono::milliseconds(5);
constexpr int kSlots = 4096;  // a ballot is attempt * kSlots + slot
// A joiner asks again before this; one that does not has given up.
constexpr auto kJoinerAsksEvery = std::chrono::milliseconds(200);
constexpr std::chrono::duration<double> kJoinerForgotten = std::chrono::seconds(3);

json Say(const char* word) { return {{"say", word}}; }

bool HasSlot(const Team& team, int slot) {
  return std::any_of(team.members.begin(), team.members.end(),
                     [&](const Member& member) { return member.slot == slot; });
}

std::uint64_t RandomNumber() {
  std::random_device device;
  return (std::uint64_t{device()} << 32 | device()) >> 11;  // exact as a double, too
}

}  // namespace

struct Rendezvous::Answers {
  std::vector<std::pair<Member, json>> all;
  // Those who said so.
  std::vector<Member> Who(const std::string& word) const {
    std::vector<Member> who;
    for (const auto& [member, answer] : all)
      if (answer.at("say") == word) who.push_back(member);
    return who;
  }
};

Rendezvous::Rendezvous(const RendezvousOptions& options, std::function<void()> wanted)
    : options_(options),
      wanted_(std::move(wanted)),
      patience_s_(std::min(5.0, options.timeout_s / 2)) {
  self_ = {options.slot, RandomNumber(), ""};
  door_ = std::make_unique<Door>(options.host, options.key,
                                 [this](const json& question) { return Answer(question); });
  const std::lock_guard lock(mutex_);
  self_.door = door_->address();
}

Rendezvous::~Rendezvous() = default;

Team Rendezvous::team() const {
  const std::lock_guard lock(mutex_);
  return team_;
}

void Rendezvous::Begin(const std::vector<Member>& members) {
  const std::lock_guard lock(mutex_);
  team_ = {1, members};
}

bool Rendezvous::JoinWaiting() const {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  return std::any_of(joiners_.begin(), joiners_.end(), [&](const auto& entry) {
    return now - entry.second.asked < kJoinerForgotten;
  });
}

// ---- what the door answers, on its thread

json Rendezvous::Answer(const json& question) {
  bool called = false;
  json answer;
  {
    const std::lock_guard lock(mutex_);
    if (question.at("ask") == "join") return NoteJoiner(question);
    if (question.at("ask") == "slot") return OfferSlot();
    if (question.at("to") != self_.incarnation) return Say("stranger");
    answer = AnswerMember(question);
    called = answer.at("say") == "busy";
  }
  if (called) wanted_();
  return answer;
}

json Rendezvous::NoteJoiner(const json& question) {
  const Member member = question.at("member");
  if (member.slot < 0 || member.slot >= options_.slots) return Say("refused");
  const Team& newest = decided_ ? *decided_ : team_;
  // Whoever had the slot may be lost, but is not yet: while nobody misses it there is nothing to do.
  if (!arrived_ && newest.RankOf(member) < 0 && HasSlot(newest, member.slot)) return Say("taken");
  if (newest.RankOf(member) < 0) joiners_[member.slot] = {member, Clock::now()};
  return {{"say", "noted"}, {"team", newest}};
}

// Those that never had a member first: who had another one may come back. Then the highest: whoever
// has the lowest is the first rank and tells what came of the job. Who was offered one has a timeout
// to load what it needs before it asks to join.
json Rendezvous::OfferSlot() {
  const Team& newest = decided_ ? *decided_ : team_;
  const std::chrono::duration<double> kept(options_.timeout_s);
  for (int i = 0; i < options_.slots; ++i) {
    const int fresh = options_.slots - options_.started;
    const int slot = i < fresh ? options_.started + i : options_.slots - 1 - i;
    const auto offered = offered_.find(slot);
    if (HasSlot(newest, slot) ||
        (offered != offered_.end() && Clock::now() - offered->second < kept))
      continue;
    offered_[slot] = Clock::now();
    return {{"say", "offered"}, {"slot", slot}};
  }
  return Say("full");
}

json Rendezvous::AnswerMember(const json& question) {
  if (question.at("ask") == "learn") {
    Learn(question.at("team"));
    return Say("learned");
  }
  const std::int64_t epoch = question.at("epoch");
  const Team& newest = decided_ ? *decided_ : team_;
  if (question.at("ask") == "fetch") {
    if (epoch < newest.epoch) return Say("ahead");
    const auto found = published_.find(question.at("name"));
    if (epoch > team_.epoch || found == published_.end()) return Say("not yet");
    return {{"say", "bytes"}, {"bytes", found->second}};
  }
  if (epoch < newest.epoch) return {{"say", "ahead"}, {"team", newest}};
  if (epoch > team_.epoch) return Say("behind");
  if (!arrived_) return Say("busy");
  if (question.at("ask") == "hello") return Say("here");
  return AnswerVote(question);
}

json Rendezvous::AnswerVote(const json& question) {
  const std::int64_t ballot = question.at("ballot");
  if (question.at("ask") == "accept")
    return Say(vote_.Accept(ballot, question.at("members")) ? "accepted" : "refused");
  if (!vote_.Promise(ballot)) return {{"say", "refused"}, {"promised", vote_.promised()}};
  std::vector<Member> joiners;
  for (const auto& [slot, joiner] : joiners_)
    if (Clock::now() - joiner.asked < kJoinerForgotten) joiners.push_back(joiner.member);
  return {{"say", "promised"},
          {"ballot", vote_.accepted_ballot()},
          {"members", vote_.accepted()},
          {"joiners", joiners}};
}

void Rendezvous::Learn(const Team& team) {
  const std::int64_t known = decided_ ? decided_->epoch : team_.epoch;
  if (team.epoch <= known) return;
  decided_ = team;
  decided_or_not_.notify_all();
}

// ---- what the member's own thread does

std::optional<Team> Rendezvous::TakeDecision() {
  const std::lock_guard lock(mutex_);
  if (!decided_) return std::nullopt;
  team_ = *std::exchange(decided_, std::nullopt);
  vote_ = {};
  arrived_ = false;
  published_.clear();
  for (const Member& member : team_.members) joiners_.erase(member.slot);
  return team_;
}

Result<Team> Rendezvous::Meet(bool take_joiners) {
  const Clock::time_point start = Clock::now();
  {
    const std::lock_guard lock(mutex_);
    arrived_ = true;
  }
  silent_.clear();
  ended_.clear();
  too_few_ = 0;
  take_joiners_ = take_joiners;
  joined_ = false;
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  while (seconds() < 2 * options_.timeout_s) {
    if (std::optional<Team> team = TakeDecision()) {
      if (team->RankOf(self_) >= 0) return *team;
      // The others went on without this member.
      std::vector<std::string> doors;
      for (const Member& member : team->members) doors.push_back(member.door);
      return Join(doors);
    }
    const bool patient = seconds() < options_.timeout_s;
    if (MayLead(patient)) Lead(patient);
    std::unique_lock lock(mutex_);
    decided_or_not_.wait_for(lock, kPause, [this] { return decided_.has_value(); });
  }
  const std::string self = "member " + std::to_string(self_.slot);
  if (too_few_ > 0)
    return Error{self + " found a team of " + std::to_string(too_few_) + ": the job wants " +
                 std::to_string(options_.least_members) + " at least"};
  return Error{self + " found no majority of the " + std::to_string(team().members.size()) +
               " members that were"};
}

json Rendezvous::Question(const std::string& ask) const {
  const std::lock_guard lock(mutex_);
  return {{"ask", ask}, {"epoch", team_.epoch}};
}

Heard Rendezvous::Ask(const Member& member, json question, double patience_s, json* answer) {
  question["to"] = member.incarnation;
  if (member == self_) {
    *answer = Answer(question);
    return Heard::kAnswer;
  }
  const Heard heard = AskDoor(member.door, options_.key, question, patience_s, answer);
  // Another process got the port.
  if (heard == Heard::kAnswer && answer->value("say", "") == "stranger") return Heard::kRefused;
  if (heard == Heard::kAnswer && answer->contains("team")) {
    const std::lock_guard lock(mutex_);
    Learn(answer->at("team"));
  }
  return heard;
}

bool Rendezvous::Gone(const Member& member) const {
  return silent_.count(member.incarnation) > 0 || ended_.count(member.incarnation) > 0;
}

void Rendezvous::Note(const Member& member, Heard heard) {
  if (heard == Heard::kNothing) silent_.insert(member.incarnation);
  if (heard == Heard::kRefused) ended_.insert(member.incarnation);
}

bool Rendezvous::MayDecide(const Team& team, const std::vector<Member>& members) const {
  std::vector<int> slots, ended;
  for (const Member& member : members) slots.push_back(member.slot);
  for (const Member& member : team.members)
    if (ended_.count(member.incarnation) > 0) ended.push_back(member.slot);
  return IsQuorum(team, slots, ended);
}

// At once: one that does not answer costs the others no time.
Rendezvous::Answers Rendezvous::AskAll(const std::vector<Member>& members, const json& question) {
  std::vector<std::pair<Member, std::future<std::pair<Heard, json>>>> asked;
  for (const Member& member : members) {
    if (Gone(member)) continue;
    asked.emplace_back(member, std::async(std::launch::async, [this, member, &question] {
                         json answer;
                         const Heard heard = Ask(member, question, patience_s_, &answer);
                         return std::pair(heard, answer);
                       }));
  }
  Answers answers;
  for (auto& [member, future] : asked) {
    const auto [heard, answer] = future.get();
    Note(member, heard);
    if (heard == Heard::kAnswer) answers.all.emplace_back(member, answer);
  }
  return answers;
}

// The lowest member that can be reached leads. Who leads is a matter of speed, not of safety.
bool Rendezvous::MayLead(bool patient) {
  const json hello = Question("hello");
  for (const Member& member : team().members) {
    if (member.slot >= self_.slot) break;
    if (Gone(member)) continue;
    json answer;
    const Heard heard = Ask(member, hello, patience_s_, &answer);
    Note(member, heard);
    if (heard != Heard::kAnswer) continue;
    if (patient || answer.at("say") == "here" || answer.at("say") == "ahead") return false;
  }
  return true;
}

void Rendezvous::Lead(bool patient) {
  const Team team = this->team();
  const std::int64_t ballot = (highest_ballot_ / kSlots + 1) * kSlots + self_.slot;
  highest_ballot_ = ballot;
  json question = Question("prepare");
  question["ballot"] = ballot;
  const Answers answers = AskAll(team.members, question);
  for (const auto& [member, answer] : answers.all)
    highest_ballot_ = std::max(highest_ballot_, answer.value("promised", std::int64_t{0}));
  if (!answers.Who("ahead").empty() || !answers.Who("refused").empty()) return;
  // Those who still compute, or have not heard of this epoch yet, come soon.
  if (patient && !(answers.Who("busy").empty() && answers.Who("behind").empty())) return;
  if (!MayDecide(team, answers.Who("promised"))) {
    silent_.clear();  // they may come back
    return;
  }
  Decide(team, answers, ballot);
}

// What was accepted under the highest ballot may be decided already, and stays. Else the members who
// are here, and the joiners who still answer.
std::vector<Member> Rendezvous::Propose(const Answers& promises) {
  std::int64_t highest = 0;
  std::vector<Member> accepted;
  std::map<int, Member> here, joiners;
  for (const auto& [member, answer] : promises.all) {
    if (answer.at("say") != "promised") continue;
    here[member.slot] = member;
    for (const Member& joiner : answer.at("joiners").get<std::vector<Member>>())
      joiners[joiner.slot] = joiner;
    if (answer.at("ballot") <= highest) continue;
    highest = answer.at("ballot");
    accepted = answer.at("members").get<std::vector<Member>>();
  }
  if (highest > 0) return accepted;
  const bool too_few = static_cast<int>(here.size()) < options_.least_members;
  for (const auto& [slot, joiner] : joiners) {
    json answer;
    if ((take_joiners_ || too_few) && here.count(slot) == 0 &&
        Ask(joiner, Question("hello"), patience_s_, &answer) == Heard::kAnswer)
      here[slot] = joiner;
  }
  std::vector<Member> members;
  for (const auto& [slot, member] : here) members.push_back(member);
  return members;
}

void Rendezvous::Decide(const Team& team, const Answers& promises, std::int64_t ballot) {
  const Team next{team.epoch + 1, Propose(promises)};
  too_few_ = 0;
  if (static_cast<int>(next.members.size()) < options_.least_members) {
    too_few_ = static_cast<int>(next.members.size());
    return;
  }
  json question = Question("accept");
  question["ballot"] = ballot;
  question["members"] = next.members;
  const Answers answers = AskAll(promises.Who("promised"), question);
  if (!MayDecide(team, answers.Who("accepted"))) return;
  json learn = Question("learn");
  learn["team"] = next;
  AskAll(next.members, learn);
  const std::lock_guard lock(mutex_);
  Learn(next);
}

Result<Team> Rendezvous::Join(const std::vector<std::string>& doors) {
  joined_ = true;
  std::set<std::string> known(doors.begin(), doors.end());
  const json question = {{"ask", "join"}, {"member", self_}};
  Clock::time_point heard_last = Clock::now();
  bool all_ended = false;  // those who are silent may come back; these do not
  bool taken = false;      // another process is this member, as long as nobody misses it
  const std::string self = "member " + std::to_string(self_.slot);
  while (Clock::now() - heard_last <
         (all_ended ? kJoinerForgotten : std::chrono::duration<double>(options_.timeout_s))) {
    if (std::optional<Team> team = TakeDecision())
      if (team->RankOf(self_) >= 0) return *team;
    all_ended = true;
    for (const std::string& door : std::set<std::string>(known)) {
      json answer;
      const Heard heard = AskDoor(door, options_.key, question, patience_s_, &answer);
      all_ended = all_ended && heard == Heard::kRefused;
      if (heard != Heard::kAnswer) continue;
      if (answer.value("say", "") == "refused")
        return Error{self + " is none of the members of this job, which were fewer at its start"};
      taken = answer.value("say", "") == "taken";
      if (!taken) heard_last = Clock::now();
      if (!answer.contains("team")) continue;
      const Team team = answer.at("team");
      for (const Member& member : team.members) known.insert(member.door);
      const std::lock_guard lock(mutex_);
      if (team.RankOf(self_) >= 0) Learn(team);
    }
    std::unique_lock lock(mutex_);
    decided_or_not_.wait_for(lock, kJoinerAsksEvery, [this] { return decided_.has_value(); });
  }
  return Error{
      self + (taken ? " is there already: another process has its rank" : " found nobody to join")};
}

void Rendezvous::Publish(const std::string& name, const std::string& bytes) {
  const std::lock_guard lock(mutex_);
  published_[name] = bytes;
}

Result<std::string> Rendezvous::Fetch(int rank, const std::string& name, double patience_s) {
  const Member member = team().members.at(rank);
  json question = Question("fetch");
  question["name"] = name;
  const Clock::time_point start = Clock::now();
  while (std::chrono::duration<double>(Clock::now() - start).count() < patience_s) {
    json answer;
    const Heard heard = Ask(member, question, patience_s, &answer);
    if (heard == Heard::kRefused) return Error{"rank " + std::to_string(rank) + " has ended"};
    const std::string word = heard == Heard::kAnswer ? answer.value("say", "") : "";
    if (word == "bytes") return answer.at("bytes").get<std::string>();
    if (word == "ahead") return Error{"rank " + std::to_string(rank) + " has gone on"};
    std::this_thread::sleep_for(kPause);
  }
  return Error{"rank " + std::to_string(rank) + " does not come"};
}

}  // namespace dynamix
