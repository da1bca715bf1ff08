// TensorboardFile: the scalars of a run, as TensorBoard reads them. A step is a round.
//
// The file is a sequence of records: length (8 bytes), checksum of the length (4), a protocol-buffer
// message tensorflow.Event, checksum of the message (4); numbers are little-endian, checksums are
// CRC-32C, masked: rotated right by 15 bits, plus 0xa282ead8. Of the messages these fields are used:
//
//   Event:   wall_time = 1 (double), step = 2 (int64), file_version = 3 (string), summary = 5
//   Summary: value = 1 (repeated)
//   Value:   tag = 1 (string), simple_value = 2 (float)
//
// Source: TensorFlow's record_writer, event and summary.
//
// Tags: held_out/..., batch/global, batch/worker_N, guard, and every measurement of a report as the
// mean over the workers that made it ("iteration/compute_ms", "network/smoothed_rtt_us"). What was
// not measured is left out. Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "dynamix/record/run_record.h"

namespace dynamix {

class TensorboardFile {
 public:
  // FOLDER/events.out.tfevents.START.dynamix, made anew. `start_unix_s` is when the run began: its
  // clock is added to it. Throws std::runtime_error, as Add does, when the disk refuses.
  TensorboardFile(const std::filesystem::path& folder, double start_unix_s);

  // Is there to be read when this returns.
  void Add(const RecordedRound& round);

 private:
  void Write(std::string_view event);

  double start_unix_s_;
  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace dynamix
