// The PTX emulator executes any kernel of a PTX module on the CPU, exactly, and reports what is wrong with it.
//
// The interface has three parts: a Device (memory), a Program (a module decoded for a device, its variables placed) and
// launch().
//
//   emulator::Device device;
//   auto program = emulator::Program::load_text(device, ptx_text, "copy.ptx");
//   emulator::Address out = *device.allocate(400, "out");
//   auto outcome = emulator::launch(*program, "copy", {.grid = {4}, .block = {128}},
//                                   std::vector{Argument::of(out), Argument::of(100u)});
//   if (!outcome->faults.empty()) std::cerr << emulator::render(*outcome, "copy.ptx");
//
// Input that misuses the interface (no such entry, a block that differs from .reqntid, arguments of the wrong size)
// gives an Error. An error of the kernel itself gives a Fault in the Outcome. Results are deterministic: the same input
// and options with threads == 1 give the same memory, faults and statistics on every machine.
//
// Sources: PTX ISA 9.0, with the memory model of its chapter 8. docs/emulator.md records what hardware does where the
// ISA leaves it open.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/emulator/texture.hpp"
#include "support/result.hpp"
#include "support/saturating.hpp"

namespace ptxkit::ptx {
struct Module;
}

namespace ptxkit::emulator {

using Address = uint64_t;  // an address in a kernel's pointer: generic, and equal to the global address

// The attributes that cuDeviceGetAttribute reports. The defaults are those of an H200, except that modules for any
// architecture load.
struct DeviceOptions {
  uint32_t sm = 121;                    // compute capability; modules for a newer architecture are refused
  uint32_t multiprocessor_count = 132;  // %nsmid
  uint32_t max_threads_per_block = 1024;
  uint32_t max_shared_bytes_per_block = 232448;  // static + dynamic, the opt-in limit
  uint64_t memory_bytes = uint64_t{16} << 30;    // reserved address space; pages are committed when touched
};

struct Allocation {
  Address address = 0;
  uint64_t size_bytes = 0;  // exact, as requested
  std::string name;
};

class Memory;  // internal

// A device and its memory. Addresses are never zero. Allocations never touch: guard gaps of 256 bytes or more separate
// them. Freed memory is not reused for as long as possible, so that a use after free is recognised. Fresh memory holds
// the byte 0xcb and counts as uninitialised. Not thread safe, except that a launch may itself use several threads.
class Device {
 public:
  explicit Device(const DeviceOptions& options = {});
  ~Device();
  Device(Device&&) noexcept;
  Device& operator=(Device&&) noexcept;

  // `align_bytes` is a power of two, by default 256 as in cudaMalloc. The address is aligned to exactly that and to no
  // larger power of two, so that a kernel cannot depend on an alignment that was never promised. Size 0 gives an
  // address that cannot be accessed.
  Result<Address> allocate(uint64_t size_bytes, std::string name, uint64_t align_bytes = 256);
  Result<void> release(Address address);  // error: `address` does not start a live allocation
  // The name that faults show for the live allocation that holds `address`. Without one, nothing happens.
  void rename(Address address, std::string name);

  // Copies by the host. The range must lie within one live allocation. write and fill mark the bytes as initialised.
  Result<void> write(Address address, std::span<const std::byte> bytes);
  Result<void> fill(Address address, std::byte value, uint64_t size_bytes);
  Result<void> read(Address address, std::span<std::byte> bytes) const;
  // Marks the bytes as uninitialised again and sets their values to 0xcb.
  Result<void> forget(Address address, uint64_t size_bytes);
  // Counts the bytes that were never written with a defined value.
  Result<uint64_t> uninitialised_bytes(Address address, uint64_t size_bytes) const;

  // Handles for texture and surface instructions: passed as a 64-bit argument, or written to a .global variable of type
  // .texref, .samplerref or .surfref. The texels lie in one live allocation, which a texture or surface does not own.
  Result<uint64_t> make_texture(Address data, const ImageDescription& description, const Sampling& sampling = {});
  Result<uint64_t> make_surface(Address data, const ImageDescription& description);
  uint64_t make_sampler(const Sampling& sampling);  // for .target texmode_independent

  std::vector<Allocation> live_allocations() const;  // by address; allocations left at the end are leaks
  uint64_t used_bytes() const;
  uint64_t free_bytes() const;
  const DeviceOptions& options() const;

  Memory& memory() { return *memory_; }
  const Memory& memory() const { return *memory_; }

 private:
  std::unique_ptr<Memory> memory_;
};

struct EntryParameter {
  std::string name;
  uint32_t offset_bytes = 0;
  uint32_t size_bytes = 0;
  uint32_t align_bytes = 1;
};

struct EntryInfo {
  std::string name;
  std::vector<EntryParameter> parameters;
  uint32_t parameter_bytes = 0;
  uint32_t static_shared_bytes = 0;            // of the entry and the functions that it calls
  uint32_t local_bytes = 0;                    // declared .local of the entry itself
  std::array<uint32_t, 3> required_block{};    // .reqntid, 0 if absent
  std::array<uint32_t, 3> max_block{};         // .maxntid, 0 if absent
  std::array<uint32_t, 3> required_cluster{};  // .reqnctapercluster, 0 if absent
};

struct Variable {
  Address address = 0;
  uint64_t size_bytes = 0;
};

struct ProgramImage;  // the decoded form

// A module decoded for one device. Its .global and .const variables live on the device and are initialised. Copies
// share one image and are cheap. The device must outlive the program. Loading fails when the emulator cannot run an
// instruction, with a list of "file:line:column: ..." lines: no instruction is skipped silently.
class Program {
 public:
  // With `only`, that kernel and the functions are decoded and no other kernel: for one launch out of a module of many.
  static Result<Program> load(Device& device, std::shared_ptr<const ptx::Module> module, std::string_view only = {});
  // Parses `text` first; the parser's diagnostics become the error. `path` names the text in messages.
  static Result<Program> load_text(Device& device, std::string text, std::string path);

  const std::vector<EntryInfo>& entries() const;
  Result<EntryInfo> entry(std::string_view name) const;  // the error lists the entries of the module
  Result<Variable> global(std::string_view name) const;  // a module-scope .global or .const variable
  // Copies between the host and such a variable, from its first byte on, between launches, as cudaMemcpyToSymbol does.
  // Error: no such variable, or the variable is smaller than `bytes`.
  Result<void> write(std::string_view name, std::span<const std::byte> bytes) const;
  Result<void> read(std::string_view name, std::span<std::byte> bytes) const;
  const ptx::Module& module() const;

  const std::shared_ptr<const ProgramImage>& image() const { return image_; }

 private:
  explicit Program(std::shared_ptr<const ProgramImage> image) : image_(std::move(image)) {}
  std::shared_ptr<const ProgramImage> image_;
};

// One kernel argument: the bytes of the parameter, little-endian.
struct Argument {
  std::vector<std::byte> bytes;

  template <class T>
  static Argument of(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    auto view = std::as_bytes(std::span<const T, 1>(&value, 1));
    return Argument{{view.begin(), view.end()}};
  }
};

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return saturating_product(x, y, z); }
};

// The checks of the sanitizer, as a bit set. Without `bounds` and `alignment` a bad access happens as on a GPU, except
// that outside of the device's address space a load reads zeros and a store is dropped. Memory of the host is safe
// either way.
enum Check : uint32_t {
  kCheckBounds = 1,  // bounds, null, use after free, read-only
  kCheckAlignment = 2,
  kCheckUninitialised = 4,
  kCheckRaces = 8,  // shared and global memory; within a warp, a CTA and the grid; read-only loads of what is written
  kCheckBarriers = 16,  // threads that exit before a barrier; shuffles from lanes that do not take part
  kCheckOutputs = 32,   // bits in global memory that the kernel stored and that were never written with a defined value
  // Not in `standard`, because one kernel may free what another allocates: malloc blocks that are live at the end.
  kCheckLeaks = 64,
  // Not in `standard`, because the value may never be used and may be overwritten: stores to global memory of values
  // that were never written, or that were computed from such values.
  kCheckUninitialisedStores = 128,
  kCheckDivision = 256,  // integer division by zero, for which the ISA specifies no result
  kCheckNone = 0,
  kCheckStandard = 63 | kCheckDivision,
  kCheckAll = 511,
};
// Parses "standard", "all", "none" or a list such as "bounds,races". Error: an unknown name.
Result<uint32_t> parse_checks(std::string_view list);

struct LaunchShape {
  Dim3 grid = {};
  Dim3 block = {};
  uint32_t dynamic_shared_bytes = 0;
  Dim3 cluster = {};  // in CTAs; .reqnctapercluster, if the entry has it, must be equal or this be 1 x 1 x 1
};

inline constexpr uint64_t kDefaultIdleSteps = uint64_t{1} << 29;

struct LaunchOptions {
  uint32_t checks = kCheckStandard;
  // 0: warps in order, each until it waits; otherwise a pseudo-random order and time slices.
  uint64_t schedule_seed = 0;
  // With a seed: schedules that programmers do not expect. The last blocks and the lanes that are furthest go first,
  // and one warp runs as far as it can before another begins, with changes at a few random points (PCT, Burckhardt et
  // al., ASPLOS 2010).
  bool adversarial = false;
  uint64_t max_steps = 0;  // warp instructions of the whole launch, long ones weighed (core/limits.hpp); 0: no limit
  // Warp instructions in a row, of all threads, without a store to shared or global memory; 0: no limit. Loops that
  // return to the same registers and loops without an exit are found without this limit.
  uint64_t max_idle_steps = kDefaultIdleSteps;
  uint64_t heap_bytes = 8u << 20;        // that malloc may have in use at a time: cudaLimitMallocHeapSize
  uint64_t print_fifo_bytes = 1u << 20;  // of printed text, of which the newest is kept: cudaLimitPrintfFifoSize
  unsigned threads = 1;    // CTAs in parallel; with more than 1, CTAs that communicate are no longer deterministic
  size_t max_faults = 16;  // the launch stops when this many have been found
  // If not 0, bounds and alignment are checked in this line of the PTX only; all other lines run as without these
  // checks. Used to look past a known fault.
  uint32_t only_checked_line = 0;
  const std::atomic<bool>* stop = nullptr;  // when it becomes true the launch ends with the fault `interrupted`
};

enum class FaultKind : uint8_t {
#define FAULT(id, rule, stops, words) id,
#include "runtime/emulator/fault_kinds.def"
#undef FAULT
};
std::string_view text(FaultKind kind);  // "misaligned address"
std::string_view name(FaultKind kind);  // "misaligned"
std::string_view rule(FaultKind kind);  // "F051"; "" if no rule describes it
bool stops(FaultKind kind);

struct ThreadId {
  std::array<uint32_t, 3> block{};   // %ctaid
  std::array<uint32_t, 3> thread{};  // %tid
};

// The place of an instruction in the text.
struct Site {
  uint32_t instruction = 0xffffffff;  // index in its function; 0xffffffff if unknown
  std::string entry;                  // the function that contains it
  uint32_t line = 0, column = 0;      // in the PTX
  std::string text;                   // the PTX line, without blanks at both ends
  std::string source;                 // "kernel.cu:17" from .loc; empty without
};

struct ByteRange {
  uint64_t offset_bytes = 0, size_bytes = 0;
};

// The part of an object that holds undefined bits: bits that no thread wrote.
struct UndefinedPart {
  uint64_t bytes = 0;             // in all ranges
  size_t range_count = 0;         // of all ranges, not only of those listed
  std::vector<ByteRange> ranges;  // the first 32
  std::string space;              // where the bits came from: "shared", "register"; empty if unknown
};

struct Fault {
  FaultKind kind = FaultKind::trap;
  std::string message;  // a whole sentence without the place: "4-byte load at 0x1000000102 is not aligned to 4"
  Site site;
  ThreadId thread;
  bool has_address = false;
  Address address = 0;
  uint32_t access_bytes = 0;
  std::string object;         // the allocation or variable nearest to the address
  int64_t object_offset = 0;  // of the address from the object's start; negative before it
  uint64_t object_bytes = 0;
  UndefinedPart undefined;  // of undefined_output; empty for other kinds
  // The other side: the earlier access of a race, a thread that waits elsewhere in a deadlock, the origin of an
  // uninitialised value.
  bool has_other = false;
  Site other_site;
  ThreadId other_thread;
  std::string other_message;
};

struct Statistics {
  uint64_t warp_instructions = 0;
  uint64_t thread_instructions = 0;
  uint64_t divergent_branches = 0;
  uint64_t barriers = 0;  // completed, of all CTAs
  uint64_t cta_count = 0;
};

struct Outcome {
  std::vector<Fault> faults;  // in the order found; one for each kind and instruction
  std::vector<Fault> notes;   // findings that did no harm, such as an alignment that nothing declares
  Statistics statistics;
  std::string output;  // what the kernel printed with vprintf
  // Calls of vprintf whose text no longer fitted beside later text, and the bytes of that text.
  uint64_t lost_prints = 0, lost_print_bytes = 0;
  bool ok() const { return faults.empty(); }
};

// Runs `entry` to its end. Arguments are in the order of the parameters. Error: no such entry, an empty or too large
// shape, a block that differs from .reqntid or exceeds .maxntid, arguments that do not fit the parameters, more shared
// memory than the device has.
Result<Outcome> launch(const Program& program, std::string_view entry, const LaunchShape& shape,
                       std::span<const Argument> arguments, const LaunchOptions& options = {});
// The same with the parameters in one buffer, each at its EntryParameter::offset_bytes.
Result<Outcome> launch_raw(const Program& program, std::string_view entry, const LaunchShape& shape,
                           std::span<const std::byte> parameters, const LaunchOptions& options = {});

// Text of several lines: kind and rule, message, PTX line, source line, thread, object, the other side. For an outcome:
// the faults, then the notes. `path` names the PTX file.
std::string render(const Fault& fault, std::string_view path);
std::string render(const Outcome& outcome, std::string_view path);

}  // namespace ptxkit::emulator
