// SPDX-License-Identifier: AGPL-3.0-only
#include "unit/supervise/temporary_directory.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/supervise/metrics.hpp>
#include <spark_comm/supervise/metrics_exporter.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string content_of(const std::string& path) {
  std::ifstream file{path};
  return {std::istreambuf_iterator<char>{file}, {}};
}

/// A TCP socket on loopback.
class loopback_socket {
 public:
  loopback_socket() : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {}

  loopback_socket(const loopback_socket&) = delete;
  loopback_socket& operator=(const loopback_socket&) = delete;
  loopback_socket(loopback_socket&&) = delete;
  loopback_socket& operator=(loopback_socket&&) = delete;

  ~loopback_socket() { ::close(fd_); }

  /// Takes a free port without listening on it.
  int take_port() const {
    sockaddr_in at = address(0);
    socklen_t bytes = sizeof at;
    ::bind(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &bytes);
    return ntohs(at.sin_port);
  }

  std::string ask(int port, const std::string& request) const {
    const sockaddr_in at = address(port);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
      return "refused";
    }
    (void)::write(fd_, request.data(), request.size());
    std::string answer;
    std::array<char, 4096> part{};
    for (ssize_t got = 0; (got = ::read(fd_, part.data(), part.size())) > 0;) {
      answer.append(part.data(), static_cast<std::size_t>(got));
    }
    return answer;
  }

 private:
  static sockaddr_in address(int port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
  }

  int fd_;
};

int free_port() {
  return loopback_socket{}.take_port();
}

TEST(metrics_exporter, writes_a_file_that_is_whole_at_any_time) {
  const temporary_directory folder;
  const std::string path = folder.path() + "/x.prom";
  write_metrics_file(path, "old\n");
  write_metrics_file(path, "new\n");
  EXPECT_EQ(content_of(path), "new\n");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator{folder.path()}, {}), 1);
  try {
    write_metrics_file(folder.path() + "/none/x.prom", "text");
    ADD_FAILURE();
  } catch (const error& failure) {
    EXPECT_EQ(failure.kind(), errc::system_failed);
    EXPECT_THAT(failure.what(), HasSubstr("/none/x.prom"));
  }
}

TEST(metrics_exporter, names_a_file_after_communicator_and_rank) {
  EXPECT_EQ(metrics_file_of("/m", {.name = "tp", .rank = 3, .generation = 7}),
            "/m/spark_comm-tp-rank3.prom");
}

TEST(metrics_exporter, writes_at_the_start_and_at_the_end) {
  const temporary_directory folder;
  const std::string path = folder.path() + "/x.prom";
  communicator_metrics metrics{{}};
  metrics_exporter exporter{metrics, {.file = path, .interval = 1h}};
  EXPECT_THAT(content_of(path), HasSubstr("spark_comm_up{communicator=\"world\",rank=\"0\"} 1"));
  metrics.stopped();
  exporter.stop();
  exporter.stop();
  EXPECT_THAT(content_of(path), HasSubstr("spark_comm_up{communicator=\"world\",rank=\"0\"} 0"));
}

TEST(metrics_exporter, answers_requests_for_the_metrics_only) {
  const communicator_metrics metrics{{}};
  EXPECT_THAT(http_answer("GET /metrics HTTP/1.1", metrics),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), EndsWith(metrics.exposition())));
  EXPECT_THAT(http_answer("GET / HTTP/1.1", metrics), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(http_answer("GET /metrics?x=1 HTTP/1.1", metrics), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(http_answer("GET /secrets HTTP/1.1", metrics), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(http_answer("POST /metrics HTTP/1.1", metrics), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(http_answer("", metrics), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(http_answer("GET", metrics), StartsWith("HTTP/1.1 404"));
}

TEST(metrics_exporter, serves_on_loopback) {
  const communicator_metrics metrics{{}};
  const int port = free_port();
  const metrics_exporter exporter{metrics, {.port = port}};
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(loopback_socket{}.ask(port, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"),
                AllOf(StartsWith("HTTP/1.1 200 OK"), HasSubstr("spark_comm_up")));
  }
  // More than a request may have: closed without an answer.
  EXPECT_EQ(loopback_socket{}.ask(port, std::string(8192, 'x')).find("200"), std::string::npos);
}

TEST(metrics_exporter, says_when_the_port_is_taken) {
  const communicator_metrics metrics{{}};
  const int port = free_port();
  const metrics_exporter first{metrics, {.port = port}};
  try {
    const metrics_exporter second{metrics, {.port = port}};
    ADD_FAILURE();
  } catch (const error& failure) {
    EXPECT_EQ(failure.kind(), errc::system_failed);
    EXPECT_THAT(failure.what(), HasSubstr("127.0.0.1:" + std::to_string(port)));
  }
}

}  // namespace
}  // namespace spark_comm
