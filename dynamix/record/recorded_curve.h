// The loss of an earlier run over its time, read from its rounds.jsonl: the reference that a live
// job's progress can be measured on.
#pragma once

#include <filesystem>

#include "dynamix/arbitrator/progress.h"

namespace dynamix {

// Throws InputError for a file that cannot be read, is damaged, or holds fewer than two rounds with
// a loss.
RecordedCurve ReadRecordedCurve(const std::filesystem::path& path);

}  // namespace dynamix
