# The installed package. After find_package(ptxkit), users link ptxkit::harness to test their own kernels, or one of the
# libraries below; ptxkit::lz4 is the codec. None of it needs LLVM.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# The library that tests of kernels link. The user provides GoogleTest.
add_library(ptxkit_harness INTERFACE)
target_link_libraries(ptxkit_harness INTERFACE
  ptxkit_emulator ptxkit_driver ptxkit_generated_launch ptxkit_objects ptxkit_report)

set(package_targets ptxkit_options ptxkit_harness
  ptxkit_support ptxkit_ptx ptxkit_flow ptxkit_evidence ptxkit_catalogue ptxkit_rules ptxkit_inspect
  ptxkit_analyze ptxkit_report ptxkit_emulator ptxkit_driver ptxkit_generated_launch ptxkit_objects
  ptxkit_lz4 ptxkit_codec ptxkit_coders ptxkit_executor ptxkit_format ptxkit_kernel_cost ptxkit_kernel_images ptxkit_references
  ptxkit_scheduler)
foreach(target ${package_targets})
  string(REPLACE ptxkit_ "" short ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${short})
endforeach()
install(TARGETS ${package_targets} EXPORT ptxkitTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  COMPONENT development)
install(EXPORT ptxkitTargets NAMESPACE ptxkit:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ptxkit COMPONENT development)
file(WRITE ${CMAKE_BINARY_DIR}/ptxkitConfig.cmake "include(CMakeFindDependencyMacro)
include(\${CMAKE_CURRENT_LIST_DIR}/ptxkitCTargets.cmake)
if(\"\${ptxkit_FIND_COMPONENTS}\" STREQUAL \"c\")  # it needs no other package
  return()
endif()
foreach(package fmt Threads nlohmann_json)
  find_dependency(\${package})
endforeach()
include(\${CMAKE_CURRENT_LIST_DIR}/ptxkitTargets.cmake)
")
write_basic_package_version_file(${CMAKE_BINARY_DIR}/ptxkitConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/ptxkitConfig.cmake ${CMAKE_BINARY_DIR}/ptxkitConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ptxkit COMPONENT development)
foreach(folder support analyzer runtime fkr_tests/harness)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/${folder}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ptxkit/${folder}
    COMPONENT development FILES_MATCHING PATTERN *.hpp PATTERN *.def)
endforeach()
install(FILES ${CMAKE_SOURCE_DIR}/kernels/images.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ptxkit/kernels
  COMPONENT development)
install(TARGETS ptx-debug ptx-pack RUNTIME COMPONENT programs)
if(TARGET ptx-pack-mpi)
  install(TARGETS ptx-pack-mpi RUNTIME COMPONENT programs)
endif()
