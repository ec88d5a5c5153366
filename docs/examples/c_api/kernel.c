/* A kernel without a GPU: analysed, then run on the emulator with a buffer that is one element too short. */
#include <ptxkit.h>
#include <stdio.h>
#include <string.h>

static const char kPtx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry fill(.param .u64 out, .param .u32 value)\n"
    "{\n"
    "    .reg .b32 %v, %i; .reg .b64 %b, %o;\n"
    "    ld.param.u64 %b, [out];\n"
    "    cvta.to.global.u64 %b, %b;\n"
    "    ld.param.u32 %v, [value];\n"
    "    mov.u32 %i, %tid.x;\n"
    "    mul.wide.u32 %o, %i, 4;\n"
    "    add.u64 %b, %b, %o;\n"
    "    st.global.u32 [%b], %v;\n"
    "    ret;\n"
    "}\n";

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, ptxkit_last_error());
  return 1;
}

int main(void) {
  unsigned out[31];
  unsigned value = 7;
  ptxkit_argument arguments[2] = {{PTXKIT_ARGUMENT_OUT, 0, out, sizeof out, "out"},
                                  {PTXKIT_ARGUMENT_VALUE, 0, &value, sizeof value, NULL}};
  ptxkit_launch_shape shape;
  ptxkit_module* module;
  char* report;
  int exit_code;
  size_t faults;

  if (ptxkit_analyze(kPtx, strlen(kPtx), "{\"name\": \"fill.ptx\", \"format\": \"text\"}", &report, &exit_code))
    return failed("analyze");
  printf("%s(exit code %d)\n", report, exit_code);
  ptxkit_string_free(report);

  if (ptxkit_module_load(kPtx, strlen(kPtx), "{\"name\": \"fill.ptx\"}", &module)) return failed("load");
  memset(&shape, 0, sizeof shape);
  shape.block[0] = 32;
  if (ptxkit_launch(module, "fill", &shape, arguments, 2, NULL, &report, &faults)) return failed("launch");
  printf("%zu fault\n%s", faults, report);
  ptxkit_string_free(report);
  ptxkit_module_destroy(module);
  return faults == 1 ? 0 : 1; /* the store of thread 31 */
}
