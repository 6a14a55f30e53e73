// SPDX-License-Identifier: AGPL-3.0-only
// Ranks as threads of one process, meeting on loopback at a port that the system chooses.
#pragma once

#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/rendezvous/session.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace spark_comm::rendezvous::testing {

using namespace std::chrono_literals;

/// What came of one rank's call.
struct outcome {
  std::unique_ptr<session> met;
  std::optional<error> failure;
  duration took{};

  [[nodiscard]] bool is_met() const { return met != nullptr; }

  [[nodiscard]] std::string text() const { return failure ? failure->what() : "met"; }
};

inline outcome try_meet(const world& place,
                        const hello& mine,
                        duration limit,
                        const meeting_options& options = {}) {
  const time_point begin = steady_time().now();
  outcome out;
  try {
    out.met = session::meet(place, mine, deadline::after(limit), options);
  } catch (const error& failure) {
    out.failure = failure;
  }
  out.took = steady_time().now() - begin;
  return out;
}

inline meeting_options quiet() {
  meeting_options options;
  options.log = diagnostics{nullptr};
  return options;
}

/// Rank 0 on a thread of its own.
class head {
 public:
  explicit head(int world_size,
                duration limit = 10s,
                hello mine = {},
                std::string at = "127.0.0.1:0",
                meeting_options options = quiet()) {
    options.on_listening = [this](const std::string& where) { listening_.set_value(where); };
    result_ = std::async(std::launch::async, [=] {
      return try_meet({.address = at, .rank = 0, .world_size = world_size}, mine, limit, options);
    });
    where_ = listening_.get_future().get();
  }

  [[nodiscard]] const std::string& where() const { return where_; }

  [[nodiscard]] outcome result() { return result_.get(); }

 private:
  std::promise<std::string> listening_;
  std::future<outcome> result_;
  std::string where_;
};

inline std::future<outcome> worker(const std::string& where,
                                   int rank,
                                   int world_size,
                                   duration limit = 10s,
                                   hello mine = {},
                                   meeting_options options = quiet()) {
  return std::async(std::launch::async, [=] {
    return try_meet(
        {.address = where, .rank = rank, .world_size = world_size}, mine, limit, options);
  });
}

/// All ranks of a world, met.
inline std::vector<std::unique_ptr<session>> meet_all(int world_size,
                                                      const meeting_options& options = quiet()) {
  head first{world_size, 10s, {}, "127.0.0.1:0", options};
  std::vector<std::future<outcome>> others;
  for (int rank = 1; rank < world_size; ++rank) {
    others.push_back(worker(first.where(), rank, world_size, 10s, {}, options));
  }
  std::vector<std::unique_ptr<session>> all;
  const auto keep = [&all](outcome out) {
    if (out.failure) {
      throw error{*out.failure};
    }
    all.push_back(std::move(out.met));
  };
  keep(first.result());
  for (auto& each : others) {
    keep(each.get());
  }
  return all;
}

inline bytes bytes_of(std::string_view text) {
  const auto raw = std::as_bytes(std::span{text});
  return {raw.begin(), raw.end()};
}

inline std::string text_of(std::span<const std::byte> data) {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

}  // namespace spark_comm::rendezvous::testing
