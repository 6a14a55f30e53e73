// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/detail/relaxed_capture.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/driver.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream.hpp>
#include <spark_comm/kernels/peer_segment.hpp>
#include <spark_comm/paths/detail/peer_memory.hpp>

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>

namespace spark_comm::detail {
namespace {

cuda::abi::device_ptr as_device_ptr(const void* address) noexcept {
  return std::bit_cast<std::uintptr_t>(address);
}

std::size_t stride_of(const kernels::segment_limits& limits) noexcept {
  constexpr std::size_t boundary = 256;
  return (kernels::segment_bytes(limits) + boundary - 1) / boundary * boundary;
}

void clear(const cuda::device& where, const cuda::device_buffer& memory) {
  constexpr auto limit = std::chrono::seconds{10};
  const cuda::stream s = where.create_stream();
  cuda::fill_async(where, memory.address(), 0, memory.size_bytes(), s);
  if (where.wait(s, limit) == wait_result::timed_out) {
    throw error{errc::timed_out, "the device did not clear the segments", {.deadline = limit}};
  }
}

}  // namespace

imported_memory::imported_memory(cuda::device where, const cuda::abi::ipc_mem_handle& handle)
    : where_(std::move(where)) {
  const cuda::driver& driver = where_.loaded_driver();
  const cuda::device_scope current{where_};
  cuda::abi::device_ptr address = 0;
  driver.check(driver.table().cuIpcOpenMemHandle_v2(
                   &address, handle, cuda::abi::flags::ipc_lazy_enable_peer_access),
               "cuIpcOpenMemHandle_v2");
  address_ = std::bit_cast<void*>(static_cast<std::uintptr_t>(address));
}

imported_memory::~imported_memory() {
  const cuda::driver& driver = where_.loaded_driver();
  try {
    const cuda::device_scope current{where_};
    const cuda::detail::relaxed_capture relaxed{driver};
    driver.check_noexcept(driver.table().cuIpcCloseMemHandle(as_device_ptr(address_)),
                          "cuIpcCloseMemHandle");
  } catch (const std::exception& failure) {
    driver.log().report(failure, "while letting go of a peer's memory");
  }
}

peer_memory::peer_memory(const cuda::device& where,
                         int rank,
                         const kernels::segment_limits& limits,
                         std::size_t segments)
    : where_(where),
      rank_(rank),
      stride_bytes_(stride_of(limits)),
      own_(cuda::device_buffer::allocate(where, segments * stride_bytes_)) {
  clear(where, own_);
  const cuda::driver& driver = where.loaded_driver();
  const cuda::device_scope current{where};
  driver.check(driver.table().cuIpcGetMemHandle(&handle_, as_device_ptr(own_.address())),
               "cuIpcGetMemHandle");
}

void peer_memory::open(int peer, const cuda::abi::ipc_mem_handle& handle) {
  peers_[static_cast<std::size_t>(peer)].emplace(where_, handle);
}

void peer_memory::close_peers() noexcept {
  for (std::optional<imported_memory>& peer : peers_) {
    peer.reset();
  }
}

std::array<void*, kernels::max_world> peer_memory::segment(std::size_t index) const noexcept {
  std::array<void*, kernels::max_world> addresses{};
  for (std::size_t r = 0; r < addresses.size(); ++r) {
    void* const base = static_cast<int>(r) == rank_ ? own_.address()
                       : peers_[r]                  ? peers_[r]->address()
                                                    : nullptr;
    if (base != nullptr) {
      addresses[r] = static_cast<std::byte*>(base) + index * stride_bytes_;
    }
  }
  return addresses;
}

}  // namespace spark_comm::detail
