// The elastic part of a WorkerGroup: how survivors become the next group, and how a rank that comes
// later finds them.
#include <signal.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"
#include "dynamix/host/atomic_file.h"
#include "dynamix/host/checksum.h"
#include "dynamix/training/door.h"
#include "dynamix/training/rendezvous.h"
#include "dynamix/training/settings.h"
#include "dynamix/training/worker_group_connection.h"

namespace dynamix {
namespace {

// Of a new group's connections. Gloo waits five times as long for a peer to connect, so a rank that
// is lost just then costs the others 5 s.
constexpr double kFormingTimeoutS = 1;
constexpr double kFetchTimeoutS = 10;
constexpr double kPatienceS = 1;  // with a collective that still waits after a connection was lost
constexpr std::size_t kDoorLength = 32;  // "255.255.255.255:65535" and zeros

// Gloo's meeting point: every rank keeps its own address, and its door gives it to the others. The
// loss of a rank is noticed at once, and no rank keeps the store.
class DoorStore : public c10d::Store {
 public:
  explicit DoorStore(Rendezvous& rendezvous) : rendezvous_(rendezvous) {}

  void set(const std::string& key, const std::vector<std::uint8_t>& value) override {
    std::string text;
    for (const std::uint8_t byte : value) {
      text += static_cast<char>('a' + byte / 16);
      text += static_cast<char>('a' + byte % 16);
    }
    rendezvous_.Publish(key, text);
  }
  std::vector<std::uint8_t> get(const std::string& key) override {
    // Gloo's keys end with the rank that set them: "0/2", "0/rank_2".
    const int rank = std::stoi(key.substr(key.find_last_not_of("0123456789") + 1));
    const Result<std::string> text = rendezvous_.Fetch(rank, key, kFetchTimeoutS);
    if (!text) throw std::runtime_error(text.error());
    std::vector<std::uint8_t> value;
    for (std::size_t i = 0; i + 1 < text.value().size(); i += 2)
      value.push_back(
          static_cast<std::uint8_t>((text.value()[i] - 'a') * 16 + text.value()[i + 1] - 'a'));
    return value;
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override {
    wait(keys);
  }
  // Gloo does not call these.
  std::int64_t add(const std::string&, std::int64_t) override { return Unused(); }
  bool deleteKey(const std::string&) override { return Unused() != 0; }
  bool check(const std::vector<std::string>&) override { return Unused() != 0; }
  std::int64_t getNumKeys() override { return Unused(); }

 private:
  static std::int64_t Unused() {
    DYNAMIX_CHECK(false, "Gloo only sets, gets and waits");
    return 0;
  }
  Rendezvous& rendezvous_;  // the group's, which outlives the forming of its connections
};

// Gloo writes to connections without asking for an error instead of a signal: a peer that closed its
// end would end this process too. Its threads, which are started while this lives, inherit the mask.
class WithoutBrokenPipes {
 public:
  WithoutBrokenPipes() {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before_);
  }
  ~WithoutBrokenPipes() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WithoutBrokenPipes(const WithoutBrokenPipes&) = delete;
  WithoutBrokenPipes& operator=(const WithoutBrokenPipes&) = delete;

 private:
  sigset_t before_{};
};

// What the first rank leaves for those who come later.
struct Members {
  std::string key;
  int started = 0, slots = 0;  // ranks at the start, and at most
  std::int64_t epoch = 0;
  std::vector<std::string> doors, settings;
};

Result<Members> ReadMembers(const std::string& path) {
  const Result<std::string> text = ReadBytes(path);
  if (!text) return Error{text.error()};
  try {
    const auto json = nlohmann::json::parse(text.value());
    return Members{json.at("key"),   json.at("started"), json.at("slots"),
                   json.at("epoch"), json.at("doors"),   json.at("settings")};
  } catch (const nlohmann::json::exception&) {
    return Error{"'" + path + "' does not say where the members of a job are"};
  }
}

std::uint64_t DrawNumber() {
  std::random_device device;
  return (((std::uint64_t{device()} << 32) | device()) >> 11) | 1;  // exact as a double
}

// The job's number is for everybody to see; its key is not, and cannot be told from the number.
std::uint64_t JobOf(std::uint64_t key) {
  return std::stoull(Sha256({std::to_string(key)}).substr(0, 13), nullptr, 16) | 1;
}

}  // namespace

c10::intrusive_ptr<BreakableGroup> WorkerGroup::Connection::Join(
    const c10::intrusive_ptr<c10d::Store>& at, int rank, int size, double timeout_s) const {
  std::optional<WithoutBrokenPipes> without_broken_pipes;
  if (options.elastic) without_broken_pipes.emplace();
  auto gloo = c10d::ProcessGroupGloo::Options::create(
      Milliseconds(timeout_s > 0 ? timeout_s : options.timeout_s));
  gloo->threads = options.threads;
  if (!options.interface.empty()) {
    gloo->devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface(options.interface));
  } else if (!address.empty()) {
    gloo->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(address));
  } else {
    gloo->devices.push_back(c10d::ProcessGroupGloo::createDefaultDevice());
  }
  return c10::make_intrusive<BreakableGroup>(at, rank, size, gloo,
                                             options.elastic ? kPatienceS : 0.0);
}

void WorkerGroup::Connection::Retire() {
  c10::intrusive_ptr<BreakableGroup> old;
  {
    const std::lock_guard lock(mutex);
    old.swap(group);
  }
  if (!old) return;
  old->Break();
  std::erase_if(retired, [](const std::future<void>& one) {
    return one.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  });
  retired.push_back(
      std::async(std::launch::async, [old = std::move(old)]() mutable { old.reset(); }));
}

// The file of a later team is written before that team has the job's state. One of another job, or
// that is none, says nothing of this one.
bool WorkerGroup::Connection::LeftOut() {
  const Result<Members> members = ReadMembers(members_file);
  if (!members || members.value().key != rendezvous->key()) return false;
  if (members.value().epoch <= rendezvous->team().epoch) return false;
  const std::vector<std::string>& later = members.value().doors;
  if (std::find(later.begin(), later.end(), rendezvous->self().door) != later.end()) return false;
  doors = later;
  return true;
}

bool WorkerGroup::elastic() const { return connection_ && connection_->rendezvous; }
bool WorkerGroup::joining() const { return elastic() && !connection_->doors.empty(); }
bool WorkerGroup::taken_in() const { return elastic() && connection_->rendezvous->joined(); }
bool WorkerGroup::JoinWaiting() const {
  return elastic() && connection_->rendezvous->JoinWaiting();
}

void WorkerGroup::OpenDoor(std::uint64_t key, int started) {
  job_ = JobOf(key);
  const WorkerGroupOptions& options = connection_->options;
  Connection* connection = connection_.get();  // owns the rendezvous
  connection_->rendezvous = std::make_unique<Rendezvous>(
      RendezvousOptions{.slot = slot_,
                        .slots = slots_,
                        .started = started,
                        .host = connection->address.empty() ? "127.0.0.1" : connection->address,
                        .key = std::to_string(key),
                        .timeout_s = options.timeout_s,
                        .least_members = options.least_ranks},
      [connection] { connection->Break(); });
}

namespace {

std::string MembersFile(const WorkerGroupOptions& options, const RankPlace& place) {
  if (!options.members.empty()) return options.members;
  return place.store.empty() ? "" : place.store + ".members";
}

// A slot nobody has, of those who are there. Asked one after the other, so that those who come at
// the same time ask the same member, which tells them apart.
int AskForSlot(const Members& members) {
  for (const std::string& door : members.doors) {
    nlohmann::json answer;
    if (AskDoor(door, members.key, {{"ask", "slot"}}, kFetchTimeoutS, &answer) != Heard::kAnswer)
      continue;
    if (!answer.contains("slot"))
      throw std::runtime_error("all " + std::to_string(members.slots) +
                               " workers that the job may have are there");
    return answer.at("slot");
  }
  throw std::runtime_error("nobody answers: the job has ended, or its machines are out of reach");
}

}  // namespace

Status WorkerGroup::Begin(const RankPlace& place) {
  const WorkerGroupOptions& options = connection_->options;
  RequireInRange("least_ranks", options.least_ranks, 1, size_);
  if (options.most_ranks > 0) RequireInRange("most_ranks", options.most_ranks, size_, 4096);
  slots_ = std::max(size_, options.most_ranks);
  connection_->members_file = MembersFile(options, place);
  double key = static_cast<double>(DrawNumber());
  if (Status sent = Broadcast(std::span<double>(&key, 1)); !sent) return sent;
  OpenDoor(static_cast<std::uint64_t>(key), size_);
  const Member& self = connection_->rendezvous->self();
  std::vector<double> own(self.door.begin(), self.door.end());
  own.resize(kDoorLength);
  own.push_back(static_cast<double>(self.incarnation));
  std::vector<double> all(own.size() * size_);
  if (Status gathered = AllGather(own, all); !gathered) return gathered;
  std::vector<Member> team;
  for (int rank = 0; rank < size_; ++rank) {
    const double* one = all.data() + rank * own.size();
    Member member{rank, static_cast<std::uint64_t>(one[kDoorLength]), ""};
    for (std::size_t i = 0; i < kDoorLength && one[i] != 0; ++i)
      member.door += static_cast<char>(one[i]);
    team.push_back(member);
  }
  connection_->rendezvous->Begin(team);
  TellWhereMembersAre();
  return Nothing{};
}

// A rank that is started again before all have met is awaited there.
bool WorkerGroup::ComesLater(const RankPlace& place, const WorkerGroupOptions& options) {
  return place.rank == RankPlace::kAnyFree ||
         (place.restarts > 0 && std::filesystem::exists(MembersFile(options, place)));
}

// What an earlier job left there is not of this one.
void WorkerGroup::ForgetMembers(const RankPlace& place, const WorkerGroupOptions& options) {
  std::error_code none;
  if (place.rank == 0 && place.restarts == 0)
    std::filesystem::remove(MembersFile(options, place), none);
}

std::unique_ptr<WorkerGroup> WorkerGroup::JoinLater(RankPlace place,
                                                    const WorkerGroupOptions& options) {
  const std::string file = MembersFile(options, place);
  const Result<Members> read = ReadMembers(file);
  if (!read) throw std::runtime_error(read.error());
  const Members& members = read.value();
  if (place.size != members.started)
    throw InputError("the job started with " + std::to_string(members.started) +
                     " ranks, and this one says " + std::to_string(place.size));
  const std::string differences = Differences(options.settings, members.settings, "the job");
  if (!differences.empty())
    throw InputError("this is not the job that is under way: " + differences);
  if (place.rank == RankPlace::kAnyFree) {
    place.rank = AskForSlot(members);
    place.address = members.doors.front().substr(0, members.doors.front().rfind(':'));
  }
  auto connection = std::make_unique<Connection>(options, place.address);
  connection->members_file = file;
  connection->doors = members.doors;
  std::unique_ptr<WorkerGroup> group(
      new WorkerGroup(place.rank, place.size, std::move(connection)));
  group->slots_ = members.slots;
  group->OpenDoor(std::stoull(members.key), members.started);
  return group;
}

// Rank 0 writes it for those who come later. It holds the job's key: its folder is for its owner
// only. A disk that refuses it costs joins, not training.
void WorkerGroup::TellWhereMembersAre() const {
  if (rank_ != 0 || connection_->members_file.empty()) return;
  std::vector<std::string> doors;
  for (const Member& member : connection_->rendezvous->team().members) doors.push_back(member.door);
  const nlohmann::json members = {{"key", connection_->rendezvous->key()},
                                  {"started", connection_->rendezvous->started()},
                                  {"slots", slots_},
                                  {"epoch", connection_->rendezvous->team().epoch},
                                  {"doors", doors},
                                  {"settings", connection_->options.settings}};
  (void)WriteBytes(connection_->members_file, members.dump());
}

Status WorkerGroup::Reform(bool take_joiners) {
  DYNAMIX_CHECK(elastic(), "only an elastic group forms anew");
  Rendezvous& rendezvous = *connection_->rendezvous;
  while (true) {
    connection_->Retire();
    const Result<Team> team = joining() || connection_->LeftOut()
                                  ? rendezvous.Join(connection_->doors)
                                  : rendezvous.Meet(take_joiners);
    if (!team) return Error{team.error()};
    connection_->doors.clear();
    rank_ = team.value().RankOf(rendezvous.self());
    size_ = static_cast<int>(team.value().members.size());
    members_.clear();
    for (const Member& member : team.value().members) members_.push_back(member.slot);
    if (Form()) break;
    take_joiners = false;
  }
  lost_ = false;
  TellWhereMembersAre();
  return Nothing{};
}

// False when a member was lost meanwhile.
bool WorkerGroup::Form() {
  if (size_ == 1) return true;
  try {
    auto group = connection_->Join(c10::make_intrusive<DoorStore>(*connection_->rendezvous), rank_,
                                   size_, kFormingTimeoutS);
    group->SetTimeout(Milliseconds(connection_->options.timeout_s));
    const std::lock_guard lock(connection_->mutex);
    connection_->group = group;
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace dynamix
