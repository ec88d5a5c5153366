// The marker map as JSON, with which crash-analyze decodes the ids of a debug buffer.
#include <bit>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/instrument/instrument.hpp"
#include "support/json.hpp"
#include "support/printable.hpp"
#include "support/result.hpp"

namespace ptxkit::instrument {
namespace {

constexpr std::string_view kSchema = "ptxkit-markers-1";

}  // namespace

std::string to_json(const MarkerMap& map) {
  OrderedJson markers = OrderedJson::array();
  for (const Marker& marker : map.markers) {
    markers.push_back({{"id", marker.id},
                       {"kind", text(marker.kind)},
                       {"function", marker.function},
                       {"line", marker.line},
                       {"column", marker.column},
                       {"ptx", marker.ptx},
                       {"source", marker.source},
                       {"next_lines", marker.next_lines}});
  }
  const OrderedJson out{{"schema", kSchema},
                        {"file", map.file},
                        {"xxh128", map.xxh128},
                        {"records", map.records},
                        {"buffer_bytes", map.buffer_bytes()},
                        {"markers", std::move(markers)}};
  return printable_json(out.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
}

Result<MarkerMap> parse_marker_map(std::string_view json, const std::string& path) {
  const auto refuse = [&](const std::string& what) {
    return fail(what, path, "give the file that ptx-debug instrument --markers wrote");
  };
  try {
    const auto root = Json::parse(json);
    if (root.at("schema") != kSchema) return refuse(fmt::format("expected schema {}", kSchema));
    MarkerMap map;
    map.file = root.at("file");
    map.xxh128 = root.at("xxh128");
    map.records = root.at("records");
    if (!std::has_single_bit(map.records)) return refuse("field 'records': expected a power of two");
    for (const auto& each : root.at("markers")) {
      Marker marker;
      marker.id = each.at("id");
      if (marker.id != map.markers.size() + 1) return refuse("field 'id': expected 1, 2, 3 and so on");
      const std::string kind = each.at("kind");
      size_t index = 0;
      while (index < kMarkerKindCount && text(static_cast<MarkerKind>(index)) != kind) ++index;
      if (index == kMarkerKindCount) return refuse(fmt::format("field 'kind': unknown kind '{}'", kind));
      marker.kind = static_cast<MarkerKind>(index);
      marker.function = each.at("function");
      marker.line = each.at("line");
      marker.column = each.at("column");
      marker.ptx = each.at("ptx");
      marker.source = each.at("source");
      marker.next_lines = each.at("next_lines").get<std::vector<uint32_t>>();
      map.markers.push_back(std::move(marker));
    }
    return map;
  } catch (const Json::parse_error&) {
    return refuse("no marker map: the text is no JSON");
  } catch (const Json::exception& error) {
    const std::string_view what = error.what();  // "[json.exception.type_error.302] type must be string, but is null"
    return refuse(fmt::format("no marker map: {}", what.substr(what.find("] ") + 2)));
  }
}

}  // namespace ptxkit::instrument
