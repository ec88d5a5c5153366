#include "fkr_tests/emulated/lz4_batches.hpp"

#include <algorithm>
#include <stdexcept>

#include "builder/emit.hpp"

namespace ptxkit::testing {
namespace {

using emulator::Address;
using emulator::Argument;

constexpr uint8_t kPattern = 0xa5;

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

// The arrays of a batch on an emulated device.
class Machine {
 public:
  explicit Machine(const BatchOptions& options) : options_(options) {}

  template <class T>
  Address upload(std::string name, const std::vector<T>& values, uint64_t align_bytes = sizeof(T)) {
    const Address address =
        value_of(device_.allocate(std::max<size_t>(values.size() * sizeof(T), 1), std::move(name), align_bytes));
    if (!values.empty() && !device_.write(address, std::as_bytes(std::span(values)))) throw std::runtime_error("write");
    return address;
  }
  // Memory without a content: reading it before it is written is a fault.
  Address allocate(std::string name, uint64_t size_bytes, uint64_t align_bytes) {
    return value_of(device_.allocate(size_bytes, std::move(name), align_bytes));
  }
  template <class T>
  std::vector<T> download(Address address, size_t count) {
    std::vector<T> values(count);
    if (count != 0 && !device_.read(address, std::as_writable_bytes(std::span(values))))
      throw std::runtime_error("read");
    return values;
  }

  // Where the items lie. The last byte of an item is the last of its allocation, up to a multiple of `granule`.
  Address items(const std::vector<BatchCase>& items, size_t granule) {
    std::vector<Address> addresses;
    for (size_t i = 0; i < items.size(); ++i) {
      Bytes bytes(items[i].misalignment, kPattern);
      bytes.insert(bytes.end(), items[i].bytes.begin(), items[i].bytes.end());
      bytes.resize((bytes.size() + granule - 1) / granule * granule, kPattern);
      addresses.push_back(items[i].is_null ? 0
                                           : upload("item " + std::to_string(i), bytes, 16) + items[i].misalignment);
    }
    return upload("inputs", addresses);
  }
  Address sizes(const std::vector<BatchCase>& items) {
    std::vector<uint64_t> sizes;
    for (const BatchCase& item : items) sizes.push_back(item.claimed_bytes.value_or(item.bytes.size()));
    return upload("input_bytes", sizes);
  }
  // Rooms at odd addresses, of typed rANS at multiples of 16.
  Address rooms(const std::vector<BatchCase>& items, const std::vector<uint64_t>& room_bytes) {
    room_bytes_ = room_bytes;
    for (size_t i = 0; i < items.size(); ++i) {
      const size_t before = options_.coding == library::Coding::lz4 ? 1 : 16;
      const Bytes room(room_bytes[i] + before, kPattern);
      rooms_.push_back(items[i].is_room_null ? 0 : upload("room " + std::to_string(i), room, 16) + before);
    }
    sizes_at_ = options_.with_sizes ? upload("output_bytes", std::vector<uint64_t>(items.size(), ~uint64_t{0})) : 0;
    statuses_at_ = options_.with_statuses ? upload("statuses", std::vector<uint32_t>(items.size(), ~0u)) : 0;
    return upload("outputs", rooms_);
  }
  Address sizes_at() const { return sizes_at_; }
  Address statuses_at() const { return statuses_at_; }

  BatchRan run(const Result<std::vector<library::BatchLaunch>>& launches) {
    BatchRan ran;
    for (const library::BatchLaunch& launch : value_of(launches)) {
      const auto image = kernel_image(launch.kernel, options_.build);
      const std::string text(launch.kernel == options_.replaced_kernel ? options_.replacement : image.ptx);
      const auto program = value_of(emulator::Program::load_text(device_, text, std::string(launch.kernel) + ".ptx"));
      std::vector<Argument> arguments;
      for (const driver::LaunchArgument& argument : launch.arguments) {
        arguments.push_back(argument.size_bytes() == 4 ? Argument::of(static_cast<uint32_t>(argument.value))
                                                       : Argument::of(argument.value));
      }
      if (text.find("_debug_buffer") != std::string::npos) {
        arguments.push_back(
            Argument::of(upload("debug_buffer", Bytes(size_t{16} * (dsl::EmitOptions{}.debug_records + 1)), 16)));
      }
      const auto outcome = value_of(emulator::launch(
          program, std::string(launch.kernel), {.grid = {launch.grid_blocks}, .block = {launch.shape.block_threads}},
          arguments, options_.emulation));
      if (!outcome.ok())
        return {.outputs = {},
                .sizes = {},
                .statuses = {},
                .report = emulator::render(outcome, std::string(launch.kernel) + ".ptx")};
    }
    if (options_.with_statuses) ran.statuses = download<uint32_t>(statuses_at_, rooms_.size());
    if (!options_.with_sizes) {
      for (size_t i = 0; i < rooms_.size(); ++i) ran.outputs.push_back(download<uint8_t>(rooms_[i], room_bytes_[i]));
      return ran;
    }
    ran.sizes = download<uint64_t>(sizes_at_, rooms_.size());
    for (size_t i = 0; i < rooms_.size(); ++i) {
      const bool fits = ran.sizes[i] <= room_bytes_[i];
      ran.claims_too_much |= !fits;
      ran.outputs.push_back(download<uint8_t>(rooms_[i], fits ? ran.sizes[i] : 0));
    }
    return ran;
  }

 private:
  const BatchOptions& options_;
  emulator::Device device_;
  std::vector<Address> rooms_;
  std::vector<uint64_t> room_bytes_;
  Address sizes_at_ = 0, statuses_at_ = 0;
};

}  // namespace

BatchRan compress_batch(const std::vector<BatchCase>& items, const BatchOptions& options) {
  Machine machine(options);
  library::BatchCompression batch;
  for (const BatchCase& item : items)
    batch.max_input_bytes = std::max<uint64_t>(batch.max_input_bytes, item.bytes.size());
  batch.max_input_bytes = options.max_input_bytes.value_or(batch.max_input_bytes);
  std::vector<uint64_t> room_bytes;
  for (const BatchCase& item : items) {
    room_bytes.push_back(library::DeviceBatches::requirements(item.bytes.size(), 1, options.framing, options.coding)
                             .value()
                             .output_bytes_bound);
  }
  const auto needed = value_of(
      library::DeviceBatches::requirements(batch.max_input_bytes, items.size(), options.framing, options.coding));
  batch.inputs = machine.items(items, needed.input_alignment);
  batch.input_bytes = machine.sizes(items);
  batch.item_count = items.size();
  batch.temp_bytes = needed.temp_bytes;
  if (needed.temp_bytes != 0) batch.temp = machine.allocate("temp", needed.temp_bytes, needed.temp_alignment);
  batch.outputs = machine.rooms(items, room_bytes);
  batch.output_bytes = machine.sizes_at();
  batch.statuses = machine.statuses_at();
  batch.framing = options.framing;
  batch.coding = options.coding;
  return machine.run(library::launches_of(batch, options.few_pages));
}

BatchRan decompress_batch(const std::vector<BatchCase>& items, const BatchOptions& options) {
  Machine machine(options);
  std::vector<uint64_t> capacities;
  for (const BatchCase& item : items) capacities.push_back(item.capacity);
  library::BatchDecompression batch;
  batch.inputs = machine.items(items, 1);
  batch.input_bytes = machine.sizes(items);
  batch.output_capacities = machine.upload("output_capacities", capacities);
  batch.item_count = items.size();
  batch.outputs = machine.rooms(items, capacities);
  batch.output_bytes = machine.sizes_at();
  batch.framing = options.framing;
  batch.statuses = machine.statuses_at();
  const uint64_t largest = capacities.empty() ? 0 : *std::ranges::max_element(capacities);
  const auto needed =
      value_of(library::DeviceBatches::requirements(largest, items.size(), options.framing, options.coding));
  batch.temp_bytes = options.temp_bytes.value_or(needed.decompress_temp_bytes);
  if (batch.temp_bytes != 0) batch.temp = machine.allocate("temp", batch.temp_bytes, needed.temp_alignment);
  batch.coding = options.coding;
  return machine.run(library::launches_of(batch, options.typed_blocks));
}

BatchRan sizes_of_batch(const std::vector<BatchCase>& items, const BatchOptions& options) {
  Machine machine(options);
  library::BatchSizes batch;
  batch.inputs = machine.items(items, 1);
  batch.input_bytes = machine.sizes(items);
  batch.item_count = items.size();
  machine.rooms(items, std::vector<uint64_t>(items.size()));
  batch.output_bytes = machine.sizes_at();
  batch.statuses = machine.statuses_at();
  batch.framing = options.framing;
  return machine.run(library::launches_of(batch));
}

}  // namespace ptxkit::testing
