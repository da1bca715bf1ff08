#include "dynamix/evaluation/result_cache.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "dynamix/host/atomic_file.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json KeyJson(const RunKey& key) {
  return {{"job", key.job}, {"policy", key.policy}, {"version", key.version}};
}

// FNV-1a: names a file. What the file holds is compared in full.
std::string HashOf(const std::string& text) {
  std::uint64_t hash = 14695981039346656037u;
  for (const unsigned char c : text) hash = (hash ^ c) * 1099511628211u;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

json CurveJson(const std::vector<CurvePoint>& curve) {
  json points = json::array();
  for (const CurvePoint& p : curve) points.push_back({p.seconds, p.samples, p.loss, p.accuracy});
  return points;
}

std::vector<CurvePoint> ParseCurve(const json& points) {
  std::vector<CurvePoint> curve;
  for (const json& p : points)
    curve.push_back({p.at(0).get<double>(), p.at(1).get<double>(), p.at(2).get<double>(),
                     p.at(3).get<double>()});
  return curve;
}

// The fields of a result, once: `visit` gets each name with its field.
template <typename Result, typename Visit>
void VisitFields(Result& r, Visit visit) {
  visit("scenario", r.scenario);
  visit("workload", r.workload);
  visit("policy", r.policy);
  visit("workers", r.workers);
  visit("seed", r.seed);
  visit("time_to_target_s", r.time_to_target_s);
  visit("reached", r.reached);
  visit("samples", r.samples);
  visit("final_accuracy", r.final_accuracy);
  visit("mean_wait_share", r.mean_wait_share);
  visit("windows", r.windows);
  visit("first_global_batch", r.first_global_batch);
  visit("last_global_batch", r.last_global_batch);
}

json ToJson(const JobResult& result) {
  json object = {{"curve", CurveJson(result.curve)}};
  VisitFields(result, [&](const char* name, const auto& field) { object[name] = field; });
  return object;
}

JobResult FromJson(const json& object) {
  JobResult result;
  VisitFields(result, [&](const char* name, auto& field) { object.at(name).get_to(field); });
  result.curve = ParseCurve(object.at("curve"));
  return result;
}

}  // namespace

fs::path ResultCache::FileOf(const RunKey& key) const {
  std::string label = key.label;
  for (char& c : label)
    if (c == '/' || c == ' ') c = '_';
  return folder_ / (label + "-" + HashOf(KeyJson(key).dump()) + ".json");
}

std::optional<JobResult> ResultCache::Find(const RunKey& key) const {
  if (folder_.empty()) return std::nullopt;
  std::ifstream file(FileOf(key));
  if (!file) return std::nullopt;
  try {
    const json found = json::parse(file);
    if (found.at("key") != KeyJson(key)) return std::nullopt;
    JobResult result = FromJson(found.at("result"));
    if (result.curve.empty()) return std::nullopt;
    return result;
  } catch (const json::exception&) {  // damaged: the run is made again
    return std::nullopt;
  }
}

void ResultCache::Keep(const RunKey& key, const JobResult& result) const {
  if (folder_.empty()) return;
  fs::create_directories(folder_);
  const json run = {{"key", KeyJson(key)}, {"result", ToJson(result)}};
  if (const Status kept = WriteBytes(FileOf(key).string(), run.dump() + "\n"); !kept)
    throw std::runtime_error(kept.error());
}

}  // namespace dynamix
