// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/detail/polling.hpp>
#include <spark_comm/cuda/detail/relaxed_capture.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/driver.hpp>
#include <spark_comm/cuda/event.hpp>
#include <spark_comm/cuda/handles.hpp>
#include <spark_comm/cuda/stream.hpp>
#include <spark_comm/cuda/stream_ref.hpp>

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <memory>
#include <utility>

namespace spark_comm::cuda {

struct device::state {
  state(driver with, int number, abi::device which)
      : loaded(std::move(with)), ordinal(number), handle(which) {
    loaded.check(loaded.table().cuDevicePrimaryCtxRetain(&context, handle),
                 "cuDevicePrimaryCtxRetain");
  }

  state(const state&) = delete;
  state& operator=(const state&) = delete;
  state(state&&) = delete;
  state& operator=(state&&) = delete;

  ~state() {
    loaded.check_noexcept(loaded.table().cuDevicePrimaryCtxRelease_v2(handle),
                          "cuDevicePrimaryCtxRelease_v2");
  }

  driver loaded;
  int ordinal;
  abi::device handle;
  abi::context context = nullptr;
};

namespace {

int attribute_of(const driver& loaded, abi::device handle, int attribute) {
  int value = 0;
  loaded.check(loaded.table().cuDeviceGetAttribute(&value, attribute, handle),
               "cuDeviceGetAttribute");
  return value;
}

unique_event create_event_with(const device& owner, unsigned int flags) {
  const driver& loaded = owner.loaded_driver();
  const device_scope scope{owner};
  abi::event handle = nullptr;
  loaded.check(loaded.table().cuEventCreate(&handle, flags), "cuEventCreate");
  return unique_event::adopt(handle, {.owner = loaded});
}

// Asked before the query itself, because the query of a capturing stream ends the capture.
void refuse_capturing(const driver& loaded, stream_ref s) {
  abi::capture_status status = abi::capture_status::none;
  loaded.check(loaded.table().cuStreamIsCapturing(s.get(), &status), "cuStreamIsCapturing");
  if (status != abi::capture_status::none) {
    throw error{errc::invalid_usage,
                "the stream is being captured: its work runs when the graph is launched, so it "
                "cannot be asked or waited for now"};
  }
}

// The caller has made the device current and relaxed the thread's capture mode.
progress poll_stream(const driver& loaded, stream_ref s) {
  refuse_capturing(loaded, s);
  const abi::result code = loaded.table().cuStreamQuery(s.get());
  if (code == abi::results::not_ready) {
    return progress::pending;
  }
  loaded.check(code, "cuStreamQuery");
  return progress::done;
}

}  // namespace

device device::open(const driver& loaded, int ordinal) {
  const int count = loaded.device_count();
  if (count == 0) {
    throw error{errc::device_failed, "no device is visible"};
  }
  if (ordinal < 0 || ordinal >= count) {
    throw error{errc::invalid_argument, fmt::format("device {} of {} visible", ordinal, count)};
  }
  abi::device handle = 0;
  loaded.check(loaded.table().cuDeviceGet(&handle, ordinal), "cuDeviceGet");
  return device{std::make_shared<const state>(loaded, ordinal, handle)};
}

int device::ordinal() const noexcept {
  return state_->ordinal;
}

const driver& device::loaded_driver() const noexcept {
  return state_->loaded;
}

abi::context device::context() const noexcept {
  return state_->context;
}

device_info device::info() const {
  const driver& loaded = state_->loaded;
  const api& table = loaded.table();
  const abi::device handle = state_->handle;
  std::array<char, 256> text{};
  const int text_length = static_cast<int>(text.size()) - 1;  // ends with a zero whatever comes

  device_info known;
  known.ordinal = state_->ordinal;
  loaded.check(table.cuDeviceGetName(text.data(), text_length, handle), "cuDeviceGetName");
  known.name = text.data();
  text.fill('\0');
  loaded.check(table.cuDeviceGetPCIBusId(text.data(), text_length, handle), "cuDeviceGetPCIBusId");
  known.pci_bus_id = text.data();
  abi::uuid id{};
  loaded.check(table.cuDeviceGetUuid_v2(&id, handle), "cuDeviceGetUuid_v2");
  std::ranges::copy(id.bytes, known.uuid.begin());
  loaded.check(table.cuDeviceTotalMem_v2(&known.total_bytes, handle), "cuDeviceTotalMem_v2");
  known.compute_major =
      attribute_of(loaded, handle, abi::device_attribute::compute_capability_major);
  known.compute_minor =
      attribute_of(loaded, handle, abi::device_attribute::compute_capability_minor);
  known.multiprocessors = attribute_of(loaded, handle, abi::device_attribute::multiprocessor_count);
  return known;
}

stream device::create_stream() const {
  const driver& loaded = state_->loaded;
  const device_scope scope{*this};
  abi::stream handle = nullptr;
  loaded.check(loaded.table().cuStreamCreate(&handle, abi::flags::stream_non_blocking),
               "cuStreamCreate");
  return stream{*this, unique_stream::adopt(handle, {.owner = loaded})};
}

event device::create_event() const {
  return event{*this, create_event_with(*this, abi::flags::event_disable_timing)};
}

event device::create_timed_event() const {
  return event{*this, create_event_with(*this, 0)};
}

progress device::poll(stream_ref s) const {
  const device_scope scope{*this};
  const detail::relaxed_capture relaxed{state_->loaded};
  return poll_stream(state_->loaded, s);
}

wait_result device::wait(stream_ref s, duration limit) const {
  const device_scope scope{*this};
  const detail::relaxed_capture relaxed{state_->loaded};
  return detail::wait_polling([&] { return poll_stream(state_->loaded, s); }, limit);
}

bool device::is_capturing(stream_ref s) const {
  const device_scope scope{*this};
  abi::capture_status status = abi::capture_status::none;
  state_->loaded.check(state_->loaded.table().cuStreamIsCapturing(s.get(), &status),
                       "cuStreamIsCapturing");
  return status != abi::capture_status::none;
}

device::memory_info device::memory() const {
  const device_scope scope{*this};
  memory_info bytes;
  state_->loaded.check(
      state_->loaded.table().cuMemGetInfo_v2(&bytes.free_bytes, &bytes.total_bytes),
      "cuMemGetInfo_v2");
  return bytes;
}

device_scope::device_scope(const device& target) : loaded_(&target.loaded_driver()) {
  loaded_->check(loaded_->table().cuCtxGetCurrent(&former_), "cuCtxGetCurrent");
  if (former_ != target.context()) {
    loaded_->check(loaded_->table().cuCtxSetCurrent(target.context()), "cuCtxSetCurrent");
  }
}

device_scope::~device_scope() {
  // A call in between, NCCL's for one, may have made another one current.
  abi::context current = nullptr;
  loaded_->check_noexcept(loaded_->table().cuCtxGetCurrent(&current), "cuCtxGetCurrent");
  if (current != former_) {
    loaded_->check_noexcept(loaded_->table().cuCtxSetCurrent(former_), "cuCtxSetCurrent");
  }
}

}  // namespace spark_comm::cuda
