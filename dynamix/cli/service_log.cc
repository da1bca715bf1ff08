#include "dynamix/cli/service_log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

namespace dynamix {
namespace {

std::string JsonLine(const LogEvent& event) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const bool warn = event.level == LogEvent::Level::kWarning;
  nlohmann::json line = {{"time_ms", std::chrono::round<std::chrono::milliseconds>(now).count()},
                         {"level", warn ? "warning" : "info"},
                         {"event", event.event}};
  if (!event.job.empty()) line["job"] = event.job;
  if (event.rank >= 0) line["rank"] = event.rank;
  if (!event.detail.empty()) line["detail"] = event.detail;
  // Peers choose parts of the text: what is not UTF-8 is replaced, never thrown.
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

class QueueSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // `queue` is borrowed: the log owns it and takes this sink out of use first.
  QueueSink(LogQueue& queue, bool json) : queue_(queue), json_(json) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string text(message.payload.data(), message.payload.size());
    if (json_) {
      const bool warn = message.level >= spdlog::level::warn;
      queue_.Add(JsonLine({.level = warn ? LogEvent::Level::kWarning : LogEvent::Level::kInfo,
                           .event = "note",
                           .detail = text}));
      return;
    }
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    queue_.Add(std::string(line.data(), line.size()));
  }
  void flush_() override {}

 private:
  LogQueue& queue_;
  const bool json_;
};

}  // namespace

ServiceLog::ServiceLog(bool json)
    : json_(json),
      queue_(STDERR_FILENO,
             [json](std::int64_t count) {
               const std::string text = std::to_string(count) + " lines that nobody read in time";
               const LogEvent event{LogEvent::Level::kWarning, "log_dropped", "", -1, text};
               return json ? JsonLine(event) : event.event + " " + text + "\n";
             }),
      before_(spdlog::default_logger()) {
  auto logger =
      std::make_shared<spdlog::logger>("service", std::make_shared<QueueSink>(queue_, json));
  logger->set_pattern("%H:%M:%S %l %v");
  spdlog::set_default_logger(std::move(logger));
}

ServiceLog::~ServiceLog() { spdlog::set_default_logger(before_); }

void ServiceLog::Add(const LogEvent& event) {
  if (json_) return queue_.Add(JsonLine(event));
  const bool warn = event.level == LogEvent::Level::kWarning;
  const std::string job = event.job.empty() ? "" : " job=" + event.job;
  spdlog::log(warn ? spdlog::level::warn : spdlog::level::info, "{}{} {}", event.event, job,
              event.detail);
}

}  // namespace dynamix
