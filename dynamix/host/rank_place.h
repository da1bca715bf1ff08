// Where this process stands among the ranks of a job, as the program that started it says:
//
//   torchrun, dynamix launch   RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT;
//                              TORCHELASTIC_USE_AGENT_STORE=True: torchrun keeps the store there
//   Slurm                      SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID, the first node of
//                              the step, a port from the job's number. A batch script is in no
//                              step: what it starts without srun is no rank
//   Open MPI                   OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK; MASTER_ADDR when the ranks
//                              are on several machines
//
// DYNAMIX_RESTARTS says how often the rank was started again: others are far ahead.
// DYNAMIX_BACKEND names the collectives; DYNAMIX_STORE a file by which ranks of one machine find each
// other instead of at MASTER_ADDR. MASTER_ADDR and MASTER_PORT win wherever they are set.
// Pure: the environment is passed in. Throws InputError naming the variable, its value and what is
// allowed.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace dynamix {

struct RankPlace {
  static constexpr int kAnyFree = -1;

  bool given = false;  // by the environment; else one rank alone
  int rank = 0;        // kAnyFree: one more worker of an elastic job that is under way
  int size = 1;
  int local_rank = 0;
  std::string address = "127.0.0.1";  // where rank 0 listens
  int port = 29500;                   // there
  std::string backend = "gloo";       // of the collectives: gloo or nccl
  std::string store;                  // path of the file instead of the address; may be empty
  // Who started the ranks listens at the address, not rank 0: what is said there begins with this.
  std::string hosted;
  int restarts = 0;  // of this rank; the others of its job may be far ahead
};

// Returns the variable's value, or null when it is not set; std::getenv fits.
using Variables = std::function<const char*(const char* name)>;

// One rank alone when no such variable is set.
RankPlace ReadRankPlace(const Variables& variables);

// The first host of a Slurm node list: "a[07-09,11],b" -> "a07".
std::string FirstHost(std::string_view nodes);

}  // namespace dynamix
