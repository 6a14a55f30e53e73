// SPDX-License-Identifier: AGPL-3.0-only
#include "support/expect_error.hpp"
#include "support/scripted_tables.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/nccl/abi.hpp>
#include <spark_comm/nccl/library.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace spark_comm::nccl {
namespace {

using testing::error_of;
using testing::expect_error;

TEST(nccl_results, every_code_maps_to_ours) {
  namespace r = abi::results;
  constexpr auto table = std::to_array<std::tuple<abi::result, errc, recovery>>({
      {r::unhandled_cuda_error, errc::device_failed, recovery::reconnect},
      {r::system_error, errc::system_failed, recovery::reconnect},
      {r::internal_error, errc::internal, recovery::reconnect},
      {r::invalid_argument, errc::invalid_argument, recovery::fix_call},
      {r::invalid_usage, errc::invalid_usage, recovery::reconnect},
      {r::remote_error, errc::peer_lost, recovery::reconnect},
      {r::in_progress, errc::internal, recovery::reconnect},
      {r::timeout, errc::timed_out, recovery::reconnect},
      {9, errc::internal, recovery::reconnect},
      {99, errc::internal, recovery::reconnect},
      {-1, errc::internal, recovery::reconnect},
  });
  testing::scripted_tables native;
  const library loaded = native.nccl.library();
  for (const auto& [code, expected, action] : table) {
    EXPECT_EQ(errc_of(code), expected) << code;
    const error made = loaded.to_error(code, "ncclAllReduce");
    EXPECT_EQ(made.recovery(), action) << code;
    EXPECT_EQ(made.native().number, code);
    EXPECT_EQ(made.native().domain, native_domain::nccl);
  }
}

TEST(nccl_results, check_says_function_text_and_last_warning) {
  testing::scripted_tables native;
  const library loaded = native.nccl.library();
  EXPECT_NO_THROW(loaded.check(0, "ncclAllReduce"));
  const error quiet = error_of([&] { loaded.check(2, "ncclAllReduce"); });
  EXPECT_EQ(quiet.native().text, "unhandled system error");
  native.nccl.last_error = "connect to 10.0.0.2 refused";
  const error failure = error_of([&] { loaded.check(2, "ncclAllReduce"); });
  EXPECT_EQ(failure.message(), "ncclAllReduce failed");
  EXPECT_EQ(failure.native().function, "ncclAllReduce");
  EXPECT_EQ(failure.native().text,
            "unhandled system error; last NCCL warning in this process: connect to 10.0.0.2 "
            "refused");
  EXPECT_NE(std::string{failure.where().file_name()}.find("library_test.cpp"), std::string::npos);
}

TEST(nccl_results, last_warning_is_copied_at_once_and_before_anything_else) {
  testing::scripted_tables native;
  const library loaded = native.nccl.library();
  native.nccl.last_error = "first";
  native.script.forget_calls();
  const error failure = loaded.to_error(3, "ncclSend");
  native.nccl.last_error = "second";
  EXPECT_NE(failure.native().text.find("first"), std::string::npos);
  EXPECT_EQ(native.script.calls().at(0), "ncclGetLastError");
}

TEST(nccl_results, last_warning_without_an_end_is_cut_at_the_size_of_its_buffer) {
  testing::scripted_tables native;
  const library loaded = native.nccl.library();
  native.nccl.last_error = std::string(5000, 'w');
  const std::string text = loaded.describe(3, "ncclSend").text;
  EXPECT_EQ(std::ranges::count(text, 'w'), 1024 + 1) << "the 'w' of 'warning' is one more";
}

TEST(nccl_results, null_texts_are_survived) {
  testing::scripted_tables native;
  SCRIPTED_CALL(api, ncclGetErrorString)::handle(native.script,
                                                 [](int) -> const char* { return nullptr; });
  SCRIPTED_CALL(api, ncclGetLastError)::handle(native.script,
                                               [](abi::comm) -> const char* { return nullptr; });
  EXPECT_EQ(native.nccl.library().describe(8, "ncclSend").text, "no text");
}

TEST(nccl_version, texts_of_both_schemes) {
  EXPECT_EQ(version_text(22809), "2.28.9");
  EXPECT_EQ(version_text(21900), "2.19.0");
  EXPECT_EQ(version_text(23103), "2.31.3");
  EXPECT_EQ(version_text(20912), "2.9.12");
  EXPECT_EQ(version_text(2708), "2.7.8");
  EXPECT_EQ(version_text(30000), "3.0.0");
}

TEST(nccl_version, floor_is_held_and_both_versions_are_named) {
  testing::scripted_tables native;
  native.nccl.version = 21805;
  expect_error(errc::not_supported, "is NCCL 2.18.5; 2.19.0 or newer is needed", [&] {
    return native.nccl.library();
  });
  native.nccl.version = 21900;
  EXPECT_EQ(native.nccl.library().version(), 21900);
}

TEST(nccl_version, table_that_does_not_tell_it_is_refused) {
  testing::scripted_tables native;
  native.script.answer("ncclGetVersion", {abi::results::internal_error});
  expect_error(
      errc::not_supported, "ncclGetVersion returned 3", [&] { return native.nccl.library(); });
}

TEST(nccl_capability, names_and_versions_of_all_members) {
  for (const capability what : all_capabilities) {
    EXPECT_NE(name_of(what), "unknown");
    EXPECT_GT(version_of(what), floor_version);
  }
  EXPECT_EQ(name_of(static_cast<capability>(200)), "unknown");
  EXPECT_EQ(version_of(static_cast<capability>(200)), 0);
}

TEST(nccl_capability, list_of_optional_calls_agrees_with_the_versions) {
#define SPARK_COMM_SINCE(type, name, arguments, since) {#name, since},
  const std::map<std::string, int> since = {SPARK_COMM_NCCL_OPTIONAL_FUNCTIONS(SPARK_COMM_SINCE)};
#undef SPARK_COMM_SINCE
  EXPECT_EQ(since.at("ncclCommWindowRegister"), version_of(capability::window));
  EXPECT_EQ(since.at("ncclCommWindowDeregister"), version_of(capability::window));
  EXPECT_EQ(since.at("ncclAlltoAll"), version_of(capability::all_to_all));
  EXPECT_EQ(since.at("ncclCommRevoke"), version_of(capability::revoke));
}

TEST(nccl_capability, begins_at_its_version) {
  testing::scripted_tables native;
  for (const capability what : all_capabilities) {
    native.nccl.version = version_of(what) - 1;
    const library before = native.nccl.library();
    EXPECT_FALSE(before.supports(what)) << name_of(what);
    expect_error(
        errc::not_supported, version_text(version_of(what)), [&] { before.require(what); });
    expect_error(errc::not_supported, "loaded is " + version_text(before.version()), [&] {
      before.require(what);
    });
    native.nccl.version = version_of(what);
    EXPECT_TRUE(native.nccl.library().supports(what)) << name_of(what);
    EXPECT_NO_THROW(native.nccl.library().require(what));
  }
}

TEST(nccl_capability, missing_call_counts_more_than_the_version) {
  testing::scripted_tables native;
  const auto supports_without = [&](auto api::* call, capability what) {
    api table = testing::scripted_nccl::table();
    table.*call = nullptr;
    return library::from_table(table, {}).supports(what);
  };
  EXPECT_FALSE(supports_without(&api::ncclCommWindowRegister, capability::window));
  EXPECT_FALSE(supports_without(&api::ncclCommWindowDeregister, capability::window));
  EXPECT_FALSE(supports_without(&api::ncclAlltoAll, capability::all_to_all));
  EXPECT_FALSE(supports_without(&api::ncclCommRevoke, capability::revoke));
  EXPECT_TRUE(supports_without(&api::ncclCommRevoke, capability::fp8));
}

}  // namespace
}  // namespace spark_comm::nccl
