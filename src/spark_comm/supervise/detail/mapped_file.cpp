// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/unique_handle.hpp>
#include <spark_comm/supervise/detail/mapped_file.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <span>
#include <string>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <unistd.h>
#include <utility>

namespace spark_comm::detail {
namespace {

struct file_traits {
  using handle_type = int;

  static constexpr int null() noexcept { return -1; }

  // A descriptor without unwritten data of its own: nothing can be done about a failing close.
  static void close(int descriptor) noexcept { ::close(descriptor); }
};

using file = unique_handle<file_traits>;

/// Unlinks its path unless told that the file is wanted.
class unfinished_file {
 public:
  explicit unfinished_file(std::string path) : path_(std::move(path)) {}

  unfinished_file(const unfinished_file&) = delete;
  unfinished_file& operator=(const unfinished_file&) = delete;
  unfinished_file(unfinished_file&&) = delete;
  unfinished_file& operator=(unfinished_file&&) = delete;

  ~unfinished_file() {
    if (!path_.empty()) {
      ::unlink(path_.c_str());
    }
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  void rename_to(const std::string& final_path) {
    if (std::rename(path_.c_str(), final_path.c_str()) != 0) {
      throw_errno("rename", fmt::format("cannot put '{}' in place", final_path), errno);
    }
    path_.clear();
  }

 private:
  std::string path_;
};

void reserve(const file& target, const std::string& path, std::size_t length_bytes) {
  // The call gives its error as its value and restarts are up to us.
  int result = EINTR;
  for (int attempt = 0; attempt < 100 && result == EINTR; ++attempt) {
    result = ::posix_fallocate(target.get(), 0, static_cast<off_t>(length_bytes));
  }
  if (result == 0) {
    return;
  }
  std::string text = fmt::format("cannot reserve {} bytes for '{}'", length_bytes, path);
  struct statvfs space{};
  if (::fstatvfs(target.get(), &space) == 0) {
    text += fmt::format(", {} bytes are free there",
                        static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize);
  }
  throw_errno("posix_fallocate", text, result);
}

mapping map(int descriptor, int flags, std::size_t length_bytes, const std::string& what) {
  void* address = ::mmap(nullptr, length_bytes, PROT_READ | PROT_WRITE, flags, descriptor, 0);
  if (address == MAP_FAILED) {
    throw_errno("mmap", fmt::format("cannot map {} bytes of {}", length_bytes, what), errno);
  }
  return mapping::adopt(address, {.length_bytes = length_bytes});
}

}  // namespace

void mapping_traits::close(void* address) const noexcept {
  ::munmap(address, length_bytes);
}

mapping map_new_file(const std::string& path,
                     std::span<const std::byte> head,
                     std::size_t length_bytes) {
  const std::string draft_path = fmt::format("{}.{}.new", path, ::getpid());
  ::unlink(draft_path.c_str());  // left by a namesake process that was killed just here
  const file target = file::adopt(
      ::open(draft_path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!target) {
    throw_errno("open", fmt::format("cannot create '{}'", draft_path), errno);
  }
  unfinished_file draft{draft_path};
  reserve(target, path, length_bytes);
  mapping mapped = map(target.get(), MAP_SHARED, length_bytes, fmt::format("'{}'", path));
  std::memcpy(mapped.get(), head.data(), head.size());
  draft.rename_to(path);
  return mapped;
}

mapping map_anonymous(std::size_t length_bytes) {
  return map(-1, MAP_PRIVATE | MAP_ANONYMOUS, length_bytes, "memory");
}

}  // namespace spark_comm::detail
