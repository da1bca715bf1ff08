#include "dynamix/cli/program.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>

#include "dynamix/cli/closest.h"
#include "dynamix/cli/interrupt.h"
#include "dynamix/cli/terminal.h"
#include "dynamix/cli/version.h"
#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"
#include "dynamix/record/run_folder.h"

namespace dynamix {
namespace {

// Exit codes, as docs/errors.md lists them; kExitRecordLost is in the header.
constexpr int kBadInput = 2;
constexpr int kFailed = 1;
constexpr int kOurBug = 70;
constexpr int kInterrupted = 130;

// Help that fits the terminal; a pipe gets 100 columns.
class FittingFormatter : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::size_t terminal = TerminalWidth(STDOUT_FILENO);
    const std::size_t columns = terminal > 0 ? terminal : 100;
    return Wrapped(option->get_description(),
                   columns > column_width_ + 20 ? columns - column_width_ : 20);
  }
};

std::unique_ptr<spdlog::sinks::sink> MakeLogSink() {
  return std::make_unique<spdlog::sinks::stderr_color_sink_mt>(
      ShowsColour(STDERR_FILENO) ? spdlog::color_mode::always : spdlog::color_mode::never);
}

// What a command line with an unknown command or flag may have meant, or which command it lacks; empty
// when something else is wrong with it.
std::string Meant(const CLI::App& app, int argc, char** argv) {
  const CLI::App* command = &app;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--") break;
    std::vector<std::string> choices;
    if (!word.starts_with("-")) {
      const CLI::App* next = nullptr;
      for (const CLI::App* each : command->get_subcommands({})) {
        choices.push_back(each->get_name());
        if (each->check_name(word)) next = each;
      }
      if (next != nullptr) command = next;
      if (next != nullptr || choices.empty()) continue;  // choices.empty(): it is a value
    } else {
      const std::string name = word.substr(0, word.find('='));
      if (word.size() > 1 && std::isdigit(static_cast<unsigned char>(word[1]))) continue;
      if (command->get_option_no_throw(name) != nullptr) continue;
      for (const CLI::Option* option : command->get_options())
        for (const std::string& each : option->get_lnames()) choices.push_back("--" + each);
    }
    return word + " is not known" + DidYouMean(word.substr(0, word.find('=')), choices);
  }
  std::string names;
  for (const CLI::App* each : command->get_subcommands({}))
    names += (names.empty() ? "" : ", ") + each->get_name();
  return names.empty() ? "" : "a command is missing: one of " + names;
}

// Every comparison with NaN is false, so it passes CLI11's checks of ranges.
void RefuseNan(CLI::App& app) {
  const auto check = [](const std::string& text) {
    double value = 0;
    const bool nan = CLI::detail::lexical_cast(text, value) && std::isnan(value);
    return nan ? "Value " + text + " is not a number" : std::string();
  };
  for (CLI::Option* option : app.get_options())
    if (option->get_type_name().starts_with("FLOAT"))
      option->check(CLI::Validator(check, std::string()));
  for (CLI::App* command : app.get_subcommands({})) RefuseNan(*command);
}

// What was printed may have gone nowhere: a full disk.
int Printed(int code) {
  std::cout.flush();
  if (std::cout && std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fprintf(stderr, "dynamix: cannot write to standard output: it is not complete\n");
  return code == 0 ? kFailed : code;
}

}  // namespace

int RunProgram(int argc, char** argv, void (*add_commands)(CLI::App&, const Words& after)) {
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("dynamix", MakeLogSink()));
  spdlog::set_pattern("%H:%M:%S %^%l%$ %v");

  CLI::App app{"DYNAMIX chooses each worker's batch size while a training job runs."};
  app.set_version_flag("--version", VersionText());
  app.require_subcommand(1);
  app.formatter(std::make_shared<FittingFormatter>());
  app.footer(
      "Examples:\n"
      "  dynamix doctor\n"
      "  dynamix compare --backend sim --workload vgg16_cifar10 --cluster mixed\n"
      "  dynamix COMMAND --help");
  const bool runs_another = argc > 1 && argv[1] == std::string_view("launch");
  char** const end =
      runs_another ? std::find(argv, argv + argc, std::string_view("--")) : argv + argc;
  const Words after(end == argv + argc ? end : end + 1, argv + argc);
  add_commands(app, after);
  RefuseNan(app);

  try {
    app.parse(static_cast<int>(end - argv), argv);
    return Printed(0);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      const std::string meant = Meant(app, argc, argv);
      if (!meant.empty()) {
        std::fprintf(stderr, "dynamix: %s\nRun with --help for more information.\n", meant.c_str());
        return kBadInput;
      }
    }
    if (error.get_exit_code() == 0) {
      (void)app.exit(error);  // prints what --help or --version asked for
      return Printed(0);
    }
    std::fprintf(stderr, "dynamix: %s\nRun with --help for more information.\n", error.what());
    return kBadInput;
  } catch (const InputError& error) {
    std::fprintf(stderr, "dynamix: %s\n", error.what());
    return kBadInput;
  } catch (const Interrupted&) {
    return kInterrupted;
  } catch (const RecordLost& error) {
    std::fprintf(stderr, "dynamix: %s\n", error.what());
    return kExitRecordLost;
  } catch (const CheckFailure& error) {
    std::fprintf(stderr, "dynamix: a bug in dynamix itself: %s\n", error.what());
    return kOurBug;
  } catch (const std::exception& error) {
    // libtorch adds a stack trace of its own.
    const std::string text = error.what();
    std::fprintf(stderr, "dynamix: %s\n", text.substr(0, text.find("\nframe #")).c_str());
    return kFailed;
  }
}

}  // namespace dynamix
