// The PTX emulator: runs any kernel of a PTX module on the CPU, exactly, and says what is wrong with it.
//
// Three things: a Device (memory), a Program (a module decoded for it, its variables placed), and launch().
//
//   emulator::Device device;
//   auto program = emulator::Program::load_text(device, ptx_text, "copy.ptx");
//   emulator::Address out = device.allocate(400, "out");
//   auto outcome = emulator::launch(*program, "copy", {.grid = {4}, .block = {128}}, {Argument::of(out),
//   Argument::of(100u)}); if (!outcome->faults.empty()) std::cerr << emulator::render(*outcome);
//
// Misuse of the interface that input can cause (no such entry, block unlike .reqntid, wrong argument sizes) is an
// Error; what the kernel itself does wrong is a Fault in the Outcome. Results are deterministic: same input, options
// and threads == 1 give the same memory, faults and statistics on every machine.
//
// Source: PTX ISA 9.0; the memory model of its chapter 8; for what hardware does where the ISA leaves it open,
// docs/emulator.md.
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
#include <vector>

#include "runtime/emulator/texture.hpp"
#include "support/result.hpp"
#include "support/saturating.hpp"

namespace ptxkit::ptx {
struct Module;
}

namespace ptxkit::emulator {

using Address = uint64_t;  // what a kernel sees in a pointer: generic, and equal to the global address

// What cuDeviceGetAttribute would say. Defaults are an H200's, but that modules for any architecture are taken.
struct DeviceOptions {
  uint32_t sm = 121;                    // modules for a newer architecture are refused
  uint32_t multiprocessor_count = 132;  // %nsmid
  uint32_t max_threads_per_block = 1024;
  uint32_t max_shared_bytes_per_block = 232448;  // static + dynamic, the opt-in limit
  uint64_t memory_bytes = uint64_t{16} << 30;    // reserved address space; pages are committed when touched
};

struct Allocation {
  Address address = 0;
  uint64_t size_bytes = 0;  // exact, as asked for
  std::string name;
};

class Memory;  // of the implementation

// A device: its memory. Addresses are never zero, allocations never touch (guard gaps of 256 bytes or more), freed
// memory is kept apart as long as possible so that its use is recognised. Fresh memory holds the byte 0xcb and counts
// as uninitialised. Not thread safe, except that a launch may use threads itself.
class Device {
 public:
  explicit Device(const DeviceOptions& options = {});
  ~Device();
  Device(Device&&) noexcept;
  Device& operator=(Device&&) noexcept;

  // `align_bytes` is a power of two; the address is aligned to it and to no more (256 by default, as cudaMalloc), so
  // that a kernel cannot live on alignment that nobody promised. Size 0 gives an address that cannot be accessed.
  Result<Address> allocate(uint64_t size_bytes, std::string name, uint64_t align_bytes = 256);
  Result<void> release(Address address);  // error: not the start of a live allocation

  // Host copies: must lie within one live allocation. write and fill make the bytes initialised.
  Result<void> write(Address address, std::span<const std::byte> bytes);
  Result<void> fill(Address address, std::byte value, uint64_t size_bytes);
  Result<void> read(Address address, std::span<std::byte> bytes) const;
  // Makes the bytes count as uninitialised again; their values become 0xcb.
  Result<void> forget(Address address, uint64_t size_bytes);
  // How many of the bytes nobody has written with a defined value.
  Result<uint64_t> uninitialised_bytes(Address address, uint64_t size_bytes) const;

  // Handles for tex, suld and their like: passed as an argument of 64 bits, or written to the .global variable of a
  // .texref, .samplerref or .surfref. The texels lie in one live allocation, which a texture or surface does not own.
  Result<uint64_t> make_texture(Address data, const ImageDescription& description, const Sampling& sampling = {});
  Result<uint64_t> make_surface(Address data, const ImageDescription& description);
  uint64_t make_sampler(const Sampling& sampling);  // for .target texmode_independent

  std::vector<Allocation> live_allocations() const;  // by address; what is left at the end is a leak
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
  uint32_t static_shared_bytes = 0;            // of the entry and what it calls
  uint32_t local_bytes = 0;                    // declared .local of the entry itself
  std::array<uint32_t, 3> required_block{};    // .reqntid, 0 without
  std::array<uint32_t, 3> max_block{};         // .maxntid, 0 without
  std::array<uint32_t, 3> required_cluster{};  // .reqnctapercluster, 0 without
};

struct Variable {
  Address address = 0;
  uint64_t size_bytes = 0;
};

struct ProgramImage;  // the decoded form

// A module decoded for one device; its .global and .const variables live there and are initialised. Cheap to copy
// (shared). The device must outlive it. An instruction that the emulator cannot run makes loading fail with a list
// of "file:line:column: ..." lines: nothing is ever skipped silently.
class Program {
 public:
  static Result<Program> load(Device& device, std::shared_ptr<const ptx::Module> module);
  // Parses first; diagnostics of the parser are errors here.
  static Result<Program> load_text(Device& device, std::string text, std::string path);

  const std::vector<EntryInfo>& entries() const;
  Result<EntryInfo> entry(std::string_view name) const;  // error lists the entries there are
  Result<Variable> global(std::string_view name) const;  // a module-scope .global or .const variable
  // What the host copies to and from such a variable, from its first byte on, between launches: cudaMemcpyToSymbol.
  // Error: no such variable, or it has fewer bytes.
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

// What the sanitizer looks for; a bit set. Without `bounds` and `alignment` a bad access reads zeros or is dropped when
// it leaves the device's address space and otherwise happens, as a GPU would do it; host memory is safe either way.
enum Check : uint32_t {
  kCheckBounds = 1,  // bounds, null, use after free, read-only
  kCheckAlignment = 2,
  kCheckUninitialised = 4,
  kCheckRaces = 8,      // shared and global memory; within a warp, a CTA and the grid
  kCheckBarriers = 16,  // threads that left before a barrier; shuffles from lanes that take no part
  kCheckOutputs = 32,   // global memory that holds bits nobody wrote when the launch ends, where the kernel stored them
  // Not of `standard`, for what one kernel allocates another may free: blocks of malloc that are live at the end.
  kCheckLeaks = 64,
  // Nor this, for the value may never be used and be stored over: stores to global memory of values that were never
  // written, or computed from what was not.
  kCheckUninitialisedStores = 128,
  kCheckNone = 0,
  kCheckStandard = 63,
  kCheckAll = 255,
};
Result<uint32_t> parse_checks(std::string_view list);  // "standard", "all", "none", "bounds,races"

struct LaunchShape {
  Dim3 grid = {};
  Dim3 block = {};
  uint32_t dynamic_shared_bytes = 0;
  Dim3 cluster = {};  // CTAs of a cluster; .reqnctapercluster, where the entry has it, must be equal or this 1 x 1 x 1
};

inline constexpr uint64_t kDefaultIdleSteps = uint64_t{1} << 29;

struct LaunchOptions {
  uint32_t checks = kCheckStandard;
  uint64_t schedule_seed = 0;  // 0: warps in order, each until it waits; else pseudo-random order and time slices
  // With a seed, what programmers do not expect: the last blocks and the lanes that are furthest first, and one warp as
  // far as it gets before another begins, with changes at a few random points (PCT, Burckhardt et al., ASPLOS 2010).
  bool adversarial = false;
  uint64_t max_steps = 0;  // warp instructions of the whole launch; 0: no limit
  // The same for those in a row, of all threads, in which none stored to shared or global memory; 0: no limit. Loops
  // that come back to the same registers, and those without a way out, are found without a limit.
  uint64_t max_idle_steps = kDefaultIdleSteps;
  uint64_t heap_bytes = 8u << 20;        // what malloc gives out at a time: cudaLimitMallocHeapSize
  uint64_t print_fifo_bytes = 1u << 20;  // of text, of which the newest is kept: cudaLimitPrintfFifoSize
  unsigned threads = 1;    // CTAs in parallel; more than 1 gives up determinism between CTAs that communicate
  size_t max_faults = 16;  // launch stops when so many have been found
  // Where it is not 0, bounds and alignment are checked in this line of the PTX alone: elsewhere accesses happen as
  // without these checks. For what lies behind a fault that is known.
  uint32_t only_checked_line = 0;
  const std::atomic<bool>* stop = nullptr;  // where it turns true the launch ends, with the fault `interrupted`
};

enum class FaultKind : uint8_t {
#define FAULT(id, rule, stops, words) id,
#include "runtime/emulator/fault_kinds.def"
#undef FAULT
};
std::string_view text(FaultKind kind);  // "misaligned address"
std::string_view name(FaultKind kind);  // "misaligned"
std::string_view rule(FaultKind kind);  // "F051"; "" where no rule speaks of it
bool stops(FaultKind kind);

struct ThreadId {
  std::array<uint32_t, 3> block{};   // %ctaid
  std::array<uint32_t, 3> thread{};  // %tid
};

// Where in the text an instruction is.
struct Site {
  uint32_t instruction = 0xffffffff;  // index in the program; 0xffffffff where unknown
  std::string entry;                  // function that holds it
  uint32_t line = 0, column = 0;      // in the PTX
  std::string text;                   // the PTX line, blanks at both ends taken off
  std::string source;                 // "kernel.cu:17" from .loc, empty without
};

struct ByteRange {
  uint64_t offset_bytes = 0, size_bytes = 0;
};

// The part of an object that holds bits which no thread wrote.
struct UndefinedPart {
  uint64_t bytes = 0;             // of all ranges
  size_t range_count = 0;         // of them all
  std::vector<ByteRange> ranges;  // the first 32
  std::string space;              // where the bits came from: "shared", "register"; empty where that is not known
};

struct Fault {
  FaultKind kind = FaultKind::trap;
  std::string message;  // whole sentence without the place: "4-byte load at 0x1000000102 is not aligned to 4"
  Site site;
  ThreadId thread;
  bool has_address = false;
  Address address = 0;
  uint32_t access_bytes = 0;
  std::string object;         // name of the allocation or variable nearest to the address
  int64_t object_offset = 0;  // of the address from its start; negative before it
  uint64_t object_bytes = 0;
  UndefinedPart undefined;  // of undefined_output; no bytes elsewhere
  // The other side: of a race the earlier access, of a deadlock one that waits elsewhere, of an uninitialised value
  // where it came from.
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
  std::vector<Fault> faults;  // in the order found; one per kind and instruction
  std::vector<Fault> notes;   // the same of what did no harm: an alignment that nothing declares
  Statistics statistics;
  std::string output;  // what the kernel printed with vprintf
  // Calls of vprintf whose text did not fit beside what was printed later, and its bytes.
  uint64_t lost_prints = 0, lost_print_bytes = 0;
  bool ok() const { return faults.empty(); }
};

// Runs `entry` to its end. Error: no such entry, empty or too large shape, block unlike .reqntid / .maxntid,
// arguments that do not fit the parameters, more shared memory than the device has.
Result<Outcome> launch(const Program& program, std::string_view entry, const LaunchShape& shape,
                       std::span<const Argument> arguments, const LaunchOptions& options = {});
// The same with the parameters as one buffer, each at its EntryParameter::offset_bytes.
Result<Outcome> launch_raw(const Program& program, std::string_view entry, const LaunchShape& shape,
                           std::span<const std::byte> parameters, const LaunchOptions& options = {});

// Several lines for people: kind and rule, message, PTX line, source line, thread, object, the other side. Of an
// outcome the faults, then the notes.
std::string render(const Fault& fault, std::string_view path);
std::string render(const Outcome& outcome, std::string_view path);

}  // namespace ptxkit::emulator
