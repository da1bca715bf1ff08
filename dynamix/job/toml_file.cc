#include "dynamix/job/toml_file.h"

#include <toml++/toml.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

using Need = TomlFields::Need;

// The shortest text that reads back as the same number; always a TOML float.
std::string FormatNumber(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char text[40];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value) break;
  }
  std::string result = text;
  if (result.find_first_of(".e") == std::string::npos) result += ".0";
  return result;
}

std::string RangeText(const std::string& low, const std::string& high) {
  return "a value in [" + low + ", " + high + "]";
}

std::string NamesText(std::span<const std::string_view> names) {
  std::string text = "one of";
  for (std::string_view name : names) text.append(" ").append(name);
  return text;
}

std::string NodeText(const toml::node& node) {
  std::ostringstream out;
  node.visit([&out](const auto& typed) { out << typed; });
  return out.str();
}

class Reader : public TomlFields {
 public:
  Reader(const toml::table& table, std::string source, std::string prefix)
      : table_(table), source_(std::move(source)), prefix_(std::move(prefix)) {}

  void Number(std::string_view key, double& value, double low, double high, Need need) override {
    const toml::node* node = Find(key, need);
    if (node == nullptr) return;
    const std::string allowed = RangeText(FormatNumber(low), FormatNumber(high));
    if (!node->is_number()) Refuse(key, *node, allowed);
    const double found = *node->value<double>();
    if (!(found >= low && found <= high)) Refuse(key, *node, allowed);
    value = found;
  }

  void Integer(std::string_view key, int& value, int low, int high, Need need) override {
    const toml::node* node = Find(key, need);
    if (node == nullptr) return;
    const std::string allowed = RangeText(std::to_string(low), std::to_string(high));
    if (!node->is_integer()) Refuse(key, *node, "an integer, " + allowed);
    const std::int64_t found = *node->value<std::int64_t>();
    if (found < low || found > high) Refuse(key, *node, allowed);
    value = static_cast<int>(found);
  }

  void Flag(std::string_view key, bool& value) override {
    const toml::node* node = Find(key, Need::kOptional);
    if (node == nullptr) return;
    if (!node->is_boolean()) Refuse(key, *node, "true or false");
    value = *node->value<bool>();
  }

  void Text(std::string_view key, std::string& value, Need need) override {
    const toml::node* node = Find(key, need);
    if (node == nullptr) return;
    if (!node->is_string()) Refuse(key, *node, "a string");
    value = *node->value<std::string>();
  }

  void Texts(std::string_view key, std::vector<std::string>& values) override {
    const toml::node* node = Find(key, Need::kOptional);
    if (node == nullptr) return;
    const toml::array* array = node->as_array();
    if (array == nullptr) Refuse(key, *node, "an array of strings");
    values.clear();
    for (const toml::node& item : *array) {
      if (!item.is_string()) Refuse(key, item, "a string in the array");
      values.push_back(*item.value<std::string>());
    }
  }

  void Name(std::string_view key, int& index, std::span<const std::string_view> names,
            Need need) override {
    const toml::node* node = Find(key, need);
    if (node == nullptr) return;
    const auto text = node->value<std::string>();
    for (std::size_t i = 0; node->is_string() && i < names.size(); ++i) {
      if (*text != names[i]) continue;
      index = static_cast<int>(i);
      return;
    }
    Refuse(key, *node, NamesText(names));
  }

  bool Section(std::string_view key, const Fields& fields) override {
    const toml::node* node = Find(key, Need::kOptional);
    if (node == nullptr) return false;
    if (!node->is_table()) Refuse(key, *node, "a table [" + Path(key) + "]");
    Reader inner(*node->as_table(), source_, Path(key) + ".");
    fields(inner);
    inner.RefuseUnknown();
    return true;
  }

  void Sections(std::string_view key, std::size_t /*count*/,
                const std::function<void(std::size_t)>& resize, const ItemFields& fields) override {
    const toml::node* node = Find(key, Need::kOptional);
    if (node == nullptr) return;
    const std::string allowed = "an array of tables [[" + Path(key) + "]]";
    const toml::array* array = node->as_array();
    if (array == nullptr) Refuse(key, *node, allowed);
    resize(array->size());
    for (std::size_t i = 0; i < array->size(); ++i) {
      const toml::node& item = (*array)[i];
      if (!item.is_table()) Refuse(key, item, allowed);
      Reader inner(*item.as_table(), source_, Path(key) + "[" + std::to_string(i) + "].");
      fields(inner, i);
      inner.RefuseUnknown();
    }
  }

  void RefuseUnknown() const {
    for (const auto& [key, node] : table_) {
      if (known_.contains(std::string(key.str()))) continue;
      std::string known = "one of";
      for (const std::string& name : known_) known.append(" ").append(name);
      throw InputError(Place(key.source().begin.line) + Path(key.str()) +
                       " is not a known key: expected " + known);
    }
  }

 private:
  const toml::node* Find(std::string_view key, Need need) {
    known_.insert(std::string(key));
    const toml::node* node = table_.get(key);
    if (node == nullptr && need == Need::kRequired)
      throw InputError(Place(table_.source().begin.line) + Path(key) + " is missing");
    return node;
  }

  [[noreturn]] void Refuse(std::string_view key, const toml::node& node,
                           const std::string& allowed) const {
    throw InputError::OutOfRange(Place(node.source().begin.line) + Path(key), NodeText(node),
                                 allowed);
  }

  std::string Path(std::string_view key) const { return prefix_ + std::string(key); }
  std::string Place(std::size_t line) const { return source_ + ":" + std::to_string(line) + ": "; }

  const toml::table& table_;  // lives in ReadToml's frame, longer than any reader
  std::string source_, prefix_;
  std::set<std::string> known_;
};

// Writes a table's own keys before its sections, as TOML wants it.
class Writer : public TomlFields {
 public:
  Writer(std::string path) : path_(std::move(path)) {}

  void Number(std::string_view key, double& value, double, double, Need) override {
    Line(key, FormatNumber(value));
  }
  void Integer(std::string_view key, int& value, int, int, Need) override {
    Line(key, std::to_string(value));
  }
  void Flag(std::string_view key, bool& value) override { Line(key, value ? "true" : "false"); }
  void Text(std::string_view key, std::string& value, Need) override { Line(key, Quote(value)); }
  void Texts(std::string_view key, std::vector<std::string>& values) override {
    std::string text = "[";
    for (std::size_t i = 0; i < values.size(); ++i)
      text.append(i > 0 ? ", " : "").append(Quote(values[i]));
    Line(key, text + "]");
  }
  void Name(std::string_view key, int& index, std::span<const std::string_view> names,
            Need) override {
    Line(key, Quote(std::string(names[index])));
  }
  bool Section(std::string_view key, const Fields& fields) override {
    Writer inner(Path(key));
    fields(inner);
    sections_ += "\n[" + Path(key) + "]\n" + inner.text();
    return true;
  }
  void Sections(std::string_view key, std::size_t count, const std::function<void(std::size_t)>&,
                const ItemFields& fields) override {
    for (std::size_t i = 0; i < count; ++i) {
      Writer inner(Path(key));
      fields(inner, i);
      sections_ += "\n[[" + Path(key) + "]]\n" + inner.text();
    }
  }

  std::string text() const { return keys_ + sections_; }

 private:
  static std::string Quote(const std::string& text) {
    std::ostringstream out;
    out << toml::value<std::string>(text);
    return out.str();
  }
  void Line(std::string_view key, const std::string& value) {
    keys_ += std::string(key) + " = " + value + "\n";
  }
  std::string Path(std::string_view key) const {
    return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
  }

  std::string path_, keys_, sections_;
};

}  // namespace

void ReadToml(std::string_view text, const std::string& source, const TomlFields::Fields& fields) {
  toml::table table;
  try {
    table = toml::parse(text, source);
  } catch (const toml::parse_error& error) {
    std::ostringstream message;
    message << source << ":" << error.source().begin.line
            << ": not valid TOML: " << error.description();
    throw InputError(message.str());
  }
  Reader reader(table, source, "");
  fields(reader);
  reader.RefuseUnknown();
}

void ReadTomlFile(const std::string& path, const TomlFields::Fields& fields) {
  std::error_code unknown;  // of what is not there: said below
  if (std::filesystem::is_character_file(path, unknown))
    throw InputError(path + ": a device, not a file");  // it may never end
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(path + ": cannot be opened");
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw InputError(path + ": cannot be read");
  ReadToml(text.str(), path, fields);
}

std::string WriteToml(const TomlFields::Fields& fields) {
  Writer writer("");
  fields(writer);
  return writer.text();
}

}  // namespace dynamix
