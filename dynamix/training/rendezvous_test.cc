#include "dynamix/training/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "dynamix/host/file_descriptor.h"
#include "dynamix/training/door.h"

namespace dynamix {
namespace {

using testing::ElementsAre;

// Members as objects of one process; one that is reset has ended.
class RendezvousTest : public testing::Test {
 protected:
  void Make(int size, double timeout_s = 20, int least = 1) {
    std::vector<Member> members;
    for (int slot = 0; slot < size; ++slot) {
      members_.push_back(MakeOne(slot, timeout_s, least));
      members.push_back(members_.back()->self());
    }
    for (const auto& member : members_) member->Begin(members);
  }

  std::unique_ptr<Rendezvous> MakeOne(int slot, double timeout_s = 20, int least = 1) {
    return std::make_unique<Rendezvous>(RendezvousOptions{.slot = slot,
                                                          .slots = 8,
                                                          .started = 6,
                                                          .key = "secret",
                                                          .timeout_s = timeout_s,
                                                          .least_members = least},
                                        [] {});
  }

  std::future<Result<Team>> Meet(int slot, bool take_joiners = false) {
    return std::async(std::launch::async,
                      [this, slot, take_joiners] { return members_[slot]->Meet(take_joiners); });
  }

  static std::vector<int> Slots(std::future<Result<Team>>& meeting) {
    const Result<Team> team = meeting.get();
    std::vector<int> slots;
    if (!team) return slots;
    for (const Member& member : team.value().members) slots.push_back(member.slot);
    return slots;
  }

  std::vector<std::unique_ptr<Rendezvous>> members_;
};

TEST_F(RendezvousTest, AllWhoLiveAreTheNextTeamAndTheFirstOneMayBeGone) {
  for (const int gone : {0, 2, 3}) {
    members_.clear();
    Make(4);
    members_[gone].reset();
    std::vector<std::future<Result<Team>>> meetings;
    std::vector<int> expected;
    for (int slot = 0; slot < 4; ++slot) {
      if (slot == gone) continue;
      meetings.push_back(Meet(slot));
      expected.push_back(slot);
    }
    for (auto& meeting : meetings) EXPECT_EQ(Slots(meeting), expected) << gone << " is gone";
    EXPECT_EQ(members_[1]->team().epoch, 2);
  }
}

TEST_F(RendezvousTest, OneAloneGoesOnWhenAllOthersHaveEnded) {
  Make(3);
  members_[0].reset();
  members_[1].reset();
  auto meeting = Meet(2);
  EXPECT_THAT(Slots(meeting), ElementsAre(2));
  // And once more, from the team it has become.
  meeting = Meet(2);
  EXPECT_THAT(Slots(meeting), ElementsAre(2));
  EXPECT_EQ(members_[2]->team().epoch, 3);
}

// A port that takes connections and says nothing, as that of a process that is stopped does.
class SilentPort {
 public:
  SilentPort() : file_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(file_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(file_.get(), 16), 0);
    EXPECT_EQ(getsockname(file_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    door_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  const std::string& door() const { return door_; }

 private:
  FileDescriptor file_;
  std::string door_;
};

TEST_F(RendezvousTest, TheMinorityOfAnEpochEndsAndTheMajorityGoesOn) {
  const SilentPort stopped;
  for (const int size : {2, 3}) {
    members_.clear();
    Make(2, /*timeout_s=*/1);
    // With two members the one that is not the lowest has no majority; with three, two have.
    std::vector<Member> team = {{0, 7, stopped.door()}, members_[1]->self()};
    if (size == 3) {
      members_.push_back(MakeOne(2, 1));
      team.push_back(members_[2]->self());
      members_[2]->Begin(team);
    }
    members_[1]->Begin(team);
    auto first = Meet(1);
    if (size == 2) {
      const Result<Team> none = first.get();
      ASSERT_FALSE(none.ok());
      EXPECT_THAT(none.error(), testing::HasSubstr("no majority of the 2 members"));
      continue;
    }
    auto second = Meet(2);
    EXPECT_THAT(Slots(first), ElementsAre(1, 2));
    EXPECT_THAT(Slots(second), ElementsAre(1, 2));
  }
}

TEST_F(RendezvousTest, ThoseWhoStillComputeAreWaitedForAndCalled) {
  std::atomic<int> called = 0;
  std::vector<Member> team;
  for (int slot = 0; slot < 3; ++slot) {
    members_.push_back(std::make_unique<Rendezvous>(
        RendezvousOptions{.slot = slot, .slots = 8, .key = "secret", .timeout_s = 20},
        [&] { ++called; }));
    team.push_back(members_.back()->self());
  }
  for (const auto& member : members_) member->Begin(team);
  auto first = Meet(1), second = Meet(2);
  while (called == 0) std::this_thread::yield();
  auto late = Meet(0);
  for (auto* meeting : {&first, &second, &late}) EXPECT_THAT(Slots(*meeting), ElementsAre(0, 1, 2));
}

TEST_F(RendezvousTest, ANewMemberIsTakenInWhenTheTeamSaysSo) {
  Make(2);
  const std::unique_ptr<Rendezvous> late = MakeOne(5);
  auto joining =
      std::async(std::launch::async, [&] { return late->Join({members_[1]->self().door}); });
  while (!members_[1]->JoinWaiting()) std::this_thread::yield();
  auto first = Meet(0, true), second = Meet(1, true);
  EXPECT_THAT(Slots(first), ElementsAre(0, 1, 5));
  EXPECT_THAT(Slots(second), ElementsAre(0, 1, 5));
  EXPECT_THAT(Slots(joining), ElementsAre(0, 1, 5));
  EXPECT_TRUE(late->joined());
  EXPECT_FALSE(members_[1]->joined());
  EXPECT_FALSE(members_[1]->JoinWaiting());
}

TEST_F(RendezvousTest, AProcessThatTakesTheSlotOfOneThatEndedIsTakenIn) {
  Make(3);
  members_[2].reset();
  const std::unique_ptr<Rendezvous> again = MakeOne(2);
  auto joining =
      std::async(std::launch::async, [&] { return again->Join({members_[0]->self().door}); });
  auto first = Meet(0), second = Meet(1);
  EXPECT_THAT(Slots(first), ElementsAre(0, 1)) << "the loss is one matter, the join another";
  EXPECT_THAT(Slots(second), ElementsAre(0, 1));
  while (!members_[0]->JoinWaiting()) std::this_thread::yield();
  first = Meet(0, true);
  second = Meet(1, true);
  EXPECT_THAT(Slots(first), ElementsAre(0, 1, 2));
  EXPECT_THAT(Slots(second), ElementsAre(0, 1, 2));
  EXPECT_EQ(members_[0]->team().members[2], again->self());
}

// It was away while the others decided: it hears of it, and asks to come back.
TEST_F(RendezvousTest, AMemberThatWasLeftOutComesBack) {
  const SilentPort stopped;
  Make(3, /*timeout_s=*/1);
  std::vector<Member> team;
  for (const auto& member : members_) team.push_back(member->self());
  team[2].door = stopped.door();
  members_[0]->Begin(team);
  members_[1]->Begin(team);
  auto first = Meet(0), second = Meet(1);
  EXPECT_THAT(Slots(first), ElementsAre(0, 1));
  EXPECT_THAT(Slots(second), ElementsAre(0, 1));
  auto back = Meet(2);
  while (!members_[0]->JoinWaiting()) std::this_thread::yield();
  first = Meet(0, true);
  second = Meet(1, true);
  for (auto* meeting : {&first, &second, &back}) EXPECT_THAT(Slots(*meeting), ElementsAre(0, 1, 2));
  EXPECT_TRUE(members_[2]->joined());
}

TEST_F(RendezvousTest, BelowTheLeastNobodyGoesOn) {
  Make(3, /*timeout_s=*/0.3, /*least=*/3);
  members_[2].reset();
  auto first = Meet(0), second = Meet(1);
  EXPECT_EQ(first.get().error(), "member 0 found a team of 2: the job wants 3 at least");
  EXPECT_FALSE(second.get().ok());
}

TEST_F(RendezvousTest, BelowTheLeastThoseWhoJoinAreTakenInAtOnce) {
  Make(3, /*timeout_s=*/20, /*least=*/3);
  members_[2].reset();
  const std::unique_ptr<Rendezvous> again = MakeOne(2);
  auto joining =
      std::async(std::launch::async, [&] { return again->Join({members_[0]->self().door}); });
  auto first = Meet(0), second = Meet(1);
  for (auto* meeting : {&first, &second, &joining})
    EXPECT_THAT(Slots(*meeting), ElementsAre(0, 1, 2));
}

TEST_F(RendezvousTest, MembersLeaveBytesForEachOther) {
  Make(2);
  auto fetched = std::async(std::launch::async, [&] { return members_[0]->Fetch(1, "0/1", 20); });
  members_[1]->Publish("0/1", "here");
  EXPECT_EQ(fetched.get().value(), "here");
  members_[1].reset();
  const Result<std::string> none = members_[0]->Fetch(1, "0/1", 20);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error(), "rank 1 has ended");
}

TEST_F(RendezvousTest, WhoDoesNotKnowTheKeyIsNotAnswered) {
  Make(1);
  Rendezvous stranger({.slot = 1, .slots = 8, .key = "guess", .timeout_s = 0.5}, [] {});
  EXPECT_FALSE(stranger.Join({members_[0]->self().door}).ok());
  EXPECT_FALSE(members_[0]->JoinWaiting());
}

TEST_F(RendezvousTest, ASecondProcessOfAMemberThatIsThereIsToldSo) {
  Make(2);
  const auto again = MakeOne(1, /*timeout_s=*/0.5);
  const Result<Team> team = again->Join({members_[0]->self().door, members_[1]->self().door});
  ASSERT_FALSE(team.ok());
  EXPECT_EQ(team.error(), "member 1 is there already: another process has its rank");
  for (const auto& member : members_) EXPECT_FALSE(member->JoinWaiting()) << "nobody is bothered";
}

// Six of eight slots had a member at the start, and two of those have one now.
TEST_F(RendezvousTest, NewOnesAreOfferedSlotsThatNobodyHadAndThenThoseThatAreFree) {
  Make(2, /*timeout_s=*/20);
  std::vector<int> offered;
  nlohmann::json answer;
  for (int i = 0; i < 6; ++i) {
    ASSERT_EQ(AskDoor(members_[0]->self().door, "secret", {{"ask", "slot"}}, 20, &answer),
              Heard::kAnswer);
    offered.push_back(answer.at("slot"));
  }
  EXPECT_THAT(offered, ElementsAre(6, 7, 5, 4, 3, 2));
  ASSERT_EQ(AskDoor(members_[0]->self().door, "secret", {{"ask", "slot"}}, 20, &answer),
            Heard::kAnswer);
  EXPECT_EQ(answer.at("say"), "full");
}

TEST_F(RendezvousTest, WhoHasNoSlotOfTheJobIsRefused) {
  Make(2);
  const auto other = MakeOne(8);
  const Result<Team> team = other->Join({members_[0]->self().door});
  ASSERT_FALSE(team.ok());
  EXPECT_THAT(team.error(), testing::HasSubstr("member 8 is none of the members of this job"));
  EXPECT_FALSE(members_[0]->JoinWaiting());
}

}  // namespace
}  // namespace dynamix
