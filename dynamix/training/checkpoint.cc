#include "dynamix/training/checkpoint.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "dynamix/host/atomic_file.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[] = "DYNAMIX1";
constexpr std::size_t kMagicBytes = 8;

fs::path Newest(const fs::path& folder) { return folder / "checkpoint.bin"; }
fs::path Before(const fs::path& folder) { return PreviousGeneration(Newest(folder).string()); }

std::uint32_t Checksum(const std::string& bytes, std::size_t count) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), count));
}

template <typename Number>
void Append(std::string& bytes, const std::vector<Number>& values) {
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Number));
}

template <typename Number>
void Take(const std::string& bytes, std::size_t& at, std::size_t count,
          std::vector<Number>& values) {
  if (count > (bytes.size() - at) / sizeof(Number))
    throw std::runtime_error("arrays are cut short");
  values.resize(count);
  if (count > 0) std::memcpy(values.data(), bytes.data() + at, count * sizeof(Number));
  at += count * sizeof(Number);
}

std::vector<std::size_t> Lengths(const std::vector<std::vector<float>>& arrays) {
  std::vector<std::size_t> lengths;
  for (const auto& array : arrays) lengths.push_back(array.size());
  return lengths;
}

Checkpoint DecodeBody(const std::string& bytes, std::size_t at, const nlohmann::json& header) {
  Checkpoint checkpoint;
  WorkerState& worker = checkpoint.worker;
  checkpoint.job = header.at("job");
  checkpoint.settings = header.value("settings", checkpoint.settings);  // absent in older files
  worker.cursor = header.at("cursor");
  if (header.contains("schedule_position")) {
    worker.schedule_position = header["schedule_position"];
  } else {  // an older file: all schedules ran by samples
    worker.schedule_position = static_cast<double>(worker.cursor);
    checkpoint.settings.push_back("workload.optimizer.clock = 'samples'");
  }
  worker.optimizer_steps = header.at("optimizer_steps");
  worker.iterations = header.at("iterations");
  worker.windows = header.at("windows");
  const std::size_t ranks = header.at("ranks");
  for (auto* numbers :
       {&worker.batches, &worker.start_batches, &worker.highest, &worker.micro_batches})
    Take(bytes, at, ranks, *numbers);
  std::vector<double> numbers;
  const std::size_t noise = worker.noise_scale.size(), statistics = worker.statistics.size();
  Take(bytes, at, 2 + noise + statistics + worker.timing.size(), numbers);
  checkpoint.seconds = numbers[0];
  checkpoint.time_to_target_s = numbers[1];
  const double* next = numbers.data() + 2;
  std::copy_n(next, noise, worker.noise_scale.begin());
  std::copy_n(next + noise, statistics, worker.statistics.begin());
  std::copy_n(next + noise + statistics, worker.timing.size(), worker.timing.begin());
  Take(bytes, at, header.at("parameters"), worker.parameters);
  for (const std::size_t length : header.at("optimizer"))
    Take(bytes, at, length, worker.optimizer.emplace_back());
  for (const std::size_t length : header.at("buffers"))
    Take(bytes, at, length, worker.buffers.emplace_back());
  std::vector<char> advisor;
  Take(bytes, at, header.at("advisor"), advisor);
  checkpoint.advisor.assign(advisor.begin(), advisor.end());
  return checkpoint;
}

Result<Checkpoint> Read(const fs::path& path) {
  const Result<std::string> bytes =
      ReadBytes(path.string(), std::numeric_limits<std::size_t>::max());
  if (!bytes) return Error{bytes.error()};
  Result<Checkpoint> checkpoint = DecodeCheckpoint(bytes.value());
  if (checkpoint) return checkpoint;
  return Error{path.string() + " is not a checkpoint: " + checkpoint.error()};
}

// What a process that was killed while it saved has left: as large as a checkpoint, and no use.
void RemoveUnfinished(const fs::path& folder) {
  const std::string prefix = Newest(folder).filename().string() + ".writing";
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(folder, error))
    if (file.path().filename().string().starts_with(prefix)) fs::remove(file.path(), error);
}

}  // namespace

std::string EncodeCheckpoint(const Checkpoint& checkpoint) {
  const WorkerState& worker = checkpoint.worker;
  const nlohmann::json header = {{"job", checkpoint.job},
                                 {"settings", checkpoint.settings},
                                 {"ranks", worker.batches.size()},
                                 {"cursor", worker.cursor},
                                 {"schedule_position", worker.schedule_position},
                                 {"optimizer_steps", worker.optimizer_steps},
                                 {"iterations", worker.iterations},
                                 {"windows", worker.windows},
                                 {"parameters", worker.parameters.size()},
                                 {"optimizer", Lengths(worker.optimizer)},
                                 {"buffers", Lengths(worker.buffers)},
                                 {"advisor", checkpoint.advisor.size()}};
  const std::string text = header.dump();
  std::string bytes(kMagic, kMagicBytes);
  const std::uint64_t length = text.size();
  bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
  bytes += text;
  for (const auto* numbers :
       {&worker.batches, &worker.start_batches, &worker.highest, &worker.micro_batches})
    Append(bytes, *numbers);
  std::vector<double> numbers = {checkpoint.seconds, checkpoint.time_to_target_s};
  numbers.insert(numbers.end(), worker.noise_scale.begin(), worker.noise_scale.end());
  numbers.insert(numbers.end(), worker.statistics.begin(), worker.statistics.end());
  numbers.insert(numbers.end(), worker.timing.begin(), worker.timing.end());
  Append(bytes, numbers);
  Append(bytes, worker.parameters);
  for (const auto& part : worker.optimizer) Append(bytes, part);
  for (const auto& buffer : worker.buffers) Append(bytes, buffer);
  bytes += checkpoint.advisor;
  const std::uint32_t checksum = Checksum(bytes, bytes.size());
  bytes.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
  return bytes;
}

Result<Checkpoint> DecodeCheckpoint(const std::string& bytes) {
  constexpr std::size_t kFixed = kMagicBytes + sizeof(std::uint64_t) + sizeof(std::uint32_t);
  if (bytes.size() < kFixed || bytes.compare(0, kMagicBytes, kMagic) != 0)
    return Error{"it does not begin with " + std::string(kMagic)};
  const std::size_t body = bytes.size() - sizeof(std::uint32_t);
  std::uint32_t checksum = 0;
  std::memcpy(&checksum, bytes.data() + body, sizeof checksum);
  if (checksum != Checksum(bytes, body)) return Error{"its checksum is wrong"};
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data() + kMagicBytes, sizeof length);
  if (length > bytes.size() - kFixed) return Error{"its header is cut short"};
  const std::size_t begin = kMagicBytes + sizeof length;
  try {
    const auto header = nlohmann::json::parse(bytes.substr(begin, length));
    return DecodeBody(bytes.substr(0, body), begin + length, header);
  } catch (const std::exception& error) {
    return Error{error.what()};
  }
}

bool HasCheckpoint(const fs::path& folder) {
  return fs::exists(Newest(folder)) || fs::exists(Before(folder));
}

Status RemoveCheckpoints(const fs::path& folder) {
  RemoveUnfinished(folder);
  std::error_code error;
  for (const fs::path& path : {Before(folder), Newest(folder)})
    if (fs::exists(path) && !fs::remove(path, error))
      return Error{"cannot remove " + path.string() + ": " + error.message()};
  return Nothing{};
}

Status SaveCheckpoint(const fs::path& folder, const Checkpoint& checkpoint) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return Error{"cannot make " + folder.string() + ": " + error.message()};
  RemoveUnfinished(folder);
  return WriteBytes(Newest(folder).string(), EncodeCheckpoint(checkpoint),
                    /*keep=*/[](const std::string& path) { return Read(path).ok(); });
}

Result<Checkpoint> LoadCheckpoint(const fs::path& folder) {
  Result<Checkpoint> newest = Read(Newest(folder));
  if (newest || !fs::exists(Before(folder))) return newest;
  Result<Checkpoint> before = Read(Before(folder));
  if (!before) return newest;
  Checkpoint checkpoint = std::move(before).value();
  checkpoint.refused = newest.error();
  return checkpoint;
}

}  // namespace dynamix
