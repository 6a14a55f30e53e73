// SPDX-License-Identifier: AGPL-3.0-only
#include "support/expect_error.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/core/shared_library.hpp>

#include <gtest/gtest.h>

#include <string>

namespace spark_comm {
namespace {

TEST(shared_library_loading, missing_library_says_the_loaders_words) {
  testing::expect_error(errc::not_supported,
                        "cannot load libno_such_thing.so: libno_such_thing.so: cannot open",
                        [] { return shared_library::open("libno_such_thing.so"); });
}

TEST(shared_library_loading, file_that_is_no_library_is_refused) {
  testing::expect_error(errc::not_supported, "cannot load /etc/passwd", [] {
    return shared_library::open("/etc/passwd");
  });
}

TEST(shared_library_loading, symbols_are_found_or_null) {
  const shared_library loaded = shared_library::open("libm.so.6");
  EXPECT_EQ(loaded.name(), "libm.so.6");
  EXPECT_NE(loaded.find("cos"), nullptr);
  EXPECT_EQ(loaded.find("ncclGetVersion"), nullptr);
}

TEST(shared_library_loading, file_of_a_symbol_is_where_it_was_loaded_from) {
  const shared_library loaded = shared_library::open("libm.so.6");
  const std::string file = shared_library::file_of(loaded.find("cos"));
  EXPECT_EQ(file.front(), '/');
  EXPECT_NE(file.find("libm.so.6"), std::string::npos);
  EXPECT_EQ(shared_library::file_of(nullptr), "");
}

}  // namespace
}  // namespace spark_comm
