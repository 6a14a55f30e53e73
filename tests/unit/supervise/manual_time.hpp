// SPDX-License-Identifier: AGPL-3.0-only
// A clock that goes when it is told to.
#pragma once

#include <spark_comm/core/time.hpp>

#include <atomic>
#include <chrono>

namespace spark_comm {

class manual_time final : public time_source {
 public:
  [[nodiscard]] time_point now() const noexcept override { return time_point{now_.load()}; }

  void advance(duration span) noexcept { now_ = now_.load() + span; }

 private:
  std::atomic<time_point::duration> now_{std::chrono::seconds{1000}};
};

}  // namespace spark_comm
