// AsyncServer: unary methods on completion queues. A handler may answer later and from any thread.
//
// Not gRPC's callback interface: in version 1.51 its threads sleep up to 100 ms when idle, and by
// the wall clock, so that a clock that is set back stops them (seen: the process could not end
// either). A private header of this room: only its .cc files include it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace dynamix {

// Something that waits on a completion queue.
class Tag {
 public:
  virtual ~Tag() = default;
  virtual void Proceed(bool ok) = 0;
};

class AsyncServer {
 public:
  AsyncServer() = default;
  ~AsyncServer() { Stop(std::chrono::milliseconds(0)); }

  // Before Start: adds the queues the methods wait on.
  void AddQueues(grpc::ServerBuilder& builder, int count) {
    for (int i = 0; i < count; ++i) queues_.push_back(builder.AddCompletionQueue());
  }
  // `listen` posts the first call of every method on a queue.
  void Start(std::unique_ptr<grpc::Server> server,
             const std::function<void(grpc::ServerCompletionQueue&)>& listen) {
    server_ = std::move(server);
    for (const auto& queue : queues_) {
      for (int i = 0; i < kPosted; ++i) listen(*queue);
      threads_.emplace_back([&own = *queue] {
        void* tag = nullptr;
        for (bool ok = false; own.Next(&tag, &ok);) static_cast<Tag*>(tag)->Proceed(ok);
      });
    }
  }
  // Whoever waits must have been answered, or is within `grace`.
  void Stop(std::chrono::milliseconds grace) {
    if (server_ == nullptr) return;
    server_->Shutdown(gpr_time_from_millis(grace.count(), GPR_TIMESPAN));
    {
      const std::lock_guard lock(mutex_);
      accepting_ = false;
    }
    for (const auto& queue : queues_) queue->Shutdown();
    for (std::thread& thread : threads_) thread.join();
    server_.reset();
  }
  // Runs `request`, which posts a call, unless the queues are closing.
  bool Post(const std::function<void()>& request) {
    const std::lock_guard lock(mutex_);
    if (accepting_) request();
    return accepting_;
  }

 private:
  static constexpr int kPosted = 16;  // calls of one method that can arrive at the same instant

  std::unique_ptr<grpc::Server> server_;
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  bool accepting_ = true;
};

// One call of a unary method, from before it arrives until it is answered. Owns itself.
template <typename Request, typename Response>
class UnaryCall final : public Tag {
 public:
  using Responder = grpc::ServerAsyncResponseWriter<Response>;
  // Posts the call: RequestX of the generated service.
  using Wait = std::function<void(grpc::ServerContext*, Request*, Responder*,
                                  grpc::ServerCompletionQueue*, Tag*)>;
  // Must see to it that Finish is called, once.
  using Handle = std::function<void(UnaryCall&)>;

  static void Post(AsyncServer& server, grpc::ServerCompletionQueue& queue, const Wait& wait,
                   const Handle& handle) {
    auto call = std::unique_ptr<UnaryCall>(new UnaryCall(server, queue, wait, handle));  // NOLINT
    UnaryCall* posted = call.get();
    const bool accepted = server.Post([&] {
      wait(&posted->context_, &posted->request_, &posted->responder_, &queue, posted);
      (void)call.release();  // the queue has it now
    });
    if (!accepted) call.reset();
  }

  void Proceed(bool ok) override {
    // Waits until the answering thread has left Finish.
    const bool answered = [this] {
      const std::lock_guard lock(finishing_);
      return answering_;
    }();
    if (answered || !ok) {
      delete this;
      return;
    }
    Post(server_, queue_, wait_, handle_);
    handle_(*this);
  }

  // The last thing done with the call.
  void Finish(const grpc::Status& status) {
    const std::lock_guard lock(finishing_);
    answering_ = true;
    responder_.Finish(response_, status, this);
  }

  const grpc::ServerContext& context() const { return context_; }
  const Request& request() const { return request_; }
  Response& response() { return response_; }

 private:
  UnaryCall(AsyncServer& server, grpc::ServerCompletionQueue& queue, const Wait& wait,
            const Handle& handle)
      : server_(server), queue_(queue), wait_(wait), handle_(handle) {}

  AsyncServer& server_;  // the owner of the queue, and so of the call
  grpc::ServerCompletionQueue& queue_;
  Wait wait_;
  Handle handle_;
  grpc::ServerContext context_;
  Request request_;
  Response response_;
  Responder responder_{&context_};
  std::mutex finishing_;
  bool answering_ = false;
};

}  // namespace dynamix
