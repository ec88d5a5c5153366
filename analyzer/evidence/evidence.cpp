// Reads evidence files and decides hypotheses from their rows; see evidence.hpp.
#include "analyzer/evidence/evidence.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <ranges>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "support/check.hpp"
#include "support/embedded.hpp"
#include "support/file.hpp"
#include "support/json.hpp"
#include "support/json_depth.hpp"
#include "support/plural.hpp"

namespace ptxkit::rules {

extern const EmbeddedFile evidence_files[];
extern const size_t evidence_files_count;

namespace {

constexpr uint32_t kMisalignedAddress = 716;  // CUDA_ERROR_MISALIGNED_ADDRESS

constexpr ProbeInfo kProbes[] = {
    {"store_constant", "", false},
    {"ld_shared_u32_unused", "", false},
    {"ld_shared_u32_hashed_unused", "", false},
    {"ld_shared_u32_then_load_from_computed_address_unused", "", false},
    {"f082_ld_shared_u32_then_store_constant_to_computed_address", "F082", true},
    {"f081_ld_shared_u32_then_st_global", "F081", true},
    {"f081_ld_shared_u32_then_st_shared", "F081", true},
    {"f081_ld_shared_u32_membar_cta_st_global", "F081", true},
    {"f081_ld_shared_u32_shfl_sync_st_global", "F081", true},
    {"f081_four_ld_shared_u8_assembled_st_global", "F081", false},
    {"f021_cvta_shared_generic_ld", "F021", true},
    {"f021_cvta_shared_generic_st", "F021", true},
    {"atom_shared_exch_b32", "", true},
    {"ld_global_u32_unused", "", false},
    {"ld_global_u32_then_st_global", "", true},
    {"st_global_u32_at_output_cursor", "", true},
    {"loop_hash_table_u8_loads_store_to_loaded_address", "", false},
    {"same_loop_one_u32_load_step_3", "", true},
};

std::optional<uint32_t> number(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// "evidence/h200-r580.json" -> "h200-r580"
std::string stem(std::string_view path) {
  if (const size_t slash = path.rfind('/'); slash != path.npos) path.remove_prefix(slash + 1);
  if (const size_t dot = path.rfind('.'); dot != path.npos && dot > 0) path = path.substr(0, dot);
  return std::string(path);
}

// Reads the fields in order and stops at the first error.
class Reader {
 public:
  Reader(const Json& root, const std::string& path) : root_(root), path_(path) {}

  Result<EvidenceFile> read() {
    if (!root_.is_object()) return refuse("expected an object, found " + std::string(root_.type_name()));
    for (const auto& [key, value] : root_.items()) {
      static constexpr std::string_view kKnown[] = {"device", "target_family",    "driver", "date",
                                                    "method", "result_by_offset", "note",   "probes"};
      if (std::ranges::find(kKnown, key) == std::end(kKnown)) {
        return refuse(
            fmt::format("unknown field '{}', expected device, target_family, driver, date, method, "
                        "result_by_offset, note or probes",
                        key));
      }
    }
    EvidenceFile file;
    file.name = stem(path_);
    std::string family;
    for (auto [key, to] : {std::pair{"device", &file.device},
                           {"target_family", &family},
                           {"driver", &file.driver},
                           {"date", &file.date},
                           {"method", &file.method}}) {
      if (auto text = string_field(key)) {
        *to = std::move(*text);
      } else {
        return tl::unexpected(text.error());
      }
    }
    const auto family_sm = family.starts_with("sm_") ? number(std::string_view(family).substr(3)) : std::nullopt;
    if (!family_sm || *family_sm == 0) {
      return refuse(fmt::format("'target_family': expected sm_ and a number, found '{}'", family));
    }
    file.family_sm = *family_sm;
    if (auto done = read_offsets(file); !done) return tl::unexpected(done.error());
    if (auto done = read_probes(file); !done) return tl::unexpected(done.error());
    return file;
  }

 private:
  tl::unexpected<Error> refuse(std::string what) const {
    return fail("evidence: " + std::move(what), path_, "`docs/ptx-debug.md` describes the format");
  }

  Result<std::string> string_field(const char* key) const {
    const auto found = root_.find(key);
    if (found == root_.end()) return refuse(fmt::format("'{}' is missing", key));
    if (!found->is_string()) return refuse(fmt::format("'{}': expected a string, found {}", key, found->type_name()));
    return found->get<std::string>();
  }

  Result<void> read_offsets(EvidenceFile& file) const {
    const auto found = root_.find("result_by_offset");
    if (found == root_.end()) return refuse("'result_by_offset' is missing");
    if (!found->is_array()) {
      return refuse(fmt::format("'result_by_offset': expected an array, found {}", found->type_name()));
    }
    for (const Json& entry : *found) {
      const auto offset = entry.is_string() ? number(entry.get_ref<const std::string&>()) : std::nullopt;
      if (!offset) {
        return refuse(fmt::format("'result_by_offset': expected byte offsets as strings, found {}", entry.dump()));
      }
      file.offsets_bytes.push_back(*offset);
    }
    if (file.offsets_bytes.empty() || file.offsets_bytes.front() != 0) {
      return refuse("'result_by_offset': expected \"0\" as the first offset");
    }
    return {};
  }

  Result<void> read_probes(EvidenceFile& file) const {
    const auto found = root_.find("probes");
    if (found == root_.end()) return refuse("'probes' is missing");
    if (!found->is_object()) return refuse(fmt::format("'probes': expected an object, found {}", found->type_name()));
    for (const auto& [name, row] : found->items()) {
      if (!find_probe(name)) {
        return refuse(fmt::format("unknown probe '{}'; this program knows the probes of kernels/probes/", name));
      }
      if (!row.is_array() || row.size() != file.offsets_bytes.size()) {
        return refuse(fmt::format("probe '{}': expected an array of {} results, one per offset, found {}", name,
                                  file.offsets_bytes.size(), row.dump()));
      }
      ProbeResult result{name, {}};
      for (const Json& status : row) {
        if (!status.is_number_unsigned() || status.get<uint64_t>() > UINT32_MAX) {
          return refuse(fmt::format("probe '{}': expected CUresult numbers, found {}", name, status.dump()));
        }
        result.status.push_back(status.get<uint32_t>());
      }
      file.probes.push_back(std::move(result));
    }
    return {};
  }

  const Json& root_;
  const std::string& path_;
};

enum class EvidenceVerdict : uint8_t { nothing, refutes, confirms };

EvidenceVerdict verdict_of(const EvidenceFile& file, std::string_view rule, size_t& probe_count) {
  bool confirms = false, complete = true;
  size_t found_count = 0, misaligned_count = 0;
  for (const ProbeResult& result : file.probes) {
    const ProbeInfo& probe = *find_probe(result.probe);
    if (probe.rule != rule) continue;
    ++found_count;
    for (size_t i = 0; i < result.status.size(); ++i) {
      const bool aligned = !probe.word_access || file.offsets_bytes[i] % 4 == 0;
      if (aligned) {
        confirms |= result.status[i] != 0;
      } else {
        complete &= result.status[i] == kMisalignedAddress;
        ++misaligned_count;
      }
    }
  }
  probe_count = found_count;
  if (confirms) return EvidenceVerdict::confirms;
  const auto expected =
      static_cast<size_t>(std::ranges::count_if(kProbes, [&](const ProbeInfo& probe) { return probe.rule == rule; }));
  const bool refutes = expected > 0 && found_count == expected && misaligned_count > 0 && complete;
  return refutes ? EvidenceVerdict::refutes : EvidenceVerdict::nothing;
}

std::optional<std::string> first_that(const EvidenceSet& set, std::string_view rule, uint32_t target_sm,
                                      EvidenceVerdict wanted) {
  if (target_sm == 0) return std::nullopt;
  for (const EvidenceFile& file : set.files) {
    if (target_sm > file.family_sm) continue;
    size_t probe_count = 0;
    if (verdict_of(file, rule, probe_count) != wanted) continue;
    return fmt::format("{}: {} {}", description(file), plural(probe_count, "probe"),
                       wanted == EvidenceVerdict::refutes
                           ? "ran where aligned, and gave 716 where a word access was misaligned"
                           : "of which one failed although aligned");
  }
  return std::nullopt;
}

}  // namespace

const ProbeInfo* find_probe(std::string_view name) {
  const auto found = std::ranges::find(kProbes, name, &ProbeInfo::name);
  return found == std::end(kProbes) ? nullptr : &*found;
}

std::string description(const EvidenceFile& file) {
  return fmt::format("{}: {} (sm_{}), driver {}, {}", file.name, file.device, file.family_sm, file.driver, file.date);
}

std::optional<std::string> EvidenceSet::refuted_by(std::string_view rule, uint32_t target_sm) const {
  if (confirmed_by(rule, target_sm)) return std::nullopt;
  return first_that(*this, rule, target_sm, EvidenceVerdict::refutes);
}

std::optional<std::string> EvidenceSet::confirmed_by(std::string_view rule, uint32_t target_sm) const {
  return first_that(*this, rule, target_sm, EvidenceVerdict::confirms);
}

Result<EvidenceFile> parse_evidence(std::string_view json, const std::string& path) {
  if (json_depth(json) > kMaxJsonDepth) {
    return fail(fmt::format("evidence: nested in more than {} brackets", kMaxJsonDepth), path,
                "`docs/ptx-debug.md` describes the format");
  }
  try {
    return Reader(Json::parse(json), path).read();
  } catch (const Json::parse_error& error) {
    return fail(fmt::format("evidence: not JSON: byte {}: expected {}", error.byte,
                            json.empty() ? "an object, found an empty file" : "a JSON value or its continuation"),
                path, "`docs/ptx-debug.md` describes the format");
  } catch (const Json::out_of_range&) {
    return fail("evidence: expected numbers up to 1.8e308, found one beyond", path,
                "`docs/ptx-debug.md` describes the format");
  }
}

Result<EvidenceFile> load_evidence(const std::string& path) {
  auto text = read_file(path, kMaxJsonBytes);
  if (!text) return tl::unexpected(text.error());
  return parse_evidence(*text, path);
}

const EvidenceSet& shipped_evidence() {
  static const EvidenceSet set = [] {
    EvidenceSet shipped;
    for (size_t i = 0; i < evidence_files_count; ++i) {
      auto file = parse_evidence(evidence_files[i].content, std::string(evidence_files[i].name));
      PTXKIT_CHECK(file.has_value(), "an evidence file of analyzer/evidence/ is not valid");
      shipped.files.push_back(std::move(*file));
    }
    return shipped;
  }();
  return set;
}

}  // namespace ptxkit::rules
