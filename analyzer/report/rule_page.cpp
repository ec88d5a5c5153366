#include "analyzer/report/rule_page.hpp"

#include "support/embedded.hpp"

namespace ptxkit::report {

extern const EmbeddedFile rule_pages[];
extern const size_t rule_pages_count;

std::string_view rule_page(std::string_view id) {
  for (size_t i = 0; i < rule_pages_count; ++i) {
    const EmbeddedFile& page = rule_pages[i];
    if (page.name.substr(0, page.name.rfind('.')) == id) return page.content;
  }
  return {};
}

}  // namespace ptxkit::report
