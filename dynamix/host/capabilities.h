// Giving up privileges once they have been used. Affects the calling thread and the threads and
// processes it starts later; cannot be undone. An Error leaves them as they were.
#pragma once

#include "dynamix/core/result.h"

namespace dynamix {

// Drops every capability. The eBPF source goes on working: attached programs and the mapping of
// their totals need none (reading sockets at the instant does on kernels before 6.6).
Status DropCapabilities();

}  // namespace dynamix
