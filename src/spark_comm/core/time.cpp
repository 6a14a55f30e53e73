// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/detail/immortal.hpp>
#include <spark_comm/core/time.hpp>

#include <chrono>

namespace spark_comm {
namespace {

class steady_time_source final : public time_source {
 public:
  [[nodiscard]] time_point now() const noexcept override {
    return std::chrono::steady_clock::now();
  }
};

}  // namespace

const time_source& steady_time() noexcept {
  static const detail::immortal<steady_time_source> source;
  return source.get();
}

}  // namespace spark_comm
