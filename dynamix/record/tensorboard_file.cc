#include "dynamix/record/tensorboard_file.h"

#include <bit>
#include <cmath>
#include <map>
#include <stdexcept>

#include "dynamix/core/report_fields.h"

namespace dynamix {
namespace {

constexpr std::size_t kMostWorkers = 64;  // with a tag of their own

std::uint32_t Checksum(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
  }
  return std::rotr(~crc, 15) + 0xa282ead8u;
}

template <typename Unsigned>
std::string LittleEndian(Unsigned value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> 8 * i & 0xff);
  return bytes;
}

// Fields of a protocol-buffer message: a key (number and kind), then the value.
std::string Varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7f) | 0x80);
  return bytes + static_cast<char>(value);
}
std::string Field(int number, double value) {
  return Varint(number << 3 | 1) + LittleEndian(std::bit_cast<std::uint64_t>(value));
}
std::string Field(int number, float value) {
  return Varint(number << 3 | 5) + LittleEndian(std::bit_cast<std::uint32_t>(value));
}
std::string Field(int number, std::int64_t value) {
  return Varint(number << 3) + Varint(static_cast<std::uint64_t>(value));
}
std::string Field(int number, std::string_view value) {
  return Varint(number << 3 | 2) + Varint(value.size()) + std::string(value);
}

std::map<std::string, double> Scalars(const RecordedRound& round) {
  std::map<std::string, double> scalars = {{"held_out/accuracy", round.accuracy},
                                           {"held_out/loss", round.loss},
                                           {"batch/global", round.GlobalBatch()},
                                           {"guard", round.guarded ? 1 : 0}};
  for (std::size_t w = 0; w < std::min(round.batches.size(), kMostWorkers); ++w)
    scalars["batch/worker_" + std::to_string(w)] = round.batches[w];
  std::map<std::string, std::pair<double, int>> sums;  // and how many workers
  for (const Report& report : round.workers) {
    if (report.iterations == 0) continue;
    VisitMeasurements(report, [&](const ReportField& field, const auto& value) {
      const double number = static_cast<double>(value);
      if (IsMissing(number)) return;
      const std::string section = *field.section == '\0' ? "iteration" : field.section;
      auto& [sum, count] = sums[section + "/" + field.name];
      sum += number;
      ++count;
    });
  }
  for (const auto& [tag, sum] : sums) scalars[tag] = sum.first / sum.second;
  return scalars;
}

}  // namespace

TensorboardFile::TensorboardFile(const std::filesystem::path& folder, double start_unix_s)
    : start_unix_s_(start_unix_s),
      path_(folder /
            ("events.out.tfevents." + std::to_string(std::llround(start_unix_s)) + ".dynamix")) {
  std::filesystem::create_directories(folder);
  file_.open(path_, std::ios::binary | std::ios::trunc);
  Write(Field(1, start_unix_s_) + Field(3, std::string_view("brain.Event:2")));
}

void TensorboardFile::Add(const RecordedRound& round) {
  std::string summary;
  for (const auto& [tag, value] : Scalars(round))
    if (std::isfinite(value))
      summary += Field(1, Field(1, std::string_view(tag)) + Field(2, static_cast<float>(value)));
  Write(Field(1, start_unix_s_ + round.seconds) + Field(2, std::int64_t{round.index}) +
        Field(5, std::string_view(summary)));
}

void TensorboardFile::Write(std::string_view event) {
  const std::string length = LittleEndian(std::uint64_t{event.size()});
  file_ << length << LittleEndian(Checksum(length)) << event << LittleEndian(Checksum(event));
  file_.flush();
  if (!file_) throw std::runtime_error("cannot write " + path_.string());
}

}  // namespace dynamix
