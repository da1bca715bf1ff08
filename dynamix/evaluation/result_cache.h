// Finished runs on disk, one JSON file each, so that a new policy costs only its own runs and an
// interrupted suite goes on.
//
// A run is known by everything it depends on: the job in full, the policy (a rule's name, or the
// checksum of its file) and the version of the code. A file that is damaged, cut off or of another
// key is as good as none. Safe from several threads and processes: files are replaced whole. Keep
// throws std::runtime_error when the disk refuses.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "dynamix/record/job_result.h"

namespace dynamix {

struct RunKey {
  std::string job;      // as text, in full
  std::string policy;   // what tells it from every other
  std::string version;  // of what a run computes
  std::string label;    // names the file, so that people find it; not part of the key
};

class ResultCache {
 public:
  // Empty: nothing is kept, nothing is found.
  explicit ResultCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::optional<JobResult> Find(const RunKey& key) const;
  void Keep(const RunKey& key, const JobResult& result) const;

 private:
  std::filesystem::path FileOf(const RunKey& key) const;

  std::filesystem::path folder_;
};

}  // namespace dynamix
