# The installed package. find_package(ptxkit COMPONENTS ...) has these components:
#   c         ptxkit::c, libptxkit.so with its C interface; needs no other package
#   cxx       ptxkit::cxx, the same for C++20, with ptxkit.hpp
#   harness   ptxkit::harness, to test kernels of any origin
#   builder   ptxkit::builder, the DSL, and ptxkit_add_kernels(); needs LLVM and ptx-debug, the others do not
# Without COMPONENTS the package has harness, and c and cxx where libptxkit.so is installed.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# The library that tests of kernels link. The user provides GoogleTest.
add_library(ptxkit_harness INTERFACE)
target_link_libraries(ptxkit_harness INTERFACE
  ptxkit_emulator ptxkit_driver ptxkit_generated_launch ptxkit_kernel_images ptxkit_objects ptxkit_report)

set(package_targets ptxkit_options ptxkit_harness
  ptxkit_support ptxkit_ptx ptxkit_flow ptxkit_prove ptxkit_evidence ptxkit_catalogue ptxkit_rules ptxkit_inspect
  ptxkit_analyze ptxkit_report ptxkit_emulator ptxkit_driver ptxkit_generated_launch ptxkit_objects
  ptxkit_kernel_images)
set(exported_targets ${package_targets})
if(TARGET ptxkit_builder)
  list(APPEND exported_targets ptxkit_builder)
endif()
foreach(target ${exported_targets})
  string(REPLACE ptxkit_ "" short ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${short})
endforeach()
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/ptxkit)
install(TARGETS ${package_targets} EXPORT ptxkitTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
if(TARGET ptxkit_builder)
  install(TARGETS ptxkit_builder EXPORT ptxkitBuilderTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
endif()
install(TARGETS ptx-debug EXPORT ptxkitBuilderTargets RUNTIME COMPONENT programs)
foreach(set ptxkitTargets ptxkitBuilderTargets ptxkitCTargets)
  install(EXPORT ${set} NAMESPACE ptxkit:: DESTINATION ${package_folder} COMPONENT development)
endforeach()
configure_package_config_file(cmake/ptxkitConfig.cmake.in ${CMAKE_BINARY_DIR}/ptxkitConfig.cmake
  INSTALL_DESTINATION ${package_folder} PATH_VARS CMAKE_INSTALL_BINDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/ptxkitConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/ptxkitConfig.cmake ${CMAKE_BINARY_DIR}/ptxkitConfigVersion.cmake
  cmake/PtxkitKernels.cmake cmake/PtxkitJudge.cmake cmake/kernel_images.hpp.in
  DESTINATION ${package_folder} COMPONENT development)
foreach(folder support analyzer builder runtime/driver runtime/emulator runtime/launch fkr_tests/harness)
  # install(DIRECTORY) would make a folder for those without headers too.
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} ${folder}/*.hpp ${folder}/*.def)
  foreach(header ${headers})
    cmake_path(GET header PARENT_PATH parent)
    install(FILES ${CMAKE_SOURCE_DIR}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ptxkit/${parent} COMPONENT development)
  endforeach()
endforeach()
install(FILES ${CMAKE_SOURCE_DIR}/kernels/images.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ptxkit/kernels
  COMPONENT development)
install(DIRECTORY docs/examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)
install(TARGETS ptx-pack RUNTIME COMPONENT programs)
if(TARGET ptx-pack-mpi)
  install(TARGETS ptx-pack-mpi RUNTIME COMPONENT mpi)
endif()

# What the programs print about themselves: manual pages, and completion of ptx-debug where each shell looks for it.
set(pages ${CMAKE_BINARY_DIR}/pages)
file(MAKE_DIRECTORY ${pages})
add_custom_command(OUTPUT ${pages}/ptx-debug.1.gz COMMAND ptx-debug man > ${pages}/ptx-debug.1
  COMMAND gzip -9nf ${pages}/ptx-debug.1 DEPENDS ptx-debug VERBATIM)
add_custom_command(OUTPUT ${pages}/ptx-pack.1.gz COMMAND ptx-pack --man > ${pages}/ptx-pack.1
  COMMAND gzip -9nf ${pages}/ptx-pack.1 DEPENDS ptx-pack VERBATIM)
set(page_files ${pages}/ptx-debug.1.gz ${pages}/ptx-pack.1.gz)
install(FILES ${page_files} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT programs)
foreach(place bash:bash-completion/completions/ptx-debug zsh:zsh/vendor-completions/_ptx-debug
    fish:fish/vendor_completions.d/ptx-debug.fish)
  string(REGEX MATCH "^(.*):(.*)/(.*)$" match ${place})
  set(file ${pages}/${CMAKE_MATCH_1}/${CMAKE_MATCH_3})
  file(MAKE_DIRECTORY ${pages}/${CMAKE_MATCH_1})
  add_custom_command(OUTPUT ${file} COMMAND ptx-debug completion ${CMAKE_MATCH_1} > ${file} DEPENDS ptx-debug VERBATIM)
  list(APPEND page_files ${file})
  install(FILES ${file} DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/${CMAKE_MATCH_2} COMPONENT programs)
endforeach()
add_custom_target(program-pages ALL DEPENDS ${page_files})
include(PtxkitDebian)
