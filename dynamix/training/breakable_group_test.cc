#include "dynamix/training/breakable_group.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <torch/torch.h>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

namespace dynamix {
namespace {

using GroupPointer = c10::intrusive_ptr<BreakableGroup>;
using Clock = std::chrono::steady_clock;

constexpr auto kTimeout = std::chrono::seconds(300);  // of Gloo: longer than any test may take

std::vector<GroupPointer> MakeGroups(int size, double patience_s) {
  signal(SIGPIPE, SIG_IGN);  // Gloo writes to connections that ended
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<GroupPointer> groups(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      auto options = c10d::ProcessGroupGloo::Options::create(kTimeout);
      options->threads = 2;
      options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
      groups[rank] = c10::make_intrusive<BreakableGroup>(store, rank, size, options, patience_s);
    });
  for (std::thread& thread : threads) thread.join();
  return groups;
}

BreakableGroup::Future Sum(BreakableGroup& group, const at::Tensor& tensor) {
  std::vector<at::Tensor> tensors = {tensor};
  return group.Completed(group.allreduce(tensors));
}

// Gloo's threads may be lost in a collective: the group is then never destroyed.
void Leak(std::vector<GroupPointer> groups) {
  for (GroupPointer& group : groups) (void)group.release();
}

TEST(BreakableGroupTest, WhatGlooCompletesIsComplete) {
  const auto groups = MakeGroups(2, 1);
  const at::Tensor one = at::ones({4}), two = 2 * at::ones({4});
  const auto first = Sum(*groups[0], one), second = Sum(*groups[1], two);
  first->waitAndThrow();
  second->waitAndThrow();
  EXPECT_TRUE(at::equal(one, 3 * at::ones({4})));
  EXPECT_TRUE(at::equal(two, one));
}

TEST(BreakableGroupTest, BreakingEndsWhatWaitsAndWhatComes) {
  const auto groups = MakeGroups(3, 0);
  // Rank 2 does not come: the others wait for it.
  const auto first = Sum(*groups[0], at::ones({4})), second = Sum(*groups[1], at::ones({4}));
  groups[0]->Break();
  EXPECT_THROW(first->waitAndThrow(), std::runtime_error);
  EXPECT_ANY_THROW(Sum(*groups[0], at::ones({4}))->waitAndThrow());
  groups[1]->Break();
  EXPECT_ANY_THROW(second->waitAndThrow());
}

// Gloo alone waits for its timeout when the connection ends between a message's header and its end.
TEST(BreakableGroupTest, AConnectionLostInTheMiddleOfAMessageEndsTheCollective) {
  for (int round = 0; round < 8; ++round) {
    const auto groups = MakeGroups(2, /*patience_s=*/0.05);
    const auto first = Sum(*groups[0], at::ones({4 << 20}));
    const auto second = Sum(*groups[1], at::ones({4 << 20}));
    std::this_thread::sleep_for(std::chrono::milliseconds(1 + round));
    groups[1]->Break();
    const Clock::time_point begin = Clock::now();
    try {
      first->waitAndThrow();  // all may have arrived before
    } catch (const std::exception&) {
    }
    EXPECT_LT(Clock::now() - begin, kTimeout / 4);
    Leak(groups);
  }
}

// The rank that has all it needs may leave before the others have: they go on.
TEST(BreakableGroupTest, APeerThatLeavesDoesNotEndWhatStillMoves) {
  auto groups = MakeGroups(3, /*patience_s=*/30);
  std::vector<BreakableGroup::Future> sums;
  std::vector<at::Tensor> tensors;
  for (const GroupPointer& group : groups) {
    tensors.push_back(at::ones({1 << 20}));
    sums.push_back(Sum(*group, tensors.back()));
  }
  sums[2]->waitAndThrow();
  groups[2].reset();
  sums[0]->waitAndThrow();
  sums[1]->waitAndThrow();
  EXPECT_TRUE(at::equal(tensors[0], 3 * at::ones({1 << 20})));
}

}  // namespace
}  // namespace dynamix
