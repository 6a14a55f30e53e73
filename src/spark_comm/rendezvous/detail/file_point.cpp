// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/unique_handle.hpp>
#include <spark_comm/rendezvous/detail/file_point.hpp>
#include <spark_comm/rendezvous/detail/socket.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace spark_comm::rendezvous::detail {
namespace {

constexpr std::string_view scheme = "file://";
constexpr std::string_view first_line = "spark_comm meeting 1";
constexpr std::size_t max_file_bytes = std::size_t{64} << 10;
constexpr mode_t file_mode = 0644;

struct descriptor_traits {
  using handle_type = int;

  static int null() noexcept { return -1; }

  void close(int fd) const noexcept { ::close(fd); }
};

using descriptor = unique_handle<descriptor_traits>;

constexpr std::string_view generation_word = "generation ";

// Nothing for a line that names none.
std::optional<std::uint64_t> generation_of(std::string_view line) {
  if (!line.starts_with(generation_word)) {
    return std::nullopt;
  }
  line.remove_prefix(generation_word.size());
  std::uint64_t number = 0;
  const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), number);
  return failure == std::errc{} && end == line.data() + line.size() ? std::optional{number}
                                                                    : std::nullopt;
}

std::string_view next_line(std::string_view& text) {
  const auto end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

/// Nothing if it cannot be opened or read; `failure` says why.
std::optional<std::string> read_file(const std::string& path, int& failure) {
  const auto file = descriptor::adopt(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    failure = errno;
    return std::nullopt;
  }
  std::string text(max_file_bytes, '\0');
  std::size_t used = 0;
  while (used < text.size()) {
    const auto got = ::read(file.get(), text.data() + used, text.size() - used);
    if (got < 0 && errno != EINTR) {
      failure = errno;
      return std::nullopt;
    }
    if (got == 0) {
      break;
    }
    used += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  }
  text.resize(used);
  return text;
}

void write_file(const std::string& path, std::string_view text) {
  const auto file =
      descriptor::adopt(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, file_mode));
  if (!file) {
    throw_errno("open", fmt::format("cannot create {}", path), errno);
  }
  while (!text.empty()) {
    const auto put = ::write(file.get(), text.data(), text.size());
    if (put < 0 && errno != EINTR) {
      throw_errno("write", fmt::format("cannot write {}", path), errno);
    }
    text.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(put, 0)));
  }
}

std::optional<tcp::endpoint> endpoint_of(const ifaddrs& interface, std::uint16_t port) {
  if (interface.ifa_addr == nullptr || (interface.ifa_flags & IFF_UP) == 0) {
    return std::nullopt;
  }
  const int family = interface.ifa_addr->sa_family;
  if (family != AF_INET && family != AF_INET6) {
    return std::nullopt;
  }
  tcp::endpoint out;
  const std::size_t bytes = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::memcpy(out.data(), interface.ifa_addr, bytes);
  out.resize(bytes);
  out.port(port);
  // Another host knows the interface by another name.
  const bool is_local = out.address().is_v6() && out.address().to_v6().is_link_local();
  return is_local ? std::nullopt : std::optional{out};
}

}  // namespace

std::optional<std::string> path_of(std::string_view address) {
  if (!address.starts_with(scheme)) {
    return std::nullopt;
  }
  return std::string{address.substr(scheme.size())};
}

std::string point_text(std::uint64_t generation, const std::vector<tcp::endpoint>& head) {
  std::string text = fmt::format("{}\n{}{}\n", first_line, generation_word, generation);
  for (const tcp::endpoint& each : head) {
    text += to_text(each) + "\n";
  }
  return text;
}

resolution parse_point(std::string_view text, std::uint64_t generation) {
  resolution out;
  if (next_line(text) != first_line) {
    out.failure = "it is not a meeting point";
    return out;
  }
  const auto published = generation_of(next_line(text));
  if (!published) {
    out.failure = "it is not a meeting point";
    return out;
  }
  if (*published < generation) {
    out.failure = "it is of an earlier generation";
    return out;
  }
  while (!text.empty()) {
    if (const auto endpoint = try_parse_numeric(std::string{next_line(text)})) {
      out.endpoints.push_back(*endpoint);
    }
  }
  if (out.endpoints.empty()) {
    out.failure = "it has no address";
  }
  return out;
}

resolution read_point(const std::string& path, std::uint64_t generation) {
  int failure = 0;
  const auto text = read_file(path, failure);
  if (!text) {
    return {.endpoints = {},
            .failure = fmt::format("{}: {}", path, std::generic_category().message(failure))};
  }
  resolution out = parse_point(*text, generation);
  if (!out.failure.empty()) {
    out.failure = fmt::format("{}: {}", path, out.failure);
  }
  return out;
}

std::vector<tcp::endpoint> reachable_at(std::uint16_t port) {
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) {
    throw_errno("getifaddrs", "cannot list this machine's addresses", errno);
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list{raw, &::freeifaddrs};
  std::vector<tcp::endpoint> out;
  for (const ifaddrs* each = list.get(); each != nullptr; each = each->ifa_next) {
    if (const auto endpoint = endpoint_of(*each, port)) {
      out.push_back(*endpoint);
    }
  }
  std::ranges::stable_partition(
      out, [](const tcp::endpoint& each) { return !each.address().is_loopback(); });
  return out;
}

published_point::published_point(std::string path, std::string text)
    : path_(std::move(path)), text_(std::move(text)) {
  // A folder of several hosts: the process id alone does not make the name unique.
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const std::string draft = fmt::format("{}.{}.{}", path_, host.data(), ::getpid());
  ::unlink(draft.c_str());  // left by a process of the same number that died here
  write_file(draft, text_);
  if (::rename(draft.c_str(), path_.c_str()) != 0) {
    const int failure = errno;
    ::unlink(draft.c_str());
    throw_errno("rename", fmt::format("cannot put the meeting point at {}", path_), failure);
  }
}

published_point::~published_point() {
  int ignored = 0;
  if (read_file(path_, ignored) == text_) {
    ::unlink(path_.c_str());
  }
}

}  // namespace spark_comm::rendezvous::detail
