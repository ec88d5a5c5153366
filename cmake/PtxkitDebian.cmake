# Debian packages: cmake --preset package && cmake --build build-package --target packages. They land in build-package/.
#   ptxkit         ptx-debug and ptx-pack, with manual page and completion
#   ptxkit-mpi     ptx-pack-mpi, where MPI was found
#   libptxkit1     libptxkit.so.1, the C interface
#   libptxkit-dev  headers, static libraries, CMake package, ptxkit.pc
# With SOURCE_DATE_EPOCH set the bytes depend on the sources and the build tools alone; tools/reproducible.sh checks it.
set(PTXKIT_MAINTAINER "ptxkit maintainers <maintainers@ptxkit.invalid>" CACHE STRING "of the Debian packages")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME ptxkit)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT ${PTXKIT_MAINTAINER})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# The package of a component, with its section, what it depends on beside its shared libraries, what it recommends, and
# its description.
function(ptxkit_debian_package component name section depends recommends summary text)
  string(TOUPPER ${component} key)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_RECOMMENDS "${recommends}" PARENT_SCOPE)
  set(CPACK_COMPONENT_${key}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_SHLIBDEPS ON PARENT_SCOPE)
  foreach(file copyright changelog.gz)
    install(FILES ${debian}/${file} DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${name} COMPONENT ${component} EXCLUDE_FROM_ALL)
  endforeach()
endfunction()

# The date of the changelog and of the files.
set(debian ${CMAKE_BINARY_DIR}/debian)
if(DEFINED ENV{SOURCE_DATE_EPOCH})
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)  # CMake takes SOURCE_DATE_EPOCH as the time
else()
  set(date "Thu, 01 Jan 1970 00:00:00 +0000")
endif()
configure_file(packaging/debian/changelog.in ${debian}/changelog @ONLY)
configure_file(packaging/debian/copyright ${debian}/copyright COPYONLY)
execute_process(COMMAND gzip -9nc ${debian}/changelog OUTPUT_FILE ${debian}/changelog.gz COMMAND_ERROR_IS_FATAL ANY)

set(exactly "(= ${PROJECT_VERSION})")
ptxkit_debian_package(programs ptxkit devel "" "libz3-4" "analyzer and emulator of NVIDIA PTX, compressor for GPUs"
  "ptx-debug tries to refute PTX of any compiler, runs it on an emulator with a\nsanitizer, and writes reports. ptx-pack compresses in the LZ4 frame format and\nin formats of its own, on CPUs and GPUs. No CUDA toolkit is needed.")
if(TARGET ptx-pack-mpi)
  ptxkit_debian_package(mpi ptxkit-mpi devel "" "openmpi-bin" "compressor for GPUs on all ranks of an MPI job"
    "ptx-pack-mpi compresses and reads one file with all ranks of an MPI job, to\nthe bytes of ptx-pack.")
endif()
ptxkit_debian_package(library libptxkit1 libs "" "" "compression on CPUs and GPUs, PTX analyzer and emulator: C interface"
  "The shared library of ptxkit. It opens an NVIDIA driver where there is one and\nneeds none.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/packaging/debian/triggers)
file(WRITE ${debian}/shlibs "libptxkit 1 libptxkit1\n")
list(APPEND CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${debian}/shlibs)
ptxkit_debian_package(development libptxkit-dev libdevel
  "libptxkit1 ${exactly}, libexpected-dev, libfmt-dev, liblz4-dev, libxxhash-dev, libzstd-dev, libdeflate-dev, zlib1g-dev, nlohmann-json3-dev"
  "ptxkit ${exactly}, libgtest-dev, libzstd-dev, llvm-19-dev, zlib1g-dev"
  "libraries of ptxkit: PTX analyzer, emulator, test harness, kernel DSL"
  "find_package(ptxkit) of CMake finds the C interface with a wrapper for C++20, a GoogleTest fixture that runs\nkernels on an emulator, and, with LLVM 19 and ptx-debug, a C++ DSL for kernels.")
include(CPack)
# CPack makes folders and members of archives by the umask.
add_custom_target(packages COMMAND sh -c "umask 022 && exec \"$0\"" ${CMAKE_CPACK_COMMAND} WORKING_DIRECTORY ${CMAKE_BINARY_DIR} USES_TERMINAL VERBATIM)
add_dependencies(packages ${exported_targets} ptxkit_shared ptxkit_archive ptx-debug ptx-pack program-pages)
if(TARGET ptx-pack-mpi)
  add_dependencies(packages ptx-pack-mpi)
endif()
