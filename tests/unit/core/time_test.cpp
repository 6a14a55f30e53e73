// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/time.hpp>

#include <gtest/gtest.h>

#include <chrono>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;

class manual_time final : public time_source {
 public:
  explicit manual_time(time_point start) : now_(start) {}

  [[nodiscard]] time_point now() const noexcept override { return now_; }

  void advance(duration span) { now_ += span; }

 private:
  time_point now_;
};

TEST(deadlines, pass_at_their_point_and_not_before) {
  manual_time clock{time_point{100s}};
  const deadline limit = deadline::after(5s, clock);
  EXPECT_EQ(limit.at(), time_point{105s});
  EXPECT_EQ(limit.span(), 5s);
  EXPECT_EQ(limit.remaining(), 5s);
  EXPECT_FALSE(limit.has_passed());
  clock.advance(5s - 1ns);
  EXPECT_FALSE(limit.has_passed());
  EXPECT_EQ(limit.remaining(), 1ns);
  clock.advance(1ns);
  EXPECT_TRUE(limit.has_passed());
  EXPECT_EQ(limit.remaining(), 0ns);
  clock.advance(1h);
  EXPECT_TRUE(limit.has_passed());
  EXPECT_EQ(limit.remaining(), 0ns);
}

TEST(deadlines, zero_and_negative_spans_have_passed) {
  const manual_time clock{time_point{100s}};
  for (const duration span : {duration{0}, duration{-1}, duration::min()}) {
    const deadline limit = deadline::after(span, clock);
    EXPECT_TRUE(limit.has_passed());
    EXPECT_EQ(limit.remaining(), 0ns);
    EXPECT_EQ(limit.span(), 0ns);
    EXPECT_EQ(limit.at(), time_point{100s});
  }
}

TEST(deadlines, span_too_long_for_the_clock_is_cut_to_its_end) {
  const manual_time clock{time_point{100s}};
  const deadline limit = deadline::after(duration::max(), clock);
  EXPECT_EQ(limit.at(), time_point::max());
  EXPECT_EQ(limit.span(), duration::max());
  EXPECT_FALSE(limit.has_passed());
  EXPECT_EQ(limit.remaining(), time_point::max() - time_point{100s});
}

TEST(deadlines, clock_may_stand_before_its_zero) {
  const manual_time clock{time_point::min()};
  EXPECT_EQ(deadline::after(duration::max(), clock).remaining(), duration::max());
  EXPECT_EQ(deadline::after(5s, clock).at(), time_point::min() + 5s);
  EXPECT_EQ(deadline::after(duration::max(), manual_time{time_point{}}).at(), time_point::max());
}

TEST(steady_clock_source, goes_forward_and_is_one) {
  const time_point first = steady_time().now();
  EXPECT_GE(steady_time().now(), first);
  EXPECT_EQ(&steady_time(), &steady_time());
  EXPECT_FALSE(deadline::after(1h).has_passed());
}

}  // namespace
}  // namespace spark_comm
