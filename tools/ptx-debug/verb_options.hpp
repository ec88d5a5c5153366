// Describes the verbs of ptx-debug and their options. verb_options.cpp hides CLI11 from the verbs: its header costs
// several seconds of compile time in each source.
#pragma once

#include <functional>
#include <string>

#include "tools/ptx-debug/option_values.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ptxkit::tools {

// An option or operand of a verb. Each function extends its description and returns the option.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required() const;
  Option type_name(const std::string& shown) const;  // of the value, in --help
  Option check(const ValueCheck& fault_of) const;    // applied to each value
  Option repeated() const;                           // one value each time it is given; all are kept
  Option comma_separated() const;                    // a value may be a list

 private:
  CLI::Option* option_;
};

// A subcommand. Options write into their targets, which must live until the command line has been read.
class Verb {
 public:
  Verb(CLI::App& app, const std::string& name, const std::string& help);

  // T: std::string, a number, std::optional of a number, or std::vector of either.
  template <class T>
  Option option(const std::string& names, T& target, const std::string& help);
  Option flag(const std::string& names, bool& target, const std::string& help);
  // Called after the command line has named the verb and its options are read.
  void callback(std::function<void()> chosen);

  CLI::App& app() const { return *app_; }  // the subcommand itself

 private:
  CLI::App* app_;
};

}  // namespace ptxkit::tools
