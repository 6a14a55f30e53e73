// SPDX-License-Identifier: AGPL-3.0-only
// Loading of real files: stand-ins built for this test, a library that is not NCCL, and NCCL itself
// where it is found.
#include "support/expect_error.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/nccl/abi.hpp>
#include <spark_comm/nccl/find_library.hpp>
#include <spark_comm/nccl/library.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace spark_comm::nccl {
namespace {

using testing::error_of;
using testing::expect_error;

TEST(nccl_load, missing_file_is_not_supported_with_the_loaders_words) {
  expect_error(errc::not_supported, "cannot load /no/such/libnccl.so.2: /no/such/libnccl.so.2", [] {
    return library::load("/no/such/libnccl.so.2", {});
  });
}

TEST(nccl_load, other_library_is_not_nccl) {
  expect_error(errc::not_supported, "libm.so.6 is not NCCL: it has no ncclGetVersion", [] {
    return library::load("libm.so.6", {});
  });
}

TEST(nccl_load, old_library_is_called_old_with_both_versions) {
  expect_error(errc::not_supported, "is NCCL 2.18.5; 2.19.0 or newer is needed", [] {
    return library::load(SPARK_COMM_TEST_NCCL_21805, {});
  });
}

TEST(nccl_load, incomplete_library_names_the_first_missing_call) {
  expect_error(errc::not_supported, "says it is NCCL 2.20.5 but lacks ncclGetErrorString", [] {
    return library::load(SPARK_COMM_TEST_NCCL_INCOMPLETE, {});
  });
}

TEST(nccl_load, oldest_accepted_library_has_no_newer_calls) {
  const library loaded = library::load(SPARK_COMM_TEST_NCCL_21903, {});
  EXPECT_EQ(loaded.version(), 21903);
  for (const capability what : all_capabilities) {
    EXPECT_FALSE(loaded.supports(what)) << name_of(what);
  }
  EXPECT_EQ(loaded.table().ncclCommRevoke, nullptr);
}

TEST(nccl_load, newer_library_works_and_its_unknown_results_survive) {
  const library loaded = library::load(SPARK_COMM_TEST_NCCL_23103, {});
  EXPECT_EQ(loaded.version(), 23103);
  for (const capability what : all_capabilities) {
    EXPECT_TRUE(loaded.supports(what)) << name_of(what);
  }
  for (const int code : {8, 99}) {
    const error made = loaded.to_error(code, "ncclCommDestroy");
    EXPECT_EQ(made.native().number, code);
    EXPECT_EQ(made.native().text, "stand-in text");
  }
  EXPECT_EQ(loaded.to_error(8, "x").kind(), errc::timed_out);
  EXPECT_EQ(loaded.to_error(99, "x").kind(), errc::internal);
}

TEST(nccl_load, file_and_build_id_are_those_of_the_loaded_file) {
  const library first = library::load(SPARK_COMM_TEST_NCCL_23103, {});
  const library again = library::load(SPARK_COMM_TEST_NCCL_23103, {});
  const library other = library::load(SPARK_COMM_TEST_NCCL_21903, {});
  EXPECT_TRUE(std::filesystem::equivalent(first.file(), SPARK_COMM_TEST_NCCL_23103));
  EXPECT_EQ(first.build_id().size(), 40U) << "a SHA-1 in hex";
  EXPECT_EQ(first.build_id(), again.build_id());
  EXPECT_NE(first.build_id(), other.build_id());
}

TEST(nccl_find, candidates_end_with_what_somebody_named) {
  const auto named = library_candidates("/a/libnccl.so.2", "/b/libnccl.so.2");
  ASSERT_EQ(named.size(), 1U);
  EXPECT_EQ(named[0].name, "/a/libnccl.so.2");
  EXPECT_EQ(named[0].source, library_source::explicit_path);
  const auto from_environment = library_candidates("", "/b/libnccl.so.2");
  ASSERT_EQ(from_environment.size(), 1U);
  EXPECT_EQ(from_environment[0].name, "/b/libnccl.so.2");
  EXPECT_EQ(from_environment[0].source, library_source::environment);
  const auto standard = library_candidates("", "");
  ASSERT_EQ(standard.size(), 1U);
  EXPECT_EQ(standard[0].name, "libnccl.so.2");
  EXPECT_EQ(standard[0].source, library_source::standard_name);
}

TEST(nccl_find, sources_have_names) {
  EXPECT_EQ(name_of(library_source::explicit_path), "named by the program");
  EXPECT_EQ(name_of(library_source::environment), "named by SPARK_COMM_NCCL_LIBRARY");
  EXPECT_EQ(name_of(library_source::standard_name), "standard name");
  EXPECT_EQ(name_of(static_cast<library_source>(200)), "unknown");
}

TEST(nccl_find, first_that_works_is_taken) {
  const library found = find_and_load({{"libno_such_1.so", library_source::standard_name},
                                       {SPARK_COMM_TEST_NCCL_23103, library_source::standard_name}},
                                      {});
  EXPECT_EQ(found.version(), 23103);
}

TEST(nccl_find, named_library_that_fails_is_not_replaced) {
  for (const library_source source : {library_source::explicit_path, library_source::environment}) {
    const error failure = error_of([&] {
      return find_and_load({{"/no/such/libnccl.so.2", source},
                            {SPARK_COMM_TEST_NCCL_23103, library_source::standard_name}},
                           {});
    });
    EXPECT_EQ(failure.kind(), errc::not_supported);
    EXPECT_NE(failure.message().find("'/no/such/libnccl.so.2' (named by "), std::string::npos);
    EXPECT_EQ(failure.message().find(SPARK_COMM_TEST_NCCL_23103), std::string::npos);
  }
}

TEST(nccl_find, one_error_lists_everything_tried) {
  const error failure = error_of([] {
    return find_and_load({{"libno_such_1.so", library_source::standard_name},
                          {"libm.so.6", library_source::standard_name},
                          {SPARK_COMM_TEST_NCCL_21805, library_source::standard_name}},
                         {});
  });
  for (const char* const words : {"'libno_such_1.so' (standard name): cannot load",
                                  "'libm.so.6' (standard name): libm.so.6 is not NCCL",
                                  "2.18.5"}) {
    EXPECT_NE(failure.message().find(words), std::string::npos) << failure.message();
  }
  expect_error(
      errc::invalid_argument, "no NCCL library to try", [] { return find_and_load({}, {}); });
}

class real_nccl : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string{SPARK_COMM_TEST_REAL_NCCL}.empty()) {
      GTEST_SKIP() << "no libnccl.so.2 was found when this was configured";
    }
  }
};

TEST_F(real_nccl, loads_without_a_device) {
  const library loaded = library::load(SPARK_COMM_TEST_REAL_NCCL, {});
  EXPECT_GE(loaded.version(), floor_version);
  EXPECT_LT(loaded.version(), 30000);
  EXPECT_TRUE(std::filesystem::equivalent(loaded.file(), SPARK_COMM_TEST_REAL_NCCL));
  RecordProperty("version", version_text(loaded.version()));
  RecordProperty("build_id", loaded.build_id());
}

TEST_F(real_nccl, has_a_text_for_every_number_known_or_not) {
  const library loaded = library::load(SPARK_COMM_TEST_REAL_NCCL, {});
  for (int code = -1; code <= 10; ++code) {
    const native_code known = loaded.describe(code, "ncclAllReduce");
    EXPECT_EQ(known.number, code);
    EXPECT_FALSE(known.text.empty());
  }
  EXPECT_EQ(loaded.describe(4, "x").text.find("invalid argument"), 0U);
  EXPECT_EQ(loaded.describe(7, "x").text.find("NCCL operation in progress"), 0U);
}

TEST_F(real_nccl, capabilities_follow_the_version) {
  const library loaded = library::load(SPARK_COMM_TEST_REAL_NCCL, {});
  for (const capability what : all_capabilities) {
    EXPECT_EQ(loaded.supports(what), loaded.version() >= version_of(what)) << name_of(what);
  }
}

TEST_F(real_nccl, refused_call_carries_the_librarys_own_words) {
  const library loaded = library::load(SPARK_COMM_TEST_REAL_NCCL, {});
  int count = 0;
  const abi::result code = loaded.table().ncclCommCount(nullptr, &count);
  const error failure = error_of([&] { loaded.check(code, "ncclCommCount"); });
  EXPECT_EQ(failure.kind(), errc::invalid_argument);
  EXPECT_EQ(failure.recovery(), recovery::fix_call);
  EXPECT_NE(failure.native().text.find("last NCCL warning in this process"), std::string::npos)
      << failure.what();
}

// One id only: each costs a thread and a listening socket for the life of the process.
TEST_F(real_nccl, makes_a_unique_id) {
  const library loaded = library::load(SPARK_COMM_TEST_REAL_NCCL, {});
  abi::unique_id id{};
  loaded.check(loaded.table().ncclGetUniqueId(&id), "ncclGetUniqueId");
  EXPECT_TRUE(std::ranges::any_of(id.internal, [](char byte) { return byte != 0; }));
}

}  // namespace
}  // namespace spark_comm::nccl
