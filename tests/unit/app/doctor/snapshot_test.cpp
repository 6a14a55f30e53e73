// SPDX-License-Identifier: AGPL-3.0-only
#include "doctor/snapshot.hpp"

#include "doctor/halves.hpp"
#include "doctor/machine_files.hpp"
#include "exit_code.hpp"
#include "unit/app/doctor/machines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace spark_comm::app::doctor::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(snapshot, reads_a_spark) {
  const machine_snapshot spark = read_snapshot(machine("spark"));
  EXPECT_TRUE(spark.is_spark());
  EXPECT_FALSE(spark.has_nvswitch);
  EXPECT_EQ(spark.driver, "580.95.05");
  EXPECT_EQ(spark.cuda, "13.0.2");
  EXPECT_EQ(spark.locked_bytes, std::nullopt);
  EXPECT_EQ(spark.shm_bytes, 65873236LL * 1024);
  ASSERT_EQ(spark.roce.size(), 4U);
  ASSERT_EQ(spark.nccl.size(), 1U);
  EXPECT_EQ(version_number(spark.nccl.front().version), 22809);
  const auto port = std::ranges::find(spark.roce, "rocep1s0f1", &roce_port::device);
  ASSERT_NE(port, spark.roce.end());
  EXPECT_TRUE(port->is_active);
  EXPECT_EQ(port->rate_gbps, 200);
  EXPECT_EQ(port->interface, "enp1s0f1np1");
  EXPECT_EQ(port->gids.size(), 4U);
  ASSERT_NE(other_half(spark, *port), nullptr);
  EXPECT_EQ(other_half(spark, *port)->device, "roceP2p1s0f1");
  EXPECT_THAT(describe(spark), HasSubstr("RoCE ports: 4, 2 active"));
}

TEST(snapshot, reads_a_host_of_eight) {
  const machine_snapshot host = read_snapshot(machine("nvlink_8"));
  EXPECT_EQ(host.gpus.size(), 8U);
  EXPECT_TRUE(host.has_nvswitch);
  EXPECT_EQ(host.gpus.back().link.width, 16);
  EXPECT_EQ(other_half(host, host.roce.front()), nullptr);
}

TEST(snapshot, reads_nothing_from_nothing) {
  const machine_snapshot nothing = read_snapshot({});
  EXPECT_TRUE(nothing.gpus.empty() && nothing.roce.empty() && nothing.nccl.empty());
  EXPECT_THAT(describe(nothing), HasSubstr("driver none"));
  EXPECT_EQ(version_number("unknown"), 0);
  EXPECT_EQ(nothing.interface("eth0"), nullptr);
}

TEST(snapshot, puts_the_loaders_own_path_first) {
  machine_files files = machine("spark");
  files.put("opt/nccl/libnccl.so.2",
            "file /opt/nccl/libnccl.so.2\nversion 2.27.3+cuda12.9\nhash 2");
  EXPECT_EQ(read_snapshot(files).nccl.front().version, "2.28.9+cuda13.0");
  files = with_variable(files, "LD_LIBRARY_PATH=/opt/nccl");
  EXPECT_EQ(read_snapshot(files).nccl.front().version, "2.27.3+cuda12.9");
}

TEST(machine_files, survive_being_recorded) {
  for (const char* const shape : {"spark", "spark_half", "nvlink_8", "laptop"}) {
    const machine_files files = machine(shape);
    EXPECT_EQ(machine_files::parse(files.to_recording()), files) << shape;
  }
  EXPECT_THROW((void)machine_files::parse("something else\n"), failure);
  EXPECT_THROW((void)machine_files::read("/no/such/folder"), failure);
}

TEST(machine_files, know_what_lies_in_a_folder) {
  machine_files files;
  files.put("a/b/c", "12 apples\n");
  files.put("a/b/d", "none");
  files.put("a/e", "-7");
  files.put("ab", "x");
  EXPECT_THAT(files.names_in("a"), ElementsAre("b", "e"));
  EXPECT_THAT(files.names_in("a/b"), ElementsAre("c", "d"));
  EXPECT_EQ(files.number("a/b/c"), 12);
  EXPECT_EQ(files.number("a/e"), -7);
  EXPECT_EQ(files.number("a/b/d"), std::nullopt);
  EXPECT_EQ(files.text("a/b/c"), "12 apples");
  EXPECT_EQ(files.text("z"), "");
  EXPECT_TRUE(files.has("ab"));
  files.remove("a/");
  EXPECT_THAT(files.paths(), ElementsAre("ab"));
}

/// A folder that looks like a machine, and goes with the test.
class machine_folder {
 public:
  machine_folder() {
    std::string path = std::filesystem::temp_directory_path() / "spark_comm_XXXXXX";
    root_ = ::mkdtemp(path.data());
  }

  machine_folder(const machine_folder&) = delete;
  machine_folder& operator=(const machine_folder&) = delete;
  machine_folder(machine_folder&&) = delete;
  machine_folder& operator=(machine_folder&&) = delete;

  ~machine_folder() { std::filesystem::remove_all(root_); }

  void put(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream{root_ / path} << text;
  }

  [[nodiscard]] const std::filesystem::path& root() const { return root_; }

 private:
  std::filesystem::path root_;
};

TEST(machine_files, are_read_from_a_folder_and_keep_no_secret) {
  const machine_folder folder;
  using namespace std::string_literals;
  folder.put("proc/self/environ",
             "NCCL_DEBUG=INFO\0SPARK_COMM_KEY=squeamish\0NCCL_PSK=ossifrage\0"
             "SPARK_COMM_KEY_FILE=/k\0NCCL_IB_PKEY=3\0LD_LIBRARY_PATH=/opt/nccl\0USER=me\0"s);
  folder.put("sys/class/net/eth0/mtu", "9000\n");
  folder.put("sys/class/infiniband/m/ports/1/gids/0", "0000:0000:0000:0000\n");
  folder.put("dev/nvidiactl", "");
  folder.put("opt/nccl/libnccl.so.2", "\0NCCL version \0NCCL version 2.30.7+cuda13.1\0"s);
  std::filesystem::create_directories(folder.root() / "usr/lib/x");
  std::filesystem::create_symlink(folder.root() / "opt/nccl/libnccl.so.2",
                                  folder.root() / "usr/lib/x/libnccl.so.2");
  const machine_files files = machine_files::open(folder.root());
  EXPECT_EQ(files.number("sys/class/net/eth0/mtu"), 9000);
  EXPECT_EQ(files.text("dev/nvidiactl"), "rw");
  EXPECT_FALSE(files.has("sys/class/infiniband/m/ports/1/gids/0"));
  const machine_snapshot seen = read_snapshot(files);
  EXPECT_EQ(seen.variable("NCCL_DEBUG"), "INFO");
  EXPECT_EQ(seen.variable("SPARK_COMM_KEY"), "(hidden)");
  EXPECT_EQ(seen.variable("SPARK_COMM_KEY_FILE"), "/k");
  EXPECT_EQ(seen.variable("NCCL_IB_PKEY"), "3");
  EXPECT_EQ(seen.variable("USER"), "");
  ASSERT_EQ(seen.nccl.size(), 2U);
  EXPECT_EQ(seen.nccl.front().version, "2.30.7+cuda13.1");
  EXPECT_EQ(seen.nccl.front().file, "/opt/nccl/libnccl.so.2");
  EXPECT_EQ(seen.nccl.back().file, "/opt/nccl/libnccl.so.2");
  EXPECT_EQ(seen.nccl.front().hash, seen.nccl.back().hash);
  const std::string recording = files.to_recording();
  EXPECT_THAT(recording, Not(HasSubstr("squeamish")));
  EXPECT_THAT(recording, Not(HasSubstr("ossifrage")));
}

}  // namespace
}  // namespace spark_comm::app::doctor::testing
