// The state of the fake driver, which a test sets and reads: one structure inside the library, found by name.
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
  // Fails the nth call (from 1) of a function with a code. A context error persists, as on hardware. Device -1 counts
  // the calls of all devices together and fails all of them; otherwise only this device.
  std::string failing_function;
  int failing_call = 0;
  int failing_code = 0;
  int failing_device = -1;
  std::map<std::string, int> calls;                    // by exported name
  std::map<int, std::map<std::string, int>> calls_of;  // by device: calls with a context
  std::map<std::string, std::set<void*>> streams_of;   // by kind of work: the streams that it was put on
  std::set<std::thread::id> freeing_threads;           // threads that freed device and page-locked memory
  size_t uploaded_bytes = 0, downloaded_bytes = 0;
  long device_bytes = 0, pinned_bytes = 0;  // currently allocated
  long peak_device_bytes = 0;
  size_t free_bytes = size_t{1} << 30;  // the answer of cuMemGetInfo
  unsigned delay_microseconds = 0;      // added to every call: a slow device
  std::map<int, long> memory_limits;    // by device: bytes that can be allocated at a time
  std::map<int, long> device_bytes_of;  // by device: currently allocated
  // Called with the device when a thread begins to wait for an event, and when it launches. The driver accepts calls of
  // other threads meanwhile.
  std::function<void(int device)> before_waiting, before_launch;
  int streams = 0, events = 0, modules = 0, contexts = 0, graphs = 0;  // currently alive
};

}  // namespace ptxkit::testing

// Exported. Returns the same structure for the lifetime of the process.
extern "C" ptxkit::testing::FakeCuda* fake_cuda_state();
