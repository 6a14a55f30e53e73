// SPDX-License-Identifier: AGPL-3.0-only
// Communicators whose ranks are on two hosts: every family of addresses, with the key and without
// (BC-04 of docs/cases.md).
#include "process/two_hosts.hpp"
#include "support/expect_error.hpp"
#include "support/standing_checks.hpp"
#include "support/world.hpp"
#include "unit/rendezvous/raw_peer.hpp"

#include <spark_comm/rendezvous/address.hpp>
#include <spark_comm/spark_comm.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <functional>
#include <optional>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/mount.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using rendezvous::join_address;
using rendezvous::parse_address;
using rendezvous::secret;
using test_support::expect_all_succeeded;
using test_support::expect_full_text;
using test_support::host_runtime;
using test_support::meeting_place;
using test_support::run_rank_processes;
using test_support::shared_value;
using test_support::with_standing_checks;
using testing::enter;
using testing::error_of;
using ::testing::HasSubstr;
using testing::must;

constexpr std::string_view right_key = "0123456789abcdef0123456789abcdef";
constexpr std::string_view wrong_key = "fedcba9876543210fedcba9876543210";

join_options with_key(std::optional<std::string_view> key,
                      const meeting_place& place,
                      int rank,
                      duration limit = 10s) {
  join_options options = test_support::test_options(place, rank);
  options.deadline = limit;
  options.key = key ? std::optional{secret::from_text(*key)} : std::nullopt;
  return options;
}

void serve(communicator& comm) {
  barrier(comm, 10s);
  comm.close(10s);
}

class join_between_hosts : public testing::two_hosts {
 protected:
  /// Rank 0 in `a` at `head_at`, rank 1 in `b`, where the head has the name or number `host`.
  void expect_to_join(const std::string& head_at,
                      const std::string& host,
                      const std::function<void()>& prepare_worker = {}) {
    SCOPED_TRACE(host);
    const meeting_place place;
    expect_all_succeeded(run_rank_processes(2, [&](int rank) {
      enter(rank == 0 ? a : b);
      if (rank == 1 && prepare_worker) {
        prepare_worker();
      }
      const runtime loaded = host_runtime();
      with_standing_checks(loaded, [&] {
        world mine = place.of(rank, 2);
        mine.address =
            rank == 0
                ? head_at
                : to_string(join_address(host, std::to_string(parse_address(mine.address).port)));
        const auto called = clock::now();
        communicator comm = communicator::join(loaded, mine, with_key(right_key, place, rank, 4s));
        EXPECT_TRUE(rank == 0 || clock::now() - called < 3s);
        serve(comm);
      });
    }));
  }
};

TEST_F(join_between_hosts, works_by_every_family_of_addresses) {
  expect_to_join("10.77.0.1:0", "10.77.0.1");
  expect_to_join("[fd77::1]:0", "fd77::1");
  expect_to_join("[fe80::1%wa]:0", "fe80::1%wb");
  expect_to_join("[::]:0", "10.77.0.1");
  expect_to_join("[::]:0", "fd77::1");
}

/// Gives `head.test` these addresses in the calling process, and in no other.
void name_head(const std::string& addresses) {
  const std::string file = "/tmp/spark_comm_hosts." + std::to_string(::getpid());
  std::ofstream{file} << addresses;
  const bool is_done = ::unshare(CLONE_NEWNS) == 0 &&
                       ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                       ::mount(file.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) == 0;
  const int number = errno;
  ::unlink(file.c_str());
  if (!is_done) {
    throw std::system_error{number, std::generic_category(), "mount"};
  }
}

TEST_F(join_between_hosts, a_name_with_a_dead_address_leads_to_the_one_that_answers) {
  expect_to_join(
      "10.77.0.1:0", "head.test", [] { name_head("fd77::1 head.test\n10.77.0.1 head.test\n"); });
  expect_to_join(
      "10.77.0.1:0", "head.test", [] { name_head("10.77.0.9 head.test\n10.77.0.1 head.test\n"); });
}

TEST_F(join_between_hosts, without_ipv6_the_rest_still_works) {
  must("ip netns exec " + a +
       " sh -c 'for each in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 > $each; done'");
  expect_to_join("10.77.0.1:0", "10.77.0.1");
}

/// What a stranger who says a right hello without TLS is told.
std::size_t bytes_for_a_stranger(const std::string& where) {
  const rendezvous::testing::raw_socket peer;
  const rendezvous::address to = parse_address(where);
  sockaddr_in at = rendezvous::testing::loopback(to.port);
  if (::inet_pton(AF_INET, to.host.c_str(), &at.sin_addr) != 1 ||
      ::connect(peer.fd(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
    throw std::runtime_error{"cannot connect to " + where};
  }
  peer.send_frame(rendezvous::detail::frame_kind::hello, rendezvous::testing::raw_hello(1, 2));
  return peer.read(4096).size();
}

TEST_F(join_between_hosts, the_right_rank_comes_in_after_those_without_the_key) {
  const meeting_place place;
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    enter(rank == 0 ? a : b);
    const runtime loaded = host_runtime();
    with_standing_checks(loaded, [&] {
      world mine = place.of(rank, 2);
      if (rank == 0) {
        mine.address = "10.77.0.1:0";
      } else {
        const auto refusal = [&](std::optional<std::string_view> key) {
          const error thrown =
              error_of([&] { return communicator::join(loaded, mine, with_key(key, place, 1)); });
          expect_full_text(thrown, 1, 2);
          return thrown;
        };
        const error wrong = refusal(wrong_key);
        EXPECT_EQ(wrong.kind(), errc::mismatch);
        EXPECT_THAT(wrong.what(), HasSubstr("do not share a key"));
        const error none = refusal(std::nullopt);
        EXPECT_EQ(none.kind(), errc::invalid_argument);
        EXPECT_THAT(none.what(), HasSubstr("needs a key"));
        EXPECT_EQ(bytes_for_a_stranger(mine.address), 7U);  // one alert of TLS, and nothing else
        for (const error* each : {&wrong, &none}) {
          EXPECT_EQ(std::string_view{each->what()}.find(right_key), std::string_view::npos);
          EXPECT_EQ(std::string_view{each->what()}.find(wrong_key), std::string_view::npos);
        }
      }
      communicator comm = communicator::join(loaded, mine, with_key(right_key, place, rank));
      serve(comm);
    });
  }));
}

TEST_F(join_between_hosts, a_head_without_a_key_refuses_to_listen) {
  expect_all_succeeded(run_rank_processes(1, [&](int) {
    enter(a);
    const meeting_place place;
    const runtime loaded = host_runtime();
    with_standing_checks(loaded, [&] {
      const error thrown = error_of([&] {
        return communicator::join(loaded, {"10.77.0.1:0", 0, 2}, with_key(std::nullopt, place, 0));
      });
      EXPECT_EQ(thrown.kind(), errc::invalid_argument);
      EXPECT_THAT(thrown.what(), HasSubstr("set SPARK_COMM_KEY_FILE"));
    });
  }));
}

}  // namespace
}  // namespace spark_comm
