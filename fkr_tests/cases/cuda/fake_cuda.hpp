// What a test tells the fake driver and what it learns from it: one structure inside the library, found by name.
#pragma once

#include <functional>
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
  // hardware. -1: of all devices together, and the failure is that of all; otherwise of this one alone.
  std::string failing_function;
  int failing_call = 0;
  int failing_code = 0;
  int failing_device = -1;
  std::map<std::string, int> calls;                    // by exported name
  std::map<int, std::map<std::string, int>> calls_of;  // by device, of calls with a context
  std::map<std::string, std::set<void*>> streams_of;   // a kind of work: where it was put
  std::set<std::thread::id> freeing_threads;           // of device and page-locked memory
  size_t downloaded_bytes = 0;
  long device_bytes = 0, pinned_bytes = 0;  // allocated now
  long peak_device_bytes = 0;
  size_t free_bytes = size_t{1} << 30;  // what cuMemGetInfo says
  unsigned delay_microseconds = 0;      // of every call: a slow device
  std::map<int, long> memory_limits;    // by device: what can be allocated there at a time
  std::map<int, long> device_bytes_of;  // allocated now, by device
  // Called where a thread begins to wait for an event, and where it launches, with the device; the driver takes other
  // threads' calls meanwhile.
  std::function<void(int device)> before_waiting, before_launch;
  int streams = 0, events = 0, modules = 0, contexts = 0, graphs = 0;  // alive now
};

}  // namespace ptxkit::testing

// Exported; the same structure for as long as the process lives.
extern "C" ptxkit::testing::FakeCuda* fake_cuda_state();
