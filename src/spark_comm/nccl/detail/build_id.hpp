// SPDX-License-Identifier: AGPL-3.0-only
// Which build of a library a file is: the GNU build id that the linker wrote into it. Two ranks
// with the same version number and different builds can disagree on the wire.
#pragma once

#include <spark_comm/core/export.hpp>

#include <string>

namespace spark_comm::nccl::detail {

/// The build id of an ELF file as lower-case hex; empty when the file has none, is not a 64-bit ELF
/// file of this machine's byte order, or is damaged.
/// Source: ELF-64 object file format 1.5, PT_NOTE; note type NT_GNU_BUILD_ID.
[[nodiscard]] SPARK_COMM_API std::string build_id_of_file(const std::string& path);

}  // namespace spark_comm::nccl::detail
