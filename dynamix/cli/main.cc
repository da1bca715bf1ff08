#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <exception>

#include "dynamix/cli/commands.h"
#include "dynamix/cli/interrupt.h"
#include "dynamix/cli/launch_command.h"
#include "dynamix/cli/monitor_command.h"
#include "dynamix/cli/train_command.h"
#include "dynamix/cli/version.h"
#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"

namespace {

// Exit codes, as docs/errors.md lists them.
constexpr int kBadInput = 2;
constexpr int kFailed = 1;
constexpr int kOurBug = 70;
constexpr int kInterrupted = 130;

}  // namespace

int main(int argc, char** argv) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("dynamix"));
  spdlog::set_pattern("%H:%M:%S %^%l%$ %v");

  CLI::App app{"DYNAMIX chooses each worker's batch size while a training job runs."};
  app.set_version_flag("--version", dynamix::VersionText());
  app.require_subcommand(1);
  app.footer(
      "Example:\n  dynamix evaluate --policies static,balanced,goodput,default --suite scenarios "
      "--workers 8");
#ifdef DYNAMIX_WITH_TORCH
  dynamix::AddEvaluateCommand(app, dynamix::MakeVirtualSuite);
#else
  dynamix::AddEvaluateCommand(app, {});
#endif
  dynamix::AddLearnCommand(app);
  dynamix::AddPolicyCommand(app);
  dynamix::AddMonitorCommand(app);
#ifdef DYNAMIX_WITH_TORCH
  dynamix::AddTrainCommand(app);
  dynamix::AddLaunchCommand(app);
#endif

  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : kBadInput;
  } catch (const dynamix::InputError& error) {
    std::fprintf(stderr, "dynamix: %s\n", error.what());
    return kBadInput;
  } catch (const dynamix::Interrupted&) {
    return kInterrupted;
  } catch (const dynamix::CheckFailure& error) {
    std::fprintf(stderr, "dynamix: a bug in dynamix itself: %s\n", error.what());
    return kOurBug;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dynamix: %s\n", error.what());
    return kFailed;
  }
}
