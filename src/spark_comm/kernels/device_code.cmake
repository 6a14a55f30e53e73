# SPDX-License-Identifier: AGPL-3.0-only
# Decides whether device code is built, and builds it: nvcc makes a fat binary of each .cu file, which
# is embedded as an array. CMake's CUDA language is not used, so nothing links the CUDA runtime and a
# machine without nvcc configures alike.

# Sets spark_comm_kernels_built and spark_comm_kernels_reason in the caller.
function(spark_comm_decide_kernels)
  set(built FALSE)
  if(NOT SPARK_COMM_KERNELS MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "SPARK_COMM_KERNELS is AUTO, ON or OFF, not '${SPARK_COMM_KERNELS}'")
  endif()
  if(SPARK_COMM_KERNELS STREQUAL "OFF")
    set(reason "SPARK_COMM_KERNELS is OFF")
  else()
    find_program(SPARK_COMM_NVCC nvcc
      HINTS ENV CUDA_PATH ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
    if(SPARK_COMM_NVCC)
      execute_process(COMMAND ${SPARK_COMM_NVCC} --version OUTPUT_VARIABLE text ERROR_QUIET)
      string(REGEX MATCH "release ([0-9.]+)" found "${text}")
      set(version "${CMAKE_MATCH_1}")
      if(found AND version VERSION_GREATER_EQUAL 13.0)
        set(built TRUE)
        set(reason "nvcc ${version} at ${SPARK_COMM_NVCC}")
      else()
        set(reason "nvcc at ${SPARK_COMM_NVCC} is '${version}', and 13.0 is the floor")
      endif()
    else()
      set(reason "no nvcc was found")
    endif()
    if(NOT built AND SPARK_COMM_KERNELS STREQUAL "ON")
      message(FATAL_ERROR "SPARK_COMM_KERNELS is ON, but ${reason}")
    endif()
  endif()
  set(spark_comm_kernels_built ${built} PARENT_SCOPE)
  set(spark_comm_kernels_reason "${reason}" PARENT_SCOPE)
endfunction()

# The -gencode options of a list of architectures, or of "release": machine code for the devices that
# the project names, and PTX of 90 for those that come after.
function(spark_comm_gencode result architectures)
  set(options "")
  if(architectures STREQUAL "release")
    set(architectures 80 90 100 120 121)
    list(APPEND options -gencode arch=compute_90,code=compute_90)
  endif()
  foreach(architecture IN LISTS architectures)
    list(APPEND options -gencode arch=compute_${architecture},code=sm_${architecture})
  endforeach()
  set(${result} ${options} PARENT_SCOPE)
endfunction()

# Adds the images of the given families to the target. An object library makes them, because custom
# commands serve targets of their own folder only.
# No -Wundef: the toolkit's own headers do not hold to it. No contraction (-fmad=false): the host equivalents round after every step, and both must agree.
function(spark_comm_embed_kernels target)
  spark_comm_gencode(gencode "${SPARK_COMM_CUDA_ARCHITECTURES}")
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/device/*.cuh)
  foreach(family IN LISTS ARGN)
    set(source ${CMAKE_CURRENT_SOURCE_DIR}/device/${family}.cu)
    set(binary ${CMAKE_CURRENT_BINARY_DIR}/${family}.fatbin)
    set(embedded ${CMAKE_CURRENT_BINARY_DIR}/${family}_image.cpp)
    add_custom_command(OUTPUT ${binary}
      COMMAND ${SPARK_COMM_NVCC} --fatbin -std=c++20 -O3 -fmad=false
        -I${PROJECT_SOURCE_DIR}/src --expt-relaxed-constexpr ${gencode}
        -ccbin ${CMAKE_CXX_COMPILER}
        -Werror all-warnings -Xptxas -warn-spills
        -Xcompiler -Wall,-Wextra,-Wshadow
        ${source} -o ${binary}
      DEPENDS ${source} ${headers}
        ${CMAKE_CURRENT_SOURCE_DIR}/detail/parameters.hpp
        ${CMAKE_CURRENT_SOURCE_DIR}/peer_segment.hpp
        ${CMAKE_CURRENT_SOURCE_DIR}/device_code.cmake
      COMMENT "Compiling the ${family} kernels for ${SPARK_COMM_CUDA_ARCHITECTURES}"
      VERBATIM)
    add_custom_command(OUTPUT ${embedded}
      COMMAND ${CMAKE_COMMAND} -DINPUT=${binary} -DOUTPUT=${embedded} -DNAME=${family}_image
        -P ${CMAKE_CURRENT_SOURCE_DIR}/embed.cmake
      DEPENDS ${binary} ${CMAKE_CURRENT_SOURCE_DIR}/embed.cmake
      COMMENT "Embedding the ${family} kernels"
      VERBATIM)
    list(APPEND images ${embedded})
  endforeach()
  add_library(spark_comm_device_images OBJECT ${images})
  target_link_libraries(spark_comm_device_images PRIVATE $<BUILD_INTERFACE:spark_comm_options>)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:spark_comm_device_images>)
endfunction()
