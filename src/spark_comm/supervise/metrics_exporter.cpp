// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/supervise/flight_record.hpp>
#include <spark_comm/supervise/metrics.hpp>
#include <spark_comm/supervise/metrics_exporter.hpp>

#include <algorithm>
#include <asio/buffer.hpp>
#include <asio/error_code.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/address_v4.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read_until.hpp>
#include <asio/steady_timer.hpp>
#include <asio/streambuf.hpp>
#include <asio/write.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

namespace spark_comm {
namespace {

using asio::ip::tcp;

constexpr std::size_t most_request_bytes = 4096;
constexpr std::chrono::seconds request_limit{2};

/// One request, one answer, closed; a reader that dawdles is cut off.
class http_connection : public std::enable_shared_from_this<http_connection> {
 public:
  http_connection(tcp::socket socket, const communicator_metrics& metrics)
      : socket_(std::move(socket)), timer_(socket_.get_executor()), metrics_(&metrics) {}

  void start() {
    timer_.expires_after(request_limit);
    timer_.async_wait([self = shared_from_this()](const asio::error_code& cancelled) {
      if (!cancelled) {
        self->close();
      }
    });
    asio::async_read_until(
        socket_,
        request_,
        "\r\n\r\n",
        [self = shared_from_this()](const asio::error_code& failure, std::size_t bytes) {
          if (failure) {
            self->close();
          } else {
            self->answer(bytes);
          }
        });
  }

 private:
  void answer(std::size_t bytes) {
    const auto* const begin = static_cast<const char*>(request_.data().data());
    const std::string_view request{begin, bytes};
    text_ = http_answer(request.substr(0, request.find("\r\n")), *metrics_);
    asio::async_write(
        socket_,
        asio::buffer(text_),
        [self = shared_from_this()](const asio::error_code&, std::size_t) { self->close(); });
  }

  void close() {
    asio::error_code ignored;
    timer_.cancel();
    socket_.shutdown(tcp::socket::shutdown_both, ignored);
    socket_.close(ignored);
  }

  tcp::socket socket_;
  asio::steady_timer timer_;
  const communicator_metrics* metrics_;
  asio::streambuf request_{most_request_bytes};
  std::string text_;
};

}  // namespace

void write_metrics_file(const std::string& path, const std::string& text) {
  // Node exporter reads *.prom only, so the half-written one needs another ending.
  const std::string beside = fmt::format("{}.{}.tmp", path, ::getpid());
  const int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) {
    throw_errno("open", "cannot write metrics to " + beside, errno);
  }
  std::size_t done = 0;
  int failure = 0;
  while (done < text.size() && failure == 0) {
    const ssize_t wrote = ::write(fd, text.data() + done, text.size() - done);
    if (wrote >= 0) {
      done += static_cast<std::size_t>(wrote);
    } else if (errno != EINTR) {
      failure = errno;
    }
  }
  if (::close(fd) != 0 && failure == 0) {
    failure = errno;
  }
  if (failure == 0 && ::rename(beside.c_str(), path.c_str()) != 0) {
    failure = errno;
  }
  if (failure != 0) {
    ::unlink(beside.c_str());
    throw_errno("write", "cannot write metrics to " + path, failure);
  }
}

std::string metrics_file_of(const std::string& directory, const flight_identity& who) {
  std::string name = flight_record::file_name(who);
  name = name.substr(0, name.rfind("-gen"));
  return fmt::format("{}/{}.prom", directory, name);
}

std::string http_answer(std::string_view request_line, const communicator_metrics& metrics) {
  const std::string_view method = request_line.substr(0, request_line.find(' '));
  std::string_view path = request_line.substr(std::min(method.size() + 1, request_line.size()));
  path = path.substr(0, path.find_first_of(" ?"));
  std::string status = "200 OK";
  std::string body;
  if (method != "GET") {
    status = "405 Method Not Allowed";
    body = "GET /metrics is what there is.\n";
  } else if (path != "/metrics" && path != "/") {
    status = "404 Not Found";
    body = "GET /metrics is what there is.\n";
  } else {
    body = metrics.exposition();
  }
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
      "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
      status,
      body.size(),
      body);
}

struct metrics_exporter::state {
  state(const communicator_metrics& shown, metrics_settings chosen, diagnostics sink)
      : metrics(&shown), settings(std::move(chosen)), log(std::move(sink)) {}

  void listen() {
    const tcp::endpoint where{asio::ip::address_v4::loopback(),
                              static_cast<std::uint16_t>(settings.port)};
    try {
      acceptor.emplace(io, where);
    } catch (const std::system_error& failure) {
      throw_errno("bind",
                  fmt::format("cannot serve metrics at 127.0.0.1:{}", settings.port),
                  failure.code().value());
    }
    accept();
  }

  void accept() {
    acceptor->async_accept([this](const asio::error_code& failure, tcp::socket socket) {
      if (!failure) {
        std::make_shared<http_connection>(std::move(socket), *metrics)->start();
      }
      if (acceptor->is_open()) {
        accept();
      }
    });
  }

  void write() { write_metrics_file(settings.file, metrics->exposition()); }

  void write_later() {
    timer.expires_after(settings.interval);
    timer.async_wait([this](const asio::error_code& cancelled) {
      if (cancelled) {
        return;
      }
      write_or_report();
      write_later();
    });
  }

  void write_or_report() noexcept {
    try {
      write();
    } catch (const std::exception& failure) {
      log.report_once(severity::warning, "metrics file", failure.what());
    }
  }

  void run() noexcept {
    try {
      io.run();
    } catch (const std::exception& failure) {
      log.report(failure, "metrics");
    }
  }

  const communicator_metrics* metrics;
  metrics_settings settings;
  diagnostics log;
  asio::io_context io{1};
  asio::steady_timer timer{io};
  std::optional<tcp::acceptor> acceptor;
  std::thread thread;
};

metrics_exporter::metrics_exporter(const communicator_metrics& metrics,
                                   metrics_settings settings,
                                   diagnostics log)
    : state_(std::make_unique<state>(metrics, std::move(settings), std::move(log))) {
  if (!state_->settings.file.empty()) {
    state_->write();
    state_->write_later();
  }
  if (state_->settings.port != 0) {
    state_->listen();
  }
  state_->thread = std::thread{[running = state_.get()] { running->run(); }};
}

metrics_exporter::~metrics_exporter() {
  stop();
}

void metrics_exporter::stop() noexcept {
  if (!state_->thread.joinable()) {
    return;
  }
  state_->io.stop();
  state_->thread.join();
  if (!state_->settings.file.empty()) {
    state_->write_or_report();
  }
}

}  // namespace spark_comm
