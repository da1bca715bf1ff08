// The page of a judgement: one self-contained HTML page with a dot per job, its breakdowns, and a
// table of all jobs. No scripts, nothing from outside.
#pragma once

#include <string>

#include "dynamix/evaluation/judge.h"

namespace dynamix {

std::string RenderJudgePage(const Judgement& judgement);

// Throws std::runtime_error when the file cannot be written.
void WriteJudgePage(const std::string& path, const Judgement& judgement);

}  // namespace dynamix
