// SPDX-License-Identifier: AGPL-3.0-only
#include "support/expect_error.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/nccl/abi.hpp>
#include <spark_comm/nccl/config.hpp>

#include <gtest/gtest.h>

#include <climits>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace spark_comm::nccl {
namespace {

using testing::error_of;
using testing::expect_error;

constexpr blocking_mode any_mode = blocking_mode::non_blocking;

TEST(nccl_config, defaults_leave_everything_but_blocking_to_nccl) {
  const abi::config made = make_config({}, blocking_mode::non_blocking);
  EXPECT_EQ(made.size, 96U);
  EXPECT_EQ(made.magic, 0xcafebeefU);
  EXPECT_EQ(made.version, 23007U);
  EXPECT_EQ(made.blocking, 0);
  for (const int unset : {made.cga_cluster_size,
                          made.min_ctas,
                          made.max_ctas,
                          made.split_share,
                          made.traffic_class,
                          made.collnet_enable,
                          made.cta_policy,
                          made.shrink_share,
                          made.nvls_ctas,
                          made.n_channels_per_net_peer,
                          made.nvlink_centric_sched,
                          made.graph_usage_mode,
                          made.num_rma_ctx,
                          made.max_p2p_peers,
                          made.graph_stream_ordering}) {
    EXPECT_EQ(unset, INT_MIN);
  }
  EXPECT_EQ(made.net_name, nullptr);
  EXPECT_EQ(made.comm_name, nullptr);
  EXPECT_EQ(make_config({}, blocking_mode::blocking).blocking, 1);
}

TEST(nccl_config, every_option_reaches_its_field) {
  const config_options options{.min_ctas = 2,
                               .max_ctas = 3,
                               .cga_cluster_size = 0,
                               .traffic_class = 105,
                               .n_channels_per_net_peer = 64,
                               .net_name = "Socket"};
  const abi::config made = make_config(options, any_mode);
  EXPECT_EQ(made.min_ctas, 2);
  EXPECT_EQ(made.max_ctas, 3);
  EXPECT_EQ(made.cga_cluster_size, 0);
  EXPECT_EQ(made.traffic_class, 105);
  EXPECT_EQ(made.n_channels_per_net_peer, 64);
  EXPECT_STREQ(made.net_name, "Socket");
}

TEST(nccl_config, lower_bound_alone_gets_an_upper_one_that_nccl_accepts) {
  EXPECT_EQ(make_config({.min_ctas = 4}, any_mode).min_ctas, 4);
  EXPECT_EQ(make_config({.min_ctas = 4}, any_mode).max_ctas, 64);
  EXPECT_EQ(make_config({.min_ctas = 100}, any_mode).max_ctas, 100);
}

TEST(nccl_config, upper_bound_alone_leaves_the_lower_one_unset) {
  EXPECT_EQ(make_config({.max_ctas = 4}, any_mode).min_ctas, INT_MIN);
  EXPECT_EQ(make_config({.max_ctas = 4}, any_mode).max_ctas, 4);
}

TEST(nccl_config, bounds_in_the_wrong_order_are_named_both) {
  expect_error(errc::invalid_argument,
               "min_ctas is 9; accepted is max_ctas, which is 8, at most",
               [] { validate({.min_ctas = 9, .max_ctas = 8}); });
  EXPECT_NO_THROW(validate({.min_ctas = 8, .max_ctas = 8}));
}

TEST(nccl_config, each_field_has_its_range_and_names_what_is_accepted) {
  struct row {
    std::optional<int> config_options::* field;
    const char* name;
    std::vector<int> good;
    std::vector<int> bad;
    const char* accepted;
  };

  const std::vector<row> rows = {
      {&config_options::min_ctas, "min_ctas", {1, 64, INT_MAX}, {0, -5, -1, INT_MIN}, "1 or more"},
      {&config_options::max_ctas, "max_ctas", {1, 64, INT_MAX}, {0, -5, -1, INT_MIN}, "1 or more"},
      {&config_options::cga_cluster_size, "cga_cluster_size", {0, 4}, {-1, -5}, "0 or more"},
      {&config_options::traffic_class, "traffic_class", {0, 255}, {-1, -5, 256}, "0 to 255"},
      {&config_options::n_channels_per_net_peer,
       "n_channels_per_net_peer",
       {1, 64},
       {0, -5, 65},
       "1 to 64"},
  };
  for (const auto& [field, name, good, bad, accepted] : rows) {
    config_options options;
    for (const int value : good) {
      options.*field = value;
      EXPECT_NO_THROW(validate(options)) << name << " " << value;
    }
    for (const int value : bad) {
      options.*field = value;
      const error refused = error_of([&] { return make_config(options, any_mode); });
      EXPECT_EQ(refused.kind(), errc::invalid_argument);
      EXPECT_EQ(refused.message(),
                "config: " + std::string{name} + " is " + std::to_string(value) + "; accepted is " +
                    accepted);
    }
  }
}

TEST(nccl_config, network_name_is_handed_over_whole_or_refused) {
  for (const std::size_t length : {std::size_t{1}, std::size_t{8}, std::size_t{255}}) {
    const config_options options{.net_name = std::string(length, 'n')};
    const abi::config made = make_config(options, any_mode);
    EXPECT_EQ(std::strlen(made.net_name), length);
    EXPECT_EQ(made.net_name, options.net_name.c_str()) << "the caller's own, not a copy";
  }
  for (const std::size_t length : {std::size_t{256}, std::size_t{300}}) {
    const std::string name(length, 'n');
    const error refused = error_of([&] { validate({.net_name = name}); });
    EXPECT_EQ(refused.kind(), errc::invalid_argument);
    EXPECT_NE(refused.message().find("net_name '" + name + "'"), std::string::npos);
    EXPECT_NE(refused.message().find("255 at most"), std::string::npos);
  }
}

TEST(nccl_config, network_name_with_a_control_character_is_refused) {
  using namespace std::string_literals;
  for (const std::string& name : {"So\0cket"s, "Socket\n"s, "\x7f"s, "\x1b[0m"s}) {
    expect_error(
        errc::invalid_argument, "control character", [&] { validate({.net_name = name}); });
  }
  EXPECT_NO_THROW(validate({.net_name = "R\xc3\xa9seau"})) << "not ASCII, and char may be signed";
}

TEST(nccl_config, options_serve_again_unchanged) {
  const config_options options{.min_ctas = 4, .net_name = "Socket"};
  const char* const name = options.net_name.c_str();
  const abi::config first = make_config(options, any_mode);
  const abi::config second = make_config(options, any_mode);
  EXPECT_EQ(options.min_ctas, 4);
  EXPECT_EQ(options.max_ctas, std::nullopt);
  EXPECT_EQ(options.net_name, "Socket");
  EXPECT_EQ(options.net_name.c_str(), name);
  EXPECT_EQ(first.max_ctas, second.max_ctas);
  EXPECT_EQ(first.net_name, second.net_name);
}

}  // namespace
}  // namespace spark_comm::nccl
