// SPDX-License-Identifier: AGPL-3.0-only
// The export for Perfetto. Source: the Chrome trace event format; times are microseconds.
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/supervise/flight_entry.hpp>
#include <spark_comm/supervise/flight_reader.hpp>
#include <spark_comm/supervise/operation.hpp>
#include <spark_comm/supervise/trace.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace spark_comm {
namespace {

/// Bytes of a UTF-8 sequence by its first; 0 if none begins so.
std::size_t length_by_first(unsigned first) noexcept {
  if (first < 0x80U) {
    return 1;
  }
  if (first < 0xc2U || first > 0xf4U) {
    return 0;
  }
  if (first < 0xe0U) {
    return 2;
  }
  return first < 0xf0U ? 3 : 4;
}

/// May `second` follow? Keeps out overlong forms, surrogates, and what lies beyond U+10FFFF.
bool may_follow(unsigned first, unsigned second) noexcept {
  switch (first) {
    case 0xe0U: return second >= 0xa0U && second <= 0xbfU;
    case 0xedU: return second >= 0x80U && second <= 0x9fU;
    case 0xf0U: return second >= 0x90U && second <= 0xbfU;
    case 0xf4U: return second >= 0x80U && second <= 0x8fU;
    default:    return second >= 0x80U && second <= 0xbfU;
  }
}

/// Bytes of the UTF-8 sequence at `at`; 0 if there is none.
std::size_t utf8_length(std::string_view text, std::size_t at) noexcept {
  const auto byte = [&](std::size_t offset) {
    return static_cast<unsigned char>(text[at + offset]);
  };
  const std::size_t length = length_by_first(byte(0));
  if (length == 0 || at + length > text.size()) {
    return 0;
  }
  if (length > 1 && !may_follow(byte(0), byte(1))) {
    return 0;
  }
  for (std::size_t each = 2; each < length; ++each) {
    if (!may_follow(0, byte(each))) {
      return 0;
    }
  }
  return length;
}

std::string microseconds(std::int64_t ns) {
  // Fixed point by hand: a double loses nanoseconds beyond 2^53.
  const std::int64_t shown = std::max<std::int64_t>(ns, 0);
  return fmt::format("{}.{:03}", shown / 1000, shown % 1000);
}

/// Writes the events of one trace. Times are shown since the first submission of all.
class chrome_writer {
 public:
  explicit chrome_writer(const flight_trace& trace) {
    bool is_first = true;
    for (const flight_log& log : trace.logs) {
      for (const flight_entry& entry : log.entries) {
        const std::int64_t at = wall_ns(log, entry.submitted_ns);
        start_ns_ = is_first ? at : std::min(start_ns_, at);
        end_ns_ = std::max({is_first ? at : end_ns_,
                            at,
                            wall_ns(log, entry.finished_ns.value_or(entry.submitted_ns))});
        is_first = false;
      }
    }
  }

  void write(const flight_log& log) {
    event(
        R"("ph":"M","name":"process_name","pid":{},"args":{{"name":{}}})",
        log.who.rank,
        json_string(fmt::format("rank {} ({}, process {})", log.who.rank, log.host, log.process)));
    streams_.clear();
    for (const flight_entry& entry : log.entries) {
      write(log, entry);
    }
  }

  [[nodiscard]] std::string finish() && {
    return R"({"displayTimeUnit":"ns","traceEvents":[)" + events_ + "\n]}\n";
  }

 private:
  template <typename... Args>
  void event(fmt::format_string<Args...> form, Args&&... args) {
    events_ += events_.empty() ? "\n{" : ",\n{";
    fmt::format_to(std::back_inserter(events_), form, std::forward<Args>(args)...);
    events_ += '}';
  }

  int track_of(int rank, std::uint64_t stream) {
    const auto [found, is_new] =
        streams_.try_emplace(stream, static_cast<int>(streams_.size()) + 1);
    if (is_new) {
      event(R"("ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"stream {:#x}"}})",
            rank,
            found->second,
            stream);
    }
    return found->second;
  }

  static std::string arguments(const flight_entry& entry) {
    const operation_record& record = entry.record;
    std::string text = fmt::format(
        R"({{"sequence":{},"ordinal":{},"count":{},"dtype":"{}","path":"{}","stage":"{}")",
        record.sequence,
        record.ordinal,
        record.count_elements,
        name_of(record.dtype),
        name_of(record.path),
        name_of(entry.stage));
    if (is_reducing(record.kind)) {
      text += fmt::format(R"(,"op":"{}")", name_of(record.op));
    }
    if (is_rooted(record.kind) || is_point_to_point(record.kind)) {
      text +=
          fmt::format(R"(,"{}":{})", is_rooted(record.kind) ? "root" : "peer", record.root_or_peer);
    }
    if (entry.code) {
      text +=
          fmt::format(R"(,"error":"{}","native":{})", name_of(*entry.code), entry.native_number);
    }
    return text + "}";
  }

  /// Waiting operations overlap on their stream, so they are async slices; running ones do not.
  void write(const flight_log& log, const flight_entry& entry) {
    const int rank = log.who.rank;
    const int track = track_of(rank, entry.record.stream);
    const std::int64_t submitted = wall_ns(log, entry.submitted_ns) - start_ns_;
    const std::int64_t finished =
        entry.finished_ns ? wall_ns(log, *entry.finished_ns) - start_ns_ : end_ns_ - start_ns_;
    const std::int64_t started =
        entry.started_ns ? wall_ns(log, *entry.started_ns) - start_ns_ : finished;
    const std::string name = json_string(name_of(entry.record.kind));
    const std::string values = arguments(entry);
    constexpr std::string_view waiting =
        R"("ph":"{}","cat":"{}","name":{},"id":"{}.{}","pid":{},"tid":{},"ts":{},"args":{})";
    const char* const label = entry.started_ns ? "queued" : "queued or running";
    event(fmt::runtime(waiting),
          "b",
          label,
          name,
          rank,
          entry.index,
          rank,
          track,
          microseconds(submitted),
          values);
    event(fmt::runtime(waiting),
          "e",
          label,
          name,
          rank,
          entry.index,
          rank,
          track,
          microseconds(started),
          "{}");
    if (entry.started_ns) {
      event(R"("ph":"X","cat":"running","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{})",
            name,
            rank,
            track,
            microseconds(started),
            microseconds(finished - started),
            values);
    }
    if (entry.code) {
      event(R"("ph":"i","s":"p","cat":"failed","name":"{}","pid":{},"tid":{},"ts":{},"args":{})",
            name_of(*entry.code),
            rank,
            track,
            microseconds(finished),
            values);
    }
  }

  std::string events_;
  std::map<std::uint64_t, int> streams_;
  std::int64_t start_ns_ = 0;
  std::int64_t end_ns_ = 0;
};

}  // namespace

std::string json_string(std::string_view text) {
  std::string quoted = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const char each = text[at];
    if (length == 0) {
      quoted += "\\ufffd";
    } else if (length > 1) {
      quoted += text.substr(at, length);
    } else if (each == '"' || each == '\\') {
      quoted += '\\';
      quoted += each;
    } else if (static_cast<unsigned char>(each) < 0x20U) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(each)));
    } else {
      quoted += each;
    }
    at += std::max<std::size_t>(length, 1);
  }
  return quoted + '"';
}

std::string to_chrome_trace(const flight_trace& trace) {
  chrome_writer writer{trace};
  for (const flight_log& log : trace.logs) {
    writer.write(log);
  }
  return std::move(writer).finish();
}

}  // namespace spark_comm
