// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/memory.hpp>
#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/nccl/library.hpp>

#include <cstddef>
#include <exception>

namespace spark_comm {
namespace {

cuda::device_buffer allocate_symmetric(const runtime& loaded,
                                       const cuda::device& where,
                                       std::size_t bytes) {
  const nccl::library& library = loaded.library();
  const cuda::device_scope current{where};
  void* address = nullptr;
  library.check(library.table().ncclMemAlloc(&address, bytes), "ncclMemAlloc");
  // NCCL's own call must free it, with its device current.
  const auto free = [library, where](void* memory) {
    try {
      const cuda::device_scope scope{where};
      library.check(library.table().ncclMemFree(memory), "ncclMemFree");
    } catch (const std::exception& failure) {
      library.log().report(failure, "while freeing symmetric memory");
    }
  };
  try {
    return cuda::device_buffer::adopt(where, address, bytes, free);
  } catch (...) {
    free(address);
    throw;
  }
}

}  // namespace

cuda::device_buffer allocate_buffer(const runtime& loaded,
                                    const cuda::device& where,
                                    std::size_t bytes,
                                    memory_kind kind) {
  if (bytes == 0) {
    throw error{errc::invalid_argument, "a buffer of 0 bytes was asked for"};
  }
  switch (kind) {
    case memory_kind::plain:     return cuda::device_buffer::allocate(where, bytes);
    case memory_kind::symmetric: return allocate_symmetric(loaded, where, bytes);
  }
  throw error{errc::invalid_argument, "an unknown kind of memory was asked for"};
}

}  // namespace spark_comm
