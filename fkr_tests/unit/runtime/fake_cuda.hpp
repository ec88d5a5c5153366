// What a test tells the fake driver and what it learns from it: one structure inside the library, found by name.
#pragma once

#include <map>
#include <set>
#include <string>
#include <thread>

namespace ptxkit::testing {

struct FakeCuda {
  int driver_version = 12080;
  int device_count = 1;
  int major = 9, minor = 0;
  // Fails the nth call (from 1) of a function with a code; the failure stays when it is a context error, as on
  // hardware.
  std::string failing_function;
  int failing_call = 0;
  int failing_code = 0;
  std::map<std::string, int> calls;                   // by exported name
  std::map<std::string, std::set<void*>> streams_of;  // a kind of work: where it was put
  std::set<std::thread::id> freeing_threads;          // of device and page-locked memory
  std::size_t downloaded_bytes = 0;
  long device_bytes = 0, pinned_bytes = 0;  // allocated now
  long peak_device_bytes = 0;
  std::size_t free_bytes = std::size_t{1} << 30;                       // what cuMemGetInfo says
  unsigned delay_microseconds = 0;                                     // of every call: a slow device
  int streams = 0, events = 0, modules = 0, contexts = 0, graphs = 0;  // alive now
};

}  // namespace ptxkit::testing

// Exported; the same structure for as long as the process lives.
extern "C" ptxkit::testing::FakeCuda* fake_cuda_state();
