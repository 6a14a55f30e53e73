// SPDX-License-Identifier: AGPL-3.0-only
// The communicator, from joining to the end.
#include <spark_comm/c/communicator.h>
#include <spark_comm/c/detail/boundary.hpp>
#include <spark_comm/c/detail/handles.hpp>
#include <spark_comm/c/detail/join_options.hpp>
#include <spark_comm/c/types.h>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/options.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/rendezvous/session.hpp>
#include <spark_comm/rendezvous/world.hpp>
#include <spark_comm/supervise/communicator_state.hpp>

#include <cstdint>
#include <optional>

namespace {

using spark_comm::communicator_state;
using spark_comm::c::arguments;
using spark_comm::c::created;
using spark_comm::c::guarded;

static_assert(SPARK_COMM_STATE_JOINING == static_cast<int>(communicator_state::joining));
static_assert(SPARK_COMM_STATE_READY == static_cast<int>(communicator_state::ready));
static_assert(SPARK_COMM_STATE_BROKEN == static_cast<int>(communicator_state::broken));
static_assert(SPARK_COMM_STATE_ABORTED == static_cast<int>(communicator_state::aborted));
static_assert(SPARK_COMM_STATE_CLOSED == static_cast<int>(communicator_state::closed));

spark_comm::world place_of(const spark_comm_world* given, const arguments& check) {
  if (given == nullptr) {
    return spark_comm::world::from_environment();
  }
  const spark_comm_world known = check.read(given);
  return {.address = spark_comm::c::text_of(known.address),
          .rank = known.rank,
          .world_size = known.world_size};
}

}  // namespace

spark_comm_code spark_comm_communicator_join(const spark_comm_runtime* loaded,
                                             const spark_comm_world* place,
                                             const spark_comm_join_options* options,
                                             spark_comm_communicator** communicator,
                                             spark_comm_error** failure) {
  return created(__func__, communicator, failure, [&](const arguments& check) {
    return spark_comm::communicator::join(
        check.deref(loaded, "the runtime").value,
        place_of(place, check),
        spark_comm::c::to_join_options(check.read(options), check));
  });
}

spark_comm_code spark_comm_communicator_start_join(const spark_comm_runtime* loaded,
                                                   const spark_comm_world* place,
                                                   const spark_comm_join_options* options,
                                                   spark_comm_communicator** communicator,
                                                   spark_comm_error** failure) {
  return created(__func__, communicator, failure, [&](const arguments& check) {
    return spark_comm::communicator::start_join(
        check.deref(loaded, "the runtime").value,
        place_of(place, check),
        spark_comm::c::to_join_options(check.read(options), check));
  });
}

spark_comm_code spark_comm_communicator_poll_join(spark_comm_communicator* communicator,
                                                  spark_comm_progress* progress,
                                                  spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const arguments& check) {
    spark_comm_progress& answer = check.deref(progress, "progress");
    answer = SPARK_COMM_PENDING;
    auto& joining = check.deref(communicator, "the communicator").value;
    answer = spark_comm::c::number_of(joining.poll_join());
  });
}

std::int32_t spark_comm_communicator_rank(const spark_comm_communicator* communicator) {
  return communicator == nullptr ? -1 : communicator->value.rank();
}

std::int32_t spark_comm_communicator_world_size(const spark_comm_communicator* communicator) {
  return communicator == nullptr ? 0 : communicator->value.world_size();
}

const char* spark_comm_communicator_name(const spark_comm_communicator* communicator) {
  return communicator == nullptr ? "" : communicator->value.name().c_str();
}

spark_comm_state spark_comm_communicator_state(const spark_comm_communicator* communicator) {
  return communicator == nullptr ? SPARK_COMM_STATE_CLOSED
                                 : static_cast<spark_comm_state>(communicator->value.state());
}

std::uint64_t spark_comm_communicator_sequence(const spark_comm_communicator* communicator) {
  return communicator == nullptr ? 0 : communicator->value.sequence();
}

std::uint64_t spark_comm_communicator_generation(const spark_comm_communicator* communicator) {
  return communicator == nullptr ? 0 : communicator->value.generation();
}

const spark_comm_device* spark_comm_communicator_device(
    const spark_comm_communicator* communicator) {
  return communicator == nullptr ? nullptr : &communicator->device;
}

const char* spark_comm_state_name(spark_comm_state state) {
  return name_of(spark_comm::c::any_of<communicator_state>(state)).data();
}

spark_comm_error* spark_comm_communicator_last_error(const spark_comm_communicator* communicator) {
  spark_comm_error* last = nullptr;
  // An error that cannot be copied is told as what went wrong meanwhile.
  spark_comm_error* meanwhile = nullptr;
  const spark_comm_code code = guarded(__func__, &meanwhile, [&](const arguments& check) {
    const auto& asked = check.deref(communicator, "the communicator").value;
    if (const std::optional<spark_comm::error> first = asked.last_error()) {
      last = new spark_comm_error{*first};
    }
  });
  return code == SPARK_COMM_OK ? last : meanwhile;
}

spark_comm_code spark_comm_communicator_wait(spark_comm_communicator* communicator,
                                             spark_comm_native_stream stream,
                                             std::int64_t limit_ns,
                                             spark_comm_progress* progress,
                                             spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const arguments& check) {
    spark_comm_progress& answer = check.deref(progress, "progress");
    answer = SPARK_COMM_PENDING;
    auto& waiting = check.deref(communicator, "the communicator").value;
    answer = spark_comm::c::number_of(waiting.wait(stream, check.limit(limit_ns, "limit_ns")));
  });
}

spark_comm_code spark_comm_communicator_reconnect(spark_comm_communicator* communicator,
                                                  const spark_comm_reconnect_options* options,
                                                  spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const arguments& check) {
    const spark_comm_reconnect_options known = check.read(options);
    spark_comm::reconnect_options how;
    how.deadline = check.limit_or(known.deadline_ns, how.deadline, "deadline_ns");
    if (known.survivors_only != 0) {
      how.who = spark_comm::rendezvous::membership::survivors;
    }
    check.deref(communicator, "the communicator").value.reconnect(how);
  });
}

spark_comm_code spark_comm_communicator_close(spark_comm_communicator* communicator,
                                              std::int64_t limit_ns,
                                              spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const arguments& check) {
    check.deref(communicator, "the communicator").value.close(check.limit(limit_ns, "limit_ns"));
  });
}

void spark_comm_communicator_abort(spark_comm_communicator* communicator) {
  if (communicator != nullptr) {
    communicator->value.abort();
  }
}

void spark_comm_communicator_destroy(spark_comm_communicator* communicator) {
  delete communicator;
}
