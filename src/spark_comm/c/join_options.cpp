// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/c/communicator.h>
#include <spark_comm/c/detail/boundary.hpp>
#include <spark_comm/c/detail/join_options.hpp>
#include <spark_comm/comm/options.hpp>
#include <spark_comm/comm/path_options.hpp>
#include <spark_comm/nccl/config.hpp>
#include <spark_comm/rendezvous/secret.hpp>
#include <spark_comm/rendezvous/session.hpp>
#include <spark_comm/supervise/options.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace spark_comm::c {
namespace {

std::optional<rendezvous::secret> key_of(const spark_comm_join_options& given,
                                         const arguments& check) {
  if (given.key != nullptr && given.key_file != nullptr) {
    check.refuse("both key and key_file are set");
  }
  if (given.key != nullptr) {
    return rendezvous::secret::from_text(given.key);
  }
  if (given.key_file != nullptr) {
    return rendezvous::secret::from_file(given.key_file);
  }
  return rendezvous::secret::from_environment();
}

supervision supervision_of(std::int32_t given, supervision fallback, const arguments& check) {
  switch (given) {
    case SPARK_COMM_SUPERVISION_DEFAULT: return fallback;
    case SPARK_COMM_SUPERVISION_ON:      return supervision::on;
    case SPARK_COMM_SUPERVISION_OFF:     return supervision::off;
    default:                             check.refuse("supervision " + std::to_string(given) + " is not one of spark_comm's");
  }
}

mismatch_check mismatch_of(std::int32_t given, mismatch_check fallback, const arguments& check) {
  switch (given) {
    case SPARK_COMM_MISMATCH_DEFAULT:    return fallback;
    case SPARK_COMM_MISMATCH_BACKGROUND: return mismatch_check::background;
    case SPARK_COMM_MISMATCH_STRICT:     return mismatch_check::strict;
    case SPARK_COMM_MISMATCH_OFF:        return mismatch_check::off;
    default:
      check.refuse("mismatch_check " + std::to_string(given) + " is not one of spark_comm's");
  }
}

supervise_options supervise_of(const spark_comm_join_options& given, const arguments& check) {
  supervise_options options = supervise_options::from_environment();
  options.enabled = supervision_of(given.supervision, options.enabled, check);
  options.check = mismatch_of(given.mismatch_check, options.check, check);
  options.heartbeat_interval = check.limit_or(
      given.heartbeat_interval_ns, options.heartbeat_interval, "heartbeat_interval_ns");
  options.silence_limit =
      check.limit_or(given.silence_limit_ns, options.silence_limit, "silence_limit_ns");
  if (given.record_directory != nullptr) {
    options.record_directory = given.record_directory;
  }
  if (given.record_capacity != 0) {
    options.record_capacity = given.record_capacity;
  }
  return options;
}

path_options paths_of(const spark_comm_join_options& given, const arguments& check) {
  path_options options = path_options::from_environment();
  if (given.path_table_file != nullptr) {
    options.table_file = given.path_table_file;
  }
  options.table = text_of(given.path_table);
  if (given.path_max_bytes.is_set != 0) {
    if (given.path_max_bytes.value < 0) {
      check.refuse("path_max_bytes is negative");
    }
    options.max_bytes = static_cast<std::size_t>(given.path_max_bytes.value);
  }
  if (given.path_max_streams != 0) {
    options.max_streams = given.path_max_streams;
  }
  return options;
}

nccl::config_options nccl_of(const spark_comm_join_options& given, const arguments& check) {
  return {
      .min_ctas = check.optional_int(given.nccl_min_ctas, "nccl_min_ctas"),
      .max_ctas = check.optional_int(given.nccl_max_ctas, "nccl_max_ctas"),
      .cga_cluster_size = check.optional_int(given.nccl_cga_cluster_size, "nccl_cga_cluster_size"),
      .traffic_class = check.optional_int(given.nccl_traffic_class, "nccl_traffic_class"),
      .n_channels_per_net_peer =
          check.optional_int(given.nccl_channels_per_net_peer, "nccl_channels_per_net_peer"),
      .net_name = text_of(given.nccl_net_name)};
}

}  // namespace

join_options to_join_options(const spark_comm_join_options& given, const arguments& check) {
  join_options options{
      .device = check.optional_int(given.device, "device"),
      .sharing = given.share_device != 0 ? device_sharing::allowed : device_sharing::refused,
      .key = key_of(given, check),
      .supervise = supervise_of(given, check),
      .paths = paths_of(given, check),
      .nccl = nccl_of(given, check)};
  if (given.name != nullptr) {
    options.name = given.name;
  }
  options.deadline = check.limit_or(given.deadline_ns, options.deadline, "deadline_ns");
  options.operation_deadline = check.limit_or(
      given.operation_deadline_ns, options.operation_deadline, "operation_deadline_ns");
  options.abort_deadline =
      check.limit_or(given.abort_deadline_ns, options.abort_deadline, "abort_deadline_ns");
  if (given.replaces_lost_rank != 0) {
    options.way_in = rendezvous::entry::replacing;
  }
  if (given.on_listening != nullptr) {
    options.on_listening = [call = given.on_listening, data = given.on_listening_data](
                               const std::string& address) { call(data, address.c_str()); };
  }
  return options;
}

}  // namespace spark_comm::c
