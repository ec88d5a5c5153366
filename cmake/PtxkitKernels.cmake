# Kernels in the DSL -> PTX -> verdicts -> a library without LLVM. Part of the installed package; this project's own
# kernels are built by it too.
#
#   ptxkit_add_kernels(TARGET SOURCES files... TARGETS sm_75|sm_80|sm_90...
#                      [VARIANTS release|checked|debug...] [LAUNCH files...])
#
# adds the library TARGET with an image of each kernel that SOURCES define with PTXKIT_KERNEL, for each target and
# variant (release where none is named). `#include "TARGET.hpp"` declares TARGET::kernel_images(),
# TARGET::find_kernel_image() and TARGET::find_kernel_variant(). The build runs `ptx-debug analyze --falsify` on the PTX
# and fails if a critical finding is left or a score is below 90. LAUNCH: launch files, which say what the host promises
# of each kernel's launches (ptx-debug analyze --launch). PTX and launch files of the kernels lie in TARGET/ptx below
# the build folder.
#
#   ptxkit_embed_kernels(PROGRAM NAMESPACE FOLDER SOURCE TARGETS ... VARIANTS ... [LAUNCH files...])
#
# is the part behind the program: SOURCE is the C++ source that PROGRAM, a target with the verbs of
# builder/kernel_program.hpp, writes from the PTX in FOLDER and the verdicts on it.

set(PTXKIT_KERNELS_FOLDER ${CMAKE_CURRENT_LIST_DIR})

function(ptxkit_embed_kernels program namespace folder source)
  cmake_parse_arguments(PARSE_ARGV 4 arg "NO_PROVE" "" "TARGETS;VARIANTS;LAUNCH")
  foreach(list TARGETS VARIANTS)
    list(REMOVE_DUPLICATES arg_${list})
    list(SORT arg_${list})
    string(REPLACE ";" "," ${list} "${arg_${list}}")
  endforeach()
  list(TRANSFORM arg_LAUNCH PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ REGEX "^[^/]")
  string(REPLACE ";" "|" launch "${arg_LAUNCH}")  # a list would not survive the command line
  set(judge ${PTXKIT_KERNELS_FOLDER}/PtxkitJudge.cmake)
  set(verdicts ${folder}/verdicts.json)
  add_custom_command(OUTPUT ${folder}/images.stamp
    COMMAND ${program} emit ${folder} ${TARGETS} ${VARIANTS}
    COMMAND ${CMAKE_COMMAND} -E touch ${folder}/images.stamp
    DEPENDS ${program} COMMENT "${program}: PTX of the kernels" VERBATIM)
  add_custom_command(OUTPUT ${verdicts}
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:ptxkit::ptx-debug> -DFOLDER=${folder} -DREPORT=${verdicts}
      -DLAUNCH=${launch} -DSOURCES=${CMAKE_SOURCE_DIR} -DNO_PROVE=${arg_NO_PROVE} -P ${judge}
    DEPENDS ptxkit::ptx-debug ${folder}/images.stamp ${judge} ${arg_LAUNCH}
    COMMENT "${program}: verdicts on the PTX" VERBATIM)
  add_custom_command(OUTPUT ${source}
    COMMAND ${program} embed ${folder} ${verdicts} ${namespace} ${source}
    DEPENDS ${program} ${verdicts} COMMENT "${program}: images of the kernels" VERBATIM)
endfunction()

function(ptxkit_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;TARGETS;VARIANTS;LAUNCH")
  set(call "ptxkit_add_kernels(${target} ...)")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${call}: unknown argument ${arg_UNPARSED_ARGUMENTS}; expected SOURCES, TARGETS, VARIANTS, LAUNCH")
  endif()
  if(NOT target MATCHES "^[A-Za-z][A-Za-z0-9_]*$")
    message(FATAL_ERROR "${call}: the target's name becomes a namespace; use letters, digits and underscores")
  endif()
  if(NOT arg_SOURCES OR NOT arg_TARGETS)
    message(FATAL_ERROR "${call}: SOURCES and TARGETS are required")
  endif()
  if(NOT arg_VARIANTS)
    set(arg_VARIANTS release)
  endif()
  foreach(word IN LISTS arg_TARGETS)
    if(NOT word MATCHES "^sm_(75|80|90)$")
      message(FATAL_ERROR "${call}: unknown target ${word}; the DSL emits PTX for sm_75, sm_80 and sm_90")
    endif()
  endforeach()
  foreach(word IN LISTS arg_VARIANTS)
    if(NOT word MATCHES "^(release|checked|debug)$")
      message(FATAL_ERROR "${call}: unknown variant ${word}; there are release, checked and debug")
    endif()
  endforeach()
  if(NOT TARGET ptxkit::builder)
    message(FATAL_ERROR "${call}: needs find_package(ptxkit COMPONENTS builder)")
  endif()

  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target})
  file(CONFIGURE OUTPUT ${folder}/main.cpp CONTENT [[// Written by ptxkit_add_kernels.
#include "builder/kernel_program.hpp"
#include "builder/registry.hpp"

int main(int argc, char** argv) { return ptxkit::dsl::run_kernel_program(argc, argv, ptxkit::dsl::registered_kernels); }
]])
  configure_file(${PTXKIT_KERNELS_FOLDER}/kernel_images.hpp.in ${folder}/include/${target}.hpp @ONLY)
  set(program ${target}_compiler)
  add_executable(${program} ${arg_SOURCES} ${folder}/main.cpp)
  target_link_libraries(${program} PRIVATE ptxkit::builder)
  # Positions in messages and in the PTX are paths from the project's root, wherever it lies.
  target_compile_options(${program} PRIVATE "-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=")
  ptxkit_embed_kernels(${program} ${target} ${folder}/ptx ${folder}/images.cpp
    TARGETS ${arg_TARGETS} VARIANTS ${arg_VARIANTS} LAUNCH ${arg_LAUNCH})
  add_library(${target} STATIC ${folder}/images.cpp)
  target_include_directories(${target} PUBLIC ${folder}/include)
  target_link_libraries(${target} PUBLIC ptxkit::kernel_images)
endfunction()
