#include "runtime/codec/device/emulator_machine.hpp"

#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/images.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/device/locked_memory.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/driver/context.hpp"
#include "runtime/driver/launch_contract.hpp"
#include "runtime/emulator/emulator.hpp"
#include "support/check.hpp"
#include "support/plural.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {
namespace {

// The compute capability of the emulated device: the highest, so that the newest images run.
constexpr uint32_t kMajor = 9, kMinor = 0;
// Small, because an interpreter is always busy and checks the memory of a slice byte by byte.
constexpr size_t kSliceBytes = 256u << 10;

std::span<const std::byte> as_bytes(MutableBytes bytes) { return std::as_bytes(std::span(bytes)); }

class EmulatorMachine final : public Machine {
 public:
  EmulatorMachine(FindImage find_image, unsigned thread_count) : find_image_(std::move(find_image)) {
    options_.threads = thread_count;
  }

  std::string_view name() const override { return "emulator"; }
  std::string description() const override {
    return fmt::format("PTX emulator, sm_{}{}, every access checked", kMajor, kMinor);
  }
  unsigned queue_count() const override { return 1; }
  size_t slice_bytes() const override { return kSliceBytes; }
  size_t queue_memory_bytes() const override { return std::numeric_limits<size_t>::max(); }

  Result<const kernels::KernelImage*> image(std::string_view kernel) const override {
    const kernels::KernelImage* const found = find_image_(kernel, kMajor, kMinor);
    if (found != nullptr) return found;
    return fail(fmt::format("there is no image of kernel {} for sm_{}{}", kernel, kMajor, kMinor), description());
  }
  Result<void> prepare(std::string_view kernel) override {
    if (loaded_.contains(kernel)) return {};
    const auto found = image(kernel);
    if (!found) return tl::unexpected(found.error());
    const kernels::KernelImage& image = **found;
    if (auto checked = driver::check_verdict(image); !checked) return checked;
    const std::string path = fmt::format("{}.{}.ptx", image.name, image.target);
    auto program = emulator::Program::load_text(device_, std::string(image.ptx), path);
    if (!program) return tl::unexpected(program.error());
    loaded_.emplace(std::string(kernel), Loaded{std::move(*program), driver::contract_of(image), path});
    return {};
  }

  Result<HostMemory> host_memory(size_t size_bytes) override { return locked_.allocate(size_bytes); }
  bool is_page_locked(Bytes memory) const override { return locked_.contains(memory); }

  Result<void> arrange(unsigned, std::span<const Region> regions) override {
    for (const Placed& placed : placed_) {
      if (auto released = device_.release(placed.address); !released) return released;
    }
    placed_.clear();
    for (const Region& region : regions) {
      auto address = device_.allocate(region.size_bytes, region.name);
      if (!address) return tl::unexpected(address.error());
      Placed& placed = placed_.emplace_back(*address, region.size_bytes);
      if (region.stays_on_device) continue;
      if (region.host == nullptr) placed.staging.resize(region.size_bytes);
      placed.host = {region.host == nullptr ? placed.staging.data() : region.host, region.size_bytes};
    }
    return {};
  }

  MutableBytes host(unsigned, size_t region) override { return placed_[region].host; }
  uint64_t address(unsigned, size_t region) override { return placed_[region].address; }

  Result<void> upload(unsigned queue, size_t region) override {
    if (placed_[region].host.empty()) return {};
    return device_.write(placed_[region].address, as_bytes(host(queue, region)));
  }
  Result<void> download(unsigned, size_t region) override {
    if (placed_[region].host.empty()) return {};
    return device_.read(placed_[region].address, std::as_writable_bytes(placed_[region].host));
  }
  Result<void> upload_parts(unsigned, std::span<const PartUp> parts) override {
    for (const PartUp& part : parts) {
      const auto from = std::as_bytes(part.from);
      if (auto put = device_.write(placed_[part.region].address + part.offset_bytes, from); !put) return put;
    }
    return {};
  }
  Result<void> clear(unsigned, size_t region) override {
    return device_.write(placed_[region].address, std::vector<std::byte>(placed_[region].size_bytes));
  }
  Result<void> download_parts(unsigned, std::span<const PartDown> parts) override {
    for (const PartDown& part : parts) {
      const auto into = std::as_writable_bytes(part.into);
      if (auto got = device_.read(placed_[part.region].address + part.offset_bytes, into); !got) return got;
    }
    return {};
  }
  Result<void> upload_rows(unsigned, size_t region, std::span<const driver::Rows> rows) override {
    return for_each_row(region, rows,
                        [&](uint64_t address, MutableBytes row) { return device_.write(address, std::as_bytes(row)); });
  }
  Result<void> download_rows(unsigned, size_t region, std::span<const driver::Rows> rows) override {
    return for_each_row(region, rows, [&](uint64_t address, MutableBytes row) {
      return device_.read(address, std::as_writable_bytes(row));
    });
  }

  Result<void> launch(unsigned, std::string_view kernel, uint32_t grid_blocks, uint32_t block_threads,
                      std::span<const driver::LaunchArgument> arguments) override {
    const auto found = loaded_.find(kernel);
    PTXKIT_CHECK(found != loaded_.end(), "a kernel is prepared before it is launched");
    const Loaded& loaded = found->second;
    if (auto checked = driver::check_launch(loaded.contract, grid_blocks, block_threads, arguments); !checked)
      return checked;
    std::vector<emulator::Argument> values;
    for (const driver::LaunchArgument& argument : arguments) {
      std::vector<std::byte> bytes(argument.size_bytes());
      std::memcpy(bytes.data(), &argument.value, bytes.size());
      values.push_back({std::move(bytes)});
    }
    emulator::LaunchShape shape;
    shape.grid.x = grid_blocks;
    shape.block.x = block_threads;
    const auto outcome = emulator::launch(loaded.program, kernel, shape, values, options_);
    if (!outcome) return tl::unexpected(outcome.error());
    if (!outcome->ok()) {
      return fail(fmt::format("the emulator found {}\n{}", plural(outcome->faults.size(), "fault"),
                              emulator::render(*outcome, loaded.path)),
                  fmt::format("kernel {}", kernel));
    }
    return {};
  }

  Result<void> begin_chain(unsigned) override { return {}; }
  Result<void> end_chain(unsigned) override { return {}; }
  Result<void> wait(unsigned) override { return {}; }

 private:
  struct Loaded {
    emulator::Program program;
    driver::LaunchContract contract;
    std::string path;
  };
  struct Placed {
    emulator::Address address;
    size_t size_bytes;
    std::vector<uint8_t> staging = {};
    MutableBytes host = {};
  };

  // copy(address, host side) for each row.
  template <class Copy>
  Result<void> for_each_row(size_t region, std::span<const driver::Rows> rows, Copy copy) {
    const Placed& placed = placed_[region];
    for (const driver::Rows& some : rows) {
      for (size_t i = 0; i < some.count; ++i) {
        const size_t begin = some.offset_bytes + i * some.pitch_bytes;
        if (auto copied = copy(placed.address + begin, placed.host.subspan(begin, some.width_bytes)); !copied)
          return copied;
      }
    }
    return {};
  }

  FindImage find_image_;
  emulator::LaunchOptions options_;
  emulator::Device device_;
  LockedMemory locked_{[](size_t size_bytes) { return pageable_memory(size_bytes); }, std::make_shared<LockedRanges>()};
  std::map<std::string, Loaded, std::less<>> loaded_;
  std::vector<Placed> placed_;
};

}  // namespace

std::unique_ptr<Machine> make_emulator_machine(FindImage find_image, unsigned thread_count) {
  return std::make_unique<EmulatorMachine>(std::move(find_image), thread_count);
}

}  // namespace ptxkit::codec
