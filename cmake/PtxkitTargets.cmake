# The three kinds of target in this project, and the options that they share:
#   ptxkit_library(NAME sources... [LINK libs...])
#   ptxkit_program(NAME sources... [LINK libs...])      placed in <build>/bin
#   ptxkit_test(NAME sources... [LINK libs...] [LABELS labels...])   GoogleTest, one ctest entry for each case

include(GoogleTest)

add_library(ptxkit_options INTERFACE)
target_compile_features(ptxkit_options INTERFACE cxx_std_20)
target_include_directories(ptxkit_options INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>
  $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/generated> $<INSTALL_INTERFACE:include/ptxkit>)
target_compile_options(ptxkit_options INTERFACE
  "$<BUILD_INTERFACE:-Wall;-Wextra;-Wshadow;-Wconversion;-Wno-sign-conversion>"
  "$<BUILD_INTERFACE:$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>>"
  # std::stable_sort of GCC 12's libstdc++ calls a deprecated function of its own.
  "$<BUILD_INTERFACE:$<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-deprecated-declarations>>")
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  # As on x86-64: the emulator's a * b + c has two roundings, and char is signed.
  target_compile_options(ptxkit_options INTERFACE $<BUILD_INTERFACE:-ffp-contract=off> $<BUILD_INTERFACE:-fsigned-char>)
endif()
if(PTXKIT_SANITIZE)
  target_compile_options(ptxkit_options INTERFACE -fsanitize=${PTXKIT_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(ptxkit_options INTERFACE -fsanitize=${PTXKIT_SANITIZE})
endif()

# Hardening for programs that read hostile input: an overrun that no test found ends the process instead of being
# exploitable. Failed checks call __stack_chk_fail or __chk_fail at run time. Sanitizers have checks of their own and do
# not work together with these.
if(PTXKIT_HARDEN AND NOT PTXKIT_SANITIZE AND NOT PTXKIT_COVERAGE)
  include(CheckPIESupported)
  check_pie_supported(LANGUAGES C CXX)
  target_compile_options(ptxkit_options INTERFACE
    "$<BUILD_INTERFACE:-fstack-protector-strong;-fstack-clash-protection;-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=3>")
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    target_compile_options(ptxkit_options INTERFACE "$<BUILD_INTERFACE:-fcf-protection>")
  endif()
  target_link_options(ptxkit_options INTERFACE "$<BUILD_INTERFACE:LINKER:-z,relro,-z,now,-z,noexecstack>")
endif()

find_package(fmt REQUIRED)
find_package(Threads REQUIRED)
if(PTXKIT_STATIC)
  set(PTXKIT_FMT fmt::fmt-header-only)   # Debian ships no libfmt.a
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  target_link_options(ptxkit_options INTERFACE -static-libstdc++ -static-libgcc)
else()
  set(PTXKIT_FMT fmt::fmt)
endif()

if(PTXKIT_COVERAGE)
  add_link_options(--coverage)
  add_compile_definitions(PTXKIT_COUNTS_LINES)  # see support/sandbox.hpp
endif()

# Counts the executed lines of a target, if the regular expression PTXKIT_COVERAGE matches its folder and name.
function(ptxkit_count_lines name)
  file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  if(PTXKIT_COVERAGE AND "${folder}/${name}" MATCHES "${PTXKIT_COVERAGE}")
    target_compile_options(${name} PRIVATE -O0 --coverage -fprofile-update=atomic -fprofile-abs-path)
  endif()
endfunction()

# ./dev compiles several sources of a target as one (CMAKE_UNITY_BUILD), which halves a build from nothing. A source whose
# file-local names clash with a neighbour's is compiled alone; so is every source in builds with clang and in releases.
function(ptxkit_compile_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# ./dev compiles with -O1 what takes little of a run's time: programs around their libraries, reports, the DSL, tests.
# That takes two thirds of the time of -O2.
option(PTXKIT_QUICK_BUILD "compile with -O1 what takes little of a run's time" OFF)
function(ptxkit_compile_quickly)
  foreach(target ${ARGN})
    if(PTXKIT_QUICK_BUILD)
      target_compile_options(${target} PRIVATE -O1)
    endif()
  endforeach()
endfunction()

function(ptxkit_library name)
  cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC ptxkit_options ${arg_LINK})
  ptxkit_count_lines(${name})
endfunction()

function(ptxkit_program name)
  cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ptxkit_options ${arg_LINK})
  ptxkit_compile_quickly(${name})
endfunction()

function(ptxkit_test name)
  cmake_parse_arguments(arg "WHOLE" "" "LINK;LABELS" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ptxkit_options ${arg_LINK} GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  ptxkit_compile_quickly(${name})
  ptxkit_count_lines(${name})
  if(arg_WHOLE)
    add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES TIMEOUT 1800 SKIP_RETURN_CODE 77 LABELS "${arg_LABELS}")
    return()
  endif()
  # The same generated inputs each time; the program itself, run alone, draws others.
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT 300 ENVIRONMENT RC_PARAMS=seed=1 LABELS "${arg_LABELS}"
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
endfunction()
