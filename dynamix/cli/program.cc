#include "dynamix/cli/program.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "dynamix/cli/interrupt.h"
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

}  // namespace

int RunProgram(int argc, char** argv, void (*add_commands)(CLI::App&)) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("dynamix"));
  spdlog::set_pattern("%H:%M:%S %^%l%$ %v");

  CLI::App app{"DYNAMIX chooses each worker's batch size while a training job runs."};
  app.set_version_flag("--version", VersionText());
  app.require_subcommand(1);
  app.footer(
      "Example:\n  dynamix evaluate --policies static,balanced,goodput,default --suite scenarios "
      "--workers 8");
  add_commands(app);

  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : kBadInput;
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
