// SPDX-License-Identifier: AGPL-3.0-only
// Where ranks meet: families, names, files; and what a meeting leaves behind.
#include "unit/rendezvous/ranks.hpp"
#include "unit/rendezvous/raw_peer.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/rendezvous/address.hpp>
#include <spark_comm/rendezvous/detail/file_point.hpp>
#include <spark_comm/rendezvous/session.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdlib.h>
#include <string>
#include <sys/stat.h>
#include <vector>

namespace spark_comm::rendezvous::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* some_key = "0123456789abcdef0123456789abcdef";

meeting_options keyed() {
  meeting_options options = quiet();
  options.key = secret::from_text(some_key);
  return options;
}

class folder {
 public:
  folder() {
    std::string pattern = std::filesystem::temp_directory_path() / "spark_comm_XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }

  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  folder(folder&&) = delete;
  folder& operator=(folder&&) = delete;

  ~folder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] std::string file(const std::string& name) const { return path_ / name; }

  [[nodiscard]] bool is_empty() const { return std::filesystem::is_empty(path_); }

 private:
  std::filesystem::path path_;
};

std::vector<int> open_descriptors() {
  std::vector<int> out;
  for (const auto& each : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    out.push_back(std::stoi(each.path().filename()));
  }
  return out;
}

bool is_socket(int fd) {
  struct stat about{};
  return ::fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode);
}

/// Both sides by their own words for one place; the port is the head's.
void expect_to_meet(const std::string& head_at,
                    const std::string& worker_host,
                    const meeting_options& options) {
  head first{2, 10s, {}, head_at, options};
  const auto port = std::to_string(parse_address(first.where()).port);
  const std::string where = to_string(join_address(worker_host, port));
  const outcome other = worker(where, 1, 2, 10s, {}, options).get();
  EXPECT_TRUE(other.is_met()) << other.text();
  EXPECT_LT(other.took, 2s);
  EXPECT_TRUE(first.result().is_met());
}

TEST(point, both_families_and_their_mixtures) {
  expect_to_meet("127.0.0.1:0", "127.0.0.1", quiet());
  expect_to_meet("[::1]:0", "::1", quiet());
  expect_to_meet("[::]:0", "127.0.0.1", keyed());
  expect_to_meet("[::]:0", "::1", keyed());
  expect_to_meet("0.0.0.0:0", "127.0.0.1", keyed());
  expect_to_meet("127.0.0.1:0", "localhost", quiet());
  expect_to_meet("localhost:0", "127.0.0.1", quiet());
}

TEST(point, an_unknown_name_is_looked_up_until_the_deadline) {
  const outcome out = worker("no-such-host.invalid:29500", 1, 2, 400ms).get();
  EXPECT_EQ(out.failure.value().kind(), errc::timed_out) << out.text();
  EXPECT_THAT(out.text(), HasSubstr("could not find rank 0: no-such-host.invalid: "));
  EXPECT_GE(out.took, 400ms);
  EXPECT_LT(out.took, 1400ms);
}

TEST(point, a_file_brings_ranks_together_and_is_gone_afterwards) {
  const folder shared;
  for (const meeting_options& options : {quiet(), keyed()}) {
    const std::string where = "file://" + shared.file("meeting");
    auto early = worker(where, 1, 3, 10s, {}, options);
    head first{3, 10s, {}, where, options};
    auto late = worker(where, 2, 3, 10s, {}, options);
    const outcome one = early.get();
    EXPECT_TRUE(one.is_met()) << one.text();
    EXPECT_TRUE(late.get().is_met());
    EXPECT_TRUE(first.result().is_met());
    EXPECT_TRUE(shared.is_empty());
  }
}

TEST(point, a_file_that_a_dead_head_left_is_waited_out) {
  const folder shared;
  const std::string path = shared.file("meeting");
  std::ofstream{path} << "spark_comm meeting 1\ngeneration 1\n127.0.0.1:1\n";
  const outcome alone = worker("file://" + path, 1, 2, 300ms).get();
  EXPECT_EQ(alone.failure.value().kind(), errc::timed_out);
  EXPECT_THAT(alone.text(), HasSubstr("could not connect to 127.0.0.1:1"));
  auto other = worker("file://" + path, 1, 2);
  head first{2, 10s, {}, "file://" + path};
  EXPECT_TRUE(other.get().is_met());
  EXPECT_TRUE(first.result().is_met());
}

TEST(point, a_dead_address_leaves_time_for_the_next) {
  const folder shared;
  const std::string path = shared.file("meeting");
  const raw_listener frozen;  // is connected to, and never answers
  head first{2};
  const std::vector<detail::tcp::endpoint> at = {*detail::try_parse_numeric(frozen.where()),
                                                 *detail::try_parse_numeric(first.where())};
  std::ofstream{path} << detail::point_text(1, at);
  const outcome other = worker("file://" + path, 1, 2, 2s).get();
  EXPECT_TRUE(other.is_met()) << other.text();
  EXPECT_LT(other.took, 2s);
  EXPECT_TRUE(first.result().is_met());
}

TEST(point, a_file_that_cannot_be_written_is_said) {
  const outcome out =
      try_meet({.address = "file:///nonexistent/x", .rank = 0, .world_size = 2}, {}, 5s, quiet());
  EXPECT_EQ(out.failure.value().kind(), errc::system_failed) << out.text();
  EXPECT_THAT(out.text(), HasSubstr("/nonexistent/x"));
}

TEST(point, the_files_text_is_read_back_and_anything_else_refused) {
  using detail::parse_point;
  const std::vector<detail::tcp::endpoint> at = {*detail::try_parse_numeric("10.0.0.1:5"),
                                                 *detail::try_parse_numeric("[2001:db8::1]:5")};
  EXPECT_EQ(parse_point(detail::point_text(3, at), 3).endpoints, at);
  EXPECT_THAT(parse_point(detail::point_text(3, at), 4).failure, HasSubstr("generation"));
  EXPECT_EQ(parse_point(detail::point_text(3, at), 1).endpoints, at) << "a new process knows none";
  EXPECT_THAT(parse_point(detail::point_text(3, {}), 3).failure, HasSubstr("no address"));
  EXPECT_THAT(parse_point("", 0).failure, HasSubstr("not a meeting point"));
  EXPECT_THAT(parse_point(std::string(100, '\0'), 0).failure, HasSubstr("not a meeting point"));
  EXPECT_EQ(parse_point("spark_comm meeting 1\ngeneration 0\n\nname:1\n1.2.3.4:5", 0).endpoints,
            std::vector{*detail::try_parse_numeric("1.2.3.4:5")});
}

TEST(point, file_addresses_need_a_full_path) {
  for (const char* const where : {"file://", "file:///", "file://x", "file:///folder/"}) {
    EXPECT_THROW(check_place({where, 0, 2}), error) << where;
  }
  EXPECT_NO_THROW(check_place({"file:///tmp/x", 1, 2}));
}

TEST(point, descriptors_close_on_exec_and_are_all_given_back) {
  const auto before = open_descriptors().size();
  {
    const auto all = meet_all(3, keyed());
    for (const int fd : open_descriptors()) {
      if (is_socket(fd)) {
        EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0) << fd;
      }
    }
  }
  (void)worker("127.0.0.1:1", 1, 2, 50ms).get();
  EXPECT_EQ(open_descriptors().size(), before);
}

}  // namespace
}  // namespace spark_comm::rendezvous::testing
