// SPDX-License-Identifier: AGPL-3.0-only
#include "support/expect_error.hpp"

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/error.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;

error_context full_context() {
  return {.communicator = "tp",
          .rank = 1,
          .world_size = 4,
          .device = 2,
          .operation = "all_reduce",
          .sequence = 17,
          .count_elements = 4096,
          .dtype = data_type::bfloat16,
          .peers = {0, 3},
          .deadline = 1500ms};
}

bool says(const error& failure, std::string_view words) {
  return std::string_view{failure.what()}.find(words) != std::string_view::npos;
}

TEST(error_codes, all_members_have_names_and_messages_of_their_own) {
  std::set<std::string_view> names;
  for (const errc code : all_errcs) {
    EXPECT_NE(name_of(code), "unknown") << static_cast<int>(code);
    EXPECT_NE(static_cast<int>(code), 0) << "0 means success in an error_code";
    EXPECT_EQ(error_category().message(static_cast<int>(code)), name_of(code));
    names.insert(name_of(code));
  }
  EXPECT_EQ(names.size(), std::size(all_errcs));
  EXPECT_EQ(name_of(static_cast<errc>(0)), "unknown");
  EXPECT_EQ(name_of(static_cast<errc>(12)), "unknown") << "the list above has to grow too";
}

TEST(error_codes, recoveries_have_names) {
  EXPECT_EQ(name_of(recovery::fix_call), "fix_call");
  EXPECT_EQ(name_of(recovery::retry), "retry");
  EXPECT_EQ(name_of(recovery::reconnect), "reconnect");
  EXPECT_EQ(name_of(recovery::restart_process), "restart_process");
  EXPECT_EQ(name_of(static_cast<recovery>(200)), "unknown");
}

TEST(error_codes, are_error_codes_of_our_category) {
  const std::error_code code = errc::timed_out;
  EXPECT_EQ(code.category(), error_category());
  EXPECT_STREQ(code.category().name(), "spark_comm");
  EXPECT_EQ(code, make_error_code(errc::timed_out));
  EXPECT_NE(code, make_error_code(errc::aborted));
}

struct recovery_row {
  errc code;
  native_domain domain;
  std::int64_t number;
  recovery expected;
};

constexpr recovery_row recovery_rows[] = {
    {errc::invalid_argument, native_domain::none, 0, recovery::fix_call},
    {errc::invalid_argument, native_domain::nccl, 4, recovery::fix_call},
    {errc::invalid_usage, native_domain::none, 0, recovery::fix_call},
    {errc::invalid_usage, native_domain::cuda, 901, recovery::fix_call},
    {errc::invalid_usage, native_domain::nccl, 5, recovery::reconnect},
    {errc::mismatch, native_domain::none, 0, recovery::reconnect},
    {errc::timed_out, native_domain::none, 0, recovery::reconnect},
    {errc::peer_lost, native_domain::nccl, 6, recovery::reconnect},
    {errc::aborted, native_domain::none, 0, recovery::reconnect},
    {errc::not_supported, native_domain::none, 0, recovery::fix_call},
    {errc::out_of_memory, native_domain::cuda, 2, recovery::retry},
    {errc::device_failed, native_domain::none, 0, recovery::reconnect},
    {errc::device_failed, native_domain::nccl, 1, recovery::reconnect},
    {errc::device_failed, native_domain::nccl, 700, recovery::reconnect},
    {errc::device_failed, native_domain::cuda, 1, recovery::reconnect},
    {errc::device_failed, native_domain::cuda, 100, recovery::reconnect},
    {errc::device_failed, native_domain::cuda, 4, recovery::restart_process},
    {errc::device_failed, native_domain::cuda, 214, recovery::restart_process},
    {errc::device_failed, native_domain::cuda, 700, recovery::restart_process},
    {errc::device_failed, native_domain::cuda, 710, recovery::restart_process},
    {errc::device_failed, native_domain::cuda, 719, recovery::restart_process},
    {errc::system_failed, native_domain::system, 5, recovery::reconnect},
    {errc::internal, native_domain::nccl, 99, recovery::reconnect},
};

TEST(error_recovery, follows_from_code_and_native_number) {
  std::set<errc> seen;
  for (const auto& [code, domain, number, expected] : recovery_rows) {
    const native_code native{.domain = domain, .number = number};
    EXPECT_EQ(recovery_for(code, native), expected) << name_of(code) << " " << number;
    EXPECT_EQ((error{code, "", {}, native}.recovery()), expected);
    seen.insert(code);
  }
  EXPECT_EQ(seen.size(), std::size(all_errcs)) << "a code without a row";
}

TEST(error_line, says_everything_that_is_known) {
  const error failure{errc::timed_out,
                      "not finished",
                      full_context(),
                      {.domain = native_domain::nccl,
                       .number = 99,
                       .function = "ncclAllReduce",
                       .text = "unknown result code"}};
  const std::string line = failure.what();
  EXPECT_EQ(line.find("all_reduce #17 (4096 x bf16) on 'tp' rank 1/4 device 2: not finished; "
                      "ranks 0, 3; deadline 1500 ms; ncclAllReduce returned 99 (unknown result "
                      "code) [timed_out, reconnect] (error_test.cpp:"),
            0U)
      << line;
}

TEST(error_line, says_nothing_of_what_is_not_known) {
  const error failure{errc::aborted, "stopped"};
  const std::string expected =
      "stopped [aborted, reconnect] (error_test.cpp:" + std::to_string(failure.where().line()) +
      ")";
  EXPECT_EQ(std::string{failure.what()}, expected);
}

TEST(error_line, single_fields_stand_alone) {
  const auto line_of = [](const error_context& context) {
    return std::string{error{errc::internal, "m", context}.what()};
  };
  EXPECT_EQ(line_of({.sequence = 5}).find("#5: m"), 0U);
  EXPECT_EQ(line_of({.count_elements = 7}).find("(7 elements): m"), 0U);
  EXPECT_EQ(line_of({.dtype = data_type::float16}).find("(fp16): m"), 0U);
  EXPECT_EQ(line_of({.communicator = "tp"}).find("on 'tp': m"), 0U);
  EXPECT_EQ(line_of({.rank = 3}).find("rank 3: m"), 0U);
  EXPECT_EQ(line_of({.rank = 0, .world_size = 2}).find("rank 0/2: m"), 0U);
  EXPECT_EQ(line_of({.device = 0}).find("device 0: m"), 0U);
  EXPECT_EQ(line_of({.peers = {3}}).find("m; rank 3 ["), 0U);
  EXPECT_EQ(line_of({.deadline = 2s}).find("m; deadline 2000 ms ["), 0U);
}

TEST(error_line, stays_one_line_whatever_the_texts_hold) {
  error_context context = full_context();
  context.communicator = "t\np";
  const error failure{errc::internal,
                      "first\nsecond\r\nthird",
                      context,
                      {.domain = native_domain::cuda, .function = "f", .text = "a\nb"}};
  EXPECT_EQ(std::string_view{failure.what()}.find_first_of("\r\n"), std::string_view::npos);
  EXPECT_EQ(failure.message(), "first\nsecond\r\nthird") << "the parts are kept as they came";
}

TEST(error_object, keeps_its_parts_over_a_copy) {
  const error failure{errc::peer_lost, "gone", full_context(), {.number = 6}};
  const error copy = failure;  // NOLINT(performance-unnecessary-copy-initialization): the subject
  EXPECT_EQ(copy.kind(), errc::peer_lost);
  EXPECT_EQ(copy.code(), errc::peer_lost);
  EXPECT_EQ(copy.context().peers, (std::vector{0, 3}));
  EXPECT_EQ(copy.native().number, 6);
  EXPECT_STREQ(copy.what(), failure.what());
  EXPECT_NE(copy.what(), failure.what()) << "its own line";
}

TEST(error_object, is_caught_as_the_standards_own) {
  try {
    throw error{errc::aborted, "stopped"};
  } catch (const std::system_error& caught) {
    EXPECT_EQ(caught.code(), errc::aborted);
    EXPECT_EQ(std::string_view{caught.what()}.find("stopped"), 0U);
  }
}

TEST(error_with_context, fills_only_what_is_empty) {
  const error inner{errc::device_failed, "m", {.operation = "send", .peers = {1}}, {.number = 9}};
  const error outer = inner.with_context(full_context());
  EXPECT_EQ(outer.context().operation, "send");
  EXPECT_EQ(outer.context().peers, std::vector{1});
  EXPECT_EQ(outer.context().communicator, "tp");
  EXPECT_EQ(outer.context().rank, 1);
  EXPECT_EQ(outer.context().world_size, 4);
  EXPECT_EQ(outer.context().device, 2);
  EXPECT_EQ(outer.context().sequence, 17U);
  EXPECT_EQ(outer.context().count_elements, 4096U);
  EXPECT_EQ(outer.context().dtype, data_type::bfloat16);
  EXPECT_EQ(outer.context().deadline, 1500ms);
  EXPECT_EQ(outer.kind(), errc::device_failed);
  EXPECT_EQ(outer.native().number, 9);
  EXPECT_EQ(outer.where().line(), inner.where().line()) << "the place of the failure, not of this";
  EXPECT_TRUE(says(outer, "send #17"));
}

TEST(error_with_context, leaves_a_full_one_as_it_is) {
  const error inner{errc::internal, "m", full_context()};
  const error outer = inner.with_context({.communicator = "other",
                                          .rank = 9,
                                          .world_size = 10,
                                          .device = 9,
                                          .operation = "other",
                                          .sequence = 9,
                                          .count_elements = 9,
                                          .dtype = data_type::int8,
                                          .peers = {9},
                                          .deadline = 9s});
  EXPECT_STREQ(outer.what(), inner.what());
}

TEST(error_errno, becomes_system_failed_with_number_and_text) {
  const error failure = testing::error_of([] { throw_errno("connect", "no route", ECONNREFUSED); });
  EXPECT_EQ(failure.kind(), errc::system_failed);
  EXPECT_EQ(failure.native().domain, native_domain::system);
  EXPECT_EQ(failure.native().number, ECONNREFUSED);
  EXPECT_TRUE(says(failure, "no route; connect returned 111 (Connection refused)"));
  EXPECT_TRUE(says(failure, "error_test.cpp"));
}

TEST(error_errno, no_memory_is_out_of_memory) {
  testing::expect_error(
      errc::out_of_memory, "mmap", [] { throw_errno("mmap", "no buffer", ENOMEM); });
}

}  // namespace
}  // namespace spark_comm
