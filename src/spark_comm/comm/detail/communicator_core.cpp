// SPDX-License-Identifier: AGPL-3.0-only
// Identity of a communicator and how it joins; its end is in ending.cpp, launching in launch.cpp.
#include <spark_comm/comm/detail/bounded.hpp>
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/detail/native_communicator.hpp>
#include <spark_comm/comm/environment_check.hpp>
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

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <exception>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
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
  options.paths.validate();
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

communicator_core::communicator_core(runtime loaded,
                                     world place,
                                     join_options options,
                                     std::shared_ptr<registry> registered,
                                     lineage before)
    : loaded_((validate(place, options), std::move(loaded))),
      place_(std::move(place)),
      options_(std::move(options)),
      device_(open_device(loaded_, place_, options_)),
      can_reduce_fp8_(reduces_fp8(loaded_, device_)),
      generation_(before.generation + 1),
      registered_(std::move(registered)),
      before_(std::move(before)),
      paths_(make_path_support(loaded_, device_, place_, options_)),
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
  paths_->abort();  // nothing that waits for a peer has a reason to any more
}

void communicator_core::require_operable() const {
  if (status_.state() != communicator_state::ready) {
    status_.require(communicator_action::operate, context());
  }
}

progress communicator_core::poll(cuda::stream_ref s) {
  try {
    const std::uint64_t marks = events_.marks_on(s);
    const progress seen = device_.poll(s);
    if (seen == progress::done) {
      events_.note_drained(s, marks);
    }
    return seen;
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
  rendezvous::hello mine{.generation = generation(), .facts = {}};
  mine.facts.push_back({"runtime", std::string{name_of(loaded_.kind())}, fact_rule::equal});
  mine.facts.push_back(
      {"NCCL version", nccl::version_text(library.version()), fact_rule::equal, library.file()});
  mine.facts.push_back({"NCCL build", library.build_id(), fact_rule::reported, library.file()});
  mine.facts.push_back(paths_->agreement());
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
  // The generation goes with it, so that an id is never used for another.
  struct letter {
    std::uint64_t generation;
    nccl::abi::unique_id id;
  };

  static_assert(sizeof(letter) == sizeof(std::uint64_t) + sizeof(nccl::abi::unique_id));
  letter mine{.generation = generation(), .id = {}};
  if (place_.rank == 0) {
    // As late as possible, and once: each id costs NCCL a thread and a socket that stay until all
    // ranks have used it.
    const cuda::device_scope current{device_};
    loaded_.library().check(loaded_.library().table().ncclGetUniqueId(&mine.id), "ncclGetUniqueId");
  }
  const rendezvous::bytes shared = session_->broadcast(std::as_bytes(std::span{&mine, 1}), until);
  if (shared.size() != sizeof mine) {
    throw error{
        errc::peer_lost,
        fmt::format("the head sent {} of the {} bytes of the NCCL id", shared.size(), sizeof mine),
        {.peers = {0}}};
  }
  std::memcpy(&mine, shared.data(), shared.size());
  if (mine.generation != generation()) {
    throw error{
        errc::mismatch,
        fmt::format(
            "the head sent an NCCL id of generation {}, this is {}", mine.generation, generation()),
        {.peers = {0}}};
  }
  return mine.id;
}

watchdog_hooks communicator_core::make_hooks() {
  return {.on_failure =
              [this](const watch_verdict& verdict) {
                if (verdict.was_announced && is_leaving_) {
                  return;  // our work is over, and a peer that fails because we leave is no failure
                           // here
                }
                fail(to_error(verdict, context()));
                start_ending();
              },
          .native_health = [this, native = native_]() -> std::optional<native_failure> {
            if (auto reported = paths_->failure()) {
              return reported;
            }
            if (gate_.enter_as_poller() != call_gate::entry::entered) {
              return std::nullopt;  // the join or an issuer is inside and sees for itself
            }
            const gate_pass pass{gate_};
            const nccl::abi::result code = native->async_error();
            if (code == nccl::abi::results::success) {
              return std::nullopt;
            }
            return native_failure{
                .code = nccl::errc_of(code),
                .native = loaded_.library().describe(code, "ncclCommGetAsyncError"),
                .operation = std::nullopt};
          },
          .on_thread_start =
              [this] {
                try {
                  prepare_watchdog_thread();
                } catch (const error& failure) {
                  // Unwatched it could hang for ever; and nobody is there to catch it on that
                  // thread.
                  fail_and_announce(failure.with_context(context()));
                }
              }};
}

void communicator_core::prepare_watchdog_thread() const {
  // The thread is the watchdog's own: nobody else's current device is changed. Its questions must
  // not break a capture that a thread of the program has going.
  const cuda::driver& driver = loaded_.driver();
  driver.check(driver.table().cuCtxSetCurrent(device_.context()), "cuCtxSetCurrent");
  auto mode = cuda::abi::capture_mode::relaxed;
  driver.check(driver.table().cuThreadExchangeStreamCaptureMode(&mode),
               "cuThreadExchangeStreamCaptureMode");
}

void communicator_core::meet(const deadline& until) {
  rendezvous::meeting_options how{.on_listening = options_.on_listening,
                                  .key = options_.key,
                                  .log = loaded_.log(),
                                  .cancel = give_up_.get_token(),
                                  .way_in = options_.way_in};
  if (before_.port != nullptr) {
    how.again = rendezvous::reunion{
        .listeners = before_.listeners, .port = before_.port, .who = before_.who};
  }
  session_ = rendezvous::session::meet(place_, introduce(), until, how);
  if (session_->world_size() != place_.world_size) {
    place_.rank = session_->rank();  // survivors alone; nobody looks while a reconnect is under way
    place_.world_size = session_->world_size();
  }
  generation_.store(session_->generation(), std::memory_order_relaxed);
}

void communicator_core::connect(const deadline& until) {
  check_environment(loaded_.log());
  meet(until);
  if (is_alone()) {
    return;  // the only survivor
  }
  native_ = std::make_shared<native_communicator>(loaded_.library(), device_);
  const native_setup setup{.id = share_id(until),
                           .rank = place_.rank,
                           .world_size = place_.world_size,
                           .options = options_.nccl};
  paths_->connect(*session_, until);
  supervisor_ = std::make_unique<supervisor>(
      flight_identity{.name = options_.name,
                      .rank = place_.rank,
                      .world_size = place_.world_size,
                      .generation = static_cast<std::uint32_t>(generation())},
      session_.get(),
      options_.supervise,
      make_hooks(),
      loaded_.log());
  supervisor_->start();
  if (options_.supervise.enabled == supervision::on) {
    events_.fill();
    if (!capture_marks_) {
      capture_marks_.emplace(device_);
    }
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
  registered_->renew(*this, until);
}

void communicator_core::join(const deadline& until) {
  error_context around = context();
  around.operation = "join";
  around.deadline = until.span();
  try {
    if (is_alone()) {
      registered_->renew(*this, until);
    } else {
      connect(until);
    }
    if (!status_.apply(communicator_event::joined)) {
      status_.require(communicator_action::operate, around);
    }
  } catch (const error& failure) {
    const error full = failure.with_context(around);
    give_up_join(full);
    throw full;
  } catch (const std::exception& failure) {
    const error full{errc::internal, failure.what(), around};
    give_up_join(full);
    throw full;
  }
  end_join();
}

void communicator_core::give_up_join(const error& cause) noexcept {
  fail_and_announce(cause);
  gate_.close();
  abort_native(options_.abort_deadline);
  release_paths();
  end_supervision(flight_end::broken);
  end_join();
}

void communicator_core::end_join() noexcept {
  {
    const std::scoped_lock lock{life_mutex_};
    is_joining_ = false;
  }
  join_over_.notify_all();
}

bool communicator_core::wait_for_join(const deadline& until) {
  std::unique_lock lock{life_mutex_};
  return join_over_.wait_for(lock, until.remaining(), [this] { return !is_joining_; });
}

}  // namespace spark_comm::detail
