// SPDX-License-Identifier: AGPL-3.0-only
// Addresses in all their spellings, right and wrong, on one host: BC-04 of docs/cases.md.
#include "support/expect_error.hpp"
#include "support/standing_checks.hpp"
#include "support/world.hpp"

#include <spark_comm/rendezvous/address.hpp>
#include <spark_comm/spark_comm.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using rendezvous::secret;
using test_support::expect_all_succeeded;
using test_support::expect_full_text;
using test_support::host_runtime;
using test_support::meeting_place;
using test_support::run_rank_processes;
using test_support::test_options;
using test_support::with_standing_checks;
using testing::error_of;
using ::testing::HasSubstr;

TEST(join_address, in_every_spelling_leads_to_the_head) {
  const auto key = secret::from_text("0123456789abcdef0123456789abcdef");

  struct spelling {
    const char* head;
    const char* worker;  // the host; the port is the head's
    bool has_key;
  };

  for (const spelling& each : {spelling{"[::1]:0", "::1", false},
                               spelling{"127.0.0.1:0", "localhost", false},
                               spelling{"[::]:0", "127.0.0.1", true},
                               spelling{"[::]:0", "::1", true}}) {
    SCOPED_TRACE(each.head);
    const meeting_place place;
    expect_all_succeeded(run_rank_processes(2, [&](int rank) {
      const runtime loaded = host_runtime();
      with_standing_checks(loaded, [&] {
        world mine = place.of(rank, 2);
        if (rank == 0) {
          mine.address = each.head;
        } else {
          const auto port = std::to_string(rendezvous::parse_address(mine.address).port);
          mine.address = to_string(rendezvous::join_address(each.worker, port));
        }
        join_options options = test_options(place, rank);
        options.deadline = 10s;
        options.key = each.has_key ? std::optional{key} : std::nullopt;
        const auto called = clock::now();
        communicator comm = communicator::join(loaded, mine, options);
        EXPECT_TRUE(rank == 0 || clock::now() - called < 2s);
        comm.close(10s);
      });
    }));
  }
}

TEST(join_address, that_is_none_is_refused_at_once_with_what_would_be_right) {
  const std::vector<std::pair<const char*, const char*>> table = {
      {"::1:29500", "write [::1]:29500"},
      {"host:65536", "port '65536' is not a number from 0 to 65535"},
      {"host:-1", "port '-1'"},
      {"host:0", "port 0 is for rank 0 only"},
      {":29500", "write host:port"},
      {"", "write host:port"},
      {"host", "write host:port"},
      {"[::1]29500", "write [::1]:port"},
      {"[fe80::1%]:29500", "not an IPv6 address"},
  };
  expect_all_succeeded(run_rank_processes(1, [&](int) {
    const runtime loaded = host_runtime();
    with_standing_checks(loaded, [&] {
      const auto before = clock::now();
      for (const auto& [address, words] : table) {
        testing::expect_error(errc::invalid_argument, words, [&] {
          return communicator::join(loaded, {address, 1, 2}, {.supervise = {}});
        });
      }
      EXPECT_LT(clock::now() - before, 1s);
    });
  }));
}

TEST(join_address, with_an_unknown_name_is_looked_up_until_the_deadline) {
  expect_all_succeeded(run_rank_processes(1, [&](int) {
    const runtime loaded = host_runtime();
    with_standing_checks(loaded, [&] {
      const join_options options{.name = "test", .deadline = 1s, .supervise = {}};
      const auto before = clock::now();
      const error thrown = error_of([&] {
        return communicator::join(loaded, {"no-such-host.invalid:29500", 1, 2}, options);
      });
      expect_full_text(thrown, 1, 2);
      EXPECT_EQ(thrown.kind(), errc::timed_out) << thrown.what();
      EXPECT_THAT(thrown.what(), HasSubstr("could not find rank 0: no-such-host.invalid: "));
      EXPECT_GE(clock::now() - before, 1s);
      EXPECT_LT(clock::now() - before, 2s);
    });
  }));
}

}  // namespace
}  // namespace spark_comm
