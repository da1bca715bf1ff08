#include "dynamix/host/rank_place.h"

#include <charconv>
#include <cstring>

#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

int ReadNumber(const Variables& variables, const char* name, int low, int high) {
  const char* text = variables(name);
  if (text == nullptr)
    throw InputError(std::string(name) + " is not set, but others of its kind are");
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stop != end || value < low || value > high) {
    throw InputError::OutOfRange(
        name, text, "a number in [" + std::to_string(low) + ", " + std::to_string(high) + "]");
  }
  return value;
}

void ReadCounts(const Variables& variables, const char* rank, const char* size, const char* local,
                RankPlace& place) {
  place.given = true;
  place.size = ReadNumber(variables, size, 1, 1 << 20);
  place.rank = ReadNumber(variables, rank, 0, place.size - 1);
  place.local_rank = variables(local) ? ReadNumber(variables, local, 0, 1 << 20) : place.rank;
}

void ReadSlurm(const Variables& variables, RankPlace& place) {
  ReadCounts(variables, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", place);
  const char* nodes = variables("SLURM_STEP_NODELIST");
  if (nodes == nullptr) nodes = variables("SLURM_JOB_NODELIST");
  if (nodes != nullptr) place.address = FirstHost(nodes);
  // Jobs that share a node must not share a port.
  if (variables("SLURM_JOB_ID"))
    place.port = 20000 + ReadNumber(variables, "SLURM_JOB_ID", 0, 2000000000) % 10000;
}

void ReadOpenMpi(const Variables& variables, RankPlace& place) {
  ReadCounts(variables, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
             "OMPI_COMM_WORLD_LOCAL_RANK", place);
  const bool one_machine =
      variables("OMPI_COMM_WORLD_LOCAL_SIZE") != nullptr &&
      ReadNumber(variables, "OMPI_COMM_WORLD_LOCAL_SIZE", 1, 1 << 20) == place.size;
  if (!one_machine && variables("MASTER_ADDR") == nullptr) {
    throw InputError(
        "MASTER_ADDR is not set: ranks on several machines need the address of rank 0 "
        "(mpirun -x MASTER_ADDR=...)");
  }
}

}  // namespace

std::string FirstHost(std::string_view nodes) {
  const std::size_t bracket = nodes.find('[');
  const std::size_t comma = nodes.find(',');
  if (bracket == std::string_view::npos || comma < bracket)
    return std::string(nodes.substr(0, comma));
  const std::string_view prefix = nodes.substr(0, bracket);
  const std::string_view ranges = nodes.substr(bracket + 1);
  const std::size_t end = ranges.find_first_of("-,]");
  const std::size_t close = ranges.find(']');
  std::string_view suffix =
      close == std::string_view::npos ? std::string_view() : ranges.substr(close + 1);
  suffix = suffix.substr(0, suffix.find(','));
  return std::string(prefix) + std::string(ranges.substr(0, end)) + std::string(suffix);
}

RankPlace ReadRankPlace(const Variables& variables) {
  RankPlace place;
  if (variables("RANK") || variables("WORLD_SIZE")) {
    ReadCounts(variables, "RANK", "WORLD_SIZE", "LOCAL_RANK", place);
  } else if (variables("OMPI_COMM_WORLD_RANK")) {
    ReadOpenMpi(variables, place);
  } else if (variables("SLURM_STEP_NUM_TASKS")) {
    ReadSlurm(variables, place);
  }
  if (const char* address = variables("MASTER_ADDR")) place.address = address;
  if (const char* store = variables("DYNAMIX_STORE")) place.store = store;
  if (const char* backend = variables("DYNAMIX_BACKEND")) place.backend = backend;
  if (place.backend != "gloo" && place.backend != "nccl")
    throw InputError::OutOfRange("DYNAMIX_BACKEND", place.backend, "gloo or nccl");
  const char* hosted = variables("TORCHELASTIC_USE_AGENT_STORE");
  if (hosted != nullptr && std::string_view(hosted) == "True") {
    // The store outlives an attempt of the ranks, and what they left there.
    const char* attempt = variables("TORCHELASTIC_RESTART_COUNT");
    place.hosted = std::string("dynamix/attempt_") + (attempt != nullptr ? attempt : "0");
  }
  if (variables("DYNAMIX_RESTARTS"))
    place.restarts = ReadNumber(variables, "DYNAMIX_RESTARTS", 0, 1 << 20);
  if (variables("MASTER_PORT")) place.port = ReadNumber(variables, "MASTER_PORT", 1, 65535);
  return place;
}

}  // namespace dynamix
