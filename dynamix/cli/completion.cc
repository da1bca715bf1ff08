// All three scripts do the same: find the command that the words so far name ("policy/show"), then
// offer what may follow the last word, or the flags and subcommands of the command.
#include "dynamix/cli/completion.h"

#include <functional>
#include <map>

namespace dynamix {
namespace {

using nlohmann::json;

// What `dynamix list KIND` knows the values of.
const std::map<std::string, std::string> kListed = {{"--policy", "policies"},
                                                    {"--policies", "policies"},
                                                    {"--workload", "workloads"},
                                                    {"--cluster", "scenarios"},
                                                    {"--model", "models"}};

// Calls `visit` with each command and its path, the program itself first with "".
void EachCommand(const json& command, const std::string& path,
                 const std::function<void(const std::string& path, const json& command)>& visit) {
  visit(path, command);
  for (const json& inner : command["commands"])
    EachCommand(inner,
                path.empty() ? inner["name"].get<std::string>()
                             : path + "/" + inner["name"].get<std::string>(),
                visit);
}

bool IsPositional(const json& flag) {
  return !flag["names"][0].get<std::string>().starts_with('-');
}

std::string Joined(const json& words, const std::string& between) {
  std::string text;
  for (const json& word : words) text += (text.empty() ? "" : between) + word.get<std::string>();
  return text;
}

// In single quotes, as every shell here takes it.
std::string Quoted(const std::string& text, const std::string& for_quote = "'\\''") {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? for_quote : std::string(1, c);
  return quoted + "'";
}

// Names of subcommands and flags of a command.
json WordsOf(const json& command) {
  json words = json::array();
  for (const json& inner : command["commands"]) words.push_back(inner["name"]);
  for (const json& flag : command["flags"])
    if (!IsPositional(flag))
      for (const json& name : flag["names"]) words.push_back(name);
  return words;
}

// The paths of all commands, as patterns of a shell's case.
std::string Paths(const json& definitions) {
  std::string paths;
  EachCommand(definitions, "", [&](const std::string& path, const json&) {
    if (!path.empty()) paths += (paths.empty() ? "" : "|") + path;
  });
  return paths;
}

// Lines "PATH:--flag) ANSWER ;;" for each flag whose values are known.
std::string ValueCases(const json& definitions,
                       const std::function<std::string(const std::string& words)>& answer,
                       const std::function<std::string(const std::string& kind)>& listed) {
  std::string cases;
  EachCommand(definitions, "", [&](const std::string& path, const json& command) {
    for (const json& flag : command["flags"]) {
      for (const json& each : flag["names"]) {
        const std::string name = each;
        if (IsPositional(flag) || flag["value"] == "") continue;
        if (!flag["choices"].empty())
          cases +=
              "    " + path + ":" + name + ") " + answer(Joined(flag["choices"], " ")) + " ;;\n";
        else if (kListed.contains(name))
          cases += "    " + path + ":" + name + ") " + listed(kListed.at(name)) + " ;;\n";
      }
    }
  });
  return cases;
}

constexpr const char* kFindPath = R"(    [[ $word == -- ]] && return
    case "${path:+$path/}$word" in
)";

}  // namespace

std::string BashCompletion(const json& definitions) {
  const auto answer = [](const std::string& words) {
    return "COMPREPLY=($(compgen -W \"" + words + "\" -- \"$current\")); return";
  };
  std::string text = R"(# Completion of dynamix for bash; made by: dynamix completion bash
_dynamix_list() { dynamix list "$1" 2>/dev/null | cut -d ' ' -f 1; }
_dynamix() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} path= word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
)";
  text +=
      std::string(kFindPath) + "      " + Paths(definitions) + R"() path=${path:+$path/}$word ;;
    esac
  done
  case "$path:$before" in
)" +
      ValueCases(definitions, answer,
                 [&](const std::string& kind) { return answer("$(_dynamix_list " + kind + ")"); }) +
      "  esac\n  case \"$path\" in\n";
  EachCommand(definitions, "", [&](const std::string& path, const json& command) {
    text += "    " + (path.empty() ? "''" : path) + ") " + answer(Joined(WordsOf(command), " ")) +
            " ;;\n";
  });
  // -o default: where nothing of ours fits, files.
  return text + "  esac\n}\ncomplete -o default -F _dynamix dynamix\n";
}

std::string ZshCompletion(const json& definitions) {
  std::string text = R"(#compdef dynamix
# Completion of dynamix for zsh; made by: dynamix completion zsh
_dynamix_list() { dynamix list "$1" 2>/dev/null | cut -d ' ' -f 1; }
_dynamix() {
  local path_= word before=${words[CURRENT-1]}
  local -a offered
  for word in "${words[@]:1:CURRENT-2}"; do
    [[ $word == -- ]] && { _files; return; }
    case "${path_:+$path_/}$word" in
)";
  text +=
      "      " + Paths(definitions) + R"() path_=${path_:+$path_/}$word ;;
    esac
  done
  case "$path_:$before" in
)" +
      ValueCases(
          definitions, [](const std::string& words) { return "compadd -- " + words + "; return"; },
          [](const std::string& kind) {
            return "compadd -- $(_dynamix_list " + kind + "); return";
          }) +
      "  esac\n  case \"$path_\" in\n";
  const auto offer = [](const json& name, const json& description) {
    std::string escaped;  // a colon ends the word
    for (const char c : name.get<std::string>()) escaped += c == ':' ? "\\:" : std::string(1, c);
    return " " + Quoted(escaped + ":" + description.get<std::string>());
  };
  EachCommand(definitions, "", [&](const std::string& path, const json& command) {
    text += "    " + (path.empty() ? "''" : path) + ") offered=(";
    for (const json& inner : command["commands"])
      text += offer(inner["name"], inner["description"]);
    for (const json& flag : command["flags"])
      if (!IsPositional(flag))
        for (const json& name : flag["names"]) text += offer(name, flag["description"]);
    text += ") ;;\n";
  });
  return text + R"(  esac
  _describe -o dynamix offered
  [[ ${words[CURRENT]} == -* ]] || _files
}
compdef _dynamix dynamix
)";
}

namespace {

std::string FishFlag(const std::string& condition, const json& flag) {
  std::string line = "complete -c dynamix -n " + condition;
  for (const json& each : flag["names"]) {
    const std::string name = each;
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (kListed.contains(name))
      line += " -a " + Quoted("(__dynamix_list " + kListed.at(name) + ")", "\\'");
  }
  if (flag["value"] != "") line += " -r";
  if (!flag["choices"].empty()) line += " -f -a " + Quoted(Joined(flag["choices"], " "), "\\'");
  return line + " -d " + Quoted(flag["description"], "\\'") + "\n";
}

}  // namespace

std::string FishCompletion(const json& definitions) {
  std::string cases = Paths(definitions);
  for (std::size_t at = 0; (at = cases.find('|', at)) != std::string::npos;) cases[at] = ' ';
  std::string text = R"(# Completion of dynamix for fish; made by: dynamix completion fish
function __dynamix_list; dynamix list $argv[1] 2>/dev/null | string replace -r ' .*' ''; end
function __dynamix_at
    set -l path
    set -l words (commandline -opc)
    for word in $words[2..-1]
        switch (string join / $path $word)
            case )";
  text += cases + R"(
                set path (string join / $path $word)
        end
    end
    test "$path" = "$argv[1]"
end
)";
  EachCommand(definitions, "", [&](const std::string& path, const json& command) {
    const std::string condition = Quoted("__dynamix_at \"" + path + "\"", "\\'");
    for (const json& inner : command["commands"])
      text += "complete -c dynamix -f -n " + condition + " -a " + inner["name"].get<std::string>() +
              " -d " + Quoted(inner["description"], "\\'") + "\n";
    for (const json& flag : command["flags"])
      if (!IsPositional(flag)) text += FishFlag(condition, flag);
  });
  return text;
}

}  // namespace dynamix
