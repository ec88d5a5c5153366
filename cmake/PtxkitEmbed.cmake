# Embeds files of the repository in a program.
#   ptxkit_embed(TARGET NAMESPACE::symbol files...)
# adds a source to TARGET that defines `const ptxkit::EmbeddedFile symbol[]` (support/embedded.hpp) and `const size_t
# symbol_count`, with one element for each file in the given order, named by the file's name without its folder.
# The file is also a script: with -P it writes that source, so that a change of an embedded file rebuilds only the source.

if(CMAKE_SCRIPT_MODE_FILE)
  set(body "")
  set(count 0)
  string(REPLACE "|" ";" FILES "${FILES}")
  foreach(file IN LISTS FILES)
    # Hex instead of a string literal: no delimiter can clash, the length is not limited, and CMake lists drop no
    # semicolons.
    file(READ ${file} hex HEX)
    get_filename_component(name ${file} NAME)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
    string(APPEND body "constexpr char file_${count}[] = {${bytes}0};\n")
    string(APPEND table "    {\"${name}\", {file_${count}, sizeof file_${count} - 1}},\n")
    math(EXPR count "${count} + 1")
  endforeach()
  file(WRITE ${OUT} "// Written by cmake/PtxkitEmbed.cmake.\n#include \"support/embedded.hpp\"\n\n"
    "namespace {\n${body}}  // namespace\n\nnamespace ${NAMESPACE} {\n"
    "extern const ::ptxkit::EmbeddedFile ${SYMBOL}[] = {\n${table}};\n"
    "extern const size_t ${SYMBOL}_count = ${count};\n}  // namespace ${NAMESPACE}\n")
  return()
endif()

set(PTXKIT_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(ptxkit_embed target qualified_symbol)
  string(REGEX MATCH "^(.*)::([a-z_]+)$" match ${qualified_symbol})
  set(namespace ${CMAKE_MATCH_1})
  set(symbol ${CMAKE_MATCH_2})
  set(files ${ARGN})
  list(TRANSFORM files PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ REGEX "^[^/]")
  set(out ${CMAKE_BINARY_DIR}/generated/embedded/${symbol}.cpp)
  string(REPLACE ";" "|" joined "${files}")  # a list would not survive the command line
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${joined}" -DOUT=${out} -DNAMESPACE=${namespace} -DSYMBOL=${symbol}
            -P ${PTXKIT_EMBED_SCRIPT}
    DEPENDS ${files} ${PTXKIT_EMBED_SCRIPT} VERBATIM COMMENT "Embedding ${symbol}")
  target_sources(${target} PRIVATE ${out})
  ptxkit_compile_alone(${out})
endfunction()
