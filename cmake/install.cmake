# SPDX-License-Identifier: AGPL-3.0-only
# What an installation holds: the library with its headers, the host runtime beside it, the tool, and
# how other projects find them: a CMake package (also from this build tree) and a pkg-config file.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/spark_comm)

# A shared library of ours finds the host runtime beside itself once installed, and in its own folder
# of the build tree before.
set_target_properties(spark_comm PROPERTIES BUILD_RPATH $<TARGET_FILE_DIR:spark_comm_host> INSTALL_RPATH $ORIGIN)
set_target_properties(spark_comm_host PROPERTIES EXPORT_NAME host)

install(TARGETS spark_comm spark_comm_host EXPORT spark_comm
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(SPARK_COMM_BUILD_TOOL)
  install(TARGETS spark-comm RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

install(EXPORT spark_comm NAMESPACE spark_comm:: FILE spark_comm-targets.cmake DESTINATION ${package_dir})
export(EXPORT spark_comm NAMESPACE spark_comm:: FILE ${PROJECT_BINARY_DIR}/spark_comm-targets.cmake)

# The directories of a pkg-config file are relative to where it lies, so that an installation may move.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE pc_libdir)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}
  OUTPUT_VARIABLE pc_includedir)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
  OUTPUT_VARIABLE pc_prefix)

configure_file(cmake/spark_comm-config.cmake.in ${PROJECT_BINARY_DIR}/spark_comm-config.cmake @ONLY)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/spark_comm-config-version.cmake
  COMPATIBILITY SameMinorVersion)
configure_file(cmake/spark_comm.pc.in ${PROJECT_BINARY_DIR}/spark_comm.pc @ONLY)
install(FILES
  ${PROJECT_BINARY_DIR}/spark_comm-config.cmake
  ${PROJECT_BINARY_DIR}/spark_comm-config-version.cmake
  DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/spark_comm.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
