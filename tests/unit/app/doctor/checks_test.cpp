// SPDX-License-Identifier: AGPL-3.0-only
// Every fault that can be planted is found, and nothing else.
#include "doctor/checks.hpp"

#include "doctor/finding.hpp"
#include "doctor/snapshot.hpp"
#include "exit_code.hpp"
#include "unit/app/doctor/machines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace spark_comm::app::doctor::testing {
namespace {

using ::testing::HasSubstr;
using names = std::vector<std::string>;

const std::string roce = "sys/class/infiniband/";
const std::string half_a = "sys/class/infiniband/rocep1s0f1/";    // the two halves of the port
const std::string half_b = "sys/class/infiniband/roceP2p1s0f1/";  // that is cabled
const std::string limits = "Max locked memory         67108864    67108864    bytes";

struct plant {
  std::string what;
  std::vector<std::pair<std::string, std::string>> changes;
  names found;
};

void expect_found(const std::string& shape, const std::vector<plant>& plants) {
  const machine_files healthy = machine(shape);
  const names before = judged(healthy);
  for (const plant& each : plants) {
    names expected = before;
    expected.insert(expected.end(), each.found.begin(), each.found.end());
    std::ranges::sort(expected);
    EXPECT_EQ(judged(with(healthy, each.changes)), expected) << shape << ": " << each.what;
  }
}

TEST(checks, say_nothing_about_a_healthy_machine) {
  EXPECT_EQ(judged(machine("spark")), names{});
  EXPECT_EQ(judged(machine("spark_peer")), names{});
  EXPECT_EQ(judged(machine("nvlink_8")), names{});
}

TEST(checks, say_calmly_what_a_laptop_lacks) {
  const findings all = check_machine(read_snapshot(machine("laptop")));
  EXPECT_EQ(names_of(all), names{"note gpu.no_driver"});
  EXPECT_EQ(exit_code_for(all), exit_code::ok);
  EXPECT_THAT(all.front().means, HasSubstr("works between processes of this machine"));
}

TEST(checks, find_the_half_that_is_not_used) {
  const findings all = check_machine(read_snapshot(machine("spark_half")));
  EXPECT_EQ(names_of(all), names{"warning roce.half_unused"});
  EXPECT_THAT(all.front().seen, HasSubstr("enP2p1s0f1np1"));
  EXPECT_THAT(all.front().remedy, HasSubstr("dev enP2p1s0f1np1"));
}

TEST(checks, find_what_is_wrong_with_the_gpu_of_a_spark) {
  expect_found(
      "spark",
      {{"no control device", {{"dev/nvidiactl", ""}}, {"problem gpu.device_file"}},
       {"no access", {{"dev/nvidia-uvm", "none"}}, {"problem gpu.device_file"}},
       {"read only", {{"dev/nvidia0", "r"}}, {"problem gpu.device_file"}},
       {"no GPU shown", {{"proc/driver/nvidia/gpus", ""}}, {"problem gpu.none"}},
       {"no libcuda", {{"usr/lib/aarch64-linux-gnu/libcuda.so.1", ""}}, {"problem gpu.no_libcuda"}},
       {"no driver", {{"proc/driver/nvidia/version", ""}}, {"note gpu.no_driver"}}});
}

TEST(checks, find_what_is_wrong_with_nccl) {
  const std::string library = "usr/lib/aarch64-linux-gnu/libnccl.so.2";
  const std::string wheel = "usr/local/lib/python3.12/dist-packages/nvidia/nccl/lib/libnccl.so.2";
  expect_found(
      "spark",
      {{"none", {{library, ""}}, {"problem nccl.missing"}},
       {"two builds of one version",
        {{wheel, "file /" + wheel + "\nversion 2.28.9+cuda13.0\nhash a7f420a100000001"}},
        {"warning nccl.two_builds"}},
       {"two names of one file",
        {{wheel, "file /usr/lib/x\nversion 2.28.9+cuda13.0\nhash c0db936000000001"}},
        {}},
       {"too old",
        {{library, "file /x\nversion 2.18.5+cuda12.2\nhash 1"}},
        {"problem nccl.too_old"}},
       {"2.30.4 without NVLink",
        {{library, "file /x\nversion 2.30.4+cuda13.0\nhash 1"}},
        {"warning nccl.nvls"}},
       {"2.30.3 without NVLink", {{library, "file /x\nversion 2.30.3+cuda13.0\nhash 1"}}, {}},
       {"left over", {{"etc/nccl.conf", "# old\nNCCL_IB_HCA=mlx5_0\n"}}, {"warning nccl.conf"}},
       {"in the home", {{"var/lib/user/.nccl.conf", "NCCL_DEBUG=INFO"}}, {"warning nccl.conf"}},
       {"an empty one", {{"etc/nccl.conf", "# NCCL_DEBUG=INFO\n"}}, {}}});
}

TEST(checks, find_what_is_wrong_with_a_port) {
  expect_found(
      "spark",
      {{"the cable is slow",
        {{half_a + "ports/1/rate", "100 Gb/sec (4X EDR)"}},
        {"warning roce.slow_link"}},
       {"PCIe fell back",
        {{half_b + "device/current_link_speed", "16.0 GT/s PCIe"}},
        {"warning roce.pcie"}},
       {"small packets", {{"sys/class/net/enp1s0f1np1/mtu", "1500"}}, {"warning roce.mtu"}},
       {"one half is down", {{half_b + "ports/1/state", "1: DOWN"}}, {"warning roce.half_down"}},
       {"one half has no address",
        {{half_b + "ports/1/gids/2", ""}, {half_b + "ports/1/gids/3", ""}},
        {"warning roce.half_unused"}},
       {"one half is link-local",
        {{half_b + "ports/1/gids/2", "0000:0000:0000:0000:0000:ffff:a9fe:0101"},
         {half_b + "ports/1/gids/3", "0000:0000:0000:0000:0000:ffff:a9fe:0101"}},
        {"warning roce.link_local"}},
       {"no address at all",
        {{half_a + "ports/1/gids/2", ""},
         {half_a + "ports/1/gids/3", ""},
         {half_b + "ports/1/gids/2", ""},
         {half_b + "ports/1/gids/3", ""}},
        {"warning roce.no_address", "warning roce.no_address"}},
       {"no link anywhere",
        {{half_a + "ports/1/state", "1: DOWN"}, {half_b + "ports/1/state", "1: DOWN"}},
        {"note roce.no_link"}},
       {"no device files", {{"dev/infiniband", ""}}, {"problem roce.device_file"}},
       {"both halves in one subnet",
        {{"ip-address",
          "3: enp1s0f1np1 inet 192.168.100.1/24\n4: enP2p1s0f1np1 inet 192.168.100.3/24\n"}},
        {"warning roce.same_subnet"}}});
}

TEST(checks, find_what_is_wrong_with_memory) {
  expect_found("spark",
               {{"locked", {{"proc/self/limits", limits}}, {"warning system.locked_memory"}},
                {"small /dev/shm",
                 {{"proc/self/mounts", "shm /dev/shm tmpfs rw,size=65536k 0 0"}},
                 {"warning system.shm"}},
                {"the kernel holds memory back",
                 {{"proc/meminfo", "CmaTotal:   0 kB\nCmaFree:   940604 kB"}},
                 {"warning system.contiguous_memory"}},
                {"no contiguous area",
                 {{"proc/meminfo", "CmaTotal:   0 kB\nCmaFree:   0 kB"}},
                 {"note system.contiguous_memory"}}});
  expect_found("laptop",
               {{"nothing there locks memory", {{"proc/self/limits", limits}}, {}},
                {"nor needs shared memory",
                 {{"proc/self/mounts", "shm /dev/shm tmpfs rw,size=65536k 0 0"}},
                 {}}});
}

TEST(checks, find_what_is_wrong_with_a_host_of_eight) {
  const std::string gpu = "sys/bus/pci/drivers/nvidia/0000:9a:00.0/current_link_width";
  expect_found("nvlink_8",
               {{"a card is badly seated", {{gpu, "8"}}, {"warning gpu.pcie_width"}},
                {"a network card too",
                 {{roce + "mlx5_3/device/current_link_width", "8"}},
                 {"warning roce.pcie"}},
                {"one link is slower than its like",
                 {{roce + "mlx5_5/ports/1/rate", "200 Gb/sec (4X HDR)"}},
                 {"warning roce.slow_link"}},
                {"one port is down", {{roce + "mlx5_7/ports/1/state", "1: DOWN"}}, {}},
                {"the switches are gone", {{"dev/nvidia-nvswitch", ""}}, {"warning nccl.nvls"}},
                {"a GPU's file is missing", {{"dev/nvidia6", ""}}, {"problem gpu.device_file"}}});
}

TEST(checks, find_what_is_wrong_with_variables) {
  struct row {
    std::string variable;
    names found;
  };

  const row rows[] = {
      {"NCCL_SOCKET_IFNAMES=eth0", {"warning env.misspelt"}},
      {"NCCL_IB_GID_IDX=3", {"warning env.misspelt"}},
      {"SPARK_COMM_FLIGHTDIR=/x", {"warning env.misspelt"}},
      {"NCCL_SOCKET_IFNAME=eth9", {"problem env.no_interface"}},
      {"NCCL_SOCKET_IFNAME=enP7s7", {}},
      {"NCCL_SOCKET_IFNAME=^e,lo,docker", {"problem env.no_interface"}},
      {"NCCL_IB_HCA=mlx5", {"problem env.no_interface"}},
      {"NCCL_IB_HCA==rocep1s0f1", {"warning env.one_half"}},
      {"NCCL_IB_HCA==rocep1s0f1,roceP2p1s0f1", {}},
      {"NCCL_IB_GID_INDEX=3", {}},
      {"NCCL_IB_GID_INDEX=1", {"warning roce.gid_index", "warning roce.gid_index"}},
      {"NCCL_IB_GID_INDEX=9", {"problem roce.gid_index", "problem roce.gid_index"}},
      {"NCCL_IB_TIMEOUT=40", {"problem env.value"}},
      {"NCCL_IB_TIMEOUT=22", {}},
      {"SPARK_COMM_HEARTBEAT_MS=0", {"problem env.value"}},
      {"SPARK_COMM_MISMATCH_CHECK=sometimes", {"problem env.value"}},
      {"SPARK_COMM_HEARTBEAT_MS=10\nSPARK_COMM_SILENCE_MS=40", {}},
      {"SPARK_COMM_SILENCE_MS=40", {"problem env.value"}},
      {"SPARK_COMM_WORLD_SIZE=two", {"problem env.value"}},
      {"NCCL_IB_DISABLE=1", {"warning env.roce_off"}},
      {"NCCL_NET=Socket", {"warning env.roce_off"}},
      {"NCCL_NVLS_ENABLE=1", {"warning nccl.nvls"}},
      {"NCCL_NVLS_ENABLE=0", {}},
      {"SOMETHING_ELSE=1", {}},
  };
  for (const row& each : rows) {
    EXPECT_EQ(judged(with_variable(machine("spark"), each.variable)), each.found) << each.variable;
  }
}

TEST(checks, tell_what_it_means_and_what_mends_it) {
  const std::vector<std::pair<std::string, std::string>> ruin = {
      {"dev", ""},
      {"usr/lib", ""},
      {"etc/nccl.conf", "NCCL_DEBUG=INFO"},
      {"proc/self/limits", limits},
      {"sys/class/net/enp1s0f1np1/mtu", "1500"},
      {half_b + "ports/1/state", "1: DOWN"},
      {"proc/self/environ", "NCCL_SOCKET_IFNAMES=a\nNCCL_IB_TIMEOUT=99\nNCCL_IB_HCA=x\n"}};
  const findings all = check_machine(read_snapshot(with(machine("spark"), ruin)));
  EXPECT_GE(all.size(), 11U);
  EXPECT_EQ(exit_code_for(all), exit_code::failed);
  EXPECT_TRUE(std::ranges::is_sorted(all, std::ranges::greater{}, &finding::how));
  for (const finding& each : all) {
    EXPECT_FALSE(each.seen.empty() || each.means.empty() || each.remedy.empty()) << each.check;
  }
}

TEST(checks, come_in_groups) {
  const machine_snapshot spark = read_snapshot(machine("spark"));
  for (const auto check : {check_gpus, check_nccl, check_roce, check_system, check_variables}) {
    EXPECT_EQ(check(spark), findings{});
  }
}

TEST(finding, decides_the_exit_code) {
  const finding note{.how = grade::note, .check = "a", .seen = "s", .means = "m", .remedy = ""};
  const finding warning{
      .how = grade::warning, .check = "b", .seen = "s", .means = "m", .remedy = "r"};
  const finding problem{
      .how = grade::problem, .check = "c", .seen = "s", .means = "m", .remedy = "r"};
  EXPECT_EQ(exit_code_for(findings{}), exit_code::ok);
  EXPECT_EQ(exit_code_for(findings{note}), exit_code::ok);
  EXPECT_EQ(exit_code_for(findings{note, warning}), exit_code::wrong);
  EXPECT_EQ(exit_code_for(findings{warning, problem, note}), exit_code::failed);
  const findings sorted = by_grade({note, warning, problem, note});
  EXPECT_EQ(sorted.front(), problem);
  EXPECT_EQ(sorted.back(), note);
  EXPECT_THAT(to_text(sorted), HasSubstr("\n1 problem, 1 warning, 2 notes\n"));
  EXPECT_THAT(to_text(sorted), HasSubstr("\nproblem: s [c]\n    m\n    mend: r\n"));
}

}  // namespace
}  // namespace spark_comm::app::doctor::testing
