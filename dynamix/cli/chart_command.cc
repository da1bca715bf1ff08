// dynamix chart: ratios, told in a JSON file, to a drawing (SVG).
//
//   {"title": TEXT, "left": TEXT, "right": TEXT,               what below and above 1 means
//    "rows": [{"name": TEXT, "mean": R, "low": R, "high": R,   bar; left out: 1
//              "color": N,                                     left out: the row's number
//              "dots": [{"ratio": R, "name": TEXT, "hollow": BOOL}]}]}
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "dynamix/cli/commands.h"
#include "dynamix/core/input_error.h"
#include "dynamix/host/atomic_file.h"
#include "dynamix/page/dot_chart.h"

namespace dynamix {
namespace {

using nlohmann::json;

struct ChartFlags {
  std::string in, out;
  bool json = false;
};

double Ratio(const json& object, const char* name) {
  const double ratio = object.value(name, 1.0);
  if (!(ratio > 0)) throw InputError::OutOfRange(name, ratio, "a number above 0");
  return ratio;
}

DotRow ReadRow(const json& told, int number) {
  DotRow row{.name = told.at("name"),
             .color = told.value("color", number),
             .mean = Ratio(told, "mean"),
             .low = Ratio(told, "low"),
             .high = Ratio(told, "high")};
  if (row.color < 0) throw InputError::OutOfRange("color", row.color, "0 or more");
  for (const json& dot : told.at("dots"))
    row.dots.push_back({Ratio(dot, "ratio"), dot.value("name", ""), dot.value("hollow", false)});
  return row;
}

DotChart ReadChart(const json& told) {
  DotChart chart{
      .title = told.at("title"), .left = told.value("left", ""), .right = told.value("right", "")};
  for (const json& row : told.at("rows"))
    chart.rows.push_back(ReadRow(row, static_cast<int>(chart.rows.size())));
  if (chart.rows.empty()) throw InputError("rows = [] is not allowed: expected one row or more");
  return chart;
}

void Draw(const ChartFlags& flags) {
  const Result<std::string> text = ReadBytes(flags.in);
  if (!text) throw InputError(text.error());
  DotChart chart;
  try {
    chart = ReadChart(json::parse(text.value()));
  } catch (const json::exception& error) {
    throw InputError(flags.in + ": " + error.what());
  } catch (const InputError& error) {
    throw InputError(flags.in + ": " + error.what());
  }
  if (const Status written = WriteBytes(flags.out, RenderDotsFile(chart)); !written)
    throw std::runtime_error(written.error());
  if (flags.json) {
    std::printf("%s\n", json{{"chart", flags.out}, {"rows", chart.rows.size()}}.dump().c_str());
  } else {
    std::printf("chart: %s\n", flags.out.c_str());
  }
}

}  // namespace

void AddChartCommand(CLI::App& app) {
  auto flags =
      std::make_shared<ChartFlags>();  // shared with the callback, which outlives this call
  CLI::App* command =
      app.add_subcommand("chart", "Draw ratios of policies, a dot per job, as an SVG file");
  command
      ->add_option("file", flags->in,
                   "JSON: title, rows and their dots (docs/results.md's are made so)")
      ->required();
  command->add_option("-o,--out", flags->out, "file to write")->required();
  command->add_flag("--json", flags->json, "one JSON object on stdout");
  command->footer(
      "Example, of chart.json = {\"title\": \"Time over static's\", \"left\": \"faster\", "
      "\"right\": "
      "\"slower\",\n"
      "  \"rows\": [{\"name\": \"default\", \"mean\": 0.5, \"low\": 0.4, \"high\": 0.6, \"dots\": "
      "[{\"ratio\": 0.5, \"name\": \"seed 1\"}]}]}:\n"
      "  dynamix chart chart.json -o chart.svg");
  command->callback([flags] { Draw(*flags); });
}

}  // namespace dynamix
