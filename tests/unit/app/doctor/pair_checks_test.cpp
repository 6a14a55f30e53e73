// SPDX-License-Identifier: AGPL-3.0-only
#include "doctor/pair_checks.hpp"

#include "doctor/finding.hpp"
#include "doctor/snapshot.hpp"
#include "unit/app/doctor/machines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace spark_comm::app::doctor::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using names = std::vector<std::string>;

findings between(const machine_files& mine, const machine_files& theirs) {
  return compare_machines(read_snapshot(mine), read_snapshot(theirs));
}

TEST(pair_checks, name_the_link_of_two_sparks_and_both_halves) {
  const findings all = between(machine("spark"), machine("spark_peer"));
  ASSERT_EQ(names_of(all), names{"note pair.link"});
  EXPECT_THAT(all.front().seen, AllOf(HasSubstr("192.168.10"), HasSubstr("3 in all")));
  EXPECT_THAT(
      all.front().remedy,
      AllOf(HasSubstr("NCCL_SOCKET_IFNAME=="), HasSubstr("roceP2p1s0f1"), HasSubstr("rocep1s0f1")));
}

TEST(pair_checks, find_what_is_not_alike) {
  const machine_files mine = machine("spark");
  const machine_files peer = machine("spark_peer");
  const std::string library = "usr/lib/aarch64-linux-gnu/libnccl.so.2";

  struct row {
    machine_files theirs;
    names found;
  };

  const row rows[] = {
      {with(peer, {{library, "file /x\nversion 2.30.7+cuda13.0\nhash 1"}}),
       {"note pair.link", "problem pair.nccl_version"}},
      {with(peer, {{library, "file /x\nversion 2.28.9+cuda13.0\nhash 1"}}),
       {"note pair.link", "warning pair.nccl_build"}},
      {with(peer, {{"proc/driver/nvidia/version", "NVRM version: NVIDIA 570.10.01 x"}}),
       {"note pair.link", "warning pair.driver"}},
      {with_variable(peer, "NCCL_PROTO=Simple"), {"note pair.link", "warning pair.variable"}},
      {with_variable(peer, "NCCL_SOCKET_IFNAME=enP7s7\nSPARK_COMM_RANK=1"), {"note pair.link"}},
      {with(peer,
            {{"sys/class/net/enp1s0f1np1/mtu", "1500"},
             {"sys/class/net/enP2p1s0f1np1/mtu", "1500"}}),
       {"note pair.link", "problem pair.mtu"}},
      {with(peer,
            {{"ip-address", "3: enp1s0f1np1 inet 169.254.7.7/16\n5: docker0 inet 172.17.0.1/16"}}),
       {"problem pair.no_link"}},
      {mine, {"note pair.one_machine"}},
  };
  for (const row& each : rows) {
    EXPECT_EQ(names_of(between(mine, each.theirs)), each.found);
    EXPECT_EQ(names_of(between(each.theirs, mine)), each.found) << "the other way round";
  }
}

TEST(pair_checks, do_not_care_for_nccl_where_no_gpu_is) {
  machine_files other = machine("laptop");
  other.put("proc/sys/kernel/hostname", "other");
  other.put("ip-address", "2: wlp2s0 inet 192.168.1.24/24");
  EXPECT_EQ(names_of(between(machine("laptop"), other)), names{"note pair.link"});
  EXPECT_FALSE(are_one_machine(read_snapshot(machine("laptop")), read_snapshot(other)));
}

TEST(pair_checks, count_bytes_of_interfaces_and_ports) {
  const port_counters counters = read_counters(machine("spark"));
  EXPECT_EQ(counters.at("enp1s0f1np1"), 2000U);
  EXPECT_EQ(counters.at("rocep1s0f1"), 2000U);  // 500 units of four bytes
}

TEST(pair_checks, prove_the_link_by_its_counters) {
  const port_counters before = {{"eth0", 1000}, {"roce0", 0}, {"lo", 5}};
  const std::vector<std::string> expected = {"roce0", "eth0"};
  const auto judge = [&](const port_counters& after) {
    return judge_burst(before, after, 4000, expected);
  };
  const finding right = judge({{"eth0", 1100}, {"roce0", 4000}, {"lo", 9}});
  EXPECT_EQ(right.how, grade::note);
  EXPECT_THAT(right.seen, HasSubstr("roce0"));
  const finding other = judge({{"eth0", 1100}, {"roce0", 10}, {"lo", 4100}});
  EXPECT_EQ(other.how, grade::warning);
  EXPECT_THAT(other.seen, AllOf(HasSubstr("over lo"), HasSubstr("not over roce0, eth0")));
  const finding none = judge({{"eth0", 1100}, {"roce0", 10}, {"lo", 9}});
  EXPECT_EQ(none.how, grade::warning);
  EXPECT_THAT(none.seen, HasSubstr("no port"));
  EXPECT_EQ(judge({{"eth0", 0}}).how, grade::warning);  // a counter that was reset proves nothing
}

}  // namespace
}  // namespace spark_comm::app::doctor::testing
