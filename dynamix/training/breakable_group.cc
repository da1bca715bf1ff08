#include "dynamix/training/breakable_group.h"

#include <gloo/context.h>
#include <gloo/transport/tcp/address.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <stdexcept>
#include <utility>

namespace dynamix {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(50);

std::exception_ptr Broken() {
  return std::make_exception_ptr(std::runtime_error("the connections were shut down"));
}

}  // namespace

struct BreakableGroup::Waiting {
  void Complete(const c10::IValue& value) {
    if (!ended.exchange(true)) future->markCompleted(value);
  }
  void Fail(std::exception_ptr error) {
    if (!ended.exchange(true)) future->setError(std::move(error));
  }
  Future future =
      c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
  std::atomic<bool> ended = false;
  Clock::time_point since = Clock::now();
};

BreakableGroup::BreakableGroup(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                               c10::intrusive_ptr<Options> options, double patience_s)
    : ProcessGroupGloo(store, rank, size, std::move(options)) {
  FindSockets();
  if (patience_s > 0) watcher_ = std::thread([this, patience_s] { Watch(patience_s); });
}

BreakableGroup::~BreakableGroup() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  closing_.notify_all();
  if (watcher_.joinable()) watcher_.join();
}

// Gloo names its connections but does not show them.
void BreakableGroup::FindSockets() {
  std::vector<sockaddr_storage> names;
  for (const auto& context : contexts_)
    for (int peer = 0; peer < context->size; ++peer) {
      if (peer == context->rank) continue;
      using TcpAddress = gloo::transport::tcp::Address;
      if (const auto* tcp = dynamic_cast<const TcpAddress*>(&context->getPair(peer)->address()))
        names.push_back(tcp->getSockaddr());
    }
  sockets_ = ConnectedSockets(names);
}

void BreakableGroup::SetTimeout(std::chrono::milliseconds timeout) {
  for (const auto& context : contexts_) context->setTimeout(timeout);
}

BreakableGroup::Future BreakableGroup::Completed(const c10::intrusive_ptr<c10d::Work>& work) {
  const auto waiting = std::make_shared<Waiting>();
  {
    const std::lock_guard lock(mutex_);
    waiting_.remove_if([](const auto& one) { return one->ended.load(); });
    if (broken_) waiting->Fail(Broken());
    if (!broken_) waiting_.push_back(waiting);
  }
  work->getFuture()->addCallback([waiting](c10::ivalue::Future& done) {
    if (done.hasError()) waiting->Fail(done.exception_ptr());
    if (!done.hasError()) waiting->Complete(done.value());
  });
  return waiting->future;
}

void BreakableGroup::Break() {
  for (const OwnSocket& socket : sockets_) ShutDown(socket);
  std::list<std::shared_ptr<Waiting>> waiting;
  {
    const std::lock_guard lock(mutex_);
    broken_ = true;
    waiting.swap(waiting_);
  }
  for (const auto& one : waiting) one->Fail(Broken());
}

bool BreakableGroup::Lost() const { return !std::all_of(sockets_.begin(), sockets_.end(), IsOpen); }

// A rank that is done may leave while the others still exchange the rest: they get some time.
void BreakableGroup::Watch(double patience_s) {
  const std::chrono::duration<double> patience(patience_s);
  std::optional<Clock::time_point> lost;
  std::unique_lock lock(mutex_);
  while (!closing_.wait_for(lock, kLookEvery, [this] { return closed_ || broken_; })) {
    const Clock::time_point now = Clock::now();
    if (!lost && Lost()) lost = now;
    if (lost && std::any_of(waiting_.begin(), waiting_.end(), [&](const auto& one) {
          return !one->ended && now - std::max(*lost, one->since) > patience;
        })) {
      lock.unlock();
      Break();
      return;
    }
  }
}

}  // namespace dynamix
