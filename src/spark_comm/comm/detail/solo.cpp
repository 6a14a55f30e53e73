// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/detail/solo.hpp>
#include <spark_comm/comm/operation.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <cstddef>
#include <fmt/format.h>
#include <span>
#include <string>
#include <vector>

namespace spark_comm::detail {
namespace {

std::size_t bytes_of(const operation& op) noexcept {
  return op.record.count_elements * size_of(op.record.dtype);
}

[[noreturn]] void refuse(const communicator_core& core,
                         errc code,
                         const operation& op,
                         const std::string& message) {
  error_context around = core.context();
  around.operation = name_of(op.record.kind);
  around.count_elements = op.record.count_elements;
  around.dtype = op.record.dtype;
  throw error{code, message, around};
}

struct message_to_self {
  const operation* sent;
  const operation* received;
};

// Sends and receives of a rank to itself pair up in their order, as between any two ranks.
std::vector<message_to_self> pair_up(const communicator_core& core,
                                     std::span<const operation> operations) {
  std::vector<const operation*> sends;
  std::vector<const operation*> receives;
  for (const operation& op : operations) {
    if (is_point_to_point(op.record.kind) && op.record.root_or_peer == core.place().rank) {
      (op.record.kind == operation_kind::send ? sends : receives).push_back(&op);
    }
  }
  if (sends.size() != receives.size()) {
    refuse(core,
           errc::invalid_usage,
           *(sends.empty() ? receives : sends).front(),
           fmt::format("the group holds {} messages to this rank itself and receives {}",
                       sends.size(),
                       receives.size()));
  }
  std::vector<message_to_self> pairs;
  for (std::size_t i = 0; i < sends.size(); ++i) {
    if (bytes_of(*sends[i]) != bytes_of(*receives[i])) {
      refuse(core,
             errc::invalid_argument,
             *receives[i],
             fmt::format("this rank sends itself {} bytes and expects {}",
                         bytes_of(*sends[i]),
                         bytes_of(*receives[i])));
    }
    pairs.push_back({sends[i], receives[i]});
  }
  return pairs;
}

void copy(const communicator_core& core, const void* in, const operation& to) {
  if (in != to.out && bytes_of(to) != 0) {
    cuda::copy_async(core.device(), to.out, in, bytes_of(to), cuda::stream_ref{to.stream});
  }
}

}  // namespace

void require_paired_self_messages(const communicator_core& core,
                                  std::span<const operation> operations) {
  static_cast<void>(pair_up(core, operations));
}

void run_alone(const communicator_core& core, std::span<const operation> operations) {
  const std::vector<message_to_self> messages = pair_up(core, operations);
  for (const message_to_self& message : messages) {
    if (message.sent->stream != message.received->stream) {
      refuse(core,
             errc::invalid_usage,
             *message.received,
             "both halves of a message to this rank itself belong on one stream");
    }
  }
  for (const operation& op : operations) {
    if (!is_point_to_point(op.record.kind)) {
      copy(core, op.in, op);
    }
  }
  for (const message_to_self& message : messages) {
    copy(core, message.sent->in, *message.received);
  }
}

}  // namespace spark_comm::detail
