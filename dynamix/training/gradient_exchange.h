// The exchange of gradients in one iteration: sums over ranks, bucket by bucket while backward
// still runs (c10d::Reducer), and a tail of doubles that rides along.
//
// The tail is sent when this rank's last gradient is complete, and is whole only when every rank's
// is: the time in between is this rank's wait. Weights never come from advice: gradients are plain
// sums, and the tail carries the number of samples really used to divide by. Not thread-safe. A
// lost peer throws from backward, ExchangeNow or Finish; the group is then of no more use.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace at {
class Tensor;
}

namespace dynamix {

class Parameters;
class WorkerGroup;

using Clock = std::chrono::steady_clock;

struct ExchangeTimes {
  Clock::time_point ready;     // this rank's gradients are complete
  Clock::time_point together;  // every rank's are
  Clock::time_point done;      // the sums are here
};

class GradientExchange {
 public:
  // Called when this rank's gradients are complete, with the squared norm of their sum: the last
  // chance to fill the tail.
  using OnReady = std::function<void(double squared_norm)>;

  // Both are borrowed from the worker, which owns the exchange too. Takes over the parameters'
  // gradient buffers. `tail` is the number of doubles.
  GradientExchange(WorkerGroup& group, Parameters& parameters, std::size_t tail);
  ~GradientExchange();

  // Either Arm before the last backward pass of the iteration (buckets leave as they are complete),
  // or ExchangeNow after it (everything leaves at once; the pass before could still be repeated).
  void Arm(const at::Tensor& loss, OnReady on_ready);
  void ExchangeNow(const OnReady& on_ready);
  // Backward failed after Arm. What has left is complete and stays; from here until ExchangeNow,
  // which sends the rest, backward fills buffers of its own and sends nothing: compute all of this
  // rank's gradients again.
  void Interrupt();
  bool interrupted() const;
  bool sending() const;  // from the first bucket sent until Finish
  // Waits for the tail.
  ExchangeTimes Finish();

  // Own numbers before OnReady returns, sums over ranks after Finish.
  std::span<double> tail();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dynamix
