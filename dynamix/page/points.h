// What charts show of a round: a point, and what they need to know of its job. The page of a
// finished run and the dashboard of a running one draw the same points with the same scripts
// (run_view.js).
//
// A point, null for what was not measured, arrays with one value per worker:
//
//   round, t (s, end of the window on the job's clock), dt (s, its length), samples (in the window),
//   accuracy, loss (held-out), train_loss, train_accuracy, learning_rate, noise (samples),
//   batches (in the window, 0: away), sizes (decided for the next), late (without a report),
//   compute, wait, communication (ms per iteration), rtt_ms, retransmitted (%), cpu (%),
//   sent_mbps, guard, action, why: [{name, value, influence}]
//
// Values are the record's, to six digits. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "dynamix/page/reasons.h"
#include "dynamix/record/run_record.h"

namespace dynamix {

// `previous` null: the first round. Reasons are given for rounds that change a batch.
nlohmann::json PointJson(const RecordedRound& round, const RecordedRound* previous,
                         Reasons& reasons);

// {policy, backend, workers, description, target: {value, by_loss}, events: [{begin, end, label}],
//  why_title, why_text}
nlohmann::json ViewConfigJson(const RunConfig& config, const Reasons& reasons);

}  // namespace dynamix
