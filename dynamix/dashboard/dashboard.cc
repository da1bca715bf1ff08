#include "dynamix/dashboard/dashboard.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>
#include <mutex>

#include "dynamix/core/input_error.h"
#include "dynamix/dashboard/job_feed.h"
#include "dynamix/host/checksum.h"
#include "dynamix/page/dashboard_page.h"
#include "dynamix/rpc/address.h"
#include "dynamix/rpc/web_server.h"

namespace dynamix {
namespace {

using nlohmann::json;

constexpr int kThreads = 64;  // readers at once; a stream has one for itself
constexpr std::size_t kMostJobs = 256;
constexpr double kPatienceS = 0.5;  // of a stream without news
constexpr int kQuietTurns = 20;     // then a reader that left is noticed

WebAnswer Answer(std::string type, std::string body) {
  return {.type = std::move(type),
          .body = std::move(body),
          .headers = {
              {"Content-Security-Policy",
               "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
               "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
              {"X-Content-Type-Options", "nosniff"},
              {"Referrer-Policy", "no-referrer"},
              {"Cache-Control", "no-store"}}};
}

WebAnswer Refusal(int status, const std::string& why) {
  WebAnswer answer = Answer("text/plain; charset=utf-8", why + "\n");
  answer.status = status;
  return answer;
}

std::string EventText(const std::string& kind, const std::string& id, const std::string& data) {
  return (id.empty() ? "" : "id: " + id + "\n") + "event: " + kind + "\ndata: " + data + "\n\n";
}

// A page elsewhere could make a browser ask this machine in its own name, and read the answer.
bool IsLocalName(const std::string& host) {
  const std::string name =
      host.substr(0, host.starts_with('[') ? host.find(']') + 1 : host.find(':'));
  return name == "localhost" || name == "127.0.0.1" || name == "[::1]";
}

}  // namespace

class Dashboard::Implementation {
 public:
  explicit Implementation(DashboardOptions options)
      : options_(std::move(options)),
        epoch_(std::chrono::system_clock::now().time_since_epoch().count()),
        local_(IsLoopback(options_.address)),
        cookie_(options_.token.empty() ? "" : "dynamix=" + Sha256({"dashboard", options_.token})) {
    RequireHostPort("dashboard", options_.address);
    if (!local_ && (options_.tls.empty() || options_.token.empty()))
      throw InputError::OutOfRange("dashboard", options_.address,
                                   "a loopback address; any other needs TLS and a token");
  }

  Status Listen() {
    const auto guarded = [this](WebAnswer (Implementation::*page)(const WebRequest&)) {
      return [this, page](const WebRequest& request) {
        if (local_ && !IsLocalName(request.host)) return Refusal(403, "ask for localhost");
        if (!cookie_.empty() && !MayLook(request)) return LogIn(request);
        return (this->*page)(request);
      };
    };
    const WebServerOptions options{.address = options_.address,
                                   .tls = local_ ? TlsFiles{} : options_.tls,
                                   .ask_certificate = false,
                                   .threads = kThreads};
    Result<std::unique_ptr<WebServer>> started =
        WebServer::Start(options, {{"/", guarded(&Implementation::Page)},
                                   {"/dashboard.js", guarded(&Implementation::Script)},
                                   {"/style.css", guarded(&Implementation::Style)},
                                   {"/favicon.ico", guarded(&Implementation::Icon)},
                                   {"/jobs", guarded(&Implementation::Jobs)},
                                   {"/points", guarded(&Implementation::Points)},
                                   {"/events", guarded(&Implementation::Events)}});
    if (!started) return Error{started.error()};
    server_ = std::move(started).value();
    return Nothing{};
  }

  // Shared with the streams that read it: a job may be dropped while they do.
  std::shared_ptr<JobFeed> Feed(const std::string& job) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<JobFeed>& feed = feeds_[job];
    if (feed == nullptr) {
      feed = std::make_shared<JobFeed>(job, epoch_, options_.find_model);
      order_.push_back(job);
      if (order_.size() > kMostJobs) {
        feeds_.erase(order_.front());
        order_.erase(order_.begin());
      }
    }
    return feeds_.at(job);
  }

  int port() const { return server_->port(); }
  std::string url() const {
    const std::string host = options_.address.substr(0, options_.address.rfind(':'));
    return (local_ ? "http://" : "https://") + host + ":" + std::to_string(port()) + "/";
  }

 private:
  bool MayLook(const WebRequest& request) const {
    std::string_view cookies = request.cookie;
    while (!cookies.empty()) {
      const std::size_t end = std::min(cookies.find("; "), cookies.size());
      if (SameToken(cookies.substr(0, end), cookie_)) return true;
      cookies.remove_prefix(std::min(end + 2, cookies.size()));
    }
    return false;
  }

  // The token of the address becomes a cookie, so that it does not stay in the address.
  WebAnswer LogIn(const WebRequest& request) const {
    const auto given = request.query.find("token");
    if (given == request.query.end() || !SameToken(given->second, options_.token))
      return Refusal(401, "add ?token=... to the address once");
    WebAnswer answer = Refusal(303, "");
    answer.headers["Location"] = "/";
    answer.headers["Set-Cookie"] =
        cookie_ + "; HttpOnly; SameSite=Strict; Path=/" + (local_ ? "" : "; Secure");
    return answer;
  }

  WebAnswer Page(const WebRequest&) { return Answer("text/html; charset=utf-8", DashboardPage()); }
  WebAnswer Script(const WebRequest&) {
    return Answer("text/javascript; charset=utf-8", DashboardScript());
  }
  WebAnswer Style(const WebRequest&) { return Answer("text/css; charset=utf-8", DashboardStyle()); }

  // A 204 has no body: a byte of one would be read as the next answer.
  WebAnswer Icon(const WebRequest&) {
    WebAnswer answer = Answer("image/x-icon", "");
    answer.status = 204;
    return answer;
  }

  WebAnswer Jobs(const WebRequest&) {
    json rows = json::array();
    const std::lock_guard lock(mutex_);
    for (auto job = order_.rbegin(); job != order_.rend(); ++job)
      rows.push_back(feeds_.at(*job)->Row());
    return Answer("application/json", rows.dump());
  }

  // Null: there is no such job.
  std::shared_ptr<JobFeed> Asked(const WebRequest& request) {
    const auto job = request.query.find("job");
    if (job == request.query.end()) return nullptr;
    const std::lock_guard lock(mutex_);
    const auto found = feeds_.find(job->second);
    return found == feeds_.end() ? nullptr : found->second;
  }

  WebAnswer Points(const WebRequest& request) {
    const std::shared_ptr<JobFeed> feed = Asked(request);
    return feed == nullptr ? Refusal(404, "no such job")
                           : Answer("application/json", feed->Points());
  }

  WebAnswer Events(const WebRequest& request) {
    const std::shared_ptr<JobFeed> feed = Asked(request);
    if (feed == nullptr) return Refusal(404, "no such job");
    WebAnswer answer = Answer("text/event-stream", "");
    answer.stream = Stream(feed, SeenBy(request, *feed));
    return answer;
  }

  // The number of the last event that the reader has; 0 when it is of another epoch.
  static std::int64_t SeenBy(const WebRequest& request, const JobFeed& feed) {
    std::int64_t seen = 0;
    const std::string& id = request.last_event_id;
    const std::string epoch = feed.Epoch() + "-";
    if (id.starts_with(epoch))
      std::from_chars(id.data() + epoch.size(), id.data() + id.size(), seen);
    return std::max<std::int64_t>(seen, 0);
  }

  static std::function<bool(const WebWrite&)> Stream(const std::shared_ptr<JobFeed>& feed,
                                                     std::int64_t seen) {
    return
        [feed, seen, epoch = feed->Epoch(), told = -1, quiet = 0](const WebWrite& write) mutable {
          bool begins = told < 0;
          std::vector<JobFeed::Event> events = feed->After(seen, begins ? 0 : kPatienceS);
          if (std::string now = feed->Epoch(); now != epoch) {  // the job started anew
            epoch = std::move(now);
            begins = true;
            events = feed->After(0, 0);
          }
          std::string text;
          if (const int configs = feed->configs(); begins || told != configs) {
            text = EventText("config", "", feed->Config().dump());
            told = configs;
          }
          if (const json ghost = begins ? feed->Ghost() : json(); !ghost.empty())
            text += EventText("ghost", "", ghost.dump());
          for (const JobFeed::Event& event : events) {
            text += EventText("point", epoch + "-" + std::to_string(event.number), event.point);
            seen = event.number;
          }
          if (text.empty() && ++quiet % kQuietTurns == 0) text = ": still here\n\n";
          return text.empty() || write(text);
        };
  }

  const DashboardOptions options_;
  const std::int64_t epoch_;
  const bool local_;
  const std::string cookie_;  // of readers who showed the token; empty: nobody has to
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<JobFeed>> feeds_;
  std::vector<std::string> order_;     // of appearance
  std::unique_ptr<WebServer> server_;  // last: its threads read what is above
};

Dashboard::Dashboard(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}

Dashboard::~Dashboard() = default;

Result<std::unique_ptr<Dashboard>> Dashboard::Start(DashboardOptions options) {
  auto implementation = std::make_unique<Implementation>(std::move(options));
  if (Status listens = implementation->Listen(); !listens) return Error{listens.error()};
  return std::unique_ptr<Dashboard>(new Dashboard(std::move(implementation)));
}

int Dashboard::port() const { return implementation_->port(); }
std::string Dashboard::url() const { return implementation_->url(); }

void Dashboard::SetConfig(const std::string& job, const RunConfig& config) {
  implementation_->Feed(job)->SetConfig(config);
}

void Dashboard::SetGhost(const std::string& job, const std::vector<RecordedRound>& rounds) {
  implementation_->Feed(job)->SetGhost(rounds);
}

void Dashboard::AddRound(const std::string& job, const json& line) {
  try {
    implementation_->Feed(job)->Add(ParseRound(line));
  } catch (const json::exception&) {  // a line of another version
  }
}

}  // namespace dynamix
