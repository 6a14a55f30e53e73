# SPDX-License-Identifier: AGPL-3.0-only
# What every target of this project is compiled with. Linked as a build-only interface, so that it
# does not leak into the export.
add_library(spark_comm_options INTERFACE)
target_compile_features(spark_comm_options INTERFACE cxx_std_20)
target_compile_options(spark_comm_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow
    -Wswitch-enum -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-align -Wundef
    -fvisibility=hidden -fvisibility-inlines-hidden>)
if(SPARK_COMM_SANITIZE)
  target_compile_options(spark_comm_options INTERFACE -fsanitize=${SPARK_COMM_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(spark_comm_options INTERFACE -fsanitize=${SPARK_COMM_SANITIZE})
endif()
if(SPARK_COMM_COVERAGE)
  target_compile_options(spark_comm_options INTERFACE --coverage -fprofile-update=atomic)
  target_link_options(spark_comm_options INTERFACE --coverage)
endif()
if(SPARK_COMM_PORTABLE)
  target_link_options(spark_comm_options INTERFACE -static-libstdc++ -static-libgcc)
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# spark_comm_compile_with(TARGET LIBRARY...): compiles TARGET with what header-only or options-only
# libraries ask for, without linking them, so that none of them appears in the export.
function(spark_comm_compile_with target)
  foreach(library ${ARGN})
    target_include_directories(${target} SYSTEM PRIVATE $<TARGET_PROPERTY:${library},INTERFACE_INCLUDE_DIRECTORIES>)
    target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:${library},INTERFACE_COMPILE_DEFINITIONS>)
    target_compile_options(${target} PRIVATE $<TARGET_PROPERTY:${library},INTERFACE_COMPILE_OPTIONS>)
    target_link_options(${target} PRIVATE $<TARGET_PROPERTY:${library},INTERFACE_LINK_OPTIONS>)
  endforeach()
endfunction()
