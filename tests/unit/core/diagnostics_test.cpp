// SPDX-License-Identifier: AGPL-3.0-only
#include "support/log_capture.hpp"

#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace spark_comm {
namespace {

TEST(diagnostics_reports, levels_have_names) {
  EXPECT_EQ(name_of(severity::info), "info");
  EXPECT_EQ(name_of(severity::warning), "warning");
  EXPECT_EQ(name_of(severity::error), "error");
  EXPECT_EQ(name_of(static_cast<severity>(200)), "unknown");
}

TEST(diagnostics_reports, sink_gets_level_and_text_every_time) {
  const testing::log_capture kept;
  const diagnostics log = kept.log();
  log.report(severity::info, "one");
  log.report(severity::warning, "one");
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept.messages()[0].level, severity::info);
  EXPECT_EQ(kept.messages()[1].level, severity::warning);
  EXPECT_EQ(kept.messages()[1].text, "one");
}

TEST(diagnostics_reports, cause_is_said_once_also_by_copies) {
  const testing::log_capture kept;
  const diagnostics log = kept.log();
  const diagnostics copy = log;  // NOLINT(performance-unnecessary-copy-initialization): the subject
  log.report_once(severity::warning, "path", "first");
  log.report_once(severity::warning, "path", "second");
  copy.report_once(severity::error, "path", "third");
  copy.report_once(severity::error, "build", "fourth");
  EXPECT_EQ(kept.text(), "first\nfourth\n");
  kept.log().report_once(severity::error, "path", "fifth");
  EXPECT_EQ(kept.text(), "first\nfourth\nfifth\n") << "another object remembers for itself";
}

TEST(diagnostics_reports, exception_is_told_with_its_place) {
  const testing::log_capture kept;
  kept.log().report(std::runtime_error{"no luck"}, "watchdog");
  EXPECT_EQ(kept.text(), "watchdog: no luck\n");
  EXPECT_EQ(kept.messages()[0].level, severity::error);
}

TEST(diagnostics_reports, throwing_sink_brings_nothing_down) {
  int calls = 0;
  const diagnostics log{[&calls](const diagnostic&) {
    ++calls;
    throw std::runtime_error{"sink"};
  }};
  ::testing::internal::CaptureStderr();
  log.report(severity::error, "one");
  log.report_once(severity::error, "cause", "two");
  log.report(std::runtime_error{"x"}, "three");
  log.report(severity::error, "the lock is free again");
  const std::string shown = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(calls, 4);
  EXPECT_NE(shown.find("a diagnostics sink threw"), std::string::npos);
}

TEST(diagnostics_reports, missing_sink_is_silence) {
  const diagnostics log{diagnostics_sink{}};
  ::testing::internal::CaptureStderr();
  log.report(severity::error, "unheard");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(diagnostics_reports, default_sink_writes_warnings_and_errors_one_line_each) {
  ::testing::internal::CaptureStderr();
  const diagnostics log;
  log.report(severity::info, "chosen");
  log.report(severity::warning, "slower");
  log.report(severity::error, "failed");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "spark_comm: warning: slower\nspark_comm: error: failed\n");
}

TEST(diagnostics_reports, threads_reach_the_sink_one_at_a_time) {
  std::atomic<int> inside{0};
  bool overlapped = false;
  int calls = 0;  // not atomic: the object's lock has to be enough
  const diagnostics log{[&](const diagnostic&) {
    overlapped = overlapped || inside.fetch_add(1) != 0;
    ++calls;
    inside.fetch_sub(1);
  }};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&log, i] {
      for (int n = 0; n < 100; ++n) {
        log.report(severity::info, "message");
        log.report_once(severity::info, "cause " + std::to_string(n), std::to_string(i));
      }
    });
  }
  threads.clear();
  EXPECT_FALSE(overlapped);
  EXPECT_EQ(calls, 4 * 100 + 100);
}

}  // namespace
}  // namespace spark_comm
