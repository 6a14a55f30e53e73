// SPDX-License-Identifier: AGPL-3.0-only
// A meeting point that is a file in a folder all ranks see. It carries the addresses of the head,
// whose port the system chose; the rest of the meeting is TCP.
#pragma once

#include <spark_comm/rendezvous/detail/socket.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm::rendezvous::detail {

/// The path of a `file:///path` address; nothing for any other.
[[nodiscard]] std::optional<std::string> path_of(std::string_view address);

/// Text of the file, and back. The reader takes any text: what is no address is left out, and a
/// file of an earlier generation is a failure.
[[nodiscard]] std::string point_text(std::uint64_t generation,
                                     const std::vector<tcp::endpoint>& head);
[[nodiscard]] resolution parse_point(std::string_view text, std::uint64_t generation);

/// What the file says; a file that is not there yet is a failure in words.
[[nodiscard]] resolution read_point(const std::string& path, std::uint64_t generation);

/// Where a listener at `port` on every interface is reached, loopback last.
[[nodiscard]] std::vector<tcp::endpoint> reachable_at(std::uint16_t port);

/// The file while the meeting lasts: it appears whole, and goes with the object unless another head
/// has put its own in the same place.
class published_point {
 public:
  /// Throws: system_failed.
  published_point(std::string path, std::string text);
  published_point(const published_point&) = delete;
  published_point& operator=(const published_point&) = delete;
  published_point(published_point&&) = delete;
  published_point& operator=(published_point&&) = delete;
  ~published_point();

 private:
  std::string path_;
  std::string text_;
};

}  // namespace spark_comm::rendezvous::detail
