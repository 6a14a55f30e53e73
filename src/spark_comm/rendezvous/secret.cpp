// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/unique_handle.hpp>
#include <spark_comm/rendezvous/environment.hpp>
#include <spark_comm/rendezvous/secret.hpp>

#include <cerrno>
#include <cstddef>
#include <fcntl.h>
#include <fmt/format.h>
#include <memory>
#include <openssl/crypto.h>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace spark_comm::rendezvous {

/// Never resized, so that no copy is left where it cannot be wiped.
struct secret::wiped_bytes {
  explicit wiped_bytes(std::span<const std::byte> from) : data(from.begin(), from.end()) {}

  wiped_bytes(const wiped_bytes&) = delete;
  wiped_bytes& operator=(const wiped_bytes&) = delete;
  wiped_bytes(wiped_bytes&&) = delete;
  wiped_bytes& operator=(wiped_bytes&&) = delete;

  ~wiped_bytes() { OPENSSL_cleanse(data.data(), data.size()); }

  std::vector<std::byte> data;
};

namespace {

constexpr std::size_t max_file_bytes = 4096;

struct descriptor_traits {
  using handle_type = int;

  static int null() noexcept { return -1; }

  void close(int fd) const noexcept { ::close(fd); }
};

using descriptor = unique_handle<descriptor_traits>;

/// Wipes a buffer that a key passed through.
class wipe_guard {
 public:
  [[nodiscard]] explicit wipe_guard(std::string& text) noexcept : text_(text) {}

  wipe_guard(const wipe_guard&) = delete;
  wipe_guard& operator=(const wipe_guard&) = delete;
  wipe_guard(wipe_guard&&) = delete;
  wipe_guard& operator=(wipe_guard&&) = delete;

  ~wipe_guard() { OPENSSL_cleanse(text_.data(), text_.size()); }

 private:
  std::string& text_;
};

void check_mode(int fd, const std::string& path) {
  struct stat about{};
  if (::fstat(fd, &about) != 0) {
    throw_errno("fstat", fmt::format("cannot examine the key file {}", path), errno);
  }
  if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    throw error{errc::invalid_argument,
                fmt::format("the key file {} is open to others than its owner (mode {:o}): "
                            "chmod 600 it",
                            path,
                            about.st_mode & 0777U)};
  }
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view white = " \t\r\n";
  const auto first = text.find_first_not_of(white);
  return first == std::string_view::npos
             ? std::string_view{}
             : text.substr(first, text.find_last_not_of(white) - first + 1);
}

}  // namespace

secret::secret(std::shared_ptr<const wiped_bytes> key) noexcept : key_(std::move(key)) {}

secret secret::from_text(std::string_view text) {
  const std::string_view key = trimmed(text);
  if (key.size() < min_bytes) {
    throw error{errc::invalid_argument,
                fmt::format("the key has {} bytes; at least {} are needed", key.size(), min_bytes)};
  }
  return secret{std::make_shared<const wiped_bytes>(std::as_bytes(std::span{key}))};
}

secret secret::from_file(const std::string& path) {
  const auto file = descriptor::adopt(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    throw_errno("open", fmt::format("cannot open the key file {}", path), errno);
  }
  check_mode(file.get(), path);
  std::string text(max_file_bytes, '\0');
  const wipe_guard guard{text};
  std::size_t used = 0;
  while (used < text.size()) {
    const auto got = ::read(file.get(), text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      throw_errno("read", fmt::format("cannot read the key file {}", path), errno);
    }
    if (got == 0) {
      return from_text(std::string_view{text}.substr(0, used));
    }
    used += static_cast<std::size_t>(got);
  }
  throw error{
      errc::invalid_argument,
      fmt::format(
          "the key file {} has {} bytes or more; is it the right file?", path, max_file_bytes)};
}

std::optional<secret> secret::from_environment(const variable_source& source) {
  auto text = source("SPARK_COMM_KEY");
  const auto path = source("SPARK_COMM_KEY_FILE");
  if (text && path) {
    OPENSSL_cleanse(text->data(), text->size());
    throw error{errc::invalid_argument, "both SPARK_COMM_KEY and SPARK_COMM_KEY_FILE are set"};
  }
  if (text) {
    const wipe_guard guard{*text};
    return from_text(*text);
  }
  return path ? std::optional{from_file(*path)} : std::nullopt;
}

std::span<const std::byte> secret::reveal() const noexcept {
  return key_->data;
}

}  // namespace spark_comm::rendezvous
