#include "dynamix/cli/trainer.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>

#include "dynamix/cli/definitions.h"
#include "dynamix/cli/helper_program.h"
#include "dynamix/host/blas_kernels.h"

namespace dynamix {
namespace {

struct TrainerCommand {
  const char *name, *description;
};
// As compare_command.cc and train_command.cc have them; trainer_test.py compares.
constexpr std::array<TrainerCommand, 2> kCommands = {
    {{"compare", "Run one job under several policies and tell who won"},
     {"train", "Train one job under one policy"}}};

// What `dynamix-train manual --json` prints; null without the program.
nlohmann::json TrainerDefinitions() {
  std::string quoted;
  for (const char c : HelperProgram("dynamix-train"))
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  const std::unique_ptr<FILE, int (*)(FILE*)> output(
      popen(("'" + quoted + "' manual --json 2>/dev/null").c_str(), "r"), pclose);
  std::string text;
  char buffer[4096];
  while (output != nullptr && !std::feof(output.get()))
    text.append(buffer, std::fread(buffer, 1, sizeof buffer, output.get()));
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace

nlohmann::json DefinitionsWithTrainer(const CLI::App& app) {
  nlohmann::json all = DefinitionsOf(app);
  const nlohmann::json trainer = TrainerDefinitions();
  if (!trainer.is_object()) return all;
  for (nlohmann::json& command : all["commands"])
    for (const nlohmann::json& known : trainer["commands"])
      if (command["name"] == known["name"]) command = known;
  return all;
}

std::vector<std::string> OwnCommandLine() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> words;
  for (std::size_t at = 0; at < all.size(); at = all.find('\0', at) + 1)
    words.emplace_back(all.c_str() + at);
  return words;
}

void BecomeTrainer() {
  const std::string program = HelperProgram("dynamix-train");
  std::vector<std::string> words = OwnCommandLine();
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  PassOnBlasKernels();
  execv(program.c_str(), arguments.data());
  throw std::runtime_error("cannot start '" + program +
                           "', which a build with libtorch (DYNAMIX_WITH_TORCH=ON) makes");
}

void AddTrainerCommands(CLI::App& app) {
  for (const auto& [name, description] : kCommands) {
    CLI::App* command = app.add_subcommand(name, description);
    command->set_help_flag();  // --help is the trainer's to answer
    command->prefix_command();
    command->callback(BecomeTrainer);
  }
}

VirtualMaker BecomeTrainerForSuite(const std::vector<JobSpec>&, const std::string&) {
  BecomeTrainer();
}

}  // namespace dynamix
