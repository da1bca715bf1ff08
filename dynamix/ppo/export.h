// Export of a policy's networks to other run-times, with the input normaliser inside the graph.
//
// One input per head that is on, "local" (rows x features) and "team" (rows x features), float32,
// NaN where a measurement is missing; one output per head, "local_logits" and "team_logits" (rows x
// 5). Masks for illegal actions are the caller's. Files are written whole or not at all. Pure
// otherwise.
#pragma once

#include <string>

#include "dynamix/core/result.h"
#include "dynamix/ppo/policy_file.h"

namespace dynamix {

// ONNX, opset 13, IR version 8.
std::string EncodeOnnx(const PolicyModel& model);
Status ExportOnnx(const PolicyModel& model, const std::string& path);

// A TorchScript module: forward(local, team) -> (local_logits, team_logits), or forward(x) ->
// logits when one head is on. In the library dynamix::ppo_export, which exists only in builds with
// libtorch.
Status ExportTorchScript(const PolicyModel& model, const std::string& path);

}  // namespace dynamix
