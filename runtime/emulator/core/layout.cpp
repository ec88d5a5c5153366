// Shared memory is laid out as by ptxas and the device, because results depend on its addresses: kernels swizzle by
// them. The checks recognise an overrun into the next object by what the address was derived from
// (address_origins.hpp), not by a gap. In the other spaces the driver or the compiler chooses the place. There, objects
// get exactly the alignment that they declare, with gaps between them: a kernel that works only because two variables
// happen to be adjacent fails here.
#include "runtime/emulator/core/layout.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "analyzer/ptx/names.hpp"
#include "runtime/emulator/core/memory.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/emulator/texture.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Space;

constexpr uint64_t kGap = 16;           // the least gap, and the granule of the small spaces
constexpr uint64_t kDynamicAlign = 16;  // the least alignment of dynamic shared memory, whatever it declares

// Limits of hardware; they also keep a damaged size from exhausting the host.
constexpr uint64_t kMaxFrameBytes = 512 * 1024;
constexpr uint64_t kMaxConstantBytes = 640 * 1024;
constexpr uint64_t kMaxSharedBytes = 1024 * 1024;
constexpr uint64_t kMaxParameterBytes = 32764;
constexpr uint64_t kMaxGlobalBytes = uint64_t{1} << 30;  // of module variables; twice as much with the shadow

uint64_t align_up(uint64_t value, uint64_t align) { return (value + align - 1) & ~(align - 1); }

uint64_t alignment(const ptx::Variable& variable) {
  uint64_t natural = std::max<uint64_t>(1, ptx::byte_width(variable.type) * variable.vector);
  return variable.align ? variable.align : natural;
}

// The next place for an object after `end`: in granules of its own, and aligned to exactly `align`.
uint64_t exact_place(uint64_t end, uint64_t align) {
  uint64_t begin = align_up(align_up(end, kGap) + kGap, align);
  if ((begin & align) == 0) begin += align;
  return begin;
}

class Placer {
 public:
  Placer(Memory& memory, ProgramImage& image, std::string_view only, std::vector<std::string>& errors)
      : memory_(memory), image_(image), module_(*image.module), only_(only), errors_(errors) {
    layout_.offset.resize(module_.variables.size());
    layout_.placed.resize(module_.variables.size());
  }

  Layout run() {
    for (ptx::FunctionId id = 0; id < module_.functions.size(); ++id) place_frame(id);
    for (ptx::VariableId id = 0; id < module_.variables.size(); ++id) {
      if (module_.variables[id].space == Space::global) place_global(id);
      if (module_.variables[id].space == Space::constant) place_constant(id);
    }
    image_.constant_bytes.resize(constant_end_);
    for (ptx::VariableId id = 0; id < module_.variables.size(); ++id) initialise(id);
    for (ptx::FunctionId id = 0; id < module_.functions.size(); ++id)
      if (module_.functions[id].is_entry && image_.functions[id].has_body) add_entry(id);
    place_shared();
    return std::move(layout_);
  }

 private:
  void fail(ptx::Offset at, const std::string& message) { errors_.push_back(located(module_, at, message)); }

  // Whether a variable fits within `limit_bytes` after `used_bytes`; reports an error if not.
  bool fits(const ptx::Variable& variable, uint64_t used_bytes, uint64_t limit_bytes, std::string_view of) {
    if (variable.size_bytes <= limit_bytes && alignment(variable) <= limit_bytes &&
        used_bytes + variable.size_bytes <= limit_bytes)
      return true;
    fail(variable.declared_at, fmt::format("'{}' of {} bytes does not fit: {} has {} bytes", variable.name,
                                           variable.size_bytes, of, limit_bytes));
    return false;
  }

  void set(ptx::VariableId id, uint64_t offset) {
    layout_.offset[id] = offset;
    layout_.placed[id] = true;
  }

  void place_frame(ptx::FunctionId id) {
    const ptx::Function& function = module_.functions[id];
    FunctionImage& out = image_.functions[id];
    out.name = std::string(function.name);
    out.is_entry = function.is_entry;
    out.has_body = function.has_body && (!function.is_entry || only_.empty() || function.name == only_);
    uint64_t end = 0;
    auto place = [&](ptx::VariableId variable_id) {
      const ptx::Variable& variable = module_.variables[variable_id];
      if (!lives_in_frame(module_, variable)) return;
      if (!fits(variable, end, kMaxFrameBytes, "a frame")) return;
      uint64_t begin = exact_place(end, alignment(variable));
      out.local_objects.add({begin, variable.size_bytes, std::string(variable.name), true, false});
      set(variable_id, begin);
      end = begin + variable.size_bytes;
    };
    for (ptx::VariableId each : function.parameters) place(each);
    for (ptx::VariableId each : function.results) place(each);
    for (ptx::VariableId each : function.variables) place(each);
    out.local_bytes = end ? align_up(end, kGap) + kGap : 0;
  }

  void place_global(ptx::VariableId id) {
    const ptx::Variable& variable = module_.variables[id];
    if (variable.linkage == ptx::Linkage::external)
      return fail(variable.declared_at, fmt::format("'{}' is external: give a module that defines it", variable.name));
    if (!fits(variable, global_bytes_, kMaxGlobalBytes, "global memory for module variables")) return;
    global_bytes_ += variable.size_bytes;
    uint64_t size_bytes = std::max<uint64_t>(variable.size_bytes, 1);
    auto address = memory_.allocate(size_bytes, std::string(variable.name), alignment(variable));
    if (!address) return fail(variable.declared_at, address.error().message());
    set(id, *address);
    std::memset(memory_.bytes + (*address - kGlobalBase), 0, size_bytes);
    std::memset(memory_.shadow + (*address - kGlobalBase), 0xff, size_bytes);
    image_.globals[std::string(variable.name)] = {*address, variable.size_bytes};
    if (variable.type == ptx::Type::texref) image_.opaque_variables[*address] = ImageUse::texture;
    if (variable.type == ptx::Type::surfref) image_.opaque_variables[*address] = ImageUse::surface;
    if (variable.type == ptx::Type::samplerref) image_.opaque_variables[*address] = ImageUse::sampler;
  }

  void place_constant(ptx::VariableId id) {
    const ptx::Variable& variable = module_.variables[id];
    if (variable.linkage == ptx::Linkage::external)
      return fail(variable.declared_at, fmt::format("'{}' is external: give a module that defines it", variable.name));
    if (!fits(variable, constant_end_, kMaxConstantBytes, "constant memory")) return;
    uint64_t begin = exact_place(constant_end_, alignment(variable));
    constant_end_ = begin + variable.size_bytes;
    image_.constant_objects.add({begin, variable.size_bytes, std::string(variable.name), true, true});
    set(id, begin);
    image_.globals[std::string(variable.name)] = {kConstWindow + begin, variable.size_bytes};
  }

  // The address that an initialiser holds: in the variable's own space, or generic.
  uint64_t initial_address(const ptx::Initializer& from) {
    if (from.kind == ptx::Initializer::Kind::function) return function_address(from.id) + from.value;
    uint64_t address = layout_.offset[from.id] + from.value;
    if (from.generic && module_.variables[from.id].space == Space::constant)
      address += module_.address_size == 32 ? narrow_window(kConstWindow) : kConstWindow;
    return address;
  }

  void initialise(ptx::VariableId id) {
    const ptx::Variable& variable = module_.variables[id];
    if (variable.initializer.empty() || !layout_.placed[id]) return;
    uint8_t* bytes = nullptr;
    if (variable.space == Space::global)
      bytes = memory_.bytes + (layout_.offset[id] - kGlobalBase);
    else if (variable.space == Space::constant)
      bytes = image_.constant_bytes.data() + layout_.offset[id];
    else
      return;
    const uint64_t width = ptx::byte_width(variable.type);
    uint64_t at = 0;
    for (const ptx::Initializer& each : variable.initializer) {
      if (at + width > variable.size_bytes) break;
      uint64_t value = each.kind == ptx::Initializer::Kind::bits ? each.value : initial_address(each);
      if (each.mask_shift != 0xff) value >>= 8 * each.mask_shift;
      std::memcpy(bytes + at, &value, std::min<uint64_t>(width, 8));
      at += width;
    }
  }

  void add_entry(ptx::FunctionId id) {
    const ptx::Function& function = module_.functions[id];
    EntryImage entry;
    entry.function = id;
    entry.info.name = std::string(function.name);
    uint32_t end = 0;
    for (ptx::VariableId parameter : function.parameters) {
      const ptx::Variable& variable = module_.variables[parameter];
      if (!fits(variable, end, kMaxParameterBytes, "the parameters of a kernel")) return;
      auto align = static_cast<uint32_t>(alignment(variable));
      auto begin = static_cast<uint32_t>(align_up(end, align));
      set(parameter, begin);
      entry.info.parameters.push_back(
          {std::string(variable.name), begin, static_cast<uint32_t>(variable.size_bytes), align});
      end = begin + static_cast<uint32_t>(variable.size_bytes);
    }
    entry.info.parameter_bytes = end;
    for (unsigned i = 0; i < 3; ++i) {
      entry.info.required_block[i] = function.attributes.req_ntid[i];
      entry.info.max_block[i] = function.attributes.max_ntid[i];
      entry.info.required_cluster[i] = function.attributes.req_cluster[i];
    }
    for (ptx::VariableId variable : function.variables)
      if (module_.variables[variable].space == Space::local)
        entry.info.local_bytes += static_cast<uint32_t>(module_.variables[variable].size_bytes);
    image_.entries.push_back(std::move(entry));
  }

  // Collects the functions and shared variables that a function names as operands.
  void names_of(ptx::FunctionId id, std::set<ptx::FunctionId>& functions, std::set<ptx::VariableId>& shared) {
    const ptx::Function& function = module_.functions[id];
    for (const ptx::Operand& operand : function.operand_pool) {
      if (operand.kind == ptx::OperandKind::function) functions.insert(operand.id);
      bool variable = operand.kind == ptx::OperandKind::symbol ||
                      (operand.kind == ptx::OperandKind::address && operand.base == ptx::AddressBase::variable);
      if (variable && module_.variables[operand.id].space == Space::shared) shared.insert(operand.id);
    }
    for (const ptx::Table& table : function.tables)
      if (table.kind == ptx::Table::Kind::call_targets) functions.insert(table.targets.begin(), table.targets.end());
  }

  // The order class of a shared variable that an entry and its callees name. Found by compiling 1,000 modules with
  // ptxas 13.0 and reading the addresses in their machine code; fkr_tests/ptxas/shared_layout.py (FKR: falsification
  // kernel regression) compares.
  unsigned shared_rank(ptx::VariableId id, ptx::FunctionId entry) const {
    const ptx::Variable& variable = module_.variables[id];
    if (variable.function == entry) return 1;
    if (variable.function != ptx::kNone) return 3;
    return variable.linkage == ptx::Linkage::internal ? 2 : 0;
  }

  void place_shared() {
    for (ptx::VariableId id = 0; id < module_.variables.size(); ++id)
      if (module_.variables[id].space == Space::shared) set(id, 0);  // offsets are per entry
    for (EntryImage& entry : image_.entries) place_shared_of(entry);
  }

  // ptxas copies every function for each entry that reaches it, so each entry has its own layout. Variables that a
  // function declares but does not name follow the others.
  void place_shared_of(EntryImage& entry) {
    std::set<ptx::VariableId> named;
    std::set<ptx::FunctionId> reached;
    std::vector<ptx::FunctionId> open{entry.function};
    while (!open.empty()) {
      const ptx::FunctionId id = open.back();
      open.pop_back();
      if (!reached.insert(id).second) continue;
      std::set<ptx::FunctionId> callees;
      names_of(id, callees, named);
      open.insert(open.end(), callees.begin(), callees.end());
    }
    std::vector<ptx::VariableId> order, idle;
    std::set<ptx::VariableId> dynamic;
    for (ptx::VariableId id : named) {
      if (is_dynamic(module_.variables[id]))
        dynamic.insert(id);
      else
        order.push_back(id);
    }
    std::ranges::stable_sort(order, {}, [&](ptx::VariableId id) { return shared_rank(id, entry.function); });
    const auto add_idle = [&](ptx::FunctionId function) {
      for (ptx::VariableId id : module_.functions[function].variables)
        if (module_.variables[id].space == Space::shared && !is_dynamic(module_.variables[id]) && !named.contains(id))
          idle.push_back(id);
    };
    add_idle(entry.function);
    for (ptx::FunctionId each : reached)
      if (each != entry.function) add_idle(each);

    SharedLayout& shared = entry.shared;
    shared.objects.is_packed = true;
    const uint64_t base = reserved_shared_bytes(module_.target_sm);
    uint64_t end = 0;  // counted from `base`; ptxas aligns this offset
    const auto place = [&](ptx::VariableId id) {
      const ptx::Variable& variable = module_.variables[id];
      if (!fits(variable, end, kMaxSharedBytes, "shared memory")) return false;
      const uint64_t begin = align_up(end, alignment(variable));
      end = begin + variable.size_bytes;
      shared.places[id] = static_cast<uint32_t>(base + begin);
      return true;
    };
    for (ptx::VariableId id : order) {
      if (!place(id)) return;
      const ptx::Variable& variable = module_.variables[id];
      shared.objects.add({shared.places[id], variable.size_bytes, std::string(variable.name), true, false,
                          static_cast<uint32_t>(alignment(variable))});
    }
    const uint64_t named_end = end;
    for (ptx::VariableId id : idle)
      if (!place(id)) return;
    entry.info.static_shared_bytes = static_cast<uint32_t>(end);
    // Each dynamic array is aligned up from the start of the previous one, whether or not this entry names it.
    uint64_t at = named_end, most = 1;
    for (ptx::VariableId id = 0; id < module_.variables.size(); ++id) {
      const ptx::Variable& variable = module_.variables[id];
      if (variable.space != Space::shared || !is_dynamic(variable)) continue;
      const uint64_t align = std::max(kDynamicAlign, alignment(variable));
      most = std::max(most, align);
      at = align_up(at, align);
      if (!dynamic.contains(id)) continue;
      const uint64_t last = base + at;
      if (!shared.has_dynamic) shared.dynamic_begin = static_cast<uint32_t>(last);
      shared.has_dynamic = true;
      shared.places[id] = static_cast<uint32_t>(last);
      shared.dynamic_name = std::string(variable.name);
      shared.dynamic_align = std::max(shared.dynamic_align, static_cast<uint32_t>(align));
      shared.dynamic_slack = static_cast<uint32_t>(last - shared.dynamic_begin);
    }
    shared.end = static_cast<uint32_t>(base + align_up(std::max(end, at), most));
  }

  static bool is_dynamic(const ptx::Variable& variable) { return variable.is_unsized || variable.size_bytes == 0; }

  Memory& memory_;
  ProgramImage& image_;
  const ptx::Module& module_;
  const std::string_view only_;
  std::vector<std::string>& errors_;
  Layout layout_;
  uint64_t constant_end_ = 0, global_bytes_ = 0;
};

}  // namespace

uint64_t reserved_shared_bytes(uint32_t sm) { return sm >= 90 ? kReservedSharedBytes : 0; }

bool lives_in_frame(const ptx::Module& module, const ptx::Variable& variable) {
  if (variable.space == Space::local) return true;
  if (variable.space != Space::param || variable.function == ptx::kNone) return false;
  return variable.parameter_index == ptx::kNone || !module.functions[variable.function].is_entry;
}

std::string located(const ptx::Module& module, ptx::Offset at, const std::string& message) {
  ptx::Position position = module.position(at);
  return fmt::format("{}:{}:{}: {}", module.path, position.line, position.column, message);
}

Layout place_variables(Memory& memory, ProgramImage& image, std::string_view only, std::vector<std::string>& errors) {
  return Placer(memory, image, only, errors).run();
}

}  // namespace ptxkit::emulator
