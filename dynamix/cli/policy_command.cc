// dynamix policy: what a policy file is (show), and its networks for other run-times (export).
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "dynamix/cli/commands.h"
#include "dynamix/cli/data_folder.h"
#include "dynamix/cli/helper_program.h"
#include "dynamix/core/features.h"
#include "dynamix/core/input_error.h"
#include "dynamix/host/atomic_file.h"
#include "dynamix/ppo/export.h"
#include "dynamix/ppo/policy_file.h"
#include "dynamix/ppo/tensor_file.h"

namespace dynamix {
namespace {

struct PolicyShowFlags {
  std::string path;
  bool json = false;
};

struct PolicyExportFlags {
  std::string policy, format, out;
  bool json = false;
};

// The file of a policy, which the user named by its path or by the name of a shipped one.
std::string PolicyFile(const std::string& policy) {
  return FindData("policy", policy, "policies", ".safetensors");
}

template <typename T>
T Require(Result<T> result) {
  if (!result) throw std::runtime_error(result.error());
  return std::move(result).value();
}

nlohmann::json HeadJson(const ActorCritic& model, const std::vector<Column>& columns) {
  const NetworkShape& shape = model.network.shape();
  nlohmann::json features = nlohmann::json::array();
  for (const Column& column : columns) features.push_back(column.name);
  nlohmann::json off = nlohmann::json::array();
  for (const int column : model.actor_inputs.SwitchedOff()) off.push_back(columns[column].name);
  return {{"inputs", shape.actor_inputs},
          {"critic_inputs", shape.critic_width()},
          {"hidden", shape.hidden},
          {"weights", shape.parameter_count()},
          {"states_seen", model.actor_inputs.columns()[0].count},
          {"features", features},
          {"features_off", off}};
}

// Everything show prints, in one object.
nlohmann::json Describe(const std::string& path) {
  const std::string bytes = Require(ReadBytes(path));
  const PolicyModel model = Require(LoadPolicy(path));
  const ActionKind kind = model.actions.kind;
  nlohmann::json team = nlohmann::json::array(), local = nlohmann::json::array();
  for (int a = 0; a < kActionCount; ++a) {
    team.push_back(TeamActionName(kind, a));
    local.push_back(LocalActionName(kind, a));
  }
  nlohmann::json description = {{"file", path},
                                {"bytes", bytes.size()},
                                {"sha256", ChecksumOf(bytes)},
                                {"feature_hash", FormatHash(FeatureHash())},
                                {"actions", Format(model.actions)},
                                {"objective", Format(model.objective)},
                                {"team_actions", team},
                                {"local_actions", local},
                                {"training", model.training}};
  if (model.local) description["local"] = HeadJson(*model.local, LocalColumns());
  if (model.team) description["team"] = HeadJson(*model.team, TeamColumns());
  return description;
}

std::string Join(const nlohmann::json& list) {
  std::string text;
  for (const auto& item : list)
    text += (text.empty() ? "" : ", ") + (item.is_string() ? item.get<std::string>() : item.dump());
  return text.empty() ? "none" : text;
}

void PrintHead(const char* name, const nlohmann::json& head) {
  std::printf("%s network\n", name);
  std::printf("  inputs        %d features; the critic sees %d numbers\n",
              head["inputs"].get<int>(), head["critic_inputs"].get<int>());
  std::printf("  hidden        %s (tanh), %zu weights in both towers\n",
              Join(head["hidden"]).c_str(), head["weights"].get<std::size_t>());
  std::printf("  normaliser    learned from %.0f states\n", head["states_seen"].get<double>());
  std::printf("  features      %s\n", Join(head["features"]).c_str());
  std::printf("  switched off  %s\n", Join(head["features_off"]).c_str());
}

void Show(const PolicyShowFlags& flags) {
  const nlohmann::json description = Describe(flags.path);
  if (flags.json) {
    std::printf("%s\n", description.dump().c_str());
    return;
  }
  auto text = [&](const char* key) { return description[key].get<std::string>(); };
  std::printf("policy          %s (%zu bytes, intact)\n", text("file").c_str(),
              description["bytes"].get<std::size_t>());
  std::printf("sha256          %s\n", text("sha256").c_str());
  std::printf("feature list    %s (this build's)\n", text("feature_hash").c_str());
  std::printf("actions         %s: %s\n", text("actions").c_str(),
              (Join(description["team_actions"]) + "; local " + Join(description["local_actions"]))
                  .c_str());
  std::printf("objective       %s\n", text("objective").c_str());
  for (const char* head : {"local", "team"})
    if (description.contains(head)) PrintHead(head, description[head]);
  std::printf("training\n");
  for (const auto& [key, value] : description["training"].items())
    std::printf("  %-13s %s\n", key.c_str(), value.get<std::string>().c_str());
}

// libtorch takes a second to load: only this helper links it.
void ExportTorchScriptByHelper(std::string policy, std::string out) {
  std::string helper = HelperProgram("dynamix-torchscript");
  char* arguments[] = {helper.data(), policy.data(), out.data(), nullptr};
  pid_t child = 0;
  if (posix_spawn(&child, helper.c_str(), nullptr, nullptr, arguments, environ) != 0)
    throw std::runtime_error("cannot start '" + helper +
                             "', which a build with libtorch (DYNAMIX_WITH_TORCH=ON) makes; "
                             "--format onnx works without it");
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw std::runtime_error("TorchScript export to '" + out + "' failed");
}

void Export(const PolicyExportFlags& flags) {
  const std::string path = PolicyFile(flags.policy);
  const PolicyModel model = Require(LoadPolicy(path));
  std::string out = flags.out;
  // Of a shipped policy: here, and not where it was installed.
  if (out.empty()) out = flags.policy + (flags.format == "onnx" ? ".onnx" : ".pt");
  std::error_code unknown;  // one of them is not there
  if (std::filesystem::equivalent(path, out, unknown))
    throw InputError::OutOfRange("--out", out, "another file than the policy itself");
  if (flags.format == "onnx") {
    (void)Require(ExportOnnx(model, out));
  } else {
    ExportTorchScriptByHelper(path, out);
  }
  if (flags.json)
    std::printf("%s\n", nlohmann::json{{"file", out}, {"format", flags.format}}.dump().c_str());
  else
    std::printf("%s\n", out.c_str());
}

}  // namespace

void AddPolicyCommand(CLI::App& app) {
  CLI::App* policy = app.add_subcommand("policy", "Show a policy file, or export its networks");
  policy->require_subcommand(1);
  policy->footer("Example:\n  dynamix policy show default");

  // The flags live as long as the callbacks that read them.
  const auto show_flags = std::make_shared<PolicyShowFlags>();
  CLI::App* show = policy->add_subcommand("show", "Print what a policy file is");
  show->add_option("file", show_flags->path, "Policy file, or a shipped policy by its name")
      ->required();
  show->add_flag("--json", show_flags->json, "One JSON object for machines");
  show->footer("Example:\n  dynamix policy show default");
  show->callback([show_flags] {
    show_flags->path = PolicyFile(show_flags->path);
    Show(*show_flags);
  });

  const auto export_flags = std::make_shared<PolicyExportFlags>();
  CLI::App* exporting = policy->add_subcommand(
      "export", "Write the networks, with the normaliser inside, for another run-time");
  exporting
      ->add_option("file", export_flags->policy, "Policy file, or a shipped policy by its name")
      ->required();
  exporting->add_option("--format", export_flags->format, "torchscript or onnx")
      ->required()
      ->check(CLI::IsMember({"torchscript", "onnx"}));
  exporting->add_option("--out", export_flags->out, "File to write; default: FILE.pt or FILE.onnx");
  exporting->add_flag("--json", export_flags->json, "One JSON object for machines");
  exporting->footer("Example:\n  dynamix policy export default --format onnx");
  exporting->callback([export_flags] { Export(*export_flags); });
}

}  // namespace dynamix
