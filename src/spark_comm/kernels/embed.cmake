# SPDX-License-Identifier: AGPL-3.0-only
# cmake -DINPUT=x.fatbin -DOUTPUT=x.cpp -DNAME=x_image -P embed.cmake
# Writes a file as an array of 64-bit words, which keeps its alignment and compiles fast. Words are
# little-endian, as are all machines with these devices.
file(READ "${INPUT}" hex HEX)
string(LENGTH "${hex}" digits)
math(EXPR rest "${digits} % 16")
if(NOT rest EQUAL 0)
  math(EXPR missing "16 - ${rest}")
  string(REPEAT "0" ${missing} zeros)
  string(APPEND hex "${zeros}")
endif()
set(byte "([0-9a-f][0-9a-f])")
string(REGEX REPLACE "${byte}${byte}${byte}${byte}${byte}${byte}${byte}${byte}"
  "0x\\8\\7\\6\\5\\4\\3\\2\\1,\n" words "${hex}")
file(WRITE "${OUTPUT}"
  "// Made by embed.cmake.\n"
  "#include <cstdint>\n\n"
  "namespace spark_comm::kernels::detail {\n"
  "extern const std::uint64_t ${NAME}[];\n"
  "alignas(16) const std::uint64_t ${NAME}[] = {\n${words}};\n"
  "}  // namespace spark_comm::kernels::detail\n")
