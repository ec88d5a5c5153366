// Prints from the tree, and copies from the source what the tree keeps only as text (debug sections, pragmas, `.loc`
// lines, branch tables, texture initialisers). Numbers have one form each: integers are signed decimals, floats are bit
// patterns, addresses are base + bytes.
#include "analyzer/ptx/print.hpp"

#include <iterator>

#include <fmt/format.h>

namespace ptxkit::ptx {
namespace {

std::string_view linkage_text(Linkage linkage) {
  switch (linkage) {
    case Linkage::visible:
      return ".visible ";
    case Linkage::external:
      return ".extern ";
    case Linkage::weak:
      return ".weak ";
    case Linkage::common:
      return ".common ";
    case Linkage::internal:
      break;
  }
  return "";
}

class Printer {
 public:
  explicit Printer(const Module& module) : module_(module) {}

  std::string module_text() {
    bool header_done = false;
    for (const Item& item : module_.items) {
      switch (item.kind) {
        case Item::Kind::header:
          if (!header_done) header();
          header_done = true;
          break;
        case Item::Kind::function:
          function_item(item);
          break;
        case Item::Kind::variable:
          variables(item, "");
          break;
        case Item::Kind::alias: {
          const Alias& alias = module_.aliases[item.id];
          if (alias.alias != kNone && alias.aliasee != kNone) {
            write(".alias {}, {};\n", module_.functions[alias.alias].name, module_.functions[alias.aliasee].name);
          }
          break;
        }
        default:
          copy(item, "");
          break;
      }
    }
    return std::move(out_);
  }

  std::string operand_text(const Function& function, const Operand& operand_to_print) {
    operand(function, operand_to_print);
    return std::move(out_);
  }

  std::string instruction_text(const Function& function, const Instruction& instruction_to_print) {
    instruction(function, instruction_to_print);
    return std::move(out_);
  }

 private:
  template <class... Args>
  void write(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  std::string_view source(const Item& item) const { return module_.text.substr(item.at, item.end - item.at); }
  void copy(const Item& item, std::string_view indent) { write("{}{}\n", indent, source(item)); }

  void header() {
    write(".version {}.{}\n.target {}", module_.version_major, module_.version_minor, module_.target);
    for (const std::string_view option : module_.target_options) write(", {}", option);
    write("\n");
    if (module_.has_address_size) write(".address_size {}\n", module_.address_size);
  }

  void type_prefix(const Variable& variable) {
    write(".{}", text(variable.space));
    if (variable.managed_or_unified != 0) {
      out_ += " .attribute(";
      if ((variable.managed_or_unified & 1) != 0) out_ += ".managed";
      if (variable.managed_or_unified == 3) out_ += ", ";
      if ((variable.managed_or_unified & 2) != 0) {
        write(".unified({}, {})", variable.unified_id[0], variable.unified_id[1]);
      }
      out_ += ")";
    }
    // Registers have no alignment, and opaque types accept none.
    if (variable.space != Space::reg && kind(variable.type) != TypeKind::opaque) write(" .align {}", variable.align);
    if (variable.vector > 1) write(" .v{}", variable.vector);
    write(" .{}", text(variable.type));
  }

  void dimensions(const Variable& variable) {
    for (size_t i = 0; i < variable.dimensions.size(); ++i) {
      if (i == 0 && variable.is_unsized) {
        out_ += "[]";
      } else {
        write("[{}]", variable.dimensions[i]);
      }
    }
  }

  void element(const Variable& variable, const Initializer& value) {
    if (value.kind == Initializer::Kind::bits) {
      switch (variable.type) {
        case Type::f32:
          write("0f{:08X}", value.value);
          break;
        case Type::f64:
          write("0d{:016X}", value.value);
          break;
        default:
          write("{}", value.value);
          break;
      }
      return;
    }
    const std::string_view name = value.id == kNone                           ? std::string_view("?")
                                  : value.kind == Initializer::Kind::variable ? module_.variables[value.id].name
                                                                              : module_.functions[value.id].name;
    const bool masked = value.mask_shift != 0xff;
    if (masked) write("0x{:X}(", uint64_t{0xff} << (value.mask_shift * 8));
    if (value.generic) {
      write("generic({})", name);
    } else {
      out_ += name;
    }
    if (value.value != 0) write("+{}", static_cast<int64_t>(value.value));
    if (masked) out_ += ")";
  }

  // The elements in row-major order, with braces for each dimension.
  void elements(const Variable& variable, size_t depth, size_t first) {
    const auto& all = variable.initializer;
    const size_t levels = variable.dimensions.size() + (variable.vector > 1 ? 1 : 0);
    if (depth == levels) {
      if (first < all.size()) element(variable, all[first]);
      return;
    }
    size_t stride = 1;
    for (size_t i = depth + 1; i < levels; ++i) {
      stride *= i < variable.dimensions.size() ? variable.dimensions[i] : variable.vector;
    }
    const size_t count = depth < variable.dimensions.size() ? variable.dimensions[depth] : variable.vector;
    out_ += "{";
    for (size_t i = 0; i < count && first + i * stride < all.size(); ++i) {
      if (i != 0) out_ += ", ";
      elements(variable, depth + 1, first + i * stride);
    }
    out_ += "}";
  }

  void variables(const Item& item, std::string_view indent) {
    for (uint32_t i = 0; i < item.count; ++i) {
      const Variable& variable = module_.variables[item.id + i];
      // Opaque types keep their initialiser as text; a name that a later definition completed is at another place now.
      const bool elsewhere = variable.declared_at < item.at || variable.declared_at >= item.end;
      if (kind(variable.type) == TypeKind::opaque || elsewhere) return copy(item, indent);
    }
    for (uint32_t i = 0; i < item.count; ++i) {
      const Variable& variable = module_.variables[item.id + i];
      write("{}{}", indent, linkage_text(variable.linkage));
      type_prefix(variable);
      write(" {}", variable.name);
      dimensions(variable);
      if (!variable.initializer.empty()) {
        out_ += " = ";
        elements(variable, 0, 0);
      }
      out_ += ";\n";
    }
  }

  void parameters(const std::vector<VariableId>& list) {
    out_ += "(";
    for (size_t i = 0; i < list.size(); ++i) {
      const Variable& variable = module_.variables[list[i]];
      out_ += i == 0 ? "" : ", ";
      // `.ptr` comes between the type and the name, and a parameter's alignment before the type.
      type_prefix(variable);
      if (variable.is_pointer) {
        out_ += " .ptr";
        if (variable.pointer_space != Space::generic) write(" .{}", text(variable.pointer_space));
        if (variable.pointer_align != 0) write(" .align {}", variable.pointer_align);
      }
      write(" {}", variable.name.empty() ? "_" : variable.name);
      dimensions(variable);
    }
    out_ += ")";
  }

  void dimension_directive(std::string_view word, const uint32_t (&numbers)[3]) {
    if (numbers[0] != 0) write("{} {}, {}, {}\n", word, numbers[0], numbers[1], numbers[2]);
  }

  void number_directive(std::string_view word, uint32_t number) {
    if (number != 0) write("{} {}\n", word, number);
  }

  void function_item(const Item& item) {
    const Function& function = module_.functions[item.id];
    const bool is_definition = function.has_body && item.at == function.at;
    write("{}{} ", linkage_text(function.linkage), function.is_entry ? ".entry" : ".func");
    if (!function.results.empty()) {
      parameters(function.results);
      out_ += " ";
    }
    out_ += function.name;
    if (!function.parameters.empty() || function.is_entry) {
      out_ += " ";
      parameters(function.parameters);
    }
    out_ += "\n";
    const FunctionAttributes& a = function.attributes;
    dimension_directive(".maxntid", a.max_ntid);
    dimension_directive(".reqntid", a.req_ntid);
    dimension_directive(".reqnctapercluster", a.req_cluster);
    number_directive(".minnctapersm", a.min_ctas_per_sm);
    number_directive(".maxnctapersm", a.max_ctas_per_sm);
    number_directive(".maxnreg", a.max_registers);
    number_directive(".maxclusterrank", a.max_cluster_rank);
    if (a.explicit_cluster) out_ += ".explicitcluster\n";
    if (a.blocks_are_clusters) out_ += ".blocksareclusters\n";
    if (a.no_return) out_ += ".noreturn\n";
    for (const std::string_view other : a.others) write("{}\n", other);
    if (!is_definition) {
      out_ += ";\n";
      return;
    }
    body(function);
    out_ += "\n";
  }

  void body(const Function& function) {
    unsigned depth = 0;
    for (const Item& item : function.items) {
      if (item.kind == Item::Kind::close_brace && depth > 0) --depth;
      const std::string indent(depth, '\t');
      switch (item.kind) {
        case Item::Kind::open_brace:
          write("{}{{\n", indent);
          ++depth;
          break;
        case Item::Kind::close_brace:
          write("{}}}\n", indent);
          break;
        case Item::Kind::instruction:
          for (uint32_t i = 0; i < item.count; ++i) {
            out_ += indent;
            instruction(function, function.instructions[item.id + i]);
            out_ += "\n";
          }
          break;
        case Item::Kind::label:
          write("{}:\n", function.labels[item.id].name);
          break;
        case Item::Kind::registers:
          registers(function, item, indent);
          break;
        case Item::Kind::variable:
          variables(item, indent);
          break;
        default:
          copy(item, indent);
          break;
      }
    }
  }

  void registers(const Function& function, const Item& item, std::string_view indent) {
    for (uint32_t i = 0; i < item.count; ++i) {
      const RegisterDeclaration& declaration = function.register_declarations[item.id + i];
      write("{}.reg ", indent);
      if (declaration.vector > 1) write(".v{} ", declaration.vector);
      write(".{} {}", text(declaration.type), declaration.base);
      if (declaration.count != kNone) write("<{}>", declaration.count);
      out_ += ";\n";
    }
  }

  void instruction(const Function& function, const Instruction& instruction_to_print) {
    if (instruction_to_print.guard) {
      write("@{}", instruction_to_print.guard.negated ? "!" : "");
      register_name(function, instruction_to_print.guard.reg);
      out_ += " ";
    }
    for (const char c : instruction_to_print.spelling) {
      if (c != ' ' && c != '\t') out_ += c;
    }
    bool first = true;
    for (const Operand& one : function.operands(instruction_to_print)) {
      out_ += first ? " " : ", ";
      operand(function, one);
      first = false;
    }
    out_ += ";";
  }

  void register_name(const Function& function, RegId id) {
    const Register& reg = function.registers[id];
    out_ += reg.base;
    if (reg.index != kNone) write("{}", reg.index);
  }

  void offset(uint64_t value, bool written = false) {
    if (value != 0 || written) write("+{}", static_cast<int64_t>(value));
  }

  void list(const Function& function, const Operand& parent) {
    bool first = true;
    for (const Operand& child : function.children(parent)) {
      if (!first) out_ += ", ";
      operand(function, child);
      first = false;
    }
  }

  void component(const Operand& one) {
    if (one.component == 's') {
      out_ += ".";
      for (uint64_t packed = one.value; packed != 0; packed >>= 8) out_ += static_cast<char>(packed & 0xff);
    } else if (one.component != 0 && one.component != 'u') {
      write(".{}", static_cast<char>(one.component));
    }
  }

  // An unresolved name, as in the source.
  std::string_view source_name(Offset at) const {
    const std::string_view rest = module_.text.substr(at);
    const size_t end = rest.find_first_of(" \t\r\n,;()[]{}|+.");
    return rest.substr(0, end);
  }

  void operand(const Function& function, const Operand& one) {
    if (one.negated) out_ += one.kind == OperandKind::reg && function.registers[one.id].type != Type::pred ? "-" : "!";
    switch (one.kind) {
      case OperandKind::none:
        break;
      case OperandKind::reg:
        register_name(function, one.id);
        component(one);
        if (one.component == 0) offset(one.value);
        break;
      case OperandKind::integer:
        write("{}", static_cast<int64_t>(one.value));
        break;
      case OperandKind::float32:
        write("0f{:08X}", one.value);
        break;
      case OperandKind::float64:
        write("0d{:016X}", one.value);
        break;
      case OperandKind::symbol:
        out_ += module_.variables[one.id].name;
        offset(one.value);
        break;
      case OperandKind::function:
        out_ += module_.functions[one.id].name;
        break;
      case OperandKind::label:
        out_ += one.id != kNone ? function.labels[one.id].name : source_name(one.at);
        break;
      case OperandKind::prototype:
        out_ += function.tables[one.id].name;
        break;
      case OperandKind::special:
        out_ += text(static_cast<SpecialRegister>(one.id));
        component(one);
        break;
      case OperandKind::address:
        out_ += "[";
        switch (one.base) {
          case AddressBase::reg:
            register_name(function, one.id);
            component(one);
            offset(one.value, one.has_offset);
            break;
          case AddressBase::variable:
            out_ += module_.variables[one.id].name;
            offset(one.value, one.has_offset);
            break;
          case AddressBase::immediate:
            write("{}", static_cast<int64_t>(one.value));
            break;
          case AddressBase::none:
            out_ += source_name(one.at + 1);
            break;
        }
        if (one.child_count != 0) out_ += ", ";
        list(function, one);
        out_ += one.component == 'u' ? "].unified" : "]";
        break;
      case OperandKind::vector:
        out_ += "{";
        list(function, one);
        out_ += "}";
        break;
      case OperandKind::pair: {
        const auto halves = function.children(one);
        operand(function, halves[0]);
        out_ += "|";
        operand(function, halves[1]);
        break;
      }
      case OperandKind::sink:
        out_ += "_";
        break;
      case OperandKind::parameters:
        out_ += "(";
        list(function, one);
        out_ += ")";
        break;
      case OperandKind::text:
        out_ += source_name(one.at);
        break;
    }
  }

  const Module& module_;
  std::string out_;
};

}  // namespace

std::string print(const Module& module) { return Printer(module).module_text(); }

std::string print(const Module& module, const Function& function, const Instruction& instruction) {
  return Printer(module).instruction_text(function, instruction);
}

}  // namespace ptxkit::ptx
