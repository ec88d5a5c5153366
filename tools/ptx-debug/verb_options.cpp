// See verb_options.hpp.
#include "tools/ptx-debug/verb_options.hpp"

#include <optional>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace ptxkit::tools {

Option Option::required() const { return Option(option_->required()); }
Option Option::type_name(const std::string& shown) const { return Option(option_->type_name(shown)); }
Option Option::check(const ValueCheck& fault_of) const { return Option(option_->check(fault_of)); }
Option Option::repeated() const { return Option(option_->allow_extra_args(false)->take_all()); }
Option Option::comma_separated() const { return Option(option_->delimiter(',')); }

Verb::Verb(CLI::App& app, const std::string& name, const std::string& help) : app_(app.add_subcommand(name, help)) {}

template <class T>
Option Verb::option(const std::string& names, T& target, const std::string& help) {
  return Option(app_->add_option(names, target, help));
}
template Option Verb::option(const std::string&, std::string&, const std::string&);
template Option Verb::option(const std::string&, double&, const std::string&);
template Option Verb::option(const std::string&, uint32_t&, const std::string&);
template Option Verb::option(const std::string&, uint64_t&, const std::string&);
template Option Verb::option(const std::string&, std::optional<double>&, const std::string&);
template Option Verb::option(const std::string&, std::vector<std::string>&, const std::string&);
template Option Verb::option(const std::string&, std::vector<uint64_t>&, const std::string&);
template Option Verb::option(const std::string&, std::optional<int>&, const std::string&);
template Option Verb::option(const std::string&, std::optional<uint64_t>&, const std::string&);
template Option Verb::option(const std::string&, std::vector<int>&, const std::string&);

Option Verb::flag(const std::string& names, bool& target, const std::string& help) {
  return Option(app_->add_flag(names, target, help));
}

void Verb::callback(std::function<void()> chosen) { app_->callback(std::move(chosen)); }

}  // namespace ptxkit::tools
