// SPDX-License-Identifier: AGPL-3.0-only
#include "unit/rendezvous/ranks.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/rendezvous/secret.hpp>
#include <spark_comm/rendezvous/session.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <concepts>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <vector>

namespace spark_comm::rendezvous::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view right_key = "0123456789abcdef0123456789abcdef";
constexpr std::string_view wrong_key = "fedcba9876543210fedcba9876543210";

template <typename T>
concept printable = requires(std::ostream& out, const T& value) { out << value; };

static_assert(!printable<secret>);

meeting_options with_key(std::optional<std::string_view> key) {
  meeting_options options;
  options.log = diagnostics{nullptr};
  if (key) {
    options.key = secret::from_text(*key);
  }
  return options;
}

/// A key file that is gone at the end.
class key_file {
 public:
  explicit key_file(std::string_view content, mode_t mode = 0600) {
    std::string pattern = std::filesystem::temp_directory_path() / "spark_comm_key_XXXXXX";
    const int fd = ::mkstemp(pattern.data());
    EXPECT_EQ(::write(fd, content.data(), content.size()), static_cast<ssize_t>(content.size()));
    EXPECT_EQ(::fchmod(fd, mode), 0);
    ::close(fd);
    path_ = pattern;
  }

  key_file(const key_file&) = delete;
  key_file& operator=(const key_file&) = delete;
  key_file(key_file&&) = delete;
  key_file& operator=(key_file&&) = delete;

  ~key_file() { std::filesystem::remove(path_); }

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string refusal_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const error& failure) {
    EXPECT_EQ(failure.kind(), errc::invalid_argument) << failure.what();
    return failure.what();
  }
  return "accepted";
}

TEST(secret, comes_from_a_file_that_only_its_owner_reads) {
  const key_file good{std::string{right_key} + "\n"};
  EXPECT_EQ(text_of(secret::from_file(good.path()).reveal()), right_key);
  for (const mode_t mode : {0640U, 0604U, 0620U, 0601U}) {
    const key_file open{right_key, mode};
    EXPECT_THAT(refusal_of([&] { (void)secret::from_file(open.path()); }), HasSubstr("chmod 600"));
  }
}

TEST(secret, a_wrong_file_is_said_without_its_content) {
  const key_file brief{"hunter2"};
  const std::string text = refusal_of([&] { (void)secret::from_file(brief.path()); });
  EXPECT_THAT(text, HasSubstr("7 bytes; at least 16"));
  EXPECT_THAT(text, Not(HasSubstr("hunter2")));
  const key_file large{std::string(5000, 'x')};
  EXPECT_THAT(refusal_of([&] { (void)secret::from_file(large.path()); }), HasSubstr("right file"));
  EXPECT_THROW((void)secret::from_file("/nonexistent/key"), error);
}

TEST(secret, comes_from_one_variable_and_not_from_two) {
  std::map<std::string, std::string, std::less<>> set;
  const variable_source source = [&](std::string_view name) {
    const auto found = set.find(name);
    return found == set.end() ? std::nullopt : std::optional{found->second};
  };
  EXPECT_FALSE(secret::from_environment(source));
  set["SPARK_COMM_KEY"] = right_key;
  EXPECT_EQ(text_of(secret::from_environment(source)->reveal()), right_key);
  const key_file file{wrong_key};
  set["SPARK_COMM_KEY_FILE"] = file.path();
  EXPECT_THAT(refusal_of([&] { (void)secret::from_environment(source); }), HasSubstr("both"));
  set.erase("SPARK_COMM_KEY");
  EXPECT_EQ(text_of(secret::from_environment(source)->reveal()), wrong_key);
}

TEST(trust, ranks_with_the_same_key_meet_and_talk) {
  const auto all = meet_all(4, with_key(right_key));
  std::vector<std::future<std::vector<bytes>>> running;
  for (const auto& each : all) {
    running.push_back(std::async(std::launch::async, [&each] {
      return each->all_gather(bytes(std::size_t{1} << 20, static_cast<std::byte>(each->rank())),
                              deadline::after(20s));
    }));
  }
  for (auto& each : running) {
    EXPECT_EQ(each.get().at(3), bytes(std::size_t{1} << 20, std::byte{3}));
  }
}

TEST(trust, nobody_comes_in_without_the_key_and_the_head_waits_on) {
  head first{2, 10s, {}, "127.0.0.1:0", with_key(right_key)};
  for (const auto key : {std::optional{wrong_key}, std::optional<std::string_view>{}}) {
    const outcome stranger = worker(first.where(), 1, 2, 10s, {}, with_key(key)).get();
    EXPECT_EQ(stranger.failure.value().kind(), errc::mismatch) << stranger.text();
    EXPECT_THAT(stranger.text(), HasSubstr("key"));
    EXPECT_THAT(stranger.text(), Not(HasSubstr(std::string{wrong_key})));
    EXPECT_LT(stranger.took, 1s);
  }
  EXPECT_TRUE(worker(first.where(), 1, 2, 10s, {}, with_key(right_key)).get().is_met());
  EXPECT_TRUE(first.result().is_met());
}

TEST(trust, a_worker_with_a_key_does_not_trust_a_head_without) {
  head first{2, 1s};
  const outcome out = worker(first.where(), 1, 2, 10s, {}, with_key(right_key)).get();
  EXPECT_EQ(out.failure.value().kind(), errc::mismatch) << out.text();
  EXPECT_LT(out.took, 1s);
  const outcome own = first.result();
  EXPECT_THAT(own.text(), HasSubstr("key"));
}

TEST(trust, off_loopback_a_key_is_needed) {
  for (const char* const where : {"0.0.0.0:0", "[::]:0", "192.0.2.1:29500", "[2001:db8::1]:1"}) {
    const outcome out = try_meet({.address = where, .rank = 0, .world_size = 2}, {}, 10s);
    EXPECT_EQ(out.failure.value().kind(), errc::invalid_argument) << out.text();
    EXPECT_THAT(out.text(), HasSubstr("needs a key"));
    EXPECT_LT(out.took, 1s);
  }
}

}  // namespace
}  // namespace spark_comm::rendezvous::testing
