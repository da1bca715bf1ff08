// The manual page of all commands: one section of flags per command, then what they share.
#include <sstream>

#include "dynamix/cli/completion.h"

namespace dynamix {
namespace {

using nlohmann::json;

// Text that troff prints as it is.
std::string Plain(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    if (c == '\\')
      plain += "\\e";
    else if (c == '-')
      plain += "\\-";
    else
      plain += c;
  }
  // A line that begins with a dot or a quote would be a request.
  return plain.starts_with('.') || plain.starts_with('\'') ? "\\&" + plain : plain;
}

std::string FlagText(const json& flag) {
  std::string names;
  for (const json& name : flag["names"])
    names += (names.empty() ? "" : ", ") + ("\\fB" + Plain(name) + "\\fR");
  if (flag["value"] != "") names += " \\fI" + Plain(flag["value"]) + "\\fR";
  std::string text = ".TP\n" + names + "\n" + Plain(flag["description"]);
  if (!flag["choices"].empty()) {
    text += ". One of";
    for (const json& choice : flag["choices"]) text += " " + Plain(choice);
  }
  if (flag["default"] != "") text += " (default: " + Plain(flag["default"]) + ")";
  return text + "\n";
}

// Lines as they are, two blanks before an example kept.
std::string FooterText(const std::string& footer) {
  std::string text = ".PP\n.nf\n";
  std::istringstream lines(footer);
  for (std::string line; std::getline(lines, line);) text += Plain(line) + "\n";
  return text + ".fi\n";
}

void AddCommand(const json& command, const std::string& path, std::string& text) {
  const std::string name = path + " " + command["name"].get<std::string>();
  text += ".SH " + std::string("\"") + Plain(name) + "\"\n" + Plain(command["description"]) + ".\n";
  for (const json& flag : command["flags"])
    if (flag["names"].back() != "--help") text += FlagText(flag);
  if (command["footer"] != "") text += FooterText(command["footer"]);
  for (const json& inner : command["commands"]) AddCommand(inner, name, text);
}

constexpr const char* kShared = R"(.SH "EXIT STATUS"
.TP
.B 0
done
.TP
.B 1
the world failed: unreadable file, full disk, lost peer
.TP
.B 2
bad input: unknown flag, unknown key, value out of range
.TP
.B 70
a bug in dynamix
.TP
.B 74
the work is done, but its record misses something
.TP
.B 130
interrupted; work that can be resumed was saved
.PP
.B dynamix launch
ends with the code of the first rank that failed.
.SH ENVIRONMENT
.TP
.B DYNAMIX_DATA
folder of scenarios, workloads and policies
.TP
.B DYNAMIX_DATASETS
folder of data sets, one folder each
.TP
.B NO_COLOR
no colours, whatever the terminal
)";

}  // namespace

std::string ManualPage(const json& definitions, const std::string& version) {
  std::string text = ".TH DYNAMIX 1 \"\" \"" + Plain(version) + "\" \"DYNAMIX\"\n.SH NAME\n" +
                     "dynamix \\- batch sizes that adapt while a training job runs\n" +
                     ".SH SYNOPSIS\n.B dynamix\n.I COMMAND\n[\\fIflags\\fR]\n.SH DESCRIPTION\n" +
                     Plain(definitions["description"]) + "\n.SH COMMANDS\n";
  for (const json& command : definitions["commands"])
    text += ".TP\n.B " + Plain(command["name"]) + "\n" + Plain(command["description"]) + "\n";
  for (const json& command : definitions["commands"]) AddCommand(command, "dynamix", text);
  return text + kShared;
}

}  // namespace dynamix
