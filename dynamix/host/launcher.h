// Starts N ranks of any program on this machine with torchrun's environment, and stands for them:
// forwards their output line by line with a rank prefix, passes signals on, and when one fails stops
// the others, or lets them go on and starts it again (`elastic`). A reader of the output that stalls
// makes the ranks wait, as a pipe would, but never the signals.
//
// The ranks of this machine also get DYNAMIX_STORE, a file in a folder only they can enter, by which
// they find each other without a port that anybody could connect to.
//
// Ranks run in process groups of their own and die with the launcher, however it ends. One launch
// at a time per process: it takes SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE and
// SIGCHLD over while it runs. Throws InputError for options out of range and std::system_error when
// the system refuses pipes or processes.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace dynamix {

struct LaunchOptions {
  int ranks = 1;                      // [1, 4096]
  std::vector<std::string> command;   // program and arguments; found on PATH
  std::string address = "127.0.0.1";  // MASTER_ADDR
  int port = 0;                       // MASTER_PORT; 0: a free one
  int threads = 1;                    // OMP_NUM_THREADS and OPENBLAS_NUM_THREADS of each rank
  bool prefix = true;                 // "[rank] " before each line
  double grace_s = 30;  // from asking the ranks to end (SIGTERM) to killing them, [0, 3600]
  // Ranks go on without one that is lost: the job is done when one ends with 0. A lost rank is started
  // again up to `max_restarts` times, [0, 1000], with DYNAMIX_RESTARTS in its environment, after a
  // pause that doubles from restart_pause_s to a minute: one that never lives for long costs little.
  bool elastic = false;
  int max_restarts = 0;
  double restart_pause_s = 0.5;  // [0, 60]
  // Elastic: whether the rank's machine is away just now, asked many times a second. A rank that is
  // away is killed, and started again when it is not; neither counts as a loss. Absences that would leave
  // nobody are put off, as in simulation.
  std::function<bool(int rank)> away;
  // More variables of every rank.
  std::vector<std::pair<std::string, std::string>> environment;
  // Called in each rank before its program, between fork and exec: moves it to its cgroup and its
  // network. False ends the rank.
  std::function<bool(int rank)> enter;
};

// Returns 0 when all ranks did, else the exit code of the first one that failed, 128 + its signal
// if a signal ended it; of elastic ranks one with 0 is enough. A launcher that was asked to end by a
// signal returns 128 + that signal; SIGUSR1 and SIGUSR2 are only passed on.
int Launch(const LaunchOptions& options);

}  // namespace dynamix
