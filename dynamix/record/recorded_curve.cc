#include "dynamix/record/recorded_curve.h"

#include "dynamix/core/input_error.h"
#include "dynamix/record/rounds_file.h"
#include "dynamix/record/run_record.h"

namespace dynamix {

RecordedCurve ReadRecordedCurve(const std::filesystem::path& path) {
  std::vector<std::pair<double, double>> points;
  double seconds = 0;
  ReadRounds(path, [&](const nlohmann::json& line) {
    const RecordedRound round = ParseRound(line);
    if (!IsMissing(round.window_seconds)) seconds += round.window_seconds;
    double sum = 0;
    int count = 0;
    for (const Report& report : round.workers) {
      if (IsMissing(report.training.loss)) continue;
      sum += report.training.loss;
      ++count;
    }
    if (count > 0) points.emplace_back(seconds, sum / count);
  });
  RecordedCurve curve(points);
  if (curve.empty()) throw InputError(path.string() + " holds fewer than two rounds with a loss");
  return curve;
}

}  // namespace dynamix
