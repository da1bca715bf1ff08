#include "dynamix/record/report_json.h"

#include <type_traits>

#include "dynamix/core/report_fields.h"

namespace dynamix {
namespace {

using nlohmann::json;

constexpr char kWindow[] = "window";

// JSON has no NaN: what was not measured is null.
json ValueJson(double value) { return IsMissing(value) ? json() : json(value); }
json ValueJson(std::int64_t value) { return value; }
json ValueJson(int value) { return value; }
json ValueJson(NetworkTier tier) { return static_cast<int>(tier); }

// Null when it is not there.
const json* Find(const json& object, const ReportField& field) {
  const json* part = &object;
  if (*field.section != '\0') {
    const auto section = object.find(field.section);
    if (section == object.end()) return nullptr;
    part = &*section;
  }
  const auto found = part->find(field.name);
  return found == part->end() || found->is_null() ? nullptr : &*found;
}

}  // namespace

json ReportJson(const Report& report) {
  json object;
  VisitFields(report, [&](const ReportField& field, const auto& value) {
    json& part = *field.section == '\0' ? object : object[field.section];
    part[field.name] = ValueJson(value);
  });
  object.erase(kWindow);
  return object;
}

Report ReadReportJson(const json& object, std::int64_t window) {
  Report report;
  VisitIdentity(report, [&](const ReportField& field, auto& value) {
    if (field.name != std::string_view(kWindow)) object.at(field.name).get_to(value);
  });
  report.window = window;
  VisitMeasurements(report, [&](const ReportField& field, auto& value) {
    using Value = std::remove_reference_t<decltype(value)>;
    const json* found = Find(object, field);
    if (found == nullptr) return;
    if constexpr (std::is_same_v<Value, NetworkTier>)
      value = static_cast<NetworkTier>(Clip(found->template get<double>(), field.low, field.high));
    else
      found->get_to(value);
  });
  return report;
}

}  // namespace dynamix
