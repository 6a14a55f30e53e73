// SPDX-License-Identifier: AGPL-3.0-only
// The key that ranks of different machines share.
#pragma once

#include <spark_comm/core/export.hpp>
#include <spark_comm/rendezvous/environment.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace spark_comm::rendezvous {

/// A pre-shared key. It is never part of a message, cannot be printed, and its memory is wiped when
/// the last copy goes.
///
/// Who holds it may join, and whoever watches a handshake can try out guesses at it: make it at
/// random, for instance with `openssl rand -hex 32`.
class SPARK_COMM_API secret {
 public:
  static constexpr std::size_t min_bytes = 16;

  /// White space at both ends is not part of the key.
  /// Throws: invalid_argument for fewer than `min_bytes`.
  [[nodiscard]] static secret from_text(std::string_view text);

  /// Throws: invalid_argument if others than the owner may read the file; system_failed if it
  /// cannot be read; as `from_text`.
  [[nodiscard]] static secret from_file(const std::string& path);

  /// SPARK_COMM_KEY, or the file that SPARK_COMM_KEY_FILE names; nothing if neither is set.
  /// Throws: invalid_argument if both are set; as the functions above.
  [[nodiscard]] static std::optional<secret> from_environment(
      const variable_source& source = process_variable);

  /// For handing it to the cipher, and for nothing else.
  [[nodiscard]] std::span<const std::byte> reveal() const noexcept;

  template <typename Stream>
  friend Stream& operator<<(Stream& out, const secret& key) = delete;

 private:
  struct wiped_bytes;
  explicit secret(std::shared_ptr<const wiped_bytes> key) noexcept;

  std::shared_ptr<const wiped_bytes> key_;
};

}  // namespace spark_comm::rendezvous
