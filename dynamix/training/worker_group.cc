#include "dynamix/training/worker_group.h"

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <thread>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"
#include "dynamix/host/socket_guard.h"
#include "dynamix/training/rendezvous.h"
#include "dynamix/training/worker_group_connection.h"

namespace dynamix {
namespace {

// The store's port is for the job's interface only. Where that cannot be told, or the system refuses,
// the port stays as c10d opened it (docs/security.md): a name that means loopback here may mean a
// real address on the other machines.
void GuardPort(const RankPlace& place, const WorkerGroupOptions& options) {
  std::vector<std::string> interfaces = InterfacesOf(place.address);
  const bool only_loopback = interfaces == InterfacesOf("127.0.0.1");
  if (interfaces.empty() || (only_loopback && !IsLoopback(place.address))) return;
  if (!options.interface.empty()) interfaces.push_back(options.interface);
  (void)AcceptOnlyFrom(place.port, interfaces);
}

c10::intrusive_ptr<c10d::Store> OpenStore(const RankPlace& place,
                                          const WorkerGroupOptions& options) {
  if (!place.store.empty()) {
    auto store = c10::make_intrusive<c10d::FileStore>(place.store, place.size);
    store->setTimeout(Milliseconds(options.timeout_s));
    return store;
  }
  c10d::TCPStoreOptions store;
  store.port = static_cast<std::uint16_t>(place.port);
  store.isServer = place.rank == 0 && place.hosted.empty();
  store.numWorkers = place.size;
  store.timeout = Milliseconds(options.timeout_s);
  store.waitWorkers = false;  // the port is guarded first; joining waits for everybody
  auto opened = c10::make_intrusive<c10d::TCPStore>(place.address, store);
  if (store.isServer) GuardPort(place, options);
  if (!place.hosted.empty()) return c10::make_intrusive<c10d::PrefixStore>(place.hosted, opened);
  return opened;
}

std::string NoticedKey(int rank) { return "dynamix/noticed/" + std::to_string(rank); }

// "rank 3", "ranks 1, 2 and 3".
std::string ListRanks(const std::vector<int>& ranks) {
  std::string list;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    list += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  return (ranks.size() == 1 ? "rank " : "ranks ") + list;
}

// Models are trained on the CPU, where NCCL has nothing to exchange; libtorch may not have it at
// all.
void RefuseNccl(const RankPlace& place) {
  if (place.backend == "gloo") return;
  throw InputError::OutOfRange("DYNAMIX_BACKEND", place.backend,
                               at::hasCUDA() ? "gloo: models are trained on the CPU"
                                             : "gloo: this libtorch has neither CUDA nor NCCL");
}

void Validate(const WorkerGroupOptions& options) {
  RequireInRange("timeout_s", options.timeout_s, 1e-3, 86400.0);
  RequireInRange("threads", options.threads, 1, 64);
  RequireInRange("least_ranks", options.least_ranks, 1, 4096);
  RequireInRange("most_ranks", options.most_ranks, 0, 4096);
}

template <typename Number>
at::Tensor View(std::span<Number> values) {
  return at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())},
                       std::is_same_v<Number, float> ? at::kFloat : at::kDouble);
}

// c10 errors carry a stack trace; the first line says what happened.
std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

WorkerGroup::WorkerGroup() = default;
WorkerGroup::WorkerGroup(int rank, int size, std::unique_ptr<Connection> connection)
    : rank_(rank), size_(size), slot_(rank), slots_(size), connection_(std::move(connection)) {
  members_.resize(size);
  std::iota(members_.begin(), members_.end(), 0);
}
WorkerGroup::~WorkerGroup() = default;

Result<std::unique_ptr<WorkerGroup>> WorkerGroup::Connect(const RankPlace& place,
                                                          const WorkerGroupOptions& options) {
  Validate(options);
  RefuseNccl(place);
  if (place.size == 1 && !options.elastic) return std::make_unique<WorkerGroup>();
  try {
    if (options.elastic && ComesLater(place, options)) return JoinLater(place, options);
    if (options.elastic) ForgetMembers(place, options);
    // First: it waits until rank 0's name is known, by which a rank finds its own address.
    const c10::intrusive_ptr<c10d::Store> store =
        place.size > 1 ? OpenStore(place, options) : c10::intrusive_ptr<c10d::Store>();
    auto connection = std::make_unique<Connection>(options, place.address);
    connection->store = store;
    if (store) connection->group = connection->Join(store, place.rank, place.size);
    std::unique_ptr<WorkerGroup> group(
        new WorkerGroup(place.rank, place.size, std::move(connection)));
    if (options.elastic)
      if (Status begun = group->Begin(place); !begun) return Error{begun.error()};
    return group;
  } catch (const InputError&) {
    throw;
  } catch (const std::exception& error) {
    const std::string meeting_point =
        place.store.empty() ? place.address + ":" + std::to_string(place.port) : place.store;
    const std::string who = place.rank == RankPlace::kAnyFree
                                ? "this process could not join the job"
                                : "rank " + std::to_string(place.rank) + " of " +
                                      std::to_string(place.size) +
                                      " could not join the others at " + meeting_point;
    return Error{who + ": " + FirstLine(error.what())};
  }
}

std::vector<std::unique_ptr<WorkerGroup>> WorkerGroup::ConnectThreads(
    int size, const WorkerGroupOptions& options) {
  Validate(options);
  std::vector<std::unique_ptr<WorkerGroup>> groups(size);
  if (size == 1 && !options.elastic) groups[0] = std::make_unique<WorkerGroup>();
  if (size == 1 && !options.elastic) return groups;
  const c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      auto connection = std::make_unique<Connection>(options, "127.0.0.1");
      connection->store = store;
      if (size > 1) connection->group = connection->Join(store, rank, size);
      groups[rank].reset(new WorkerGroup(rank, size, std::move(connection)));
      if (options.elastic) DYNAMIX_CHECK(groups[rank]->Begin({}).ok(), "ranks of one process meet");
    });
  }
  for (std::thread& thread : threads) thread.join();
  return groups;
}

BreakableGroup* WorkerGroup::process_group() const {
  return connection_ ? connection_->group.get() : nullptr;
}

Error WorkerGroup::PeerLost(const std::string& what) {
  lost_ = true;
  if (elastic()) return {"rank " + std::to_string(rank_) + " lost others: " + FirstLine(what)};
  const std::vector<int> silent = FindSilent();
  const std::string who = silent.empty()
                              ? "the others (all of them noticed: this rank or the network stopped)"
                              : ListRanks(silent) + " (ended, stopped or too slow)";
  return {"rank " + std::to_string(rank_) + " of " + std::to_string(size_) + " lost " + who + ": " +
          FirstLine(what)};
}

// Every rank that loses the others says so in the store. The one that does not is the one that is
// gone; when all but one have spoken there is nothing more to wait for.
std::vector<int> WorkerGroup::FindSilent() const {
  if (!connection_) return {};
  constexpr auto kPause = std::chrono::milliseconds(20);
  c10d::Store& store = *connection_->store;
  const double patience_s = std::min(5.0, connection_->options.timeout_s / 2);
  const auto end = std::chrono::steady_clock::now() + Milliseconds(patience_s);
  std::vector<int> silent = {0};  // as long as rank 0's store has not answered
  try {
    store.set(NoticedKey(rank_), std::vector<std::uint8_t>{1});
    // Answered at once by a store that lives; from here on no question takes longer.
    store.wait({NoticedKey(rank_)}, Milliseconds(patience_s));
    while (true) {
      std::vector<int> found;
      for (int rank = 0; rank < size_; ++rank)
        if (!store.check({NoticedKey(rank)})) found.push_back(rank);
      silent = found;
      if (silent.size() <= 1 || std::chrono::steady_clock::now() >= end) break;
      std::this_thread::sleep_for(kPause);
    }
    // The store may end with rank 0: the others get time to ask it once more.
    if (rank_ == 0) std::this_thread::sleep_for(5 * kPause);
  } catch (const std::exception&) {
    // Rank 0 is gone, or has said what it noticed and ended before the others.
  }
  return silent;
}

// Collectives work on tensors of their own: one that failed may still be under way in Gloo.
template <typename Run>
Status WorkerGroup::Collect(const Run& run) {
  if (process_group() == nullptr) return Nothing{};
  try {
    run(*connection_->group);
    return Nothing{};
  } catch (const std::exception& error) {
    return PeerLost(error.what());
  }
}

Status WorkerGroup::AllReduce(std::span<double> values) {
  return Collect([&](BreakableGroup& group) {
    std::vector<at::Tensor> tensors = {View(values).clone()};
    group.Completed(group.allreduce(tensors))->waitAndThrow();
    View(values).copy_(tensors[0]);
  });
}

Status WorkerGroup::AllGather(std::span<const double> own, std::span<double> all) {
  std::copy(own.begin(), own.end(), all.begin() + static_cast<std::ptrdiff_t>(rank_ * own.size()));
  return Collect([&](BreakableGroup& group) {
    const at::Tensor table = View(all).clone().view({size_, static_cast<std::int64_t>(own.size())});
    std::vector<at::Tensor> inputs = {table[rank_].clone()};
    std::vector<std::vector<at::Tensor>> outputs = {table.unbind()};
    group.Completed(group.allgather(outputs, inputs))->waitAndThrow();
    View(all).copy_(table.flatten());
  });
}

template <typename Number>
Status WorkerGroup::BroadcastFrom(std::span<Number> values, int from) {
  return Collect([&](BreakableGroup& group) {
    std::vector<at::Tensor> tensors = {View(values).clone()};
    c10d::BroadcastOptions options;
    options.rootRank = from;
    group.Completed(group.broadcast(tensors, options))->waitAndThrow();
    View(values).copy_(tensors[0]);
  });
}

Status WorkerGroup::Broadcast(std::span<double> values, int from) {
  return BroadcastFrom(values, from);
}

Status WorkerGroup::Broadcast(std::span<float> values, int from) {
  return BroadcastFrom(values, from);
}

}  // namespace dynamix
