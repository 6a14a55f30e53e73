// SPDX-License-Identifier: AGPL-3.0-only
// Identity, status and connection of a communicator; its ends are in life.cpp, launching in
// launch.cpp.
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/detail/native_communicator.hpp>
#include <spark_comm/comm/options.hpp>
#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/nccl/abi.hpp>
#include <spark_comm/nccl/config.hpp>
#include <spark_comm/nccl/library.hpp>
#include <spark_comm/rendezvous/session.hpp>
#include <spark_comm/rendezvous/world.hpp>
#include <spark_comm/supervise/communicator_state.hpp>

#include <cstddef>
#include <cstring>
#include <exception>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace spark_comm::detail {
namespace {

// Twice what makes the watchdog look early: it has half of them back before the pool runs dry.
constexpr std::size_t events_in_flight = 2 * in_flight_table::default_capacity;

void validate(const world& place, const join_options& options) {
  if (place.world_size < 1) {
    throw error{errc::invalid_argument,
                fmt::format("world size {} is not at least 1", place.world_size)};
  }
  if (place.rank < 0 || place.rank >= place.world_size) {
    throw error{errc::invalid_argument,
                fmt::format("rank {} is outside the world: 0 to {} are accepted",
                            place.rank,
                            place.world_size - 1)};
  }
  if (options.deadline <= duration::zero() || options.operation_deadline <= duration::zero() ||
      options.abort_deadline <= duration::zero()) {
    throw error{errc::invalid_argument, "deadlines must be longer than zero"};
  }
  options.supervise.validate();
  nccl::validate(options.nccl);
}

cuda::device open_device(const runtime& loaded, const world& place, const join_options& options) {
  const int visible = loaded.driver().device_count();
  if (visible == 0) {
    throw error{errc::device_failed, "no device is visible; check CUDA_VISIBLE_DEVICES"};
  }
  return cuda::device::open(loaded.driver(), options.device.value_or(place.rank % visible));
}

bool reduces_fp8(const runtime& loaded, const cuda::device& device) {
  // The hardware's own arithmetic came with compute capability 9.0; the host runtime has its own.
  return loaded.library().supports(nccl::capability::fp8) &&
         (loaded.kind() == runtime_kind::host || device.info().compute_major >= 9);
}

std::string as_hex(std::span<const std::uint8_t> raw) {
  std::string text;
  for (const std::uint8_t byte : raw) {
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

}  // namespace

communicator_core::communicator_core(runtime loaded, world place, join_options options)
    : loaded_((validate(place, options), std::move(loaded))),
      place_(std::move(place)),
      options_(std::move(options)),
      device_(open_device(loaded_, place_, options_)),
      can_reduce_fp8_(reduces_fp8(loaded_, device_)),
      events_(device_, events_in_flight) {}

communicator_core::~communicator_core() {
  end_supervision(flight_end::aborted);  // its thread calls back into this object
}

error_context communicator_core::context() const {
  return {.communicator = options_.name,
          .rank = place_.rank,
          .world_size = place_.world_size,
          .device = device_.ordinal()};
}

void communicator_core::fail(const error& cause) noexcept {
  try {
    status_.fail(std::make_shared<const error>(cause));
  } catch (const std::exception& failure) {
    loaded_.log().report(failure, "while keeping an error");
  }
}

void communicator_core::require_operable() const {
  if (status_.state() != communicator_state::ready) {
    status_.require(communicator_action::operate, context());
  }
}

progress communicator_core::poll(cuda::stream_ref s) {
  try {
    return device_.poll(s);
  } catch (const error& failure) {
    if (failure.kind() == errc::invalid_usage) {
      throw;
    }
    error_context around = context();
    around.operation = "wait";
    around.sequence = sequence();
    const error full = failure.with_context(around);
    fail_and_announce(full);
    throw full;
  }
}

rendezvous::hello communicator_core::introduce() const {
  using rendezvous::fact_rule;
  const nccl::library& library = loaded_.library();
  rendezvous::hello mine{.generation = generation_, .facts = {}};
  mine.facts.push_back({"runtime", std::string{name_of(loaded_.kind())}, fact_rule::equal});
  mine.facts.push_back({"NCCL version", nccl::version_text(library.version()), fact_rule::equal});
  mine.facts.push_back({"NCCL build", library.build_id(), fact_rule::reported});
  // A supervised rank would take an unsupervised one for silent, and a strict one wait for the
  // others' word before each launch.
  mine.facts.push_back({"supervision",
                        options_.supervise.enabled == supervision::off
                            ? std::string{"off"}
                            : fmt::format("on, {} check", name_of(options_.supervise.check)),
                        fact_rule::equal});
  if (options_.sharing == device_sharing::refused) {
    mine.facts.push_back({"device", as_hex(device_.info().uuid), fact_rule::distinct});
  }
  return mine;
}

nccl::abi::unique_id communicator_core::share_id(const deadline& until) {
  nccl::abi::unique_id id{};
  if (place_.rank == 0) {
    // As late as possible, and once: each id costs NCCL a thread and a socket that stay until all
    // ranks have used it.
    const cuda::device_scope current{device_};
    loaded_.library().check(loaded_.library().table().ncclGetUniqueId(&id), "ncclGetUniqueId");
  }
  const rendezvous::bytes shared =
      session_->broadcast(std::as_bytes(std::span{id.internal}), until);
  if (shared.size() != sizeof(id.internal)) {
    throw error{
        errc::peer_lost,
        fmt::format(
            "the head sent {} of the {} bytes of the NCCL id", shared.size(), sizeof(id.internal)),
        {.peers = {0}}};
  }
  std::memcpy(id.internal, shared.data(), shared.size());
  return id;
}

watchdog_hooks communicator_core::make_hooks() {
  return {
      .on_failure = [this](const watch_verdict& verdict) { fail(to_error(verdict, context())); },
      .native_health = [this, native = native_]() -> std::optional<native_failure> {
        if (gate_.enter_as_poller() != call_gate::entry::entered) {
          return std::nullopt;  // the join or an issuer is inside and sees for itself
        }
        const gate_pass pass{gate_};
        const nccl::abi::result code = native->async_error();
        if (code == nccl::abi::results::success) {
          return std::nullopt;
        }
        return native_failure{.code = nccl::errc_of(code),
                              .native = loaded_.library().describe(code, "ncclCommGetAsyncError"),
                              .operation = std::nullopt};
      },
      .on_thread_start =
          [this] {
            // The thread is the watchdog's own: nobody else's current device is changed. Its
            // questions must not break a capture that a thread of the program has going.
            const cuda::api& call = loaded_.driver().table();
            loaded_.driver().check(call.cuCtxSetCurrent(device_.context()), "cuCtxSetCurrent");
            auto mode = cuda::abi::capture_mode::relaxed;
            loaded_.driver().check(call.cuThreadExchangeStreamCaptureMode(&mode),
                                   "cuThreadExchangeStreamCaptureMode");
          }};
}

void communicator_core::connect(const deadline& until) {
  session_ = rendezvous::session::meet(place_,
                                       introduce(),
                                       until,
                                       {.on_listening = options_.on_listening,
                                        .log = loaded_.log(),
                                        .cancel = give_up_.get_token()});
  native_ = std::make_shared<native_communicator>(loaded_.library(), device_);
  const native_setup setup{.id = share_id(until),
                           .rank = place_.rank,
                           .world_size = place_.world_size,
                           .options = options_.nccl};
  supervisor_ = std::make_unique<supervisor>(
      flight_identity{.name = options_.name,
                      .rank = place_.rank,
                      .world_size = place_.world_size,
                      .generation = static_cast<std::uint32_t>(generation_)},
      session_.get(),
      options_.supervise,
      make_hooks(),
      loaded_.log());
  supervisor_->start();
  if (options_.supervise.enabled == supervision::on) {
    events_.fill();
  }
  enter();
  const gate_pass pass{gate_};
  native_->connect(setup, until, [this] {
    // A peer that died, or an abort from another thread, has moved the state away.
    if (status_.state() != communicator_state::joining) {
      status_.require(communicator_action::operate, context());
    }
  });
  working_ = native_->working();
}

void communicator_core::end_supervision(flight_end how) noexcept {
  const std::scoped_lock lock{end_mutex_};
  if (supervisor_ != nullptr) {
    supervisor_->stop(how);
  } else if (session_ != nullptr) {
    session_->stop();
  }
}

void communicator_core::fail_and_announce(const error& cause) noexcept {
  fail(cause);
  if (supervisor_ == nullptr) {
    return;
  }
  try {
    supervisor_->announce_failure(
        {.code = cause.kind(),
         .origin = place_.rank,
         .sequence = cause.context().sequence,
         .text = cause.message(),
         .peers = {cause.context().peers.begin(), cause.context().peers.end()}});
  } catch (const std::exception& failure) {
    loaded_.log().report(failure, "while telling the peers of a failure");
  }
}

}  // namespace spark_comm::detail
