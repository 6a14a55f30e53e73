# SPDX-License-Identifier: AGPL-3.0-only
# Third-party libraries, all Debian packages. fmt and Asio are used header-only, so the library links
# OpenSSL and nothing else.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
if(SPARK_COMM_PORTABLE)
  set(OPENSSL_USE_STATIC_LIBS ON)
endif()
find_package(OpenSSL REQUIRED)
find_path(SPARK_COMM_ASIO_INCLUDE_DIR asio.hpp REQUIRED)

add_library(spark_comm_asio INTERFACE)
target_include_directories(spark_comm_asio SYSTEM INTERFACE ${SPARK_COMM_ASIO_INCLUDE_DIR})
target_compile_definitions(spark_comm_asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED)
target_link_libraries(spark_comm_asio INTERFACE Threads::Threads)
if(SPARK_COMM_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Asio puts fences around handlers, which ThreadSanitizer cannot see; its mutexes it can.
  target_compile_options(spark_comm_asio INTERFACE -Wno-tsan)
endif()
