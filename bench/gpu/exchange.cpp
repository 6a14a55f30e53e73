// SPDX-License-Identifier: AGPL-3.0-only
#include "exchange.hpp"

#include "pair_channel.hpp"
#include "timing.hpp"

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/float_types.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/driver.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream.hpp>
#include <spark_comm/kernels/module.hpp>
#include <spark_comm/kernels/one_shot.hpp>
#include <spark_comm/kernels/peer_segment.hpp>
#include <spark_comm/kernels/rms_norm.hpp>

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fmt/core.h>
#include <new>
#include <span>
#include <string_view>
#include <vector>

namespace spark_comm::bench {
namespace {

using kernels::exchange_protocol;

constexpr std::size_t most_bytes = std::size_t{16} << 20U;
constexpr kernels::segment_limits limits{
    .staging_bytes = most_bytes, .low_latency_bytes = std::size_t{256} << 10U, .world = 2};
constexpr std::array<std::string_view, 3> protocol_names = {"low_latency", "one_shot", "two_shot"};

struct shared_words {
  kernels::exchange_status status;
  std::uint32_t abort_word;
};

void* as_pointer(cuda::abi::device_ptr address) {
  return std::bit_cast<void*>(static_cast<std::uintptr_t>(address));
}

// This rank's memory and its way to the other's.
class ipc_rank {
 public:
  ipc_rank(const kernels::kernel_module& loaded, const pair_channel& pair)
      : stream(loaded.owner().create_stream()),
        in(cuda::device_buffer::allocate(loaded.owner(), most_bytes)),
        out(cuda::device_buffer::allocate(loaded.owner(), most_bytes)),
        segment_(cuda::device_buffer::allocate(loaded.owner(), kernels::segment_bytes(limits))),
        words_(cuda::pinned_buffer::allocate(loaded.owner(), sizeof(shared_words))) {
    const cuda::device& device = loaded.owner();
    const cuda::driver& driver = device.loaded_driver();
    new (words_.address()) shared_words{};
    cuda::fill_async(device, segment_.address(), 0, segment_.size_bytes(), stream);
    finish(stream);
    const cuda::device_scope scope{device};
    cuda::abi::ipc_mem_handle mine{};
    driver.check(
        driver.table().cuIpcGetMemHandle(&mine, std::bit_cast<std::uintptr_t>(segment_.address())),
        "cuIpcGetMemHandle");
    cuda::abi::ipc_mem_handle theirs{};
    pair.swap(std::as_bytes(std::span{&mine, 1}), std::as_writable_bytes(std::span{&theirs, 1}));
    cuda::abi::device_ptr mapped = 0;
    driver.check(driver.table().cuIpcOpenMemHandle_v2(
                     &mapped, theirs, cuda::abi::flags::ipc_lazy_enable_peer_access),
                 "cuIpcOpenMemHandle_v2");
    const auto own = static_cast<std::size_t>(pair.rank());
    segments.addresses[own] = segment_.address();
    segments.addresses[1 - own] = as_pointer(mapped);
    segments.limits = limits;
    segments.rank = pair.rank();
    const cuda::abi::device_ptr words = words_.device_address();
    segments.status =
        static_cast<kernels::exchange_status*>(as_pointer(words + offsetof(shared_words, status)));
    segments.abort_word =
        static_cast<const std::uint32_t*>(as_pointer(words + offsetof(shared_words, abort_word)));
    segments.wait_limit = std::chrono::seconds{10};
  }

  cuda::stream stream;
  cuda::device_buffer in;
  cuda::device_buffer out;
  kernels::peer_segments segments;

 private:
  cuda::device_buffer segment_;
  cuda::pinned_buffer words_;
};

// Whole numbers whose sum bf16 holds.
bfloat16 value_of(int rank, std::size_t i) {
  return to_bfloat16(static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 13) % 101));
}

// Runs the call once on known inputs and compares every element.
bool is_right(const ipc_rank& me, std::size_t bytes, const enqueue_function& enqueue) {
  const std::size_t count = bytes / sizeof(bfloat16);
  std::vector<bfloat16> host(count);
  for (std::size_t i = 0; i < count; ++i) {
    host[i] = value_of(me.segments.rank, i);
  }
  cuda::copy_async(me.stream.owner(), me.in.address(), host.data(), bytes, me.stream);
  cuda::fill_async(me.stream.owner(), me.out.address(), 0xff, bytes, me.stream);
  enqueue(me.stream);
  cuda::copy_async(me.stream.owner(), host.data(), me.out.address(), bytes, me.stream);
  finish(me.stream);
  for (std::size_t i = 0; i < count; ++i) {
    if (host[i] != to_bfloat16(to_float(value_of(0, i)) + to_float(value_of(1, i)))) {
      return false;
    }
  }
  return true;
}

int repeats_for(std::size_t bytes) {
  return bytes > (std::size_t{1} << 20U) ? 20 : 200;
}

bool run_protocol(const kernels::kernel_module& loaded,
                  const pair_channel& pair,
                  const ipc_rank& me,
                  exchange_protocol protocol,
                  std::size_t bytes) {
  const kernels::all_reduce_call call{
      data_type::bfloat16, me.in.address(), me.out.address(), bytes / sizeof(bfloat16)};
  const enqueue_function enqueue = [&](cuda::stream_ref s) {
    kernels::all_reduce(loaded, me.segments, protocol, call, s);
  };
  const auto meet = [&] { pair.meet(); };
  bool is_good = is_right(me, bytes, enqueue);
  const int count = repeats_for(bytes);
  const double graph = back_to_back_us(me.stream, count, enqueue, meet);
  const double eager = eager_us(me.stream, count, enqueue, meet);
  pair.meet();
  const double synchronized = synchronized_us(me.stream, 200, enqueue);
  is_good = is_right(me, bytes, enqueue) && is_good;
  if (pair.rank() == 0) {
    fmt::print(
        "{{\"bench\":\"all_reduce_in_kernel\",\"protocol\":\"{}\",\"ranks\":2,\"dtype\":\"bf16\","
        "\"bytes\":{},\"back_to_back_graph_us\":{:.3f},\"back_to_back_eager_us\":{:.3f},"
        "\"host_synchronized_us\":{:.3f},\"correct\":{}}}\n",
        protocol_names[static_cast<std::size_t>(protocol)],
        bytes,
        graph,
        eager,
        synchronized,
        is_good);
  }
  return is_good;
}

// What a plain copy of the same bytes takes, while the other rank is idle.
void run_copy(const pair_channel& pair, const ipc_rank& me, std::size_t bytes) {
  if (pair.rank() == 0) {
    const enqueue_function enqueue = [&](cuda::stream_ref s) {
      cuda::copy_async(me.stream.owner(), me.out.address(), me.in.address(), bytes, s);
    };
    const auto nobody = [] {};
    const int count = repeats_for(bytes);
    fmt::print(
        "{{\"bench\":\"copy\",\"bytes\":{},\"back_to_back_graph_us\":{:.3f},"
        "\"back_to_back_eager_us\":{:.3f},\"host_synchronized_us\":{:.3f}}}\n",
        bytes,
        back_to_back_us(me.stream, count, enqueue, nobody),
        eager_us(me.stream, count, enqueue, nobody),
        synchronized_us(me.stream, 200, enqueue));
  }
  pair.meet();
}

void run_fused(const kernels::kernel_module& loaded,
               const pair_channel& pair,
               const ipc_rank& me,
               std::size_t rows,
               std::size_t hidden) {
  const std::size_t bytes = rows * hidden * sizeof(bfloat16);
  const cuda::device& device = loaded.owner();
  const auto residual = cuda::device_buffer::allocate(device, bytes);
  const auto weight = cuda::device_buffer::allocate(device, bytes);
  const auto normed = cuda::device_buffer::allocate(device, bytes);
  for (const cuda::device_buffer* buffer : {&residual, &weight}) {
    cuda::fill_async(device, buffer->address(), 0x3c, bytes, me.stream);
  }
  finish(me.stream);
  const std::array<const void*, 1> own = {me.in.address()};
  const std::array<const void*, 1> reduced = {me.out.address()};
  kernels::rms_norm_call call{.dtype = data_type::bfloat16,
                              .partials = own,
                              .residual = residual.address(),
                              .weight = weight.address(),
                              .residual_out = residual.address(),
                              .out = normed.address(),
                              .rows = rows,
                              .hidden = hidden};
  const auto meet = [&] { pair.meet(); };
  const double fused = back_to_back_us(
      me.stream,
      50,
      [&](cuda::stream_ref s) { kernels::one_shot_rms_norm(loaded, me.segments, call, s); },
      meet);
  call.partials = reduced;
  const auto apart = [&](cuda::stream_ref s) {
    kernels::all_reduce(loaded,
                        me.segments,
                        *kernels::choose_protocol(bytes, limits, most_bytes),
                        {data_type::bfloat16, me.in.address(), me.out.address(), rows * hidden},
                        s);
    kernels::rms_norm(loaded, call, s);
  };
  const double two = back_to_back_us(me.stream, 50, apart, meet);
  if (pair.rank() == 0) {
    fmt::print(
        "{{\"bench\":\"one_shot_rms_norm\",\"ranks\":2,\"dtype\":\"bf16\",\"rows\":{},"
        "\"hidden\":{},\"bytes\":{},\"fused_us\":{:.3f},\"all_reduce_then_norm_us\":{:.3f}}}\n",
        rows,
        hidden,
        bytes,
        fused,
        two);
  }
}

}  // namespace

bool run_exchange(const kernels::kernel_module& loaded, const pair_channel& pair) {
  const ipc_rank me{loaded, pair};
  bool is_good = true;
  for (std::size_t bytes = 1024; bytes <= most_bytes; bytes *= 2) {
    if (bytes > 65536 && (bytes / 65536) % 4 == 2) {
      continue;  // every second size is enough beyond 64 KiB
    }
    run_copy(pair, me, bytes);
    for (const exchange_protocol protocol : {exchange_protocol::low_latency,
                                             exchange_protocol::one_shot,
                                             exchange_protocol::two_shot}) {
      const bool fits =
          protocol != exchange_protocol::low_latency || bytes <= limits.low_latency_bytes;
      is_good = (!fits || run_protocol(loaded, pair, me, protocol, bytes)) && is_good;
    }
  }
  for (const std::size_t hidden : {4096U, 8192U}) {
    for (const std::size_t rows : {1U, 4U, 16U, 64U}) {
      run_fused(loaded, pair, me, rows, hidden);
    }
  }
  pair.meet();  // nobody unmaps what the other still reads
  return is_good;
}

}  // namespace spark_comm::bench
