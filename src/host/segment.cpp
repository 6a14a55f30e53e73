// SPDX-License-Identifier: AGPL-3.0-only
#include "segment.hpp"

#include "last_error.hpp"
#include "nccl_abi.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <fmt/core.h>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <utility>

namespace spark_comm::host::nccl {
namespace {

std::uint64_t machine_hash() {
  std::ifstream file{"/proc/sys/kernel/random/boot_id"};
  std::string text;
  std::getline(file, text);
  return std::hash<std::string>{}(text);
}

std::uint64_t pid_namespace() noexcept {
  struct stat status{};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

// Field 22 of /proc/<pid>/stat; 0 when there is no such process. The command's name, in
// parentheses, may hold blanks and parentheses itself, so the fields are counted from its last one.
std::uint64_t start_time_of(int pid) {
  std::ifstream file{fmt::format("/proc/{}/stat", pid)};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) {
    return 0;
  }
  std::istringstream fields{text.substr(name_end + 1)};
  std::string field;
  for (int i = 0; i < 20; ++i) {
    fields >> field;
  }
  return field.empty() ? 0 : std::stoull(field);
}

int refuse_open(const segment_address& address, int number) {
  if (number == EACCES || number == EPERM) {
    return refuse(
        results::system_error,
        "cannot open the unique id of process {}: {}; all ranks must run as one user, and "
        "the creator must be dumpable",
        address.pid,
        text_of_errno(number));
  }
  return refuse(results::system_error,
                "cannot open the unique id of process {}: {}; its creator has ended, or its "
                "communicator is gone (an id serves one communicator)",
                address.pid,
                text_of_errno(number));
}

}  // namespace

segment::segment(segment&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

segment& segment::operator=(segment&& other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = std::exchange(other.descriptor_, -1);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

segment::~segment() {
  close();
}

void segment::close() noexcept {
  if (data_ != nullptr) {
    static_cast<void>(::munmap(data_, bytes_));
  }
  if (descriptor_ >= 0) {
    static_cast<void>(::close(descriptor_));
  }
  descriptor_ = -1;
  data_ = nullptr;
  bytes_ = 0;
}

int segment::create(std::size_t bytes, std::size_t reserved_bytes) {
  close();
  descriptor_ = ::memfd_create("spark_comm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor_ < 0) {
    return refuse(results::system_error, "memfd_create: {}", text_of_errno(errno));
  }
  // A file that can shrink could take mapped pages away, which would be SIGBUS.
  if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(descriptor_, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    return refuse(results::system_error,
                  "cannot size {} bytes of shared memory: {}",
                  bytes,
                  text_of_errno(errno));
  }
  return reserve(0, reserved_bytes);
}

int segment::open(const segment_address& address) {
  close();
  if (address.magic != segment_address_magic) {
    return refuse(results::invalid_argument,
                  "this unique id was not made by ncclGetUniqueId of the host runtime, or was cut");
  }
  if (address.machine != machine_hash()) {
    return refuse(
        results::system_error,
        "this unique id was made on another machine; the host runtime joins ranks of one");
  }
  if (address.pid_namespace != pid_namespace()) {
    return refuse(results::system_error,
                  "this unique id was made in another pid namespace; the host runtime needs all "
                  "ranks in one");
  }
  if (start_time_of(address.pid) != address.start_time) {
    return refuse(
        results::system_error, "process {}, which made this unique id, has ended", address.pid);
  }
  const std::string path = fmt::format("/proc/{}/fd/{}", address.pid, address.descriptor);
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor_ < 0) {
    return refuse_open(address, errno);
  }
  struct stat status{};
  if (::fstat(descriptor_, &status) != 0 || status.st_ino != address.inode) {
    close();
    return refuse_open(address, ENOENT);
  }
  return results::success;
}

int segment::map(std::size_t bytes) {
  struct stat status{};
  if (::fstat(descriptor_, &status) != 0 ||
      (static_cast<std::size_t>(status.st_size) < bytes &&
       ::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0)) {
    return refuse(results::system_error,
                  "cannot size {} bytes of shared memory: {}",
                  bytes,
                  text_of_errno(errno));
  }
  if (data_ != nullptr) {
    static_cast<void>(::munmap(std::exchange(data_, nullptr), bytes_));
  }
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (address == MAP_FAILED) {
    return refuse(results::system_error,
                  "cannot map {} bytes of shared memory: {}",
                  bytes,
                  text_of_errno(errno));
  }
  data_ = static_cast<std::byte*>(address);
  bytes_ = bytes;
  return results::success;
}

int segment::reserve(std::size_t offset, std::size_t bytes) const {
  int number = EINTR;
  while (number == EINTR) {
    number = ::posix_fallocate(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  }
  if (number != 0) {
    return refuse(results::system_error,
                  "cannot reserve {} bytes of shared memory: {}",
                  bytes,
                  text_of_errno(number));
  }
  return results::success;
}

int segment::describe(std::uint64_t token, segment_address& address) const {
  struct stat status{};
  if (::fstat(descriptor_, &status) != 0) {
    return refuse(results::system_error, "fstat: {}", text_of_errno(errno));
  }
  const int pid = ::getpid();
  address = {.magic = segment_address_magic,
             .token = token,
             .inode = status.st_ino,
             .start_time = start_time_of(pid),
             .machine = machine_hash(),
             .pid_namespace = pid_namespace(),
             .pid = pid,
             .descriptor = descriptor_};
  return results::success;
}

int make_token(std::uint64_t& token) {
  ssize_t got = -1;
  do {
    got = ::getrandom(&token, sizeof token, 0);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof token)) {
    return refuse(results::system_error, "getrandom: {}", text_of_errno(errno));
  }
  return results::success;
}

}  // namespace spark_comm::host::nccl
