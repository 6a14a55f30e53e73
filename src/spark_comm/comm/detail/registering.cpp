// SPDX-License-Identifier: AGPL-3.0-only
// How a communicator registers memory with NCCL, and takes it back: each native call at its time,
// once, and none on a native communicator that is gone.
#include <spark_comm/comm/detail/bounded.hpp>
#include <spark_comm/comm/detail/call_gate.hpp>
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/detail/registry.hpp>
#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/nccl/abi.hpp>
#include <spark_comm/nccl/library.hpp>
#include <spark_comm/supervise/communicator_state.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <fmt/format.h>
#include <memory>
#include <string>
#include <thread>

namespace spark_comm::detail {
namespace {

namespace results = nccl::abi::results;

// NCCL counts a window's start from that of its allocation. Nothing when the driver does not know
// the memory; then NCCL has to see for itself.
std::optional<std::size_t> offset_in_allocation(const cuda::device& device, const void* address) {
  const cuda::device_scope current{device};
  cuda::abi::device_ptr base = 0;
  std::size_t bytes = 0;
  const auto at = static_cast<cuda::abi::device_ptr>(std::bit_cast<std::uintptr_t>(address));
  const auto code = device.loaded_driver().table().cuMemGetAddressRange_v2(&base, &bytes, at);
  return code == cuda::abi::results::success ? std::optional{static_cast<std::size_t>(at - base)}
                                             : std::nullopt;
}

const char* operation_of(registration_kind kind) noexcept {
  return kind == registration_kind::window ? "register_window" : "register_buffer";
}

}  // namespace

void communicator_core::check_range(const memory_range& range) const {
  error_context around = context();
  around.operation = operation_of(range.kind);
  if (range.address == nullptr) {
    throw error{errc::invalid_argument, "the address is null", around};
  }
  if (range.bytes == 0) {
    throw error{errc::invalid_argument, "0 bytes cannot be registered", around};
  }
  if (range.kind != registration_kind::window || is_alone()) {
    return;
  }
  loaded_.library().require(nccl::capability::window);
  const auto offset = offset_in_allocation(device_, range.address);
  if (offset && *offset % nccl::abi::window_alignment_bytes != 0) {
    throw error{errc::invalid_argument,
                fmt::format("a window begins at a multiple of {} bytes from the start of its "
                            "allocation; this one begins at {}",
                            nccl::abi::window_alignment_bytes,
                            *offset),
                around};
  }
}

native_registration communicator_core::attach(const memory_range& range, const deadline& until) {
  check_range(range);
  require_operable();
  enter();
  const gate_pass pass{gate_};
  return attach_joining(range, until);
}

native_registration communicator_core::attach_joining(const memory_range& range,
                                                      const deadline& until) {
  native_registration out{.generation = generation_, .handle = nullptr};
  if (is_alone()) {
    return out;  // nothing leaves the device
  }
  try {
    out.handle = range.kind == registration_kind::window ? make_window(range, until)
                                                         : register_natively(range);
  } catch (const error& failure) {
    error_context around = context();
    around.operation = operation_of(range.kind);
    const error full = failure.with_context(around);
    if (range.kind == registration_kind::window) {
      fail_and_announce(full);  // the others are inside, and may wait for this rank
    }
    throw full;
  }
  if (out.handle == nullptr) {
    const std::string text = fmt::format(
        "'{}': NCCL took no notice of a {} of {} bytes: operations on it work as on any other "
        "memory",
        options_.name,
        name_of(range.kind),
        range.bytes);
    loaded_.log().report_once(
        severity::warning, options_.name + std::string{name_of(range.kind)}, text);
  }
  return out;
}

void* communicator_core::register_natively(const memory_range& range) const {
  const cuda::device_scope current{device_};
  void* handle = nullptr;  // some versions succeed without writing it
  loaded_.library().check(
      loaded_.library().table().ncclCommRegister(working_, range.address, range.bytes, &handle),
      "ncclCommRegister");
  return handle;
}

/// NCCL waits for the other ranks without a limit of its own.
void* communicator_core::make_window(const memory_range& range, const deadline& until) {
  constexpr auto slice = std::chrono::milliseconds{1};

  struct answer {
    nccl::abi::window window = nullptr;  // NCCL may write it from a thread of its own
    nccl::abi::result code = results::success;
  };

  const auto told = std::make_shared<answer>();
  bounded_call call{[told, range, self = shared_from_this()] {
    const cuda::device_scope current{self->device_};
    told->code = self->loaded_.library().table().ncclCommWindowRegister(
        self->working_,
        range.address,
        range.bytes,
        &told->window,
        nccl::abi::window_collective_symmetric);
  }};
  const communicator_state begun = status_.state();
  while (call.wait(deadline::after(std::min<duration>(slice, until.remaining()))) ==
         wait_result::timed_out) {
    if (status_.state() != begun) {
      status_.require(communicator_action::operate, context());
    }
    if (until.has_passed()) {
      throw error{errc::timed_out,
                  "not every rank has registered this window: all do, in the same order, and a new "
                  "rank right after its join",
                  {.deadline = until.span()}};
    }
  }
  loaded_.library().check(told->code, "ncclCommWindowRegister");
  native_->settle(working_, until, [this, begun] {
    if (status_.state() != begun) {
      status_.require(communicator_action::operate, context());
    }
  });
  return told->window;
}

void communicator_core::detach(registration_kind kind, const native_registration& native) {
  if (status_.state() != communicator_state::ready || native.handle == nullptr) {
    return;
  }
  enter();
  const gate_pass pass{gate_};
  if (events_.poll_all() == progress::pending) {
    error_context around = context();
    around.operation = "release";
    throw error{errc::invalid_usage,
                fmt::format("a {} cannot be released while operations are outstanding: wait for "
                            "them first",
                            name_of(kind)),
                around};
  }
  release_native(kind, native);
}

void communicator_core::detach_quietly(registration_kind kind,
                                       const native_registration& native) noexcept {
  const deadline until = deadline::after(options_.abort_deadline);
  constexpr auto pause = std::chrono::microseconds{100};
  try {
    while (status_.state() == communicator_state::ready) {
      try {
        detach(kind, native);
        return;
      } catch (const error& failure) {
        if (failure.kind() != errc::invalid_usage || until.has_passed()) {
          throw;
        }
      }
      std::this_thread::sleep_for(pause);
    }
  } catch (const std::exception& failure) {
    loaded_.log().report(failure, "while releasing a registration");
  }
}

void communicator_core::release_native(registration_kind kind,
                                       const native_registration& native) noexcept {
  if (native.handle == nullptr || native.generation != generation_) {
    return;  // NCCL let go of it when that generation ended
  }
  try {
    const cuda::device_scope current{device_};  // NCCL may leave the thread on another one
    const nccl::api& call = loaded_.library().table();
    if (kind == registration_kind::window) {
      loaded_.library().check(
          call.ncclCommWindowDeregister(working_, static_cast<nccl::abi::window>(native.handle)),
          "ncclCommWindowDeregister");
    } else {
      loaded_.library().check(call.ncclCommDeregister(working_, native.handle),
                              "ncclCommDeregister");
    }
  } catch (const std::exception& failure) {
    loaded_.log().report(failure, "while releasing a registration");
  }
}

}  // namespace spark_comm::detail
