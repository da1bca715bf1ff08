#include "dynamix/simulator/idx_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::filesystem::path TestFile(const std::string& name) {
  return std::filesystem::path(::testing::TempDir()) / (std::to_string(getpid()) + name);
}

void WriteGzip(const std::filesystem::path& path, const std::string& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

std::string Header(char type, std::initializer_list<int> sizes) {
  std::string header = {0, 0, type, static_cast<char>(sizes.size())};
  for (const int size : sizes)
    header += {0, 0, static_cast<char>(size >> 8), static_cast<char>(size & 255)};
  return header;
}

// What ReadIdxFile says about a file with these bytes.
std::string Complaint(const std::filesystem::path& path, int dimensions) {
  try {
    ReadIdxFile(path, dimensions, 1000);
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

TEST(IdxFileTest, ReadsSizesAndData) {
  const auto path = TestFile("good.gz");
  WriteGzip(path, Header(8, {2, 3}) + "abcdef");
  const IdxArray array = ReadIdxFile(path, 2, 1000);
  EXPECT_EQ(array.sizes, (std::vector<int>{2, 3}));
  EXPECT_EQ(std::string(array.data.begin(), array.data.end()), "abcdef");
  std::filesystem::remove(path);
}

TEST(IdxFileTest, NamesTheFileAndTheFault) {
  const auto path = TestFile("bad.gz");
  EXPECT_THAT(Complaint(path, 1), AllOf(HasSubstr(path.string()), HasSubstr("no such file")));
  const struct {
    std::string bytes, fault;
  } kCases[] = {{Header(8, {4}) + "ab", "truncated"},
                {Header(8, {4}) + "abcde", "longer"},
                {Header(9, {4}) + "abcd", "unsigned bytes"},
                {Header(8, {2, 2}) + "abcd", "dimensions"},
                {Header(8, {2000}), "corrupt"},
                {Header(8, {0}), "corrupt"},
                {"", "truncated"}};
  for (const auto& [bytes, fault] : kCases) {
    WriteGzip(path, bytes);
    EXPECT_THAT(Complaint(path, 1), AllOf(HasSubstr(path.string()), HasSubstr(fault)));
  }
  std::filesystem::remove(path);
}

TEST(IdxFileTest, SeesDamagedGzipData) {
  const auto path = TestFile("damaged.gz");
  std::string bytes = Header(8, {200});
  for (int i = 0; i < 200; ++i) bytes += static_cast<char>(i * 37);
  WriteGzip(path, bytes);
  std::ifstream in(path, std::ios::binary);
  const std::string packed((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto rewrite = [&](const std::string& with) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << with;
  };
  rewrite(packed.substr(0, packed.size() / 2));
  EXPECT_NE(Complaint(path, 1), "none");
  rewrite(packed.substr(0, packed.size() - 6));  // the checksum is cut off
  EXPECT_NE(Complaint(path, 1), "none");
  for (std::size_t at = 10; at < packed.size(); at += 7) {  // behind the gzip header
    std::string flipped = packed;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    rewrite(flipped);
    EXPECT_NE(Complaint(path, 1), "none") << "byte " << at;
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace dynamix
