# SPDX-License-Identifier: AGPL-3.0-only
# `cpack` makes one Debian package of what is installed: library, host runtime, tool, headers, manual
# pages, completion and the Python package. The preset "package" configures a build for it.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME spark-comm)
set(CPACK_PACKAGE_VENDOR "spark_comm")
set(CPACK_PACKAGE_CONTACT "The spark_comm developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
# Depends on the packages of the shared libraries that the files need, of which those in the package
# itself are no part. NCCL and the driver are loaded at run time, where they are.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS
  ${PROJECT_BINARY_DIR}/src/spark_comm ${PROJECT_BINARY_DIR}/src/host)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libnccl2 (>= 2.19), python3 (>= 3.9)")
include(CPack)
