#include "analyzer/prove/solver.hpp"

#include <cstdlib>
#include <string_view>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>

namespace ptxkit::prove {
namespace {

constexpr const char* kLibrary = "libz3.so.4";
constexpr const char* kTodo = "install Debian's libz3-4, or use --no-prove";

using Handle = void*;  // Z3's types are pointers to structures that only Z3 knows

}  // namespace

// z3_api.h. Enumerations are ints.
struct Solver::Api {
  Handle (*mk_config)();
  void (*del_config)(Handle config);
  Handle (*mk_context)(Handle config);
  void (*del_context)(Handle context);
  void (*set_error_handler)(Handle context, void (*handler)(Handle, int));
  int (*get_error_code)(Handle context);
  Handle (*mk_string_symbol)(Handle context, const char* name);
  Handle (*mk_params)(Handle context);
  void (*params_inc_ref)(Handle context, Handle parameters);
  void (*params_dec_ref)(Handle context, Handle parameters);
  void (*params_set_uint)(Handle context, Handle parameters, Handle symbol, unsigned value);
  void (*params_set_bool)(Handle context, Handle parameters, Handle symbol, bool value);
  Handle (*mk_solver_for_logic)(Handle context, Handle symbol);
  void (*solver_inc_ref)(Handle context, Handle solver);
  void (*solver_dec_ref)(Handle context, Handle solver);
  void (*solver_set_params)(Handle context, Handle solver, Handle parameters);
  void (*solver_from_string)(Handle context, Handle solver, const char* text);
  int (*solver_check)(Handle context, Handle solver);
  Handle (*solver_get_model)(Handle context, Handle solver);
  Handle (*solver_get_statistics)(Handle context, Handle solver);
  void (*stats_inc_ref)(Handle context, Handle statistics);
  void (*stats_dec_ref)(Handle context, Handle statistics);
  unsigned (*stats_size)(Handle context, Handle statistics);
  const char* (*stats_get_key)(Handle context, Handle statistics, unsigned index);
  unsigned (*stats_get_uint_value)(Handle context, Handle statistics, unsigned index);
  void (*model_inc_ref)(Handle context, Handle model);
  void (*model_dec_ref)(Handle context, Handle model);
  unsigned (*model_get_num_consts)(Handle context, Handle model);
  Handle (*model_get_const_decl)(Handle context, Handle model, unsigned index);
  Handle (*model_get_const_interp)(Handle context, Handle model, Handle declaration);
  Handle (*get_decl_name)(Handle context, Handle declaration);
  const char* (*get_symbol_string)(Handle context, Handle symbol);
  bool (*get_numeral_uint64)(Handle context, Handle term, uint64_t* value);
  const char* (*get_full_version)();
};

Result<std::shared_ptr<const Solver>> Solver::open() {
  const char* const chosen = ::secure_getenv("PTXKIT_LIBZ3");
  const char* const library = chosen != nullptr && *chosen != '\0' ? chosen : kLibrary;
  // Never closed: it registers functions that run when the program ends.
  void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = ::dlerror();
    return fail(fmt::format("no Z3: {}", reason != nullptr ? reason : library), {}, kTodo);
  }
  const auto api = std::make_shared<Api>();
  std::vector<const char*> missing;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, name));
    if (function == nullptr) missing.push_back(name);
  };
#define FIND(name) find(api->name, "Z3_" #name);
  FIND(mk_config)
  FIND(del_config)
  FIND(mk_context)
  FIND(del_context)
  FIND(set_error_handler)
  FIND(get_error_code)
  FIND(mk_string_symbol)
  FIND(mk_params)
  FIND(params_inc_ref)
  FIND(params_dec_ref)
  FIND(params_set_uint)
  FIND(params_set_bool)
  FIND(mk_solver_for_logic)
  FIND(solver_inc_ref)
  FIND(solver_dec_ref)
  FIND(solver_set_params)
  FIND(solver_from_string)
  FIND(solver_check)
  FIND(solver_get_model)
  FIND(solver_get_statistics)
  FIND(stats_inc_ref)
  FIND(stats_dec_ref)
  FIND(stats_size)
  FIND(stats_get_key)
  FIND(stats_get_uint_value)
  FIND(model_inc_ref)
  FIND(model_dec_ref)
  FIND(model_get_num_consts)
  FIND(model_get_const_decl)
  FIND(model_get_const_interp)
  FIND(get_decl_name)
  FIND(get_symbol_string)
  FIND(get_numeral_uint64)
  FIND(get_full_version)
#undef FIND
  if (!missing.empty())
    return fail(fmt::format("the library lacks functions that are needed: {}", fmt::join(missing, ", ")), library,
                kTodo);
  std::shared_ptr<Solver> solver(new Solver);
  solver->version_ = api->get_full_version();
  solver->api_ = api;
  return solver;
}

Reply Solver::ask(const std::string& question, uint32_t limit) const {
  constexpr int kFalse = -1, kTrue = 1;
  const Api& z3 = *api_;
  const Handle config = z3.mk_config();
  const Handle context = z3.mk_context(config);
  z3.del_config(config);
  z3.set_error_handler(context, nullptr);  // Z3's own one ends the program
  const auto symbol = [&](const char* name) { return z3.mk_string_symbol(context, name); };
  const Handle solver = z3.mk_solver_for_logic(context, symbol("QF_UFBV"));
  z3.solver_inc_ref(context, solver);
  const Handle parameters = z3.mk_params(context);
  z3.params_inc_ref(context, parameters);
  z3.params_set_uint(context, parameters, symbol("rlimit"), limit);
  z3.params_set_uint(context, parameters, symbol("random_seed"), 0);
  z3.params_set_bool(context, parameters, symbol("ctrl_c"), false);  // no handler for SIGINT
  z3.solver_set_params(context, solver, parameters);
  z3.solver_from_string(context, solver, question.c_str());
  Reply reply;
  if (z3.get_error_code(context) == 0) {
    const int found = z3.solver_check(context, solver);
    if (found == kFalse) reply.kind = Reply::Kind::unsatisfiable;
    if (found == kTrue) reply.kind = Reply::Kind::satisfiable;
    const Handle statistics = z3.solver_get_statistics(context, solver);
    z3.stats_inc_ref(context, statistics);
    for (unsigned i = 0; i < z3.stats_size(context, statistics); ++i)
      if (std::string_view(z3.stats_get_key(context, statistics, i)) == "rlimit count")
        reply.steps = z3.stats_get_uint_value(context, statistics, i);
    z3.stats_dec_ref(context, statistics);
  }
  const Handle model = reply.kind == Reply::Kind::satisfiable ? z3.solver_get_model(context, solver) : nullptr;
  if (model != nullptr) {
    z3.model_inc_ref(context, model);
    for (unsigned i = 0; i < z3.model_get_num_consts(context, model); ++i) {
      const Handle declaration = z3.model_get_const_decl(context, model, i);
      const Handle value = z3.model_get_const_interp(context, model, declaration);
      uint64_t bits = 0;
      if (value != nullptr && z3.get_numeral_uint64(context, value, &bits))
        reply.model[z3.get_symbol_string(context, z3.get_decl_name(context, declaration))] = bits;
    }
    z3.model_dec_ref(context, model);
  }
  z3.params_dec_ref(context, parameters);
  z3.solver_dec_ref(context, solver);
  z3.del_context(context);
  return reply;
}

}  // namespace ptxkit::prove
