# SPDX-License-Identifier: AGPL-3.0-only
# What an installation holds: the library with its headers, the host runtime beside it, the tool with its
# manual pages and completion, the Python package, and how other projects find the library: a CMake
# package (also from this build tree) and a pkg-config file.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/spark_comm)
set(SPARK_COMM_PYTHON_DIR lib/python3/dist-packages CACHE STRING "Where the Python package is installed")

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
  install(FILES app/completion/spark-comm.bash RENAME spark-comm
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions)
  find_program(SPARK_COMM_HELP2MAN help2man)
  if(SPARK_COMM_HELP2MAN)
    set(man_pages ${PROJECT_BINARY_DIR}/man)
    add_custom_command(OUTPUT ${man_pages}/spark-comm.1
      COMMAND ${PROJECT_SOURCE_DIR}/tools/man-pages $<TARGET_FILE:spark-comm> ${man_pages}
      DEPENDS spark-comm tools/man-pages
      COMMENT "Writing the manual pages from the tool's help" VERBATIM)
    add_custom_target(spark_comm_man ALL DEPENDS ${man_pages}/spark-comm.1)
    install(DIRECTORY ${man_pages}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  else()
    message(STATUS "spark_comm: no help2man, so no manual pages")
  endif()
endif()
install(DIRECTORY bindings/python/spark_comm DESTINATION ${SPARK_COMM_PYTHON_DIR} FILES_MATCHING PATTERN "*.py")

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
