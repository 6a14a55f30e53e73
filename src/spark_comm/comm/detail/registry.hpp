// SPDX-License-Identifier: AGPL-3.0-only
// What a program has registered with a communicator, for all of its generations: each new one gets
// everything anew, and a handle of an old one is never passed to NCCL again.
#pragma once

#include <spark_comm/core/time.hpp>
#include <spark_comm/nccl/abi.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

namespace spark_comm::cuda {
class device_buffer;
}  // namespace spark_comm::cuda

namespace spark_comm::detail {

class communicator_core;

/// How memory is registered.
enum class registration_kind : std::uint8_t {
  buffer,  ///< By each rank for itself.
  window,  ///< By all ranks together.
};

[[nodiscard]] std::string_view name_of(registration_kind kind) noexcept;

/// A range of memory to be registered.
struct memory_range {
  registration_kind kind = registration_kind::buffer;
  void* address = nullptr;
  std::size_t bytes = 0;
};

/// What NCCL made of a range, in one generation. Null when it took no notice.
struct native_registration {
  std::uint64_t generation = 0;  ///< 0: in none yet.
  void* handle = nullptr;
};

/// Threads: any; of two that register at a time one is told that the communicator is in use.
class registry : public std::enable_shared_from_this<registry> {
 public:
  using number = std::uint64_t;

  /// Registers a range with a ready core, and with those that follow it. `owner`, where there is
  /// one, is asked to tell before it frees the memory.
  /// Throws: invalid_argument; what the core throws.
  [[nodiscard]] number add(communicator_core& core,
                           const memory_range& range,
                           const cuda::device_buffer* owner,
                           const deadline& until);

  /// Registers everything with a core that has just connected, in the order of the first time.
  void renew(communicator_core& core, const deadline& until);

  /// Takes a range back. Does nothing when it has been, or when the core is no more.
  /// Throws: invalid_usage while operations are outstanding or another thread is inside; it stays.
  void remove(number which);

  /// The same for destructors: waits a moment for what is outstanding, and reports.
  /// `reason` is said in a warning; empty for none.
  void discard(number which, std::string_view reason) noexcept;

  /// Takes everything back from a core that is about to end in order. Who: inside the gate.
  void detach(communicator_core& core) noexcept;

  /// As of the core that is ready now; nothing of an older one.
  [[nodiscard]] native_registration find(number which) const;

 private:
  struct entry {
    number id;
    memory_range range;
    native_registration native;
    std::shared_ptr<void> watch;  // on the owner of the memory
  };

  [[nodiscard]] std::shared_ptr<communicator_core> present() const;
  /// The entry, if the core that is ready now has it.
  [[nodiscard]] std::optional<entry> current(number which) const;
  [[nodiscard]] std::vector<entry> snapshot() const;
  /// False when it was taken back meanwhile.
  bool keep(number which, const native_registration& native);
  /// The entry, which is in the list no more; nothing if it was not.
  [[nodiscard]] std::optional<entry> take(number which);

  mutable std::mutex mutex_;
  std::vector<entry> entries_;  // in the order in which they were made
  number last_ = 0;
  std::weak_ptr<communicator_core> core_;
};

}  // namespace spark_comm::detail
