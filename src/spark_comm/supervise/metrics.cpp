// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/supervise/flight_record.hpp>
#include <spark_comm/supervise/metrics.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <iterator>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace spark_comm {
namespace {

/// The value of a label, with what the format wants escaped.
std::string escaped(std::string_view value) {
  std::string text;
  for (const char letter : value) {
    switch (letter) {
      case '\\': text += "\\\\"; break;
      case '"':  text += "\\\""; break;
      case '\n': text += "\\n"; break;
      default:   text += letter;
    }
  }
  return text;
}

std::uint64_t bytes_of(const operation_record& record) {
  const bool has_elements =
      record.kind != operation_kind::group && record.kind != operation_kind::barrier;
  return has_elements ? record.count_elements * size_of(record.dtype) : 0;
}

/// Writes families: a heading, and then samples with the communicator's labels.
class writer {
 public:
  explicit writer(const flight_identity& who)
      : labels_(fmt::format("communicator=\"{}\",rank=\"{}\"", escaped(who.name), who.rank)) {}

  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }

  template <typename Value>
  void sample(Value value, const std::string& more = {}, std::string_view suffix = {}) {
    text_ += fmt::format(
        "{}{}{{{}{}{}}} {}\n", name_, suffix, labels_, more.empty() ? "" : ",", more, value);
  }

  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string labels_;
  std::string name_;
  std::string text_;
};

std::string labels_of(const std::pair<operation_kind, path_kind>& key) {
  return fmt::format("operation=\"{}\",path=\"{}\"", name_of(key.first), name_of(key.second));
}

void write_view(writer& out, const metrics_view& view) {
  out.family("spark_comm_operations_pending", "gauge", "Operations not yet seen to end.");
  out.sample(view.pending);
  out.family("spark_comm_oldest_pending_seconds",
             "gauge",
             "Age of the oldest operation that has not been seen to end.");
  out.sample(view.oldest_pending_seconds);
  out.family("spark_comm_collectives_submitted",
             "gauge",
             "Collectives that this rank has submitted in this generation.");
  out.sample(view.collectives_submitted);
  out.family("spark_comm_collectives_completed",
             "gauge",
             "Collectives that this rank has seen to end in this generation.");
  out.sample(view.collectives_completed);
  const auto each_peer = [&](auto value_of) {
    for (const peer_progress& peer : view.peers) {
      out.sample(value_of(peer), fmt::format("peer=\"{}\"", peer.rank));
    }
  };
  out.family("spark_comm_peer_connected", "gauge", "Whether the line to the peer is open.");
  each_peer([](const peer_progress& peer) { return peer.is_connected ? 1 : 0; });
  out.family("spark_comm_peer_silence_seconds", "gauge", "Time since the peer's last heartbeat.");
  each_peer([](const peer_progress& peer) { return peer.silent_seconds; });
  out.family("spark_comm_peer_collectives_submitted",
             "gauge",
             "Collectives that the peer has submitted, by its last heartbeat.");
  each_peer([](const peer_progress& peer) { return peer.collectives_submitted; });
  out.family("spark_comm_peer_collectives_completed",
             "gauge",
             "Collectives that the peer has seen to end, by its last heartbeat.");
  each_peer([](const peer_progress& peer) { return peer.collectives_completed; });
}

}  // namespace

communicator_metrics::communicator_metrics(flight_identity who) : who_(std::move(who)) {}

void communicator_metrics::ended(const operation_record& record, duration took) {
  const double seconds = std::chrono::duration<double>(took).count();
  const auto bucket = static_cast<std::size_t>(
      std::distance(latency_bounds.begin(), std::ranges::lower_bound(latency_bounds, seconds)));
  const std::scoped_lock lock{mutex_};
  operation_counts& counts = operations_[{record.kind, record.path}];
  counts.bytes += bytes_of(record);
  counts.buckets.at(bucket) += 1;
  counts.seconds += seconds;
}

void communicator_metrics::failed(errc code) {
  const std::scoped_lock lock{mutex_};
  failures_[code] += 1;
}

void communicator_metrics::looked(metrics_view view) {
  const std::scoped_lock lock{mutex_};
  view_ = std::move(view);
  looks_ += 1;
}

void communicator_metrics::stopped() {
  const std::scoped_lock lock{mutex_};
  is_up_ = false;
}

std::string communicator_metrics::exposition() const {
  const std::scoped_lock lock{mutex_};
  writer out{who_};
  out.family("spark_comm_up", "gauge", "1 while the communicator is supervised, 0 afterwards.");
  out.sample(is_up_ ? 1 : 0);
  out.family("spark_comm_world_size", "gauge", "Ranks of the communicator.");
  out.sample(who_.world_size);
  out.family("spark_comm_generation", "gauge", "How often the communicator has been connected.");
  out.sample(who_.generation);
  out.family("spark_comm_looks_total",
             "counter",
             "Rounds of the watchdog, at least one with each heartbeat.");
  out.sample(looks_);
  out.family("spark_comm_errors_total", "counter", "Failures, by the code of the error.");
  for (const errc code : all_errcs) {
    const auto at = failures_.find(code);
    out.sample(at == failures_.end() ? 0 : at->second, fmt::format("code=\"{}\"", name_of(code)));
  }
  out.family("spark_comm_operation_bytes_total",
             "counter",
             "Bytes of this rank's operations that ended well.");
  for (const auto& [key, counts] : operations_) {
    out.sample(counts.bytes, labels_of(key));
  }
  out.family("spark_comm_operation_seconds",
             "histogram",
             "From an operation's submission to when the watchdog saw its end; late by up to a "
             "heartbeat interval.");
  for (const auto& [key, counts] : operations_) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < counts.buckets.size(); ++i) {
      sum += counts.buckets.at(i);
      const std::string bound =
          i < latency_bounds.size() ? fmt::format("{}", latency_bounds.at(i)) : "+Inf";
      out.sample(sum, fmt::format("{},le=\"{}\"", labels_of(key), bound), "_bucket");
    }
    out.sample(counts.seconds, labels_of(key), "_sum");
    out.sample(sum, labels_of(key), "_count");
  }
  write_view(out, view_);
  return out.take();
}

}  // namespace spark_comm
