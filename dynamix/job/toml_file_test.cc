#include "dynamix/job/toml_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

enum class Colour : int { kRed = 0, kGreen };
constexpr std::array<std::string_view, 2> kColours = {"red", "green"};

struct Wheel {
  double size = 1;
};

struct Car {
  std::string name = "none";
  int seats = 4;
  double weight = 1.5;
  bool open = false;
  Colour colour = Colour::kRed;
  std::vector<std::string> owners;
  Wheel spare;
  std::vector<Wheel> wheels;
};

void VisitCar(TomlFields& fields, Car& car) {
  const auto wheel = [](TomlFields& inner, Wheel& w) { inner.Number("size", w.size, 0.1, 9); };
  fields.Text("name", car.name, TomlFields::Need::kRequired);
  fields.Integer("seats", car.seats, 1, 9);
  fields.Number("weight", car.weight, 0, std::numeric_limits<double>::infinity());
  fields.Flag("open", car.open);
  fields.Choice("colour", car.colour, kColours);
  fields.Texts("owners", car.owners);
  fields.Section("spare", [&](TomlFields& inner) { wheel(inner, car.spare); });
  fields.Items("wheel", car.wheels, wheel);
}

Car Parse(std::string_view text) {
  Car car;
  ReadToml(text, "car.toml", [&](TomlFields& fields) { VisitCar(fields, car); });
  return car;
}

void ExpectRefused(std::string_view text, const std::string& message) {
  EXPECT_THAT([&] { Parse(text); }, ThrowsMessage<InputError>(HasSubstr(message)));
}

TEST(TomlFileTest, ReadsEveryKindOfField) {
  const Car car = Parse(R"(
    name = "beetle"
    seats = 5
    weight = inf
    open = true
    colour = "green"
    owners = ["a", "b"]
    spare.size = 2
    [[wheel]]
    size = 3.5
    [[wheel]]
  )");
  EXPECT_EQ(car.name, "beetle");
  EXPECT_EQ(car.seats, 5);
  EXPECT_TRUE(std::isinf(car.weight));
  EXPECT_TRUE(car.open);
  EXPECT_EQ(car.colour, Colour::kGreen);
  EXPECT_EQ(car.owners, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(car.spare.size, 2);
  ASSERT_EQ(car.wheels.size(), 2u);
  EXPECT_EQ(car.wheels[0].size, 3.5);
  EXPECT_EQ(car.wheels[1].size, 1);
}

TEST(TomlFileTest, AbsentKeysKeepTheirDefaults) {
  const Car car = Parse("name = 'x'");
  EXPECT_EQ(car.seats, 4);
  EXPECT_EQ(car.weight, 1.5);
  EXPECT_TRUE(car.wheels.empty());
}

TEST(TomlFileTest, ErrorsNameFileLineKeyValueAndRange) {
  ExpectRefused("name = 'x'\nseats = 12",
                "car.toml:2: seats = 12 is not allowed: expected a value in [1, 9]");
  ExpectRefused("name = 'x'\n\n[spare]\nsize = 0.01",
                "car.toml:4: spare.size = 0.01 is not allowed: expected a value in [0.1, 9.0]");
  ExpectRefused("name = 'x'\n[[wheel]]\n[[wheel]]\nsize = 10", "car.toml:4: wheel[1].size = 10");
  ExpectRefused("name = 'x'\ncolour = 'blue'",
                "car.toml:2: colour = 'blue' is not allowed: expected one of red green");
}

TEST(TomlFileTest, RefusesWrongTypes) {
  ExpectRefused("name = 'x'\nseats = 2.5", "seats = 2.5 is not allowed: expected an integer");
  ExpectRefused("name = 3", "name = 3 is not allowed: expected a string");
  ExpectRefused("name = 'x'\nopen = 1", "expected true or false");
  ExpectRefused("name = 'x'\nowners = [1]", "owners = 1");
  ExpectRefused("name = 'x'\nspare = 1", "expected a table [spare]");
  ExpectRefused("name = 'x'\nwheel = 1", "expected an array of tables [[wheel]]");
  ExpectRefused("name = 'x'\nweight = nan", "weight = nan");
}

TEST(TomlFileTest, RefusesUnknownKeysAndListsTheKnownOnes) {
  ExpectRefused("name = 'x'\nsaets = 3", "car.toml:2: saets is not a known key");
  ExpectRefused("name = 'x'\nsaets = 3", "seats");
  ExpectRefused("name = 'x'\n[spare]\ncolour = 'red'", "car.toml:3: spare.colour");
}

TEST(TomlFileTest, RefusesAMissingRequiredKey) { ExpectRefused("seats = 3", "name is missing"); }

TEST(TomlFileTest, RefusesTextThatIsNotToml) {
  ExpectRefused("name = ", "car.toml:1: not valid TOML");
}

TEST(TomlFileTest, RefusesAFileThatIsNotThere) {
  EXPECT_THAT([] { ReadTomlFile("no/such/file.toml", [](TomlFields&) {}); },
              ThrowsMessage<InputError>(HasSubstr("no/such/file.toml: cannot be opened")));
}

TEST(TomlFileTest, WhatIsWrittenReadsBackTheSame) {
  Car car = Parse("name = 'a \"b\"\\n'\nweight = 0.1\nowners = ['c']\n[[wheel]]\nsize = 0.3");
  const std::string text = WriteToml([&](TomlFields& fields) { VisitCar(fields, car); });
  Car again = Parse(text);
  EXPECT_EQ(again.name, car.name);
  EXPECT_EQ(again.weight, 0.1);
  EXPECT_EQ(again.wheels.at(0).size, 0.3);
  EXPECT_EQ(WriteToml([&](TomlFields& fields) { VisitCar(fields, again); }), text);
}

}  // namespace
}  // namespace dynamix
