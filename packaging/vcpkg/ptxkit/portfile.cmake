# An overlay port: it builds the sources that it lies in.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

set(VCPKG_POLICY_ALLOW_EXES_IN_BIN enabled)  # ptxkit_add_kernels runs ptx-debug from there
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}" OPTIONS -DPTXKIT_TESTS=OFF -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/ptxkit)
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share" "${CURRENT_PACKAGES_DIR}/debug/bin")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
