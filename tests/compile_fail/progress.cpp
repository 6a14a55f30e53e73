// SPDX-License-Identifier: AGPL-3.0-only
// "Not yet" is an answer: it cannot become an error, and the two kinds of answers do not mix.
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/progress.hpp>

void fragment(spark_comm::progress answer, spark_comm::wait_result waited) {
  const spark_comm::error failure{spark_comm::errc::timed_out, "not finished"};
  const bool is_done = answer == spark_comm::progress::done;
  static_cast<void>(failure);
  static_cast<void>(is_done);
  static_cast<void>(waited);
#ifdef CASE_as_error
  const spark_comm::error made{spark_comm::progress::pending, "not finished"};
#endif
#ifdef CASE_compare_answers
  const bool same = answer == waited;
#endif
}
