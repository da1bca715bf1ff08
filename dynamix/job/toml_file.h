// TOML at the door: one list of fields per struct, used to read and to write it.
//
// A struct's fields are listed once, in a function that visits a TomlFields. ReadToml runs it over
// a file and fills the struct, WriteToml runs the same list and prints it. Reading throws
// InputError with file, line, key, value and what is allowed: for a value of the wrong type or
// outside its range, a missing required key, and any key the list does not name. Not thread-safe;
// no state outlives a call.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dynamix {

class TomlFields {
 public:
  // An optional key that is absent keeps the value it has: the struct's default.
  enum class Need { kOptional, kRequired };
  using Fields = std::function<void(TomlFields&)>;
  using ItemFields = std::function<void(TomlFields&, std::size_t)>;

  virtual ~TomlFields() = default;

  // Numbers may be written as integers or floats (inf included when the range allows it); low <=
  // value <= high.
  virtual void Number(std::string_view key, double& value, double low, double high,
                      Need need = Need::kOptional) = 0;
  virtual void Integer(std::string_view key, int& value, int low, int high,
                       Need need = Need::kOptional) = 0;
  virtual void Flag(std::string_view key, bool& value) = 0;
  virtual void Text(std::string_view key, std::string& value, Need need = Need::kOptional) = 0;
  virtual void Texts(std::string_view key, std::vector<std::string>& values) = 0;
  // One of `names`; `index` is its position.
  virtual void Name(std::string_view key, int& index, std::span<const std::string_view> names,
                    Need need = Need::kOptional) = 0;
  // Table [key]. True when it is in the file (reading) or always (writing).
  virtual bool Section(std::string_view key, const Fields& fields) = 0;
  // Array of tables [[key]]: `resize` is called once with their number, then `fields` for each.
  virtual void Sections(std::string_view key, std::size_t count,
                        const std::function<void(std::size_t)>& resize,
                        const ItemFields& fields) = 0;

  // An enumeration whose values are 0, 1, ... in the order of `names`.
  template <typename Enum>
  void Choice(std::string_view key, Enum& value, std::span<const std::string_view> names,
              Need need = Need::kOptional) {
    int index = static_cast<int>(value);
    Name(key, index, names, need);
    value = static_cast<Enum>(index);
  }
  // A vector of structs, one [[key]] each.
  template <typename Item, typename Each>
  void Items(std::string_view key, std::vector<Item>& items, const Each& each) {
    Sections(
        key, items.size(), [&items](std::size_t count) { items.assign(count, Item{}); },
        [&items, &each](TomlFields& fields, std::size_t i) { each(fields, items[i]); });
  }
};

// `source` names the text in errors.
void ReadToml(std::string_view text, const std::string& source, const TomlFields::Fields& fields);
void ReadTomlFile(const std::string& path, const TomlFields::Fields& fields);
// Every field, defaults included, so that a saved configuration is the effective one.
std::string WriteToml(const TomlFields::Fields& fields);

}  // namespace dynamix
