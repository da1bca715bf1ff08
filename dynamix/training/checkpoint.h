// Checkpoints: a file that holds everything a job needs to go on as if nothing had happened.
//
//   "DYNAMIX1"   8 bytes
//   u64          length of the header
//   header       JSON
//   arrays       raw little-endian numbers, of the lengths in the header
//   u32          CRC-32 of everything before it
//
// Written to a temporary file, synced and renamed, and the one before is kept: a process killed at
// any moment leaves at least one whole checkpoint. Thread-safe as long as one process writes.
// Loading refuses, with the reason, a file whose checksum, version or sizes are wrong, and then
// tries the one before.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "dynamix/core/result.h"
#include "dynamix/training/worker.h"

namespace dynamix {

struct Checkpoint {
  std::string job;                    // what is trained; a checkpoint of another job is not resumed
  std::vector<std::string> settings;  // "name = value", of what decides how it is trained
  double seconds = 0;                 // of training so far
  double time_to_target_s = 0;        // 0: not reached yet
  WorkerState worker;
  std::string advisor;  // Advisor::Save
  // Set by LoadCheckpoint: why the newest file was refused and the one before taken; not in a file.
  std::string refused;
};

Status SaveCheckpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint);
Result<Checkpoint> LoadCheckpoint(const std::filesystem::path& folder);
bool HasCheckpoint(const std::filesystem::path& folder);
// A file's bytes. Decoding refuses, with the reason, what is not a whole checkpoint.
std::string EncodeCheckpoint(const Checkpoint& checkpoint);
Result<Checkpoint> DecodeCheckpoint(const std::string& bytes);
// Of a run that is replaced: a new one must never be resumed from them.
Status RemoveCheckpoints(const std::filesystem::path& folder);

}  // namespace dynamix
