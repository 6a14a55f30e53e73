// SPDX-License-Identifier: AGPL-3.0-only
// The memory that the ranks of one communicator share: an anonymous file, found by its number in
// the creator's /proc entry, so that nothing has a name and nothing is left behind by a crash.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spark_comm::host::nccl {

/// Where a segment is to be found: the content of a unique id. A secret by its token.
struct segment_address {
  std::uint64_t magic = 0;
  std::uint64_t token = 0;          ///< Random; also in the segment's header.
  std::uint64_t inode = 0;          ///< Of the file, against a reused descriptor number.
  std::uint64_t start_time = 0;     ///< Of the creator, against a reused pid.
  std::uint64_t machine = 0;        ///< Hash of the boot id.
  std::uint64_t pid_namespace = 0;  ///< Its inode: a pid means something inside it only.
  std::int32_t pid = 0;
  std::int32_t descriptor = -1;
};

/// A descriptor of the shared file and, once mapped, its memory. Move-only owner of both.
class segment {
 public:
  segment() noexcept = default;
  segment(const segment&) = delete;
  segment& operator=(const segment&) = delete;
  segment(segment&& other) noexcept;
  segment& operator=(segment&& other) noexcept;
  ~segment();

  /// Makes a new file of `bytes`, all holes, with its first `reserved_bytes` in memory.
  [[nodiscard]] int create(std::size_t bytes, std::size_t reserved_bytes);

  /// Opens another process's (or this one's) file. system_error says why it cannot.
  [[nodiscard]] int open(const segment_address& address);

  /// Makes the file at least `bytes` long and maps all of it.
  [[nodiscard]] int map(std::size_t bytes);

  /// Makes sure of the memory behind a range, so that touching it later cannot fail.
  ///
  /// An anonymous file has no size limit of its own, but strict overcommit can refuse a page, which
  /// would be SIGBUS at the first touch. Every range is therefore reserved before it is written, by
  /// the rank that writes it; readers follow a counter that the writer raised.
  [[nodiscard]] int reserve(std::size_t offset, std::size_t bytes) const;

  /// Where peers find it. Valid as long as this object lives.
  [[nodiscard]] int describe(std::uint64_t token, segment_address& address) const;

  [[nodiscard]] std::byte* data() const noexcept { return data_; }

  [[nodiscard]] bool is_open() const noexcept { return descriptor_ >= 0; }

  /// Unmaps and closes.
  void close() noexcept;

 private:
  int descriptor_ = -1;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// 64 bits that nobody can guess.
[[nodiscard]] int make_token(std::uint64_t& token);

inline constexpr std::uint64_t segment_address_magic = 0x3164692d6d6f6373;  // "scom-id1"

}  // namespace spark_comm::host::nccl
