// A place between two steps that must look like one, where a test ends the process
// (tests/failpoints_test.cc). Compiled in only where DYNAMIX_FAILPOINTS is defined; elsewhere it is
// nothing.
#pragma once

#ifdef DYNAMIX_FAILPOINTS
namespace dynamix {
void Failpoint(const char* place);  // the test's
}
#define DYNAMIX_FAILPOINT(place) ::dynamix::Failpoint(place)
#else
#define DYNAMIX_FAILPOINT(place) static_cast<void>(0)
#endif
