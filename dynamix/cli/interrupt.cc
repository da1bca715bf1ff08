#include "dynamix/cli/interrupt.h"

#include <csignal>

namespace dynamix {
namespace {

// A signal handler can reach nothing but a global.
volatile std::sig_atomic_t g_interrupted = 0;

void OnSignal(int signal) {
  g_interrupted = 1;
  // Whoever stops a job (Slurm, systemd) may ask every process, and the launcher then asks its
  // ranks again: asking twice must not end them in the middle of saving.
  if (signal == SIGINT) std::signal(signal, SIG_DFL);
}

volatile std::sig_atomic_t g_reload = 0;

void OnHangUp(int) { g_reload = 1; }

}  // namespace

InterruptFlag::InterruptFlag() {
  g_interrupted = 0;
  std::signal(SIGINT, OnSignal);
  std::signal(SIGTERM, OnSignal);
  if (std::signal(SIGHUP, OnSignal) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
}

InterruptFlag::~InterruptFlag() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  if (std::signal(SIGHUP, SIG_DFL) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
}

InterruptFlag::operator bool() const { return g_interrupted != 0; }

ReloadFlag::ReloadFlag() {
  g_reload = 0;
  std::signal(SIGHUP, OnHangUp);
}

ReloadFlag::~ReloadFlag() { std::signal(SIGHUP, SIG_DFL); }

bool ReloadFlag::Take() {
  const bool asked = g_reload != 0;
  if (asked) g_reload = 0;
  return asked;
}

}  // namespace dynamix
