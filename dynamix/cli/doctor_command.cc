// dynamix doctor: what this machine offers to a job, and the command that mends what is missing.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "dynamix/cli/commands.h"
#include "dynamix/cli/examination.h"
#include "dynamix/cli/terminal.h"

namespace dynamix {
namespace {

struct DoctorFlags {
  ExaminationOptions options;
  bool json = false;
};

const char* Name(Finding::State state) {
  switch (state) {
    case Finding::State::kGood:
      return "good";
    case Finding::State::kLess:
      return "less";
    case Finding::State::kBad:
      break;
  }
  return "bad";
}

Colour ColourOf(Finding::State state) {
  if (state == Finding::State::kGood) return Colour::kGreen;
  return state == Finding::State::kLess ? Colour::kYellow : Colour::kRed;
}

void Print(const std::vector<Finding>& findings) {
  std::size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.subject.size());
  for (const Finding& finding : findings) {
    std::printf("%s%s  %-*s  %s\n",
                Coloured(Name(finding.state), ColourOf(finding.state), STDOUT_FILENO).c_str(),
                finding.state == Finding::State::kBad ? " " : "",  // as wide as the others
                static_cast<int>(width), finding.subject.c_str(), finding.text.c_str());
    if (!finding.remedy.empty())
      std::printf("      %-*s  to mend it: %s\n", static_cast<int>(width), "",
                  finding.remedy.c_str());
  }
}

void Run(const DoctorFlags& flags) {
  const std::vector<Finding> findings = Examine(flags.options);
  int bad = 0;
  nlohmann::json list = nlohmann::json::array();
  for (const Finding& finding : findings) {
    bad += finding.state == Finding::State::kBad ? 1 : 0;
    list.push_back({{"subject", finding.subject},
                    {"state", Name(finding.state)},
                    {"text", finding.text},
                    {"remedy", finding.remedy}});
  }
  if (flags.json)
    std::printf("%s\n", nlohmann::json{{"findings", list}, {"bad", bad}}.dump().c_str());
  else
    Print(findings);
  std::fflush(stdout);
  if (bad > 0)
    throw std::runtime_error(std::to_string(bad) + " of " + std::to_string(findings.size()) +
                             " findings are bad: jobs will fail until they are mended");
}

}  // namespace

void AddDoctorCommand(CLI::App& app) {
  // The flags live as long as the callback that reads them.
  const auto flags = std::make_shared<DoctorFlags>();
  CLI::App* command = app.add_subcommand(
      "doctor", "Say what this machine offers to a job, and how to mend what is missing");
  command->add_option("--listen", flags->options.address, "HOST:PORT an arbitrator is to have")
      ->capture_default_str();
  command->add_option("--tls-cert", flags->options.certificate,
                      "certificate to examine (PEM): its last day");
  command->add_flag("--json", flags->json, "one JSON object on stdout");
  command->footer(
      "good: works. less: jobs run, with less measured or less to train on. bad: jobs fail, and\n"
      "the exit code is 1.\n"
      "Examples:\n"
      "  dynamix doctor\n"
      "  dynamix doctor --tls-cert certs/arbitrator.crt --json");
  command->callback([flags] { Run(*flags); });
}

}  // namespace dynamix
