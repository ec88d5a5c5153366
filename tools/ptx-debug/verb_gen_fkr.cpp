// `ptx-debug gen-fkr FILE -o test.cpp`: a GoogleTest that holds a PTX file to what it is and does now. Exit codes: 0
// written, 10 the text does not parse, 11 a file cannot be read or written, 64 wrong usage.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <span>
#include <sstream>

#include <fmt/format.h>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/analyze/identity.hpp"
#include "analyzer/analyze/place.hpp"
#include "analyzer/evidence/evidence.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/facts.hpp"
#include "runtime/launch/launch_file.hpp"
#include "runtime/launch/launch_file_use.hpp"
#include "runtime/launch/sized_launch.hpp"
#include "support/file.hpp"
#include "support/hex.hpp"
#include "support/plural.hpp"
#include "support/printable.hpp"
#include "tools/ptx-debug/inputs.hpp"
#include "tools/ptx-debug/option_values.hpp"
#include "tools/ptx-debug/outputs.hpp"
#include "tools/ptx-debug/verb.hpp"
#include "tools/ptx-debug/verb_options.hpp"

namespace ptxkit::tools {
namespace {

constexpr unsigned kVariants = kFirstSearchVariant + 16;
constexpr uint64_t kMaxSteps = 2'000'000;
constexpr uint64_t kMaxGrownBytes = 4 << 20;
constexpr uint64_t kOtherSchedule = 1;

struct GenerateWords {
  std::string file, out = "-";
  std::vector<std::string> launch;
  SandboxOption sandbox;
};

int fail_with(const Error& error, rules::Status status) {
  complain(error.message());
  return rules::exit_code(status);
}

// Escapes of three octal digits end by themselves, whatever follows.
std::string string_literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c >= ' ' && c < 0x7f ? std::string(1, c) : fmt::format("\\{:03o}", static_cast<unsigned char>(c));
  }
  return out + "\"";
}

std::string hash_of(std::span<const std::byte> bytes) {
  return report::xxh128_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// What a launch leaves behind.
struct Outputs {
  std::vector<std::string> buffers, variables;  // hashes
  std::vector<std::string> lines;               // printed, sorted: their order is the schedule's
  bool operator==(const Outputs&) const = default;
};

// Module-scope memory that kernels may write.
std::vector<std::string_view> writable_variables(const ptx::Module& module) {
  std::vector<std::string_view> names;
  for (const ptx::Variable& variable : module.variables)
    if (variable.function == ptx::kNone && variable.space == ptx::Space::global && variable.size_bytes > 0 &&
        ptx::byte_width(variable.type) > 0 && ptx::kind(variable.type) != ptx::TypeKind::opaque &&
        variable.linkage != ptx::Linkage::external)
      names.push_back(variable.name);
  return names;
}

// The outputs; why the launch is no golden one otherwise.
Result<Outputs> outputs_of(const ptx::Module& module, const ptx::Function& kernel, const GeneratedLaunch& launch,
                           uint64_t seed) {
  emulator::Device device;
  emulator::LaunchOptions options;
  options.checks = emulator::kCheckStandard | emulator::kCheckUninitialisedStores;  // what is in no buffer is no result
  options.max_steps = kMaxSteps;
  options.schedule_seed = seed;
  const auto emulated = emulate(device, module, kernel, launch, options);
  if (!emulated) return tl::unexpected(emulated.error());
  if (!emulated->outcome.ok()) return fail(emulated->outcome.faults.front().message);
  Outputs outputs;
  std::vector<std::byte> bytes;
  for (const GeneratedBuffer* buffer : all_buffers(launch)) {
    const emulator::Address address = emulated->addresses[outputs.buffers.size()];
    bytes.resize(buffer->bytes.size());
    if (!bytes.empty()) {
      if (auto read = device.read(address, bytes); !read) return tl::unexpected(read.error());
    }
    outputs.buffers.push_back(hash_of(bytes));
  }
  for (const std::string_view name : writable_variables(module)) {
    const auto variable = emulated->program.global(name);
    if (!variable) return tl::unexpected(variable.error());
    bytes.resize(variable->size_bytes);
    if (auto read = emulated->program.read(name, bytes); !read) return tl::unexpected(read.error());
    outputs.variables.push_back(hash_of(bytes));
  }
  std::istringstream printed(emulated->outcome.output);
  for (std::string line; std::getline(printed, line);) outputs.lines.push_back(line);
  std::ranges::sort(outputs.lines);
  return outputs;
}

std::string scalar_literal(const GeneratedParameter& scalar) {
  uint64_t value = 0;
  std::memcpy(&value, scalar.value.data(), std::min(scalar.value.size(), sizeof value));
  return fmt::format("uint{}_t{{{:#x}}}", 8 * scalar.value.size(), value);
}

// The text of a golden test as it grows.
struct GoldenText {
  std::string uploads, arguments, checks;
};

// The call that makes what a buffer holds.
std::string spelled_content(const GeneratedBuffer& buffer) {
  if (!buffer.hex.empty()) return fmt::format("ptxkit::repeated_bytes(\"{}\", {})", buffer.hex, buffer.bytes.size());
  if (!buffer.offsets) return fmt::format("ptxkit::generated_bytes({}, {})", buffer.bytes.size(), buffer.seed);
  static constexpr std::string_view kNames[] = {"anywhere", "each_once", "rising"};
  return fmt::format("ptxkit::generated_offsets({}, ptxkit::Offsets::{}, {}, {})", buffer.bytes.size(),
                     kNames[static_cast<size_t>(*buffer.offsets)], buffer.word_bytes, buffer.seed);
}

// Makes a buffer or object called `name` in the test, and looks at it after the launch.
void add_buffer(std::string_view of, const GeneratedBuffer& buffer, std::string_view name, std::string_view hash,
                GoldenText& text) {
  if (buffer.object.empty())
    text.uploads +=
        fmt::format("  const auto {} = this->upload({}, {});\n", name, string_literal(of), spelled_content(buffer));
  else
    text.uploads += fmt::format("  const auto {} = this->object({}, {}, {});\n", name, string_literal(of),
                                string_literal(buffer.object), spelled_content(buffer));
  if (!buffer.bytes.empty())
    text.checks += fmt::format("  EXPECT_EQ(hash(this->download({})), {}) << {};\n", name, string_literal(hash),
                               string_literal(of));
}

// A parameter with buffers: the pointer, handle or map itself, or bytes in which such lie.
void add_parameter(const GeneratedParameter& parameter, size_t number, uint32_t address_bytes,
                   std::span<const std::string> hashes, GoldenText& text) {
  std::string pieces;
  for (size_t i = 0; i < parameter.buffers.size(); ++i) {
    const GeneratedBuffer& buffer = parameter.buffers[i];
    const std::string name =
        parameter.is_aggregate ? fmt::format("buffer{}_{}", number, i) : fmt::format("buffer{}", number);
    add_buffer(parameter.name, buffer, name, hashes[i], text);
    pieces +=
        fmt::format("{}{{{}, {}}}", i ? ", " : "", buffer.offset,
                    buffer.object.empty() ? fmt::format("ptxkit::address_value({}.address, {})", name, address_bytes)
                                          : name + ".value");
  }
  if (!parameter.is_aggregate && parameter.value.size() == sizeof(uint64_t)) {
    text.arguments += fmt::format(", buffer{}", number);
  } else {
    text.arguments += fmt::format(", argument(\"{}\", {{{}}})", hex_of(parameter.value), pieces);
  }
}

void add_variable(const GeneratedParameter& variable, size_t number, std::span<const std::string> hashes,
                  GoldenText& text) {
  if (variable.buffers.empty()) {
    text.uploads += fmt::format("  this->write_variable({}, *ptxkit::bytes_of_hex(\"{}\"));\n",
                                string_literal(variable.name), hex_of(variable.value));
    return;
  }
  const std::string name = fmt::format("object{}", number);
  add_buffer(variable.name, variable.buffers.front(), name, hashes.front(), text);
  text.uploads += fmt::format("  this->bind({}, {});\n", string_literal(variable.name), name);
}

// Variables of the module, and, which only the emulator shows, what the kernel prints.
std::string module_checks(const ptx::Module& module, const Outputs& outputs) {
  std::string checks;
  const auto names = writable_variables(module);
  for (size_t i = 0; i < names.size(); ++i)
    checks += fmt::format("  EXPECT_EQ(hash(this->read_variable({0})), {1}) << {0};\n", string_literal(names[i]),
                          string_literal(outputs.variables[i]));
  if (std::ranges::find(module.functions, "vprintf", &ptx::Function::name) != module.functions.end()) {
    const std::string text = fmt::format("{}", fmt::join(outputs.lines, "\n"));
    checks += fmt::format(
        "  if constexpr (std::is_same_v<TypeParam, ptxkit::harness::EmulatorBackend>) {{\n    "
        "EXPECT_EQ(hash_of_lines(this->backend().last.output), {});\n  }}\n",
        string_literal(hash_of(std::as_bytes(std::span(text)))));
  }
  return checks;
}

constexpr std::string_view kSkipWithoutSamplers =
    "  if constexpr (!TypeParam::kHasSamplers)\n    GTEST_SKIP() << TypeParam::kName << "
    "\": a driver makes no samplers apart from textures\";\n";

// The body of a test of one launch; empty, with `why`, where it shows nothing that can be held to.
std::string golden_test(const ptx::Module& module, const ptx::Function& kernel, const flow::LaunchFacts* facts,
                        unsigned variant, std::string& why) {
  const auto made = generate_sized_launch(module, kernel, facts, variant, kMaxGrownBytes);
  if (!made) return why = made.error().message(), "";
  const GeneratedLaunch& launch = *made;
  const auto outputs = outputs_of(module, kernel, launch, 0);
  if (!outputs) return why = outputs.error().message(), "";
  const auto again = outputs_of(module, kernel, launch, kOtherSchedule);
  if (!again || *again != *outputs) return why = "another schedule gives another result", "";
  const auto axes = [](const emulator::Dim3& dim) { return fmt::format("{{{}, {}, {}}}", dim.x, dim.y, dim.z); };
  GoldenText text;
  std::span<const std::string> hashes(outputs->buffers);
  for (size_t i = 0; i < launch.parameters.size(); ++i) {
    const GeneratedParameter& parameter = launch.parameters[i];
    const size_t count = parameter.buffers.size();
    if (count > 0 || parameter.is_aggregate)
      add_parameter(parameter, i, launch.address_bytes, hashes.first(count), text);
    else
      text.arguments += ", " + scalar_literal(parameter);
    hashes = hashes.subspan(count);
  }
  for (size_t i = 0; i < launch.variables.size(); ++i) {
    add_variable(launch.variables[i], i, hashes, text);
    hashes = hashes.subspan(launch.variables[i].buffers.size());
  }
  const bool has_sampler = std::ranges::any_of(
      all_buffers(launch), [](const GeneratedBuffer* buffer) { return buffer->object.starts_with("sampler:"); });
  const emulator::LaunchShape& shape = launch.shape;
  return fmt::format(
      "{{\n{}  limit_steps(this->backend());\n  this->load_file(ptx_path());\n{}  this->launch({}, {{.grid = {}, "
      ".block "
      "= "
      "{}, .dynamic_shared_bytes = {}}}{});\n{}{}}}\n\n",
      has_sampler ? kSkipWithoutSamplers : "", text.uploads, string_literal(kernel.name), axes(shape.grid),
      axes(shape.block), shape.dynamic_shared_bytes, text.arguments, text.checks, module_checks(module, *outputs));
}

std::string static_test(const emulator::EntryInfo& entry, size_t index) {
  const auto three = [](const std::array<uint32_t, 3>& values) { return fmt::format("{}", fmt::join(values, ", ")); };
  std::string out = fmt::format(
      "TEST(Static{}, EntryIsUnchanged) {{\n  ptxkit::emulator::Device device;\n  const auto program = "
      "ptxkit::emulator::Program::load_text(device, ptx_text(), ptx_path());\n  ASSERT_TRUE(program) << "
      "program.error().message();\n  const auto entry = program->entry({});\n  ASSERT_TRUE(entry) << "
      "entry.error().message();\n",
      index, string_literal(entry.name));
  out += fmt::format("  EXPECT_EQ(entry->static_shared_bytes, {}u);\n  EXPECT_EQ(entry->local_bytes, {}u);\n",
                     entry.static_shared_bytes, entry.local_bytes);
  out += fmt::format("  EXPECT_EQ(entry->required_block, (std::array<uint32_t, 3>{{{}}}));\n",
                     three(entry.required_block));
  out += fmt::format("  ASSERT_EQ(entry->parameters.size(), {}u);\n", entry.parameters.size());
  for (size_t i = 0; i < entry.parameters.size(); ++i) {
    out += fmt::format(
        "  EXPECT_EQ(entry->parameters[{0}].name, {1});\n  EXPECT_EQ(entry->parameters[{0}].size_bytes, "
        "{2}u);\n",
        i, string_literal(entry.parameters[i].name), entry.parameters[i].size_bytes);
  }
  return out + "}\n\n";
}

// What the test includes of the installed package.
constexpr std::string_view kHeaders[] = {"analyzer/evidence/evidence.hpp",     "analyzer/analyze/analysis.hpp",
                                         "analyzer/analyze/identity.hpp",      "fkr_tests/harness/harness.hpp",
                                         "runtime/launch/generated_bytes.hpp", "support/hex.hpp"};

constexpr std::string_view kHelpers = R"(std::string ptx_path() {
  const char* other = std::getenv("FKR_PTX");
  return other != nullptr ? other : kPtxPath;
}
std::string ptx_text() { return ptxkit::read_file(ptx_path()).value_or(""); }
std::string hash(std::span<const std::byte> bytes) {
  return ptxkit::report::xxh128_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}
// Of what threads printed, in whatever order.
[[maybe_unused]] std::string hash_of_lines(const std::string& printed) {
  std::vector<std::string> lines;
  std::istringstream stream(printed);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  std::string sorted;
  for (const std::string& line : lines) sorted += (&line == lines.data() ? "" : "\n") + line;
  return hash(std::as_bytes(std::span(sorted)));
}
// More than any of these launches takes: a kernel that was changed may not end.
template <class Backend>
void limit_steps(Backend& backend) {
  if constexpr (std::is_same_v<Backend, ptxkit::harness::EmulatorBackend>) backend.options.max_steps = kMaxSteps;
}
// The bytes of a parameter with addresses, handles and tensor maps in it.
struct Piece {
  size_t offset;
  std::vector<std::byte> bytes;
};
[[maybe_unused]] ptxkit::emulator::Argument argument(std::string_view hex, std::initializer_list<Piece> pieces) {
  ptxkit::emulator::Argument argument{*ptxkit::bytes_of_hex(hex)};
  for (const auto& [offset, bytes] : pieces)
    for (size_t i = 0; i < bytes.size(); ++i) argument.bytes.at(offset + i) = bytes[i];
  return argument;
}

)";

// What each launch file says of a kernel; a null pointer where none does.
std::vector<const flow::LaunchFacts*> facts_of(const std::vector<rules::LaunchSet>& launches, std::string_view kernel) {
  std::vector<const flow::LaunchFacts*> facts;
  for (const rules::LaunchSet& each : launches)
    if (const auto found = each.find(kernel); found != each.end()) facts.push_back(&found->second);
  if (facts.empty()) facts.push_back(nullptr);
  return facts;
}

// The first instruction that takes what a launch without launch file does not have: "line 12 (tex.2d.v4.f32.f32) takes
// a texture, ...".
std::optional<std::string> use_of_object(const ptx::Module& module, const ptx::Function& kernel) {
  using ptx::Op;
  static constexpr Op kOfTextures[] = {Op::tex, Op::tld4, Op::txq};
  static constexpr Op kOfSurfaces[] = {Op::suld, Op::sust, Op::sured, Op::suq};
  for (const ptx::Function& function : module.functions) {
    if (&function != &kernel && function.is_entry) continue;
    for (const ptx::Instruction& each : function.instructions) {
      const auto [what, kind] =
          std::ranges::find(kOfTextures, each.op) != std::end(kOfTextures)   ? std::pair{"texture", "tex"}
          : std::ranges::find(kOfSurfaces, each.op) != std::end(kOfSurfaces) ? std::pair{"surface", "surf"}
          : ptx::facts_of(function, each).asynchronous.is_tensor             ? std::pair{"tensor map", "tensor"}
                                                                             : std::pair{"", ""};
      if (*what == '\0') continue;
      return fmt::format(
          "line {} ({}) takes a {}, which a launch file (--launch) gives a parameter or variable: \"object\": "
          "\"{}:LIST\"",
          module.position(each.at).line, each.spelling, what, kind);
    }
  }
  return std::nullopt;
}

int generate(const GenerateWords& words) {
  const Output output{"-o", words.out};
  if (const auto what = fault({&output, 1}, {&words.file, 1})) return usage_error("gen-fkr", *what);
  if (const auto what = fault(words.sandbox)) return usage_error("gen-fkr", *what);
  if (const auto can = check_writable(words.out); !can) return fail_with(can.error(), rules::Status::unreadable);
  if (const auto code = begin_sandbox(words.sandbox, {{words.out}})) return *code;
  auto image = read_one_image(words.file);
  if (!image) return fail_with(image.error(), rules::Status::unreadable);
  if (image->name != words.file)
    return fail_with({"the PTX is inside another file, but the test loads it as text", image->name,
                      "write it to a file with 'ptx-debug print --raw'"},
                     rules::Status::unreadable);
  std::vector<rules::LaunchSet> launches;
  for (const std::string& path : words.launch) {
    if (const auto read = read_launch_file(path, launches.emplace_back()); !read)
      return fail_with(read.error(), rules::Status::unreadable);
  }
  report::AnalysisOptions options;
  options.rules.evidence = &rules::shipped_evidence();
  const report::FileAnalysis analysis = report::analyze(std::move(image->text), words.file, options);
  if (!analysis.parsed.diagnostics.empty()) {
    print(report::rendered(analysis.parsed));
    return rules::exit_code(rules::Status::unparsable);
  }
  const ptx::Module& module = analysis.parsed.module;
  for (const rules::LaunchSet& each : launches) complain_of(launch_file_remarks(each, module));
  emulator::Device device;
  const auto program =
      emulator::Program::load(device, std::shared_ptr<const ptx::Module>(std::shared_ptr<void>(), &module));
  if (!program) return fail_with(program.error(), rules::Status::unparsable);

  const std::string path = words.file == "-" ? "kernel.ptx" : std::filesystem::absolute(words.file).string();
  std::string out = fmt::format(
      "// Written by ptx-debug gen-fkr from {} (XXH128 {}): checks its entries, its findings, and what it\n// computes "
      "from generated inputs. FKR_PTX names another file to test.\n",
      printable(std::filesystem::path(words.file).filename().string()), report::xxh128_hex(module.text));
  out +=
      "#include <algorithm>\n#include <array>\n#include <cstdlib>\n#include <cstring>\n#include <span>\n#include "
      "<sstream>\n\n";
  for (const std::string_view header : kHeaders) out += fmt::format("#include \"{}\"\n", header);
  out += fmt::format("\nnamespace {{\n\nconstexpr const char* kPtxPath = {};\nconstexpr uint64_t kMaxSteps = {};\n\n{}",
                     string_literal(path), kMaxSteps, kHelpers);
  out += fmt::format(
      "TEST(Static, FindingsAreUnchanged) {{\n  ptxkit::report::AnalysisOptions options;\n  options.rules.evidence "
      "= "
      "&ptxkit::rules::shipped_evidence();\n  const auto analysis = ptxkit::report::analyze(ptx_text(), ptx_path(), "
      "options);\n  ASSERT_TRUE(analysis.score);\n  EXPECT_EQ(analysis.critical_count(), {}u);\n  "
      "EXPECT_GE(analysis.score->percent(), {:.0f});\n}}\n\n",
      analysis.critical_count(), analysis.score ? std::max(analysis.score->percent() - 0.5, 0.0) : 0.0);
  size_t index = 0, golden_count = 0;
  for (const ptx::Function& function : module.functions) {
    if (!function.is_entry || !function.has_body) continue;
    const auto entry = program->entry(function.name);
    if (!entry) return fail_with(entry.error(), rules::Status::unparsable);
    out += fmt::format("// {}\n\n", function.name) + static_test(*entry, index);
    std::string tests, why;
    std::set<std::string> bodies;  // variants of a kernel without scalars may be the same
    const auto all_facts = facts_of(launches, function.name);
    for (size_t i = 0; i < all_facts.size(); ++i) {
      for (unsigned variant = 0; variant < kVariants; ++variant) {
        const std::string body = golden_test(module, function, all_facts[i], variant, why);
        if (body.empty() || !bodies.insert(body).second) continue;
        ++golden_count;
        tests += fmt::format("TYPED_TEST(Golden{}, Launch{}Variant{}) {}", index, i, variant, body);
      }
    }
    if (tests.empty()) {
      const auto object = all_facts.front() == nullptr ? use_of_object(module, function) : std::nullopt;
      complain(fmt::format("{}: no golden outputs for {}: {}", words.file, function.name,
                           object ? *object : why + "; describe the launch in a launch file (--launch)"));
    } else {
      out += fmt::format(
          "template <class Backend>\nclass Golden{0} : public ptxkit::harness::KernelTest<Backend> {{}};\n"
          "TYPED_TEST_SUITE(Golden{0}, ptxkit::harness::Backends);\n\n",
          index);
      out += tests;
    }
    ++index;
  }
  out += "}  // namespace\n";
  if (const auto written = write_file(words.out, out); !written)
    return fail_with(written.error(), rules::Status::unreadable);
  fmt::print(stderr, "{}: {}, {}\n", printable_path(words.file), plural(index, "kernel"),
             plural(golden_count, "golden launch", "golden launches"));
  return 0;
}

}  // namespace

void add_gen_fkr(CLI::App& app, Action& action) {
  Verb verb(app, "gen-fkr", "write a GoogleTest that fails if the entries, findings or results of FILE change");
  const auto words = std::make_shared<GenerateWords>();
  verb.option("FILE", words->file, "PTX file; - is standard input").required();
  verb.option("-o,--output", words->out, "where to write the test; standard output by default")
      .type_name("OUT")
      .check(file_name());
  verb.option("--launch", words->launch,
              "a launch file: block, grid, buffers and scalars of each kernel; again for further launches")
      .type_name("F")
      .repeated();
  add_sandbox(verb, words->sandbox);
  verb.callback([words, &action] { action = [words] { return generate(*words); }; });
}

}  // namespace ptxkit::tools
