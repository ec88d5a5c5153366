#include "analyzer/rules/engine/launch_file.hpp"

#include <bit>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/flow/launch.hpp"
#include "support/file.hpp"
#include "support/hex.hpp"
#include "support/json.hpp"
#include "support/json_depth.hpp"

namespace ptxkit::rules {

namespace {

constexpr uint64_t kLargestAlignBytes = uint64_t{1} << 31;

tl::unexpected<Error> given_twice(const std::string& what, const std::string& path) {
  return fail(fmt::format("launch file: {}: expected once", what), path, "`docs/analyzer.md` describes launch files");
}

// Reads one file. `where` holds the path to the current field for error messages.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  Result<void> read(const Json& root, LaunchSet& into) const {
    if (!root.is_object()) return refuse("the file", "an object", root);
    const auto entries = root.find("entries");
    if (entries == root.end() || !entries->is_object())
      return refuse("'entries'", "an object of entries by name", entries == root.end() ? Json{} : *entries);
    for (const auto& [name, entry] : entries->items()) {
      if (!entry.is_object()) return refuse(fmt::format("'{}'", name), "an object", entry);
      flow::LaunchFacts facts;
      for (auto [key, to] : {std::pair{"block", facts.block}, {"grid", facts.grid}})
        if (const auto found = entry.find(key); found != entry.end())
          if (auto done = dimensions(fmt::format("'{}' of '{}'", key, name), *found, to); !done) return done;
      if (const uint64_t threads = uint64_t{facts.block[0]} * facts.block[1] * facts.block[2]; threads > 1024)
        return fail(fmt::format("launch file: 'block' of '{}': expected at most 1024 threads, found {}", name, threads),
                    path_, std::string(kTodo));
      if (const auto found = entry.find("dynamic_shared_bytes"); found != entry.end()) {
        if (!found->is_number_unsigned() || *found > UINT32_MAX)
          return refuse(fmt::format("'dynamic_shared_bytes' of '{}'", name), "a number of bytes below 2^32", *found);
        facts.dynamic_shared_bytes = found->get<uint64_t>();
      }
      if (const auto found = entry.find("parameters"); found != entry.end()) {
        if (!found->is_array()) return refuse(fmt::format("'parameters' of '{}'", name), "an array", *found);
        for (const Json& each : *found)
          if (auto done = parameter(name, each, facts); !done) return done;
      }
      if (const auto found = entry.find("variables"); found != entry.end()) {
        if (!found->is_array()) return refuse(fmt::format("'variables' of '{}'", name), "an array", *found);
        for (const Json& each : *found)
          if (auto done = variable(name, each, facts); !done) return done;
      }
      into.insert_or_assign(name, std::move(facts));
    }
    return {};
  }

 private:
  static constexpr std::string_view kTodo = "`docs/analyzer.md` describes launch files";

  tl::unexpected<Error> refuse(const std::string& what, std::string_view expected, const Json& found) const {
    const std::string text = found.is_null() ? "nothing" : found.dump().substr(0, 40);
    return fail(fmt::format("launch file: {}: expected {}, found {}", what, expected, text), path_, std::string(kTodo));
  }

  Result<void> dimensions(const std::string& what, const Json& array, uint32_t* to) const {
    if (!array.is_array() || array.empty() || array.size() > 3) return refuse(what, "one to three numbers", array);
    for (size_t i = 0; i < 3; ++i) {
      if (i < array.size() && (!array[i].is_number_unsigned() || array[i] == 0 || array[i] > 0x7fffffffu))
        return refuse(what, "numbers from 1 on", array);
      to[i] = i < array.size() ? array[i].get<uint32_t>() : 1;
    }
    return {};
  }

  Result<void> parameter(const std::string& entry, const Json& each, flow::LaunchFacts& facts) const {
    if (!each.is_object() || !each.contains("name") || !each["name"].is_string())
      return refuse(fmt::format("a parameter of '{}'", entry), "an object with a 'name'", each);
    const std::string name = each["name"];
    flow::ParameterFacts known;
    auto number = [&](const char* key) -> Result<std::optional<uint64_t>> {
      const auto found = each.find(key);
      if (found == each.end()) return std::optional<uint64_t>{};
      if (!found->is_number_unsigned())
        return refuse(fmt::format("'{}' of parameter '{}'", key, name), "a number from 0 on", *found);
      return std::optional(found->get<uint64_t>());
    };
    const auto align = number("align"), bytes = number("bytes"), value = number("value"), low = number("min"),
               high = number("max");
    for (const auto* field : {&align, &bytes, &value, &low, &high})
      if (!*field) return tl::unexpected(field->error());
    if (*align && (!std::has_single_bit(**align) || **align > kLargestAlignBytes))
      return refuse(fmt::format("'align' of parameter '{}'", name),
                    fmt::format("a power of two up to {}", kLargestAlignBytes), each["align"]);
    if (const auto access = each.find("access"); access != each.end()) {
      if (*access != "read_only" && *access != "read" && *access != "read_write")
        return refuse(fmt::format("'access' of parameter '{}'", name), "read_only, read or read_write", *access);
      known.is_read_only = *access == "read_only";
    }
    known.align_bytes = static_cast<uint32_t>(align->value_or(0));
    known.size_bytes = bytes->value_or(0);
    known.low = *value ? *value : *low ? *low : *high ? std::optional<uint64_t>(0) : std::nullopt;
    known.high = *value ? *value : *high;
    if (known.low && !known.high) known.low.reset();  // the analyses do not use a lower bound alone
    if (known.low && *known.low > *known.high)
      return refuse(fmt::format("'max' of parameter '{}'", name), "at least 'min'", each["max"]);
    const std::string what = fmt::format("parameter '{}'", name);
    if (auto done = content(what, each, known.content); !done) return done;
    if (auto done = object(what, each, known.object); !done) return done;
    if (auto done = members(what, each, known.members); !done) return done;
    if (!facts.parameters.try_emplace(name, std::move(known)).second)
      return given_twice(fmt::format("{} of '{}'", what, entry), path_);
    return {};
  }

  Result<void> variable(const std::string& entry, const Json& each, flow::LaunchFacts& facts) const {
    if (!each.is_object() || !each.contains("name") || !each["name"].is_string())
      return refuse(fmt::format("a variable of '{}'", entry), "an object with a 'name'", each);
    flow::VariableFacts known;
    const std::string name = each["name"], what = fmt::format("variable '{}'", name);
    if (auto done = content(what, each, known.content); !done) return done;
    if (auto done = object(what, each, known.object); !done) return done;
    if (known.content.empty() && known.object.empty()) return refuse(what, "'hex' or 'object'", each);
    if (!facts.variables.try_emplace(name, std::move(known)).second)
      return given_twice(fmt::format("{} of '{}'", what, entry), path_);
    return {};
  }

  // 'hex' of a parameter, a member or a variable.
  Result<void> content(const std::string& whose, const Json& each, std::vector<std::byte>& into) const {
    const auto found = each.find("hex");
    if (found == each.end()) return {};
    auto bytes = found->is_string() ? bytes_of_hex(found->get<std::string>()) : std::nullopt;
    if (!bytes || bytes->empty())
      return refuse(fmt::format("'hex' of {}", whose), "pairs of hexadecimal digits", *found);
    into = std::move(*bytes);
    return {};
  }

  // 'object' of a parameter, a member or a variable. Its words are parsed where the object is created.
  Result<void> object(const std::string& whose, const Json& each, std::string& into) const {
    const auto found = each.find("object");
    if (found == each.end()) return {};
    if (!found->is_string() || found->get<std::string>().empty())
      return refuse(fmt::format("'object' of {}", whose), "tex:LIST, surf:LIST, sampler:LIST or tensor:LIST", *found);
    into = *found;
    return {};
  }

  Result<void> members(const std::string& whose, const Json& each, std::vector<flow::MemberFacts>& into) const {
    const auto found = each.find("members");
    if (found == each.end()) return {};
    const std::string what = fmt::format("'members' of {}", whose);
    if (!found->is_array()) return refuse(what, "an array", *found);
    for (const Json& member : *found) {
      const auto is_number = [&](const char* key, bool is_needed) {
        const auto field = member.find(key);
        return field == member.end() ? !is_needed : field->is_number_unsigned();
      };
      if (!member.is_object() || !is_number("offset", true) || !is_number("bytes", false))
        return refuse(what, "objects with numbers 'offset' and 'bytes'", member);
      flow::MemberFacts known{member["offset"], member.value("bytes", uint64_t{0}), {}, {}};
      if (auto done = content(whose, member, known.content); !done) return done;
      if (auto done = object(whose, member, known.object); !done) return done;
      into.push_back(std::move(known));
    }
    return {};
  }

  const std::string& path_;
};

}  // namespace

Result<void> parse_launch_file(std::string_view json, const std::string& path, LaunchSet& into) {
  if (json_depth(json) > kMaxJsonDepth)
    return fail(fmt::format("launch file: nested in more than {} brackets", kMaxJsonDepth), path,
                "`docs/analyzer.md` describes launch files");
  std::vector<std::set<std::string>> open;  // the names of the objects that enclose the current place
  std::optional<std::string> twice;
  const auto note_name = [&](int, Json::parse_event_t event, const Json& value) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && !open.back().insert(value.get<std::string>()).second)
      twice = value.get<std::string>();
    return true;
  };
  const Json root = Json::parse(json, note_name, false);
  if (root.is_discarded())
    return fail("launch file: the text is no JSON", path, "`docs/analyzer.md` describes launch files");
  if (twice) return given_twice(fmt::format("'{}' in one object", *twice), path);
  return Reader(path).read(root, into);
}

Result<void> load_launch_file(const std::string& path, LaunchSet& into) {
  auto text = read_file(path, kMaxJsonBytes);
  if (!text) return tl::unexpected(text.error());
  return parse_launch_file(*text, path, into);
}

}  // namespace ptxkit::rules
