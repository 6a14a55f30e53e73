// SPDX-License-Identifier: AGPL-3.0-only
// The flight record: the last operations of one rank on one communicator, in a file that survives
// the death of the process. Written on the way of every operation, so it costs little and never
// waits.
#pragma once

#include <spark_comm/core/error.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/supervise/detail/mapped_file.hpp>
#include <spark_comm/supervise/flight_entry.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spark_comm {

/// Whose record it is.
struct flight_identity {
  std::string name = "world";  ///< The communicator's.
  int rank = 0;
  int world_size = 1;
  std::uint64_t communicator = 0;
  std::uint32_t generation = 0;
};

/// How a rank left its communicator; 0 in a file means that it never came to say.
enum class flight_end : std::uint8_t {
  closed = 1,   ///< In order.
  broken = 2,   ///< After an error.
  aborted = 3,  ///< By `abort`.
};

/// The ring.
///
/// Threads: one thread submits; one other (the watchdog) says what became of the operations; any
/// may ask for `recent`.
class SPARK_COMM_API flight_record {
 public:
  static constexpr std::size_t default_capacity = 4096;

  /// A record in `directory`, or in plain memory if that is empty (then it serves error texts
  /// only). `capacity` is rounded up to a power of two. Throws: system_failed with errno and the
  /// path; a full disk is told here and nowhere later. Cost: 128 bytes an entry.
  [[nodiscard]] static flight_record create(const flight_identity& who,
                                            const std::string& directory,
                                            std::size_t capacity = default_capacity);

  /// The file's name within its directory: "spark_comm-tp-rank0-gen1.flight".
  [[nodiscard]] static std::string file_name(const flight_identity& who);

  /// Writes an operation down and gives its index. Who: the submitting thread, before the launch.
  std::uint64_t submitted(const operation_record& record,
                          time_point now,
                          std::uint64_t signature = 0) noexcept;

  /// What became of it. Does nothing when the ring has gone past `index`. Who: the watchdog.
  void started(std::uint64_t index, time_point at) noexcept;
  void completed(std::uint64_t index, time_point at) noexcept;
  void failed(std::uint64_t index,
              time_point at,
              errc code,
              native_domain domain = native_domain::none,
              std::int64_t native_number = 0) noexcept;

  /// The last word. Threads: any.
  void ended(flight_end how) noexcept;

  /// The last operations, oldest first, at most `count`. An entry that is being overwritten is left
  /// out. Threads: any.
  [[nodiscard]] std::vector<flight_entry> recent(std::size_t count) const;

  /// The operation at `index`, if the ring still holds it. Threads: any.
  [[nodiscard]] std::optional<flight_entry> find(std::uint64_t index) const noexcept;

  /// Empty for a record in plain memory.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

 private:
  flight_record(detail::mapping memory, std::string path, std::size_t capacity) noexcept;

  [[nodiscard]] std::uint64_t* entry(std::uint64_t index) const noexcept;
  void finished(std::uint64_t index, time_point at, std::uint64_t outcome) noexcept;

  detail::mapping memory_;
  std::string path_;
  std::size_t capacity_;
};

}  // namespace spark_comm
